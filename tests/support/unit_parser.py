"""systemd's reading of a unit, written from its manual pages and not from unit_file.py.

Knows what a renderer may produce: comments, C escapes, quotes, `%%` and `$$`. Anything else raises.
"""

_ESCAPES = dict(zip("abfnrtvs\\\"'", "\a\b\f\n\r\t\v \\\"'", strict=True))


def parse_unit(text: str) -> list[tuple[str, str, str]]:
    """(section, key, value) of every assignment, in order."""
    section, assignments = None, []
    # systemd ends a line at LF, CR and NUL alone; str.splitlines knows many more.
    for line in text.replace("\r", "\n").replace("\0", "\n").split("\n"):
        line = line.strip(" \t")
        assert not line.endswith("\\"), f"continues: {line!r}"
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            assert line[-1] == "]", line
            section = line[1:-1]
            continue
        key, separator, value = line.partition("=")
        assert separator, f"no assignment: {line!r}"
        assert section, f"outside a section: {line!r}"
        assignments.append((section, key.strip(" \t"), value.strip(" \t")))
    return assignments


def split_words(value: str) -> list[str]:
    """Words of a value: quotes may open anywhere, and C escapes count inside and outside of them."""
    words, word, quote, position = [], None, None, 0
    while position < len(value):
        character = value[position]
        position += 1
        if character == "\\":
            kind = value[position]
            if kind in _ESCAPES:
                piece, length = _ESCAPES[kind], 1
            else:
                assert kind == "x", f"unknown escape \\{kind}"
                piece, length = chr(int(value[position + 1 : position + 3], 16)), 3
                assert 0 < ord(piece) < 0x80, "a byte that is not ASCII"
            word = (word or "") + piece
            position += length
        elif quote:
            quote = None if character == quote else quote
            word = word or "" if quote is None else (word or "") + character
        elif character in "\"'":
            quote = character
            word = word or ""
        elif character in " \t":
            words += [] if word is None else [word]
            word = None
        else:
            # Outside quotes a lone semicolon separates commands.
            assert not (character == ";" and word is None and value[position : position + 1] in ("", " ")), (
                "command separator"
            )
            word = (word or "") + character
    assert quote is None, f"unbalanced quotes: {value!r}"
    return words + ([] if word is None else [word])


def expand_specifiers(word: str) -> str:
    parts = word.split("%%")
    assert not any("%" in part for part in parts), f"a specifier: {word!r}"
    return "%".join(parts)


def expand_variables(word: str) -> str:
    parts = word.split("$$")
    assert not any(part.startswith("$") for part in parts[:1]), f"a variable: {word!r}"
    assert not any("${" in part for part in parts), f"a variable: {word!r}"
    return "$".join(parts)


def process_of(text: str) -> tuple[list[list[str]], dict[str, str]]:
    """The argv of every ExecStart and the environment that processes of the unit receive."""
    commands, environment = [], {}
    for section, key, value in parse_unit(text):
        if (section, key) == ("Service", "ExecStart"):
            program, *arguments = map(expand_specifiers, split_words(value))
            commands.append([program, *map(expand_variables, arguments)])
        elif (section, key) == ("Service", "Environment"):
            environment.update(expand_specifiers(word).split("=", 1) for word in split_words(value))
    return commands, environment
