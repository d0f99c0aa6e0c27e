"""`ddtree mirror` as a process: it says where it serves, ends cleanly, and names what is wrong."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

ENGINE = Path(__file__).resolve().parents[3] / "engine"
REPO_ID = "acme/tiny-model"
# The subcommand alone, so that this test stands on its own.
PROGRAM = """
import argparse, sys
from ddtree import cli
cli.COMMAND_MODULES = ("ddtree.mirror.command",)
sys.exit(cli.main())
"""


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | {"PYTHONPATH": str(ENGINE)}
    command = [sys.executable, "-c", PROGRAM, "mirror", *arguments]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_until(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    for line in process.stderr:
        if match := re.search(pattern, line):
            return match
    raise AssertionError(f"the process ended without saying {pattern}")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_it_serves_until_it_is_told_to_stop(root: Path, number: signal.Signals, status: int) -> None:
    with started("--root", str(root), "--port", "0") as process:
        url = read_until(process, r"on (http://127\.0\.0\.1:\d+);")[1]
        ready = read_until(process, rf"{REPO_ID}: 6 files, 0\.6 MB, commit ([0-9a-f]{{40}})")
        assert httpx.get(f"{url}/api/models/{REPO_ID}", trust_env=False).json()["sha"] == ready[1]
        process.send_signal(number)
        _, rest = process.communicate(timeout=20)
        assert process.returncode == status
        assert "Traceback" not in rest


def test_a_running_download_does_not_hold_it_up(tmp_path: Path, write_files) -> None:
    write_files(tmp_path / REPO_ID, {"weights.bin": os.urandom(24_000_000)})
    with started("--root", str(tmp_path), "--port", "0") as process:
        url = read_until(process, r"on (http://127\.0\.0\.1:\d+);")[1]
        with httpx.stream("GET", f"{url}/{REPO_ID}/resolve/main/weights.bin", trust_env=False, timeout=20) as answer:
            parts = answer.iter_raw(65536)
            next(parts)
            process.send_signal(signal.SIGTERM)
            _, rest = process.communicate(timeout=20)
            with pytest.raises(httpx.TransportError):
                list(parts)
        assert process.returncode == 0
        assert "Traceback" not in rest


def test_what_the_user_can_mend_is_one_line_and_status_2(root: Path, tmp_path: Path) -> None:
    with started("--root", str(root), "--port", "0") as process:
        port = read_until(process, r"on http://127\.0\.0\.1:(\d+);")[1]
        for arguments, named in (
            (("--root", str(root), "--port", port), f"port {port}"),
            (("--root", str(tmp_path / "none")), str(tmp_path / "none")),
            (("--root", str(root), "--host", "192.0.2.1"), "192.0.2.1"),
        ):
            with started(*arguments) as other:
                _, text = other.communicate(timeout=20)
            assert other.returncode == 2
            [line] = [line for line in text.splitlines() if not re.match(r"\d{4}-", line)]
            assert line.startswith("ddtree: error: ")
            assert named in line
