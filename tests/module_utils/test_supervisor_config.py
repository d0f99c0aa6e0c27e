"""supervisord's own parser, given the rendered text, comes to the very strings it was made of."""

import shlex
import sys
from pathlib import Path

import pytest
from ansible.module_utils.supervisor_config import (
    SupervisorConfigError,
    quote_variable,
    render_daemon,
    render_program,
)
from ansible.module_utils.supervisor_layout import SupervisorLayout
from hypothesis import example, given
from hypothesis import strategies as st
from supervisor.options import ServerOptions

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from process_strings import arguments, environments

PROGRAM = "/opt/ddtree/venv/bin/ddtree"
OPTIONS = {"start_s": 5, "start_retries": 3, "stop_timeout_s": 60, "log_max_mb": 50, "log_backups": 3}


def parsed(folder, argv, environment, directory=None):
    """(argv, environment, supervisord's and the program's settings) as supervisord reads them, env(1) carried out."""
    layout = SupervisorLayout(str(folder), "ddtree")
    text = render_daemon(layout, as_root=False) + render_program(layout, argv, environment, directory, OPTIONS)
    Path(layout.config).write_text(text, newline="")
    options = ServerOptions()
    options.realize(["-c", layout.config])
    (group,) = options.process_group_configs
    (program,) = group.process_configs
    words, received = shlex.split(program.command), dict(program.environment)
    if words[0] == "/usr/bin/env":
        first = next(index for index, word in enumerate(words[1:], 1) if "=" not in word)
        received.update(word.split("=", 1) for word in words[1:first])
        words = words[first:]
    return words, received, options, program


@given(arguments(refused="\r"), environments(refused="\r"))
@example(
    ["a ;b", "a #b", ";", "# c", "\u3000;x", "'\";", "%(here)s"],
    {"A": 'it\'s "5"', "B": "'q'", "C": "x ;y", "D": "", "E": "a=b,c"},
)
def test_argv_and_environment_survive(tmp_path_factory, words, environment):
    folder = tmp_path_factory.getbasetemp() / "supervisor"
    folder.mkdir(exist_ok=True)
    received_words, received, _, _ = parsed(folder, [PROGRAM, *words], environment)
    assert received_words == [PROGRAM, *words]
    assert received == environment


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("", '""'),
        ("plain", '"plain"'),
        ("it's", '"it\'s"'),
        ('{"a": 1, "b": "c d"}', '\'{"a": 1, "b": "c d"}\''),
        (";", '";"'),
        ("a;b#c", '"a;b#c"'),
        # No form: these go through env(1).
        ('it\'s "5"', None),
        ('"5"', None),
        ("a ;b", None),
        ("a\u3000#b", None),
    ],
)
def test_which_variables_stand_in_the_environment_setting(value, quoted):
    assert quote_variable(value) == quoted


@pytest.mark.parametrize("name", ["plain", "with space", "50%", "a;b", "%(here)s", "ü", "it's", 'q"q', "a=b", "[x]"])
def test_any_folder_serves(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    _, _, options, program = parsed(folder, [PROGRAM], {}, directory=str(folder))
    section = options.configroot.supervisord
    layout = SupervisorLayout(str(folder), "ddtree")
    assert section.logfile == layout.log
    assert section.pidfile == layout.pidfile
    assert section.childlogdir == str(folder)
    assert program.stdout_logfile == layout.program_log
    assert program.directory == str(folder)
    assert section.server_configs[0]["file"] == layout.socket


def test_the_settings_of_the_program(tmp_path):
    _, _, _, program = parsed(tmp_path, [PROGRAM, 8000, 0.5], {"PORT": 8000})
    assert (program.startsecs, program.startretries, program.stopwaitsecs) == (5, 3, 60)
    assert program.autorestart.__name__ == "RestartUnconditionally"
    assert program.stopasgroup
    assert program.killasgroup
    assert program.redirect_stderr
    assert program.stdout_logfile_maxbytes == 50 << 20
    assert shlex.split(program.command) == [PROGRAM, "8000", "0.5"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"argv": [PROGRAM, "a\nb"]}, ["argv[1]", "newline", "position 1"]),
        ({"argv": [PROGRAM, "a\rb"]}, ["argv[1]", "carriage return"]),
        ({"argv": [PROGRAM, True]}, ["argv[1]", "True"]),
        ({"argv": ["ddtree"]}, ["argv[0]", "'ddtree'", "absolute"]),
        ({"argv": []}, ["argv", "[]"]),
        ({"argv": "ddtree serve"}, ["argv", "ddtree serve"]),
        ({"environment": {"PROMPT": "a\nb"}}, ["environment variable PROMPT", "newline"]),
        ({"environment": {"KEY": "\0"}}, ["environment variable KEY", "NUL"]),
        ({"environment": {"KEY": "\ud800"}}, ["environment variable KEY", "U+D800"]),
        ({"environment": {"A-B": "x"}}, ["environment variable A-B"]),
        ({"environment": {"A": 'it\'s "5"'}, "argv": ["/opt/a=b"]}, ["argv[0]", "/opt/a=b", "A has a value"]),
        ({"name": "a b"}, ["name", "'a b'"]),
        ({"name": "a:b"}, ["name", "'a:b'"]),
        ({"folder": "/srv/a ;b"}, ["/srv/a ;b", "another folder"]),
        ({"directory": "relative"}, ["directory", "'relative'"]),
    ],
)
def test_what_the_configuration_cannot_carry_is_refused_by_name(changes, named):
    values = {"name": "ddtree", "folder": "/srv/x", "argv": [PROGRAM], "environment": {}, "directory": None, **changes}
    layout = SupervisorLayout(values["folder"], values["name"])
    with pytest.raises(SupervisorConfigError) as raised:
        render_program(layout, values["argv"], values["environment"], values["directory"], OPTIONS)
    for part in named:
        assert part in str(raised.value)


@given(st.integers(1, 200))
def test_the_socket_s_path_is_short_however_long_the_folder_s(length):
    folder = "/" + "x" * length
    socket = SupervisorLayout(folder, "ddtree").socket
    assert len(socket.encode()) + len(".4194304") <= 107
    assert socket.startswith(folder + "/") == (len(folder) + len("/supervisor.sock") <= 99)
