"""port_free names the process on a port, and lets a service's own processes pass."""

import os
import socket
import subprocess
import sys

import pytest

# A server of its own process; its name stands in its command line.
SERVER = """
import socket, sys, time
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
time.sleep(1000)
"""


@pytest.fixture
def listener(tmp_path):
    script = tmp_path / "a-server.py"
    script.write_text(SERVER)
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    yield process, int(process.stdout.readline())
    process.kill()
    process.communicate()


def test_a_free_port(run_module):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    result = run_module("port_free", {"port": port}, check=True)
    assert result["free"]
    assert result["allowed"]
    assert not result["changed"]


def test_a_port_in_use_names_the_process_and_the_way_out(run_module, listener):
    process, port = listener
    failed = run_module("port_free", {"port": port, "host": "localhost"})
    assert failed["failed"]
    assert f"port {port} on localhost is in use by pid {process.pid} (" in failed["msg"]
    assert "a-server.py" in failed["msg"]
    assert "set serve_port to another port" in failed["msg"]
    assert failed["owner"]["pid"] == process.pid
    assert "set mirror_port to another" in run_module("port_free", {"port": port, "variable": "mirror_port"})["msg"]


def test_the_service_s_own_processes_pass(run_module, listener):
    process, port = listener
    for allowed in (process.pid, os.getpid()):  # itself, and its parent
        assert run_module("port_free", {"port": port, "allowed_pids": [allowed]})["allowed"]
    assert run_module("port_free", {"port": port, "allowed_pids": [2**22 - 1]})["failed"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"port": 70000}, "70000"),
        ({"port": 0}, "1 to 65535"),
        ({"port": 80, "host": "no.such.host.invalid"}, "no.such.host.invalid"),
        ({"port": 8000, "host": "203.0.113.7"}, "203.0.113.7"),
    ],
)
def test_bad_input(run_module, arguments, named):
    failed = run_module("port_free", arguments)
    assert failed["failed"]
    assert named in failed["msg"]
