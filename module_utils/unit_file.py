"""The text of a systemd unit from data, escaped so that the process receives every string unchanged.

Rules (checked with systemd 252): systemd.syntax(7), systemd.service(5) "COMMAND LINES", systemd.exec(5) "Environment".
"""

import re

# Words made of these alone mean the same to systemd with and without quotes.
_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")
_SECTION = re.compile(r"[A-Za-z][A-Za-z0-9 -]*")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PREFIXES = "-+!"
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\r": "\\r"}
# LONG_LINE_MAX of systemd, less some room for the key.
_LINE_BYTES = (1 << 20) - 64
HEADER = "# Written by Ansible (systemd_unit): changes made here are overwritten.\n"


class UnitError(ValueError):
    """A value that a unit cannot carry; the message names the key, the value and the next step."""


def _text(value, what: str) -> str:
    """The value as text, refused where systemd would alter or drop it."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UnitError(f"{what}: {value!r} is not text; quote exactly what the process is to read")
    text = str(value)
    for position, character in enumerate(text):
        code = ord(character)
        if character == "\n":
            problem = "a newline; put the text into a file and pass the file's name"
        elif character == "\0":
            problem = "a NUL character, which no process can receive; remove it"
        elif 0xD800 <= code <= 0xDFFF or 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE:
            problem = f"U+{code:04X}, which is not valid UTF-8 text for systemd; remove it"
        else:
            continue
        raise UnitError(f"{what}: position {position} holds {problem}")
    return text


def quote(text: str) -> str:
    """One word of a line: C escapes inside double quotes, `%` doubled against specifiers."""
    if _PLAIN.fullmatch(text):
        return text
    escaped = "".join(
        _ESCAPES.get(character) or (f"\\x{ord(character):02x}" if character < " " or character == "\x7f" else character)
        for character in text
    )
    return '"' + escaped.replace("%", "%%") + '"'


def command_line(argv: list, what: str, prefixes: str = "") -> str:
    """The value of an Exec line. `$` is doubled: systemd puts variables into arguments, not into the program's path."""
    if not isinstance(argv, list) or not argv:
        raise UnitError(f"{what}: {argv!r} is not a list with a program and its arguments")
    words = [_text(word, f"{what}[{index}]") for index, word in enumerate(argv)]
    program = words[0].lstrip(prefixes) if prefixes else words[0]
    if not program.startswith("/") or program.endswith("/"):
        raise UnitError(f"{what}[0]: {words[0]!r} is not the absolute path of a program")
    if any(character in "\"'\\$\x7f" or character < " " for character in program):
        raise UnitError(
            f"{what}[0]: {words[0]!r} holds a quote, a backslash, `$` or a control character; rename the program"
        )
    return _bounded(" ".join([quote(words[0]), *(quote(word.replace("$", "$$")) for word in words[1:])]), what)


def environment_lines(environment: dict) -> list[str]:
    """`Environment=` lines, one a variable, in the order given. `$` is literal there."""
    lines = []
    for name, value in environment.items():
        what = f"environment variable {name}"
        if not _VARIABLE.fullmatch(str(name)):
            raise UnitError(f"{what}: not a name of a variable (letters, digits and _, not beginning with a digit)")
        lines.append("Environment=" + _bounded(quote(f"{name}={_text(value, what)}"), what))
    return lines


def _bounded(line: str, what: str) -> str:
    size_bytes = len(line.encode())
    if size_bytes > _LINE_BYTES:
        raise UnitError(
            f"{what}: needs {size_bytes:,} bytes, a line of a unit holds {_LINE_BYTES:,}; pass a file instead"
        )
    return line


def _verbatim(value, what: str) -> str:
    """A setting in systemd's own syntax: specifiers and quotes in it keep their meaning."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = _text(value, what)
    if text != text.strip() or "\r" in text:
        raise UnitError(
            f"{what}: {text!r} begins or ends with white space or holds a carriage return, which systemd drops"
        )
    if text.endswith("\\"):
        raise UnitError(f"{what}: {text!r} ends with a backslash, which joins the next line to it")
    return _bounded(text, what)


def _setting(key: str, value, what: str) -> list[str]:
    """Lines of one key: a list repeats it, null leaves it out, and in Exec* keys a list of strings is one argv."""
    if value is None:
        return []
    if key.startswith("Exec") and isinstance(value, list):
        commands = [value] if value and not any(isinstance(item, list) for item in value) else value
        return [
            f"{key}={command_line(command, what, _PREFIXES) if isinstance(command, list) else _verbatim(command, what)}"
            for command in commands
        ]
    return [f"{key}={_verbatim(item, what)}" for item in (value if isinstance(value, list) else [value])]


def _settings(section: str, content) -> list[str]:
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list) or not all(isinstance(item, dict) for item in content):
        raise UnitError(f"[{section}]: {content!r} is neither a dictionary nor a list of dictionaries")
    lines = []
    for key, value in (pair for item in content for pair in item.items()):
        if not _KEY.fullmatch(str(key)):
            raise UnitError(f"[{section}]: {key!r} is not the name of a setting")
        lines += _setting(key, value, f"[{section}] {key}")
    return lines


def render(sections: dict, argv: list | None = None, environment: dict | None = None) -> str:
    """The whole unit. `environment` and `argv` close the [Service] section; sections and keys keep their order."""
    blocks = {}
    for section, content in sections.items():
        if not _SECTION.fullmatch(str(section)):
            raise UnitError(f"{section!r} is not the name of a section")
        blocks[section] = _settings(section, content)
    added = environment_lines(environment or {})
    if argv is not None:
        if any(line.startswith("ExecStart=") for line in blocks.get("Service", [])):
            raise UnitError("argv and [Service] ExecStart are both given; keep one")
        added.append(f"ExecStart={command_line(argv, 'argv')}")
    if added:
        blocks.setdefault("Service", []).extend(added)
    if not blocks:
        raise UnitError("sections is empty; a unit needs at least one section")
    return HEADER + "".join(
        f"\n[{section}]\n" + "".join(f"{line}\n" for line in lines) for section, lines in blocks.items()
    )
