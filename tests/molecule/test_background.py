"""Programs in the background, ended by their own process id and no other."""

import json
import socket
import subprocess
import sys
import time

import background
import pytest


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def call(tools, tmp_path):
    def run(*arguments: str) -> subprocess.CompletedProcess:
        action, *rest = arguments
        command = [sys.executable, tools / "background.py", action, "--pid-file", tmp_path / "pid", *rest]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    yield run
    run("stop")


@pytest.fixture
def serve(call, port, tmp_path):
    """Starts a file server by way of the script."""
    command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]
    options = ["--log", str(tmp_path / "log"), "--ready-url", f"http://127.0.0.1:{port}/"]
    return lambda *instead: call("start", *options, "--", *(instead or command))


def test_starts_once_and_stops_once(serve, call, tmp_path):
    assert serve().stdout == "started\n"
    pid = json.loads((tmp_path / "pid").read_text())["pid"]
    assert serve().stdout == "running\n"
    assert json.loads((tmp_path / "pid").read_text())["pid"] == pid
    assert call("stop").stdout == "stopped\n"
    assert background.start_time(pid) is None
    assert call("stop").stdout == "absent\n"


def test_a_stranger_with_the_same_process_id_lives_on(call, tmp_path):
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        (tmp_path / "pid").write_text(json.dumps({"pid": stranger.pid, "start_time": "1"}))
        assert call("stop").stdout == "absent\n"
        time.sleep(0.1)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_port_in_use_is_named(serve, port):
    with subprocess.Popen([sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]) as other:
        try:
            while not background.answers(f"http://127.0.0.1:{port}/"):
                time.sleep(0.05)
            refused = serve()
        finally:
            other.kill()
    assert refused.returncode == 1
    assert f"http://127.0.0.1:{port}/ is answered by another program" in refused.stderr


def test_a_program_that_ends_at_once_is_quoted(serve, tmp_path):
    failed = serve(sys.executable, "-c", "print('no such model'); raise SystemExit(3)")
    assert failed.returncode == 1
    assert "status 3" in failed.stderr
    assert "no such model" in failed.stderr
    assert not (tmp_path / "pid").exists()
