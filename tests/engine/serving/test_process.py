"""`ddtree serve` as a process: its exit statuses, its signals, its messages."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import openai
import pytest

STUB = Path(__file__).with_name("serving_stub.py")
ENGINE = Path(__file__).resolve().parents[3] / "engine"
WAIT_S = 30


class Process:
    """The program and what it has written to stderr so far."""

    def __init__(self, model: Path, *, port: int = 0, drain_s: float = 5, loading: str = "ok") -> None:
        path = os.pathsep.join([str(ENGINE), *filter(None, [os.environ.get("PYTHONPATH")])])
        argv = [sys.executable, str(STUB), str(model), str(port), str(drain_s), loading]
        self.popen = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path})
        self.lines: list[str] = []
        self.listening = threading.Event()
        self.url = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.popen.stderr:
            self.lines.append(line)
            if found := re.search(r"listening on (http://\S+);", line):
                self.url = found[1]
                self.listening.set()

    def wait_healthy(self) -> None:
        assert self.listening.wait(WAIT_S), self.lines
        while httpx.get(self.url + "/health").status_code != 200:
            assert self.popen.poll() is None, self.lines

    def client(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.url + "/v1", api_key="none", max_retries=0)

    def exit_status(self) -> int:
        status = self.popen.wait(WAIT_S)
        self._reader.join(WAIT_S)
        return status

    @property
    def stderr(self) -> str:
        return "".join(self.lines)


@pytest.fixture
def start(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    with contextlib.ExitStack() as stack:

        def start(**options):
            process = Process(tmp_path / "model", **options)
            stack.callback(process.exit_status)
            stack.callback(process.popen.kill)
            return process

        yield start


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_ends_well(start, number):
    process = start()
    process.wait_healthy()
    process.popen.send_signal(number)
    assert process.exit_status() == 0
    assert "Traceback" not in process.stderr
    with pytest.raises(httpx.ConnectError):
        httpx.get(process.url + "/health")


def test_a_running_stream_may_finish(start):
    process = start(drain_s=20)
    process.wait_healthy()
    stream = process.client().completions.create(model="model", prompt="forever on", max_tokens=600, stream=True)
    chunks = iter(stream)
    next(chunks)
    process.popen.send_signal(signal.SIGTERM)
    reason = None
    for chunk in chunks:
        reason = chunk.choices[0].finish_reason
    assert reason == "length"
    assert chunk.ddtree["generated_tokens"] == 600
    assert process.exit_status() == 0


def test_a_stream_that_takes_too_long_is_cut_with_an_error(start):
    process = start(drain_s=0.2)
    process.wait_healthy()
    stream = process.client().completions.create(model="model", prompt="forever on", max_tokens=90_000, stream=True)
    chunks = iter(stream)
    next(chunks)
    process.popen.send_signal(signal.SIGTERM)
    with pytest.raises(openai.APIError, match="shutting down"):
        list(chunks)
    assert process.exit_status() == 0
    assert "Traceback" not in process.stderr


def test_a_second_signal_cuts_at_once(start):
    process = start(drain_s=10_000)
    process.wait_healthy()
    stream = process.client().completions.create(model="model", prompt="forever on", max_tokens=90_000, stream=True)
    chunks = iter(stream)
    next(chunks)
    process.popen.send_signal(signal.SIGTERM)
    while not any("stopping" in line for line in process.lines):
        assert process.popen.poll() is None
    process.popen.send_signal(signal.SIGTERM)
    with pytest.raises(openai.APIError, match="shutting down"):
        list(chunks)
    assert process.exit_status() == 0


def test_a_server_that_is_still_loading_ends_well(start):
    process = start(loading="hang")
    assert process.listening.wait(WAIT_S)
    assert httpx.get(process.url + "/health").json()["status"] == "loading"
    process.popen.send_signal(signal.SIGTERM)
    assert process.exit_status() == 0


def test_a_model_that_cannot_be_loaded_ends_the_process_with_its_reason(start):
    process = start(loading="fail")
    assert process.exit_status() == 2
    assert process.lines[-1] == "ddtree: error: the drafter was trained for another target; name its own\n"
    assert "Traceback" not in process.stderr


def test_a_port_in_use_is_said_before_the_model_loads(start):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        process = start(port=port, loading="hang")
        assert process.exit_status() == 2
        assert f"127.0.0.1 port {port}: Address already in use" in process.stderr
        assert "choose another --port" in process.stderr


def test_a_finished_request_is_one_line(start):
    process = start()
    process.wait_healthy()
    reply = process.client().completions.create(model="model", prompt="hello", max_tokens=50)
    process.popen.send_signal(signal.SIGTERM)
    assert process.exit_status() == 0
    lines = [line for line in process.lines if reply.id in line]
    assert len(lines) == 1
    usage = reply.usage
    assert f"{usage.prompt_tokens} prompt tokens, {usage.completion_tokens} completion tokens, " in lines[0]
    assert "tok/s, acceptance length " in lines[0]
    assert lines[0].endswith("mode ar\n")
    assert not any("GET /health" in line for line in process.lines)
