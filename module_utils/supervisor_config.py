"""The text of supervisord.conf from data, escaped so that the program receives each string unchanged.

supervisord 4.3 reads a value in three steps: configparser (white space before `;` or `#` begins a comment, even in
quotes), then Python's `%` operator, then shlex. A command follows POSIX rules; `environment` knows no escapes and loses
every quote at both ends of a value. A variable this cannot express is set by env(1) in front of the command.
"""

from __future__ import annotations

import re
import shlex

from ansible.module_utils.supervisor_layout import SupervisorLayout

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_COMMENT = re.compile(r"\s(?=[;#])")
_ENV = "/usr/bin/env"
HEADER = "; Written by Ansible (supervisor_program): changes made here are overwritten.\n"


class SupervisorConfigError(ValueError):
    """A value that supervisord.conf cannot carry; the message names it, and the next step."""


def _text(value, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise SupervisorConfigError(f"{what}: {value!r} is not text; quote exactly what the process is to read")
    text = str(value)
    for position, character in enumerate(text):
        if character in "\n\r":
            problem = "a newline or carriage return; put the text into a file and pass the file's name"
        elif character == "\0":
            problem = "a NUL character, which no process can receive; remove it"
        elif "\ud800" <= character <= "\udfff":
            problem = f"U+{ord(character):04X}, which is not valid text; remove it"
        else:
            continue
        raise SupervisorConfigError(f"{what}: position {position} holds {problem}")
    return text


def _path(value, what: str) -> str:
    """A path stands without quotes, so that a few are impossible."""
    text = _text(value, what)
    if not text.startswith("/") or text != text.strip() or _COMMENT.search(text):
        raise SupervisorConfigError(
            f"{what}: {text!r} is not an absolute path that supervisord can read "
            "(no `;` or `#` after a space); use another folder"
        )
    return text.replace("%", "%%")


def quote_argument(text: str) -> str:
    """One word of a command, before `%` is doubled: quotes close and open again between a space and a comment sign."""
    return _COMMENT.sub(lambda match: match[0] + "''", shlex.quote(text))


def quote_variable(value: str) -> str | None:
    """A value for `environment=`, before `%` is doubled; None where its syntax has no form for it."""
    if _COMMENT.search(value) or value.strip("'\"") != value:
        return None
    return next((f"{quote}{value}{quote}" for quote in "\"'" if quote not in value), None)


def command_lines(argv: list, environment: dict) -> list[str]:
    """`command=` and, where there are variables, `environment=`."""
    if not isinstance(argv, list) or not argv:
        raise SupervisorConfigError(f"argv: {argv!r} is not a list with a program and its arguments")
    words = [_text(word, f"argv[{index}]") for index, word in enumerate(argv)]
    if not words[0].startswith("/") or words[0].endswith("/"):
        raise SupervisorConfigError(f"argv[0]: {words[0]!r} is not the absolute path of a program")
    pairs, assignments = [], []
    for name, value in environment.items():
        what = f"environment variable {name}"
        if not _VARIABLE.fullmatch(str(name)):
            raise SupervisorConfigError(
                f"{what}: not a name of a variable (letters, digits and _, not beginning with a digit)"
            )
        text = _text(value, what)
        quoted = quote_variable(text)
        if quoted is None:
            assignments.append(f"{name}={text}")
        else:
            pairs.append(f"{name}={quoted}")
    if assignments:
        if "=" in words[0]:
            raise SupervisorConfigError(
                f"argv[0]: {words[0]!r} holds `=`, and {assignments[0].split('=')[0]} has a value "
                "that only env(1) can set; rename the program"
            )
        words = [_ENV, *assignments, *words]
    lines = ["command=" + " ".join(map(quote_argument, words))]
    lines += ["environment=" + ",".join(pairs)] if pairs else []
    return [line.replace("%", "%%") for line in lines]


def render_daemon(layout: SupervisorLayout, as_root: bool) -> str:
    """The part that supervisord reads at its own start only."""
    socket = _path(layout.socket, "socket")
    lines = [
        HEADER,
        "[unix_http_server]",
        f"file={socket}",
        "chmod=0700",
        "",
        "[supervisord]",
        f"logfile={_path(layout.log, 'dir')}",
        "logfile_maxbytes=10MB",
        "logfile_backups=2",
        f"pidfile={_path(layout.pidfile, 'dir')}",
        f"childlogdir={_path(layout.folder, 'dir')}",
        "nodaemon=false",
        # Says that running as root is meant; it is warned of otherwise.
        *(["user=root"] if as_root else []),
        "",
        "[rpcinterface:supervisor]",
        "supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface",
        "",
        "[supervisorctl]",
        f"serverurl=unix://{socket}",
        "",
    ]
    return "\n".join(lines) + "\n"


def render_program(
    layout: SupervisorLayout, argv: list, environment: dict, directory: str | None, options: dict
) -> str:
    """The program's section. `options`: start_s, start_retries, stop_timeout_s, log_max_mb, log_backups (integers)."""
    if not _NAME.fullmatch(layout.name):
        raise SupervisorConfigError(f"name: {layout.name!r} is not a name of letters, digits, `_`, `.` and `-`")
    lines = [
        f"[program:{layout.name}]",
        *command_lines(argv, environment),
        *([f"directory={_path(directory, 'directory')}"] if directory else []),
        "autostart=true",
        "autorestart=true",
        f"startsecs={options['start_s']}",
        f"startretries={options['start_retries']}",
        "stopsignal=TERM",
        f"stopwaitsecs={options['stop_timeout_s']}",
        "stopasgroup=true",
        "killasgroup=true",
        "redirect_stderr=true",
        # This one value goes through the `%` operator twice.
        f"stdout_logfile={_path(layout.program_log, 'dir').replace('%', '%%')}",
        f"stdout_logfile_maxbytes={options['log_max_mb']}MB",
        f"stdout_logfile_backups={options['log_backups']}",
    ]
    return "\n".join(lines) + "\n"
