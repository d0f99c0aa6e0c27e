"""serving_health as a module: its result, its secret, its end, and a service of a real systemd that dies meanwhile."""

import json
import socket
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).resolve().parents[1] / "support"
sys.path.append(str(SUPPORT))
from fake_completions_server import FakeServer  # noqa: E402
from private_systemd import PrivateSystemd  # noqa: E402


@pytest.fixture(scope="module")
def systemd(tmp_path_factory):
    reason = PrivateSystemd.why_not()
    if reason:
        pytest.skip(reason)
    with PrivateSystemd(tmp_path_factory.mktemp("systemd")) as private:
        yield private


@pytest.fixture
def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_ready(run_module):
    with FakeServer() as server:
        result = run_module("serving_health", {"url": server.url, "model": "demo"})
    assert result["ready"]
    assert not result["changed"]
    assert set(result) >= {"seconds", "health_s", "first_token_s", "model"}


def test_the_key_is_sent_and_never_shown(run_module):
    with FakeServer(api_key="open-sesame") as server:
        result = run_module("serving_health", {"url": server.url, "api_key": "open-sesame"})
        assert result["ready"]
        assert "open-sesame" not in json.dumps(result)
        assert server.requests[-1][2] == "Bearer open-sesame"
        wrong = run_module("serving_health", {"url": server.url, "api_key": "wrong-sesame"})
    assert wrong["failed"]
    assert "wrong-sesame" not in json.dumps(wrong)
    assert "another API key" in wrong["msg"]


def test_it_ends_though_a_request_never_does(run_module):
    with FakeServer(completions="hang") as server:
        result = run_module(
            "serving_health", {"url": server.url, "timeout_s": 0.5, "interval_s": 0.1, "request_timeout_s": 1000}
        )
    assert result["failed"]
    assert "no token within 0.5 s" in result["msg"]
    assert result["ready"] is False


def test_check_mode_on_a_host_without_the_service(run_module, free_port):
    for watched in (
        {"unit": "ddtree.service"},
        {"supervisor": {"ctl": ["/nowhere/supervisorctl"], "program": "ddtree"}},
    ):
        result = run_module("serving_health", {"url": f"http://127.0.0.1:{free_port}", **watched}, check=True)
        assert not result.get("failed")
        assert not result["changed"]
        assert not result["ready"]
        assert result["msg"]


@pytest.mark.systemd
class TestWithSystemd:
    @pytest.fixture
    def start(self, systemd, free_port):
        """Starts the fake server as ddtree.service with the given switches; returns the module's arguments."""

        def start(service="", **switches):
            script = SUPPORT / "fake_completions_server.py"
            (systemd.folder / "switches.json").write_text(json.dumps(switches))
            launcher = systemd.folder / "launcher"
            launcher.write_text(
                f'#!/bin/sh\nexec {sys.executable} {script} {free_port} "$(cat {systemd.folder}/switches.json)"\n'
            )
            launcher.chmod(0o755)
            (systemd.units / "ddtree.service").write_text(
                "[Unit]\nStartLimitIntervalSec=0\n"
                f"[Service]\nExecStart={launcher}\nEnvironment=DDTREE_RELEASE=r1 SECRET=s\n{service}\n"
            )
            systemd.run("systemctl", "daemon-reload")
            systemd.run("systemctl", "start", "ddtree.service")
            return {
                "url": f"http://127.0.0.1:{free_port}",
                "unit": "ddtree.service",
                "interval_s": 0.05,
                "timeout_s": 60,
            }

        yield start
        systemd.run("systemctl", "stop", "ddtree.service", check=False)
        systemd.run("systemctl", "reset-failed", "ddtree.service", check=False)

    @pytest.fixture
    def inside(self, systemd, run_module):
        python = systemd.python(sys.executable)
        return lambda name, arguments, **options: run_module(name, arguments, python=python, **options)

    def test_a_service_that_becomes_ready(self, start, inside):
        assert inside("serving_health", start(unhealthy_for=3))["ready"]

    @pytest.mark.parametrize(
        ("service", "said"),
        [
            ("", "failed (failed), result exit-code; its process exited with status 3"),
            ("Restart=always\nRestartSec=30", "auto-restart"),
        ],
    )
    def test_a_service_that_dies_is_reported_with_its_last_words(self, start, inside, service, said):
        failed = inside("serving_health", start(service, unhealthy_for=10**6, dies_after_s=0.5))
        assert failed["failed"]
        assert "died before it was ready" in failed["msg"]
        assert said in failed["msg"]
        assert "RuntimeError: the last words of the server" in failed["msg"]
        assert "RuntimeError: the last words of the server" in failed["log"]

    def test_a_crash_loop_is_reported_though_each_attempt_lives(self, start, inside):
        failed = inside(
            "serving_health", start("Restart=always\nRestartSec=1ms", unhealthy_for=10**6, dies_after_s=0.4)
        )
        assert failed["failed"]
        assert "died before it was ready" in failed["msg"]

    def test_one_restart_may_be_allowed(self, systemd, start, inside):
        arguments = start("Restart=always\nRestartSec=500ms")
        assert inside("serving_health", arguments)["ready"]
        systemd.run("systemctl", "kill", "-s", "KILL", "ddtree.service")
        result = inside("serving_health", {**arguments, "max_restarts": 1})
        assert result["ready"]

    def test_a_unit_that_does_not_exist(self, inside, free_port):
        failed = inside("serving_health", {"url": f"http://127.0.0.1:{free_port}", "unit": "nowhere.service"})
        assert failed["failed"]
        assert "nowhere.service is not installed" in failed["msg"]

    def test_what_the_running_service_was_started_with(self, systemd, start, inside):
        start()
        running = inside("running_service", {"unit": "ddtree.service", "variables": ["DDTREE_RELEASE", "ABSENT"]})
        assert running["active"]
        assert not running["changed"]
        assert running["environment"] == {"DDTREE_RELEASE": "r1", "ABSENT": None}
        assert str(running["main_pid"]) == systemd.properties("ddtree.service", "MainPID")["MainPID"]
        assert running["started_at"].endswith("Z")
        systemd.run("systemctl", "stop", "ddtree.service")
        stopped = inside("running_service", {"unit": "ddtree.service", "variables": ["DDTREE_RELEASE"]})
        assert not stopped["active"]
        assert stopped["main_pid"] is None
        assert stopped["environment"] == {"DDTREE_RELEASE": None}

    def test_the_port_of_the_running_service_is_its_own(self, start, inside, free_port):
        inside("serving_health", start())
        assert inside("port_free", {"port": free_port, "allowed_unit": "ddtree.service"})["allowed"]
        failed = inside("port_free", {"port": free_port, "allowed_unit": "other.service"})
        assert failed["failed"]
        assert f"port {free_port} on 127.0.0.1 is in use by pid" in failed["msg"]
