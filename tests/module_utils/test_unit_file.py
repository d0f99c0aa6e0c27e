"""A rendered unit, read by systemd's rules, yields the very strings it was made of; what it cannot carry is refused.

tests/systemd repeats the property with a real systemd.
"""

import sys
from pathlib import Path

import pytest
from ansible.module_utils.unit_file import HEADER, UnitError, render
from hypothesis import given

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from process_strings import arguments, environments
from unit_parser import parse_unit, process_of

PROGRAM = "/opt/ddtree/venv/bin/ddtree"


@given(arguments(), environments())
def test_argv_and_environment_survive(words, environment):
    text = render({"Service": {"Type": "simple"}}, [PROGRAM, *words], environment)
    commands, received = process_of(text)
    assert commands == [[PROGRAM, *words]]
    assert received == environment


@given(arguments(), arguments())
def test_several_commands_survive(first, second):
    text = render({"Service": {"Type": "oneshot", "ExecStart": [[PROGRAM, *first], [PROGRAM, *second]]}})
    assert process_of(text)[0] == [[PROGRAM, *first], [PROGRAM, *second]]


def test_the_text_of_a_unit():
    text = render(
        {
            "Unit": {"Description": "DDTree on %H", "After": ["network-online.target", "nvidia-fabricmanager.service"]},
            "Service": {
                "ExecStartPre": ["-/usr/bin/test", "-e", "/a b"],
                "ExecReload": "/bin/kill -HUP $MAINPID",
                "LimitNOFILE": 1048576,
                "NoNewPrivileges": True,
                "PrivateDevices": False,
                "User": None,
                "ReadWritePaths": "",
            },
            "Install": [{"WantedBy": "multi-user.target"}, {"Alias": "x.service"}, {"WantedBy": "a.target"}],
        },
        [PROGRAM, "serve", "100%", "$HOME", 'it\'s "5"', "", ";", 0.85, 16],
        {"A": "1 2", "PORT": 8000, "EMPTY": ""},
    )
    assert (
        text
        == HEADER
        + r"""
[Unit]
Description=DDTree on %H
After=network-online.target
After=nvidia-fabricmanager.service

[Service]
ExecStartPre=-/usr/bin/test -e "/a b"
ExecReload=/bin/kill -HUP $MAINPID
LimitNOFILE=1048576
NoNewPrivileges=yes
PrivateDevices=no
ReadWritePaths=
Environment="A=1 2"
Environment=PORT=8000
Environment=EMPTY=
ExecStart=/opt/ddtree/venv/bin/ddtree serve "100%%" "$$HOME" "it's \"5\"" "" ";" 0.85 16

[Install]
WantedBy=multi-user.target
Alias=x.service
WantedBy=a.target
"""
    )


def test_argv_alone_makes_a_service_section():
    assert parse_unit(render({}, [PROGRAM])) == [("Service", "ExecStart", PROGRAM)]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"environment": {"PROMPT": "a\nb"}}, ["environment variable PROMPT", "position 1", "newline"]),
        ({"environment": {"KEY": "a\0"}}, ["environment variable KEY", "NUL"]),
        ({"environment": {"KEY": "\ud800"}}, ["environment variable KEY", "U+D800"]),
        ({"environment": {"KEY": "\ufffe"}}, ["environment variable KEY", "U+FFFE"]),
        ({"environment": {"KEY": True}}, ["environment variable KEY", "True", "quote"]),
        ({"environment": {"KEY": None}}, ["environment variable KEY", "None"]),
        ({"environment": {"3X": "a"}}, ["environment variable 3X"]),
        ({"environment": {"A B": "a"}}, ["environment variable A B"]),
        ({"environment": {"BIG": "x" * (1 << 20)}}, ["environment variable BIG", "1,048,"]),
        ({"argv": [PROGRAM, "a", "b\nc"]}, ["argv[2]", "newline"]),
        ({"argv": [PROGRAM, False]}, ["argv[1]", "False"]),
        ({"argv": []}, ["argv", "[]"]),
        ({"argv": ["ddtree", "serve"]}, ["argv[0]", "'ddtree'", "absolute"]),
        ({"argv": ["-/bin/true"]}, ["argv[0]", "absolute"]),
        ({"argv": ["/opt/it's/x"]}, ["argv[0]", "it's", "quote"]),
        ({"argv": ["/opt/${A}/x"]}, ["argv[0]", "${A}"]),
        ({"sections": {"Service": {"ExecStart": "/bin/true"}}, "argv": ["/bin/true"]}, ["argv", "ExecStart"]),
        ({"sections": {"Service": {"User": "a\nb"}}}, ["[Service] User", "newline"]),
        ({"sections": {"Service": {"User": "root "}}}, ["[Service] User", "white space"]),
        ({"sections": {"Unit": {"Description": "a\\"}}}, ["[Unit] Description", "backslash"]),
        ({"sections": {"Unit": {"Description": {"a": "b"}}}}, ["[Unit] Description", "{'a': 'b'}"]),
        ({"sections": {"Unit": {"A=b": "c"}}}, ["[Unit]", "'A=b'"]),
        ({"sections": {"Unit": "Description=x"}}, ["[Unit]", "'Description=x'"]),
        ({"sections": {"Unit]\n[Service": {}}}, ["Service"]),
        ({"sections": {}}, ["sections is empty"]),
    ],
)
def test_what_a_unit_cannot_carry_is_refused_by_name(arguments, named):
    with pytest.raises(UnitError) as raised:
        render(**{"sections": {"Service": {"Type": "simple"}}, **arguments})
    for part in named:
        assert part in str(raised.value)
