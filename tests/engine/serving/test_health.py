"""/health says 200 only while a request sent now would be generated."""

import threading
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
from serving_stub import StubEngine


def test_not_before_the_model_is_loaded_and_has_generated(run_server):
    loaded = threading.Event()
    engine = StubEngine()
    engine.gate.clear()

    def load():
        loaded.wait()
        return engine

    with run_server(load=load, engine=engine, healthy=False) as running:
        health = running.http.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "loading")
        request = running.http.post("/v1/completions", json={"model": "stub", "prompt": "hi"})
        assert (request.status_code, request.json()["error"]["code"]) == (503, "model_loading")
        assert int(request.headers["retry-after"]) > 0
        assert running.http.get("/v1/models").status_code == 200
        assert running.http.get("/metrics").status_code == 200
        loaded.set()
        # Loaded, but the self-check cannot make a step yet.
        assert running.http.get("/health").status_code == 503
        engine.gate.set()
        running.wait_healthy()
        assert len(engine.calls) == 1
        assert running.http.get("/health").json() == {"status": "ok", "reason": None, "model": "stub"}


@pytest.mark.parametrize("prompt", ["explode now", "noreason at all"])
def test_an_engine_that_fails_a_request_but_proves_itself_again_goes_on(run_server, prompt):
    with run_server() as running:
        reply = running.http.post("/v1/completions", json={"model": "stub", "prompt": prompt, "max_tokens": 50})
        assert (reply.status_code, reply.json()["error"]["code"]) == (500, "engine_error")
        running.wait_healthy()
        assert running.openai.completions.create(model="stub", prompt="hi").choices[0].text == "hi"
        # The self-check at the start, the failed request, the second self-check, the request.
        assert len(running.engine.calls) == 4


def test_an_engine_that_cannot_prove_itself_again_is_dead(run_server, wait_until):
    with run_server() as running, ThreadPoolExecutor() as pool:
        engine = running.engine
        engine.gate.clear()

        def ask(prompt):
            return running.http.post("/v1/completions", json={"model": "stub", "prompt": prompt})

        killer = pool.submit(ask, "die now")
        wait_until(lambda: "die now" in engine.started, "the request at the engine")
        waiting = pool.submit(ask, "waiting")
        wait_until(lambda: running.metric("ddtree_requests_queued") == 1, "a waiting request")
        engine.gate.set()
        assert killer.result().status_code == 500
        assert "boom" in killer.result().json()["error"]["message"]
        for reply in (waiting.result(), ask("later")):
            assert (reply.status_code, reply.json()["error"]["code"]) == (503, "engine_failed")
            assert "fallen off the bus" in reply.json()["error"]["message"]
        health = running.http.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "failed")
        assert "fallen off the bus" in health.json()["reason"]
        assert "waiting" not in engine.started


def test_a_failure_inside_a_stream_is_an_error_event_and_not_an_end(run_server):
    with run_server() as running:
        stream = running.openai.completions.create(model="stub", prompt="explode now", max_tokens=50, stream=True)
        received = []
        with pytest.raises(openai.APIError, match="boom"):
            received.extend(chunk.choices[0].finish_reason for chunk in stream)
        assert set(received) <= {None}
        running.wait_healthy()


def test_a_request_without_progress_is_a_stall(run_server, wait_until):
    with run_server(stall_s=0.0) as running, ThreadPoolExecutor() as pool:
        running.engine.gate.clear()
        reply = pool.submit(running.openai.completions.create, model="stub", prompt="hi")
        wait_until(lambda: running.http.get("/health").status_code == 503, "a stall")
        health = running.http.get("/health").json()
        assert health["status"] == "stalled"
        assert "no progress" in health["reason"]
        running.engine.gate.set()
        assert reply.result().choices[0].text == "hi"
        running.wait_healthy()
