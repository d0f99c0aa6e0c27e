"""The daemon: what others on the machine can see of it, who can talk to it, and when it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from ansible.module_utils.aria2_daemon import Aria2Daemon, find_aria2c
from ansible.module_utils.provision_error import ProvisionError

MODULE_UTILS = Path(__file__).resolve().parents[2] / "module_utils"


def seen_from_outside(pid, what):
    return Path(f"/proc/{pid}/{what}").read_bytes().decode().split("\0")[:-1]


def test_the_command_line_and_environment_hold_no_secret(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_environment_token")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with Aria2Daemon({"split": 3}) as daemon:
        binary, option = seen_from_outside(daemon.process.pid, "cmdline")
        environment = seen_from_outside(daemon.process.pid, "environ")
        assert binary == find_aria2c()
        assert re.fullmatch(r"--conf-path=/proc/self/fd/\d+", option)
        everything = " ".join([binary, option, *environment])
        assert daemon.client.secret not in everything
        assert "hf_environment_token" not in everything
        assert "HOME=/nonexistent" in environment
        assert "http_proxy=http://127.0.0.1:9" in environment
        # A proxy of the environment is for the hub, not for loopback: the call below would not come through.
        assert daemon.client.get_global_option()["split"] == "3"


def test_the_configuration_is_in_memory_alone(monkeypatch):
    seen = []
    real = subprocess.Popen

    def look(command, **options):
        path = command[1].removeprefix("--conf-path=")
        seen.append((os.readlink(path), Path(path).read_text().splitlines()))
        return real(command, **options)

    monkeypatch.setattr("ansible.module_utils.aria2_daemon.subprocess.Popen", look)
    with Aria2Daemon({}) as daemon:
        ((where, lines),) = seen
    assert where.startswith("/memfd:")
    assert f"rpc-secret={daemon.client.secret}" in lines
    assert {"no-netrc=true", "rpc-listen-all=false", f"stop-with-process={os.getpid()}"} <= set(lines)


def test_only_who_knows_the_secret_is_answered():
    with Aria2Daemon({}) as daemon:
        body = json.dumps(
            {"jsonrpc": "2.0", "id": "1", "method": "aria2.getVersion", "params": ["token:guess"]}
        ).encode()
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"http://127.0.0.1:{daemon.client.port}/jsonrpc", body)
        assert "Unauthorized" in caught.value.read().decode()


def test_it_listens_on_loopback_alone():
    with Aria2Daemon({}) as daemon:
        inodes = {
            os.readlink(f"/proc/{daemon.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{daemon.process.pid}/fd")
        }
        listening = []
        for table in ("tcp", "tcp6"):
            for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                columns = row.split()
                if columns[3] == "0A" and f"socket:[{columns[9]}]" in inodes:
                    listening.append(columns[1])
    port = f"{daemon.client.port:04X}"
    assert set(listening) <= {f"0100007F:{port}", f"00000000000000000000000001000000:{port}"}
    assert f"0100007F:{port}" in listening


def test_it_ends_with_the_block():
    with Aria2Daemon({}) as daemon:
        pass
    assert daemon.process.returncode == 0
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", daemon.client.port), timeout=2)


def test_it_ends_when_its_owner_is_killed():
    code = f"""
        import sys, time, ansible.module_utils
        ansible.module_utils.__path__.append({str(MODULE_UTILS)!r})
        from ansible.module_utils.aria2_daemon import Aria2Daemon
        with Aria2Daemon({{}}) as daemon:
            print(daemon.process.pid, flush=True)
            time.sleep(60)
    """
    owner = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    pid = int(owner.stdout.readline())
    owner.kill()
    owner.wait()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline, "aria2c outlives its owner"
        time.sleep(0.05)


def test_its_own_end_is_noticed():
    with Aria2Daemon({}) as daemon:
        daemon.require_alive()
        os.kill(daemon.process.pid, signal.SIGKILL)
        daemon.process.wait()
        with pytest.raises(ProvisionError, match=r"exit status -9.*rerun"):
            daemon.require_alive()


def test_a_refused_option_is_shown():
    with pytest.raises(ProvisionError, match="file-allocation"), Aria2Daemon({"file-allocation": "bogus"}):
        pass


def test_no_binary(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProvisionError, match=rf"no executable 'aria2c' on PATH '{tmp_path}'.*apt-get install aria2"):
        Aria2Daemon({})
    with pytest.raises(ProvisionError, match="'/no/such/aria2c'"):
        Aria2Daemon({}, "/no/such/aria2c")


def test_a_port_taken_in_the_last_moment_is_not_fatal(monkeypatch):
    """Between choosing a free port and aria2c's start another program may take it."""
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        import ansible.module_utils.aria2_daemon as daemon_module

        free_port = daemon_module._free_port
        ports = iter([squatter.getsockname()[1]])
        monkeypatch.setattr(daemon_module, "_free_port", lambda: next(ports, None) or free_port())
        with Aria2Daemon({}) as daemon:
            assert daemon.client.port != squatter.getsockname()[1]
