"""One request at a time, in order of arrival; a full queue refuses; a client that leaves frees its place at once."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai
import pytest

COMPLETION = "/v1/completions"
ENDLESS = {"model": "stub", "prompt": "forever hello world ", "max_tokens": 90_000}


@pytest.fixture
def running(run_server):
    with run_server(max_queue=2) as running:
        yield running


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as pool:
        yield pool


def ask(running, prompt):
    return running.http.post(COMPLETION, json={"model": "stub", "prompt": prompt})


def raw_request(running, **fields):
    """A connection of its own on which a request was sent; closing it is what a client's crash looks like."""
    host, port = running.url.removeprefix("http://").split(":")
    request = httpx.Request("POST", running.url + COMPLETION, json={**ENDLESS, **fields})
    head = f"POST {COMPLETION} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(request.content)}\r\n\r\n"
    connection = socket.create_connection((host, int(port)), timeout=20)
    connection.sendall(head.encode() + request.content)
    return connection


def test_a_stream_comes_while_it_is_generated(running):
    with running.openai.completions.create(**ENDLESS, stream=True) as stream:
        texts = [chunk.choices[0].text for chunk, _ in zip(stream, range(5), strict=False)]
        assert "".join(texts).startswith("forever")
        assert running.metric("ddtree_requests_in_flight") == 1


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_frees_the_engine(running, wait_until, stream):
    ended = running.engine.closed
    connection = raw_request(running, stream=stream)
    wait_until(lambda: running.metric("ddtree_requests_in_flight") == 1, "a running request")
    if stream:
        assert connection.recv(10_000).startswith(b"HTTP/1.1 200")
    connection.close()
    wait_until(lambda: running.engine.closed == ended + 1, "the end of the generation")
    assert ask(running, "hi").json()["choices"][0]["text"] == "hi"
    wait_until(
        lambda: running.metric('ddtree_requests_total{endpoint="/v1/completions",status="499"}') == 1, "its count"
    )
    assert running.http.get("/health").status_code == 200


def test_closing_the_clients_stream_frees_the_engine(running, wait_until):
    ended = running.engine.closed
    stream = running.openai.completions.create(**ENDLESS, stream=True)
    next(iter(stream))
    stream.close()
    wait_until(lambda: running.engine.closed == ended + 1, "the end of the generation")


def test_a_waiting_client_that_leaves_frees_its_place_and_is_never_generated(running, wait_until):
    engine = running.engine
    first = raw_request(running)
    wait_until(lambda: running.metric("ddtree_requests_in_flight") == 1, "a running request")
    waiting = raw_request(running, prompt="never ")
    wait_until(lambda: running.metric("ddtree_requests_queued") == 1, "a waiting request")
    waiting.close()
    wait_until(lambda: running.metric("ddtree_requests_queued") == 0, "an empty queue")
    assert running.metric("ddtree_requests_in_flight") == 1
    first.close()
    assert ask(running, "hi").status_code == 200
    assert "never " not in engine.started


def test_requests_are_answered_in_their_order(running, pool, wait_until):
    engine = running.engine
    engine.gate.clear()
    replies = []
    for number in range(3):
        replies.append(pool.submit(ask, running, f"number {number}"))
        wait_until(lambda n=number: running.metric("ddtree_requests_queued") == n, f"request {number} in its place")
        wait_until(lambda: running.metric("ddtree_requests_in_flight") == 1, "a running request")
    engine.gate.set()
    assert [reply.result().json()["choices"][0]["text"] for reply in replies] == [f"number {n}" for n in range(3)]
    assert engine.started[-3:] == ["number 0", "number 1", "number 2"]


def test_a_full_queue_refuses_and_recovers(running, pool, wait_until):
    running.engine.gate.clear()
    replies = [pool.submit(ask, running, "hi")]
    wait_until(lambda: running.metric("ddtree_requests_in_flight") == 1, "a running request")
    replies += [pool.submit(ask, running, "hi") for _ in range(2)]
    wait_until(lambda: running.metric("ddtree_requests_queued") == 2, "a full queue")
    refused = ask(running, "hi")
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (503, "queue_full")
    assert "2 requests wait" in error["message"]
    assert int(refused.headers["retry-after"]) > 0
    with pytest.raises(openai.InternalServerError, match="queue is full"):
        running.openai.completions.create(model="stub", prompt="hi", stream=True)
    running.engine.gate.set()
    assert {reply.result().status_code for reply in replies} == {200}
    assert ask(running, "hi").status_code == 200


def test_without_a_queue_one_request_still_runs(run_server, pool, wait_until):
    with run_server(max_queue=0) as running:
        running.engine.gate.clear()
        first = pool.submit(ask, running, "hi")
        wait_until(lambda: running.metric("ddtree_requests_in_flight") == 1, "a running request")
        assert ask(running, "hi").status_code == 503
        running.engine.gate.set()
        assert first.result().status_code == 200


def test_many_clients_at_once_each_get_their_own_text(run_server):
    texts = [f"client {number} 😀 {'x' * number}" for number in range(24)]
    barrier = threading.Barrier(len(texts))
    with run_server(max_queue=len(texts)) as running, ThreadPoolExecutor(len(texts)) as pool:

        def talk(text):
            barrier.wait()
            stream = running.openai.completions.create(model="stub", prompt=text, max_tokens=100, stream=True)
            return "".join(chunk.choices[0].text for chunk in stream)

        assert list(pool.map(talk, texts)) == texts


def test_stopping_drops_the_waiting_and_cuts_the_running(running, pool, wait_until):
    running.engine.gate.clear()
    first = pool.submit(ask, running, "hi")
    wait_until(lambda: running.metric("ddtree_requests_in_flight") == 1, "a running request")
    waiting = pool.submit(ask, running, "hi")
    wait_until(lambda: running.metric("ddtree_requests_queued") == 1, "a waiting request")
    running.server.stop()
    for reply in (waiting.result(), first.result()):
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "shutting_down")
