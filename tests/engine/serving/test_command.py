"""The command line of `ddtree serve`: wrong arguments are told apart from one another before anything is loaded."""

from pathlib import Path

import pytest

from ddtree.cli import main
from ddtree.runtime.types import EngineConfig


@pytest.fixture
def model(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    return str(tmp_path)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--port", "70000"], "'70000' is not a port number (0 to 65535)"),
        (["--port", "http"], "'http' is not a port number"),
        (["--max-queue", "-1"], "'-1' is not an integer of at least 0"),
        (["--temperature", "9"], "'9' is not a temperature (0 to 2)"),
        (["--temperature", "nan"], "'nan' is not a temperature"),
        (["--mode", "graph"], "'ar', 'chain', 'tree'"),
        (["--dtype", "int4"], "'float32', 'bfloat16', 'float16'"),
    ],
)
def test_values_that_argparse_refuses(model, capsys, argv, message):
    with pytest.raises(SystemExit) as exit_info:
        main(["serve", "--model", model, *argv])
    assert exit_info.value.code == 2
    error = capsys.readouterr().err.replace("ar, chain, tree", "'ar', 'chain', 'tree'")
    assert message in error.replace("float32, bfloat16, float16", "'float32', 'bfloat16', 'float16'")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--mode", "tree"], "--mode tree needs a drafter; add --drafter DIR or choose --mode ar"),
        (["--mode", "chain"], "--mode chain needs a drafter"),
        (["--budget", "0"], "budget is 0; it must be an integer from 1 to 1024"),
        (["--api-key-file", "/no/such/file"], "--api-key-file /no/such/file: cannot be read"),
        (["--host", "no.such.host.invalid"], "--host no.such.host.invalid"),
        (["--host", "192.0.2.1"], "cannot listen on 192.0.2.1 port 8000"),
    ],
)
def test_user_errors(model, capsys, argv, message):
    assert main(["serve", "--model", model, *argv]) == 2
    assert f"ddtree: error: {message}" in capsys.readouterr().err


def test_a_folder_without_a_model(tmp_path, capsys):
    assert main(["serve", "--model", str(tmp_path)]) == 2
    assert f"--model {tmp_path}: no config.json there" in capsys.readouterr().err


def test_the_help_teaches(capsys):
    with pytest.raises(SystemExit) as exit_info:
        main(["serve", "--help"])
    assert exit_info.value.code == 0
    text = capsys.readouterr().out
    budget = f"({EngineConfig(Path()).budget})"
    for words in ("/health", "SIGTERM", "examples:", "--drafter", "curl", budget, "(127.0.0.1: this machine only)"):
        assert words in text
