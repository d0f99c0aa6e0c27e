"""Waiting for a real server on loopback: ready means a token, and what will never be ready is not waited for."""

import socket
import sys
import threading
from pathlib import Path

import pytest
from ansible.module_utils.completions_client import CompletionsClient
from ansible.module_utils.provision_error import ProvisionError
from ansible.module_utils.serving_health_probe import wait_until_ready

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from fake_completions_server import FakeServer


def wait(url, check_mode=False, **changes):
    """Long deadlines: a test that ends by one of them would be noticed by its message and not by a clock."""
    params = {
        "url": url,
        "model": None,
        "prompt": "The",
        "api_key": None,
        "timeout_s": 60,
        "interval_s": 0.02,
        "request_timeout_s": 30,
        "unit": None,
        "supervisor": None,
        "max_restarts": 0,
        "log_file": None,
        "log_lines": 50,
    }
    return wait_until_ready({**params, **changes}, check_mode)


def failure(url, **changes):
    with pytest.raises(ProvisionError) as raised:
        wait(url, **changes)
    return str(raised.value)


def test_ready_after_health_and_a_token():
    with FakeServer(unhealthy_for=3) as server:
        result = wait(server.url + "/")
    assert result["ready"]
    assert not result["changed"]
    assert result["model"] == "demo"
    assert 0 < result["health_s"] <= result["seconds"]
    assert 0 < result["first_token_s"] <= result["seconds"]
    paths = [path for _, path, _ in server.requests]
    assert paths == ["/health"] * 4 + ["/v1/models", "/v1/completions"]


def test_a_named_model_among_several():
    with FakeServer(models=["other", "mine"]) as server:
        assert wait(server.url, model="mine")["model"] == "mine"


def test_another_model_is_named_at_once():
    with FakeServer(models=["qwen"]) as server:
        message = failure(server.url, model="kimi-k2.6")
    assert "serves qwen, not kimi-k2.6" in message


@pytest.mark.parametrize(
    ("completions", "said"),
    [
        ("empty", "200 without a token"),
        ("error", "500"),
        ("garbage", "this is not an answer"),
        ("hang", "no answer within"),
    ],
)
def test_health_without_a_token_is_not_ready(completions, said):
    with FakeServer(completions=completions) as server:
        message = failure(server.url, timeout_s=0.6, request_timeout_s=0.2)
    assert "no token within 0.6 s, though /health answers 200" in message
    assert said in message


def test_a_refused_completion_is_not_repeated():
    with FakeServer(completions="refuse") as server:
        message = failure(server.url)
    assert "400" in message
    assert "prompt too long" in message
    assert [path for _, path, _ in server.requests].count("/v1/completions") == 1


def test_nobody_listens():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        message = failure(f"http://127.0.0.1:{free.getsockname()[1]}", timeout_s=0.3)
    assert "not healthy within 0.3 s" in message
    assert "refused" in message


@pytest.mark.parametrize(
    "banner", [b"SSH-2.0-OpenSSH_9.2\r\n", b"\x15\x03\x01\x00\x02\x02\x46", b"+OK dovecot ready\r\n"]
)
def test_a_server_without_http_is_named_at_once(banner):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.sendall(banner)
                connection.recv(4096)

        threading.Thread(target=serve, daemon=True).start()
        message = failure(f"http://127.0.0.1:{listener.getsockname()[1]}")
    assert "not in HTTP" in message
    assert "another program" in message


@pytest.mark.parametrize("status", [404, 301, 400])
def test_a_server_without_health_is_named_at_once(status):
    with FakeServer(status=status) as server:
        message = failure(server.url)
    assert f"answers {status} to /health" in message
    assert "fake" in message  # its Server header
    assert len(server.requests) == 1


def test_the_key_opens_and_a_missing_or_wrong_one_is_named():
    with FakeServer(api_key="sesame") as server:
        assert wait(server.url, api_key="sesame")["ready"]
        assert "wants an API key" in failure(server.url)
        assert "wants another API key" in failure(server.url, api_key="abracadabra")


def test_neither_a_redirect_nor_a_proxy_gets_the_key(monkeypatch):
    with FakeServer() as proxy, FakeServer(status=302) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        failure(server.url, api_key="sesame")
    assert len(server.requests) == 1
    assert proxy.requests == []


def test_the_key_is_not_in_the_client_s_representation():
    assert "sesame" not in repr(CompletionsClient("http://x", "sesame"))


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://a/", "http://", "http:///x"])
def test_an_address_that_is_none(url):
    assert "such as http://127.0.0.1:8000" in failure(url)


def test_check_mode_looks_once_and_does_not_fail():
    with FakeServer(unhealthy_for=1) as server:
        result = wait(server.url, check_mode=True)
        assert not result["ready"]
        assert not result["changed"]
        assert "503" in result["msg"]
        assert len(server.requests) == 1
        assert wait(server.url, check_mode=True)["ready"]
    assert not wait(server.url, check_mode=True)["ready"]


@pytest.fixture
def fake_ctl(tmp_path):
    """A supervisorctl whose answers a test writes: {"ctl": argv, "program": name}, and the file with the answer."""
    answer = tmp_path / "answer"
    program = tmp_path / "supervisorctl"
    program.write_text(f'#!/bin/sh\n[ "$1 $2" = "status ddtree" ] || exit 9\ncat {answer}\nexit 3\n')
    program.chmod(0o755)
    answer.write_text("ddtree                           RUNNING   pid 41, uptime 0:00:01\n")
    return {"ctl": [str(program)], "program": "ddtree"}, answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("ddtree   FATAL     Exited too quickly (process log may have details)", "FATAL (Exited too quickly"),
        ("ddtree   BACKOFF   Exited too quickly (process log may have details)", "BACKOFF"),
        ("ddtree   EXITED    Dec 01 03:16 AM", "EXITED"),
        ("ddtree   STOPPED   Not started", "STOPPED"),
        ("unix:///run/x.sock no such file", "not supervised: unix:///run/x.sock no such file"),
        ("ddtree: ERROR (no such process)", "not supervised: ddtree: ERROR"),
    ],
)
def test_a_dead_program_is_reported_with_its_log_and_not_waited_for(fake_ctl, tmp_path, answer, said):
    supervisor, file = fake_ctl
    file.write_text(answer + "\n")
    log = tmp_path / "ddtree.log"
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    message = failure("http://127.0.0.1:1", supervisor=supervisor, log_file=str(log), log_lines=3)
    assert "died before it was ready" in message
    assert said in message
    assert message.endswith("line 97\nline 98\nline 99")


def test_a_death_during_a_request_that_hangs_is_seen(fake_ctl):
    supervisor, answer = fake_ctl
    with FakeServer(completions="hang") as server:
        server.complete = lambda *_: (answer.write_text("ddtree FATAL Exited too quickly\n"), server.released.wait(60))
        message = failure(server.url, supervisor=supervisor)
    assert "FATAL" in message


def test_a_restart_is_a_death_unless_it_is_allowed(fake_ctl):
    supervisor, answer = fake_ctl

    def restart(server):
        answer.write_text("ddtree   RUNNING   pid 42, uptime 0:00:00\n")
        server.unhealthy_for = 5

    for allowed in (0, 1):
        answer.write_text("ddtree   RUNNING   pid 41, uptime 0:00:01\n")
        with FakeServer(unhealthy_for=10**6) as server:
            original = server.answer
            server.answer = lambda handler, server=server, original=original: (
                len(server.requests) == 5 and restart(server),
                original(handler),
            )
            if allowed:
                assert wait(server.url, supervisor=supervisor, max_restarts=1)["ready"]
            else:
                assert "restart" in failure(server.url, supervisor=supervisor)
