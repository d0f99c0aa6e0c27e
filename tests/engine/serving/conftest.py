"""A real server on a free loopback port around the stub engine, and the real openai client to talk to it."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import openai
import pytest

sys.path.append(str(Path(__file__).parent))

from serving_stub import StubEngine, make_tokenizer

from ddtree.serving.listener import open_port
from ddtree.serving.server import ApiServer, build_server
from ddtree.serving.settings import ServingSettings

WAIT_S = 20  # far more than anything here takes: only a broken server meets it


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.005)


@dataclass
class Running:
    """One server in a thread of this process."""

    url: str
    server: ApiServer
    engine: StubEngine
    http: httpx.Client
    openai: openai.OpenAI

    def metric(self, sample: str) -> float:
        """The value of one sample, written as in the exposition: `name{label="value"}`."""
        for line in self.http.get("/metrics").text.splitlines():
            if line.startswith(sample + " "):
                return float(line.rsplit(" ", 1)[1])
        return 0.0

    def wait_healthy(self) -> None:
        wait_until(lambda: self.http.get("/health").status_code == 200, "a healthy server")


@contextlib.contextmanager
def run_server(
    load: Callable[[], StubEngine] | None = None, engine: StubEngine | None = None, healthy: bool = True, **settings
) -> Iterator[Running]:
    """Serves the stub until the block ends. settings: fields of ServingSettings."""
    engine = engine or StubEngine()
    options = ServingSettings(model_name="stub", **{"drain_s": 0.2, **settings})
    server = build_server(options, open_port("127.0.0.1", 0), load or (lambda: engine), {"budget": "16"})
    looping = threading.Event()
    errors: list[BaseException] = []

    def serve() -> None:
        try:
            server.run(on_loop=looping.set)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    assert looping.wait(WAIT_S)
    client = openai.OpenAI(
        base_url=server.url + "/v1", api_key=options.api_key or "none", max_retries=0, timeout=WAIT_S
    )
    with httpx.Client(base_url=server.url, timeout=WAIT_S) as http, client:
        running = Running(server.url, server, engine, http, client)
        try:
            if healthy:
                running.wait_healthy()
            yield running
        finally:
            engine.gate.set()
            server.stop()
            thread.join(WAIT_S)
    assert not thread.is_alive()
    if healthy:
        assert not errors


@pytest.fixture(scope="module")
def served() -> Iterator[Running]:
    """One server for the tests of a module that leave it as they found it."""
    with run_server() as running:
        yield running


@pytest.fixture(scope="session")
def tokenizer():
    return make_tokenizer()


@pytest.fixture(scope="session", name="run_server")
def run_server_fixture():
    return run_server


@pytest.fixture(scope="session", name="wait_until")
def wait_until_fixture():
    return wait_until
