"""supervisor_program with a real supervisord: starts, keeps, changes and removes a service, and predicts all of it."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from ansible.module_utils.process_facts import environment_of
from ansible.module_utils.supervisor_client import SupervisorClient
from ansible.module_utils.supervisor_config import render_daemon, render_program
from ansible.module_utils.supervisor_daemon import end_daemon, find_orphans, is_alive, start_daemon
from ansible.module_utils.supervisor_layout import SupervisorLayout
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from fake_completions_server import FakeServer
from process_strings import arguments, environments

SUPERVISORD = str(Path(sys.executable).parent / "supervisord")
pytestmark = pytest.mark.skipif(not os.path.exists(SUPERVISORD), reason="needs the package supervisor")

SLEEP = ["/bin/sleep", "1000"]
OPTIONS = {"start_s": 1, "start_retries": 1, "stop_timeout_s": 5, "log_max_mb": 1, "log_backups": 1}
# Leaves what the kernel handed over, then stays.
STUB = """#!/bin/sh
cat /proc/$$/cmdline > "$1.argv"
cat /proc/$$/environ > "$1.new"
mv "$1.new" "$1.environ"
exec sleep 1000
"""


def eventually(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "did not happen within 30 s"
        time.sleep(0.02)
    return True


@pytest.fixture
def service(tmp_path, run_module):
    """Runs the module for a folder of the test's own; nothing of it is left running."""
    folder = tmp_path / "run"

    def run(check=False, diff=False, **changes):
        defaults = {"name": "ddtree", "dir": str(folder), "supervisord": [SUPERVISORD], "argv": SLEEP, **OPTIONS}
        return run_module("supervisor_program", {**defaults, **changes}, check=check, diff=diff)

    run.folder = folder
    run.layout = SupervisorLayout(str(folder), "ddtree")
    yield run
    end_daemon(run.layout, SupervisorClient(run.layout.socket, 60), 5)


def test_first_run_second_run_and_removal(service):
    predicted = service(check=True, diff=True)
    assert predicted["changed"]
    assert predicted["supervisord_started"]
    assert not service.folder.exists()
    done = service(diff=True)
    assert done["changed"]
    assert done["supervisord_started"]
    assert done["diff"] == predicted["diff"]
    assert Path(done["config"]).read_text() == done["diff"]["after"]
    assert Path(done["config"]).stat().st_mode & 0o777 == 0o600
    assert is_alive(done["pid"])
    for check in (False, True):
        again = service(check=check)
        assert not again["changed"]
        assert again["pid"] == done["pid"]
    supervisord = SupervisorClient(service.layout.socket, 10).pid()
    assert service(state="absent", check=True)["changed"]
    assert is_alive(done["pid"])
    assert service(state="absent")["changed"]
    assert not is_alive(done["pid"])
    assert not is_alive(supervisord)
    assert not service.folder.exists()
    assert not service(state="absent")["changed"]


def test_a_killed_program_comes_back(service):
    pid = service()["pid"]
    client = SupervisorClient(service.layout.socket, 10)
    eventually(lambda: client.program("ddtree")["statename"] == "RUNNING")
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: (client.program("ddtree")["pid"] or pid) != pid)
    assert not service()["changed"]


def test_a_change_restarts_once(service):
    first = service(environment={"DDTREE_RELEASE": "1"})
    changed = {"environment": {"DDTREE_RELEASE": "2"}}
    predicted = service(check=True, **changed)
    assert predicted["changed"]
    assert predicted["restarted"]
    assert is_alive(first["pid"])
    second = service(**changed)
    assert second["restarted"]
    assert not second["supervisord_started"]
    assert not is_alive(first["pid"])
    assert environment_of(second["pid"], ["DDTREE_RELEASE"]) == {"DDTREE_RELEASE": "2"}
    assert not service(**changed)["changed"]


def test_a_restart_on_demand(service):
    first = service()
    again = service(restarted=True)
    assert again["changed"]
    assert again["restarted"]
    assert again["pid"] != first["pid"]
    assert not is_alive(first["pid"])


def test_a_stopped_program_is_started(service):
    first = service()
    SupervisorClient(service.layout.socket, 30).stop("ddtree")
    assert service(check=True)["changed"]
    done = service()
    assert done["changed"]
    assert done["restarted"]
    assert is_alive(done["pid"])
    assert done["pid"] != first["pid"]


def test_a_written_but_unapplied_change_is_applied(service):
    service(argv=SLEEP)
    config = service.layout.config
    interrupted = Path(config).read_text().replace("sleep 1000", "sleep 2000")
    Path(config).write_text(interrupted)
    done = service(argv=["/bin/sleep", "2000"])
    assert done["changed"]
    assert Path(f"/proc/{done['pid']}/cmdline").read_bytes() == b"/bin/sleep\0002000\0"


def test_programs_that_outlived_a_killed_supervisord_are_cleared_away(service):
    first = service()
    supervisord = SupervisorClient(service.layout.socket, 10).pid()
    os.kill(supervisord, signal.SIGKILL)
    eventually(lambda: not is_alive(supervisord))
    assert find_orphans(service.layout) == [first["pid"]]
    assert service(check=True)["changed"]
    second = service()
    assert second["supervisord_started"]
    assert not is_alive(first["pid"])
    assert is_alive(second["pid"])


def test_absent_clears_away_what_a_killed_supervisord_left(service):
    pid = service()["pid"]
    supervisord = SupervisorClient(service.layout.socket, 10).pid()
    os.kill(supervisord, signal.SIGKILL)
    eventually(lambda: not is_alive(supervisord))
    assert service(state="absent")["changed"]
    assert not is_alive(pid)
    assert not service.folder.exists()


def test_a_supervisord_whose_socket_was_deleted_is_replaced(service):
    first = service()
    supervisord = SupervisorClient(service.layout.socket, 10).pid()
    os.unlink(service.layout.socket)
    second = service()
    assert second["supervisord_started"]
    assert not is_alive(supervisord)
    assert not is_alive(first["pid"])
    assert is_alive(second["pid"])


def test_a_folder_with_a_long_path(service, tmp_path, run_module):
    folder = tmp_path / ("a-folder-with-a-name-of-some-length/" * 4) / "run"
    layout = SupervisorLayout(str(folder), "ddtree")
    done = service(dir=str(folder))
    assert done["pid"]
    assert done["socket"] == layout.socket
    assert done["socket"].startswith("/tmp/ddtree-")
    assert os.stat(os.path.dirname(done["socket"])).st_mode & 0o777 == 0o700
    running = run_module("running_service", {"supervisor": {"ctl": done["ctl"], "program": "ddtree"}})
    assert running["main_pid"] == done["pid"]
    assert not service(dir=str(folder))["changed"]
    service(dir=str(folder), state="absent")
    assert not folder.exists()
    assert not os.path.exists(os.path.dirname(done["socket"]))


def test_somebody_else_s_folder_for_the_socket_is_refused(tmp_path):
    layout = SupervisorLayout(str(tmp_path / ("x" * 100)), "ddtree")
    outside = Path(layout.socket).parent
    outside.mkdir(mode=0o777)
    outside.chmod(0o777)
    try:
        with pytest.raises(Exception, match="not a folder of this user alone"):
            layout.make_folders()
    finally:
        outside.rmdir()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"argv": ["/nowhere/ddtree", "serve"]}, ["/nowhere/ddtree", "does not exist", "install"]),
        ({"argv": ["/etc"]}, ["/etc is not an executable"]),
        ({"supervisord": ["/nowhere/supervisord"]}, ["/nowhere/supervisord", "install"]),
        ({"environment": {"PROMPT": "a\nb"}}, ["ddtree", "environment variable PROMPT", "newline"]),
        ({"argv": None}, ["argv"]),
    ],
)
def test_bad_input_gets_one_message_and_leaves_nothing_running(service, wrong, named):
    failed = service(**wrong)
    assert failed["failed"]
    for part in named:
        assert part in failed["msg"]
    assert find_orphans(service.layout) == []
    assert not service.folder.exists()


def test_a_program_that_is_not_there_yet_is_a_warning_in_check_mode(service):
    predicted = service(check=True, argv=["/nowhere/ddtree"])
    assert predicted["changed"]
    assert "/nowhere/ddtree does not exist" in str(predicted["warnings"])


def test_what_other_modules_read_of_it(service, run_module):
    script = Path(sys.modules[FakeServer.__module__].__file__)
    with FakeServer() as probe:
        port = probe.server.server_port
    server = [sys.executable, str(script), str(port)]
    done = service(argv=server, environment={"DDTREE_RELEASE": "r7"})
    supervisor = {"ctl": done["ctl"], "program": "ddtree"}
    health = {
        "url": f"http://127.0.0.1:{port}",
        "supervisor": supervisor,
        "log_file": done["log_file"],
        "timeout_s": 60,
    }
    assert run_module("serving_health", health)["ready"]
    running = run_module("running_service", {"supervisor": supervisor, "variables": ["DDTREE_RELEASE"]})
    assert running["active"]
    assert running["main_pid"] == done["pid"]
    assert running["environment"] == {"DDTREE_RELEASE": "r7"}
    assert run_module("port_free", {"port": port, "allowed_pids": [done["pid"]]})["allowed"]
    # A program that dies at once ends as FATAL, and is reported with its last words.
    service(argv=[*server, '{"dies_after_s": 0, "unhealthy_for": 1000000}'])
    failed = run_module("serving_health", {**health, "interval_s": 0.2})
    assert failed["failed"]
    assert "died before it was ready" in failed["msg"]
    assert "RuntimeError: the last words of the server" in failed["msg"]


cases = st.lists(st.tuples(arguments(refused="\r"), environments(refused="\r")), min_size=8, max_size=12)


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(cases)
def test_programs_receive_what_was_given(tmp_path_factory, batch):
    folder = tmp_path_factory.mktemp("strings")
    stub = folder / "stub"
    stub.write_text(STUB)
    stub.chmod(0o755)
    names = [f"p{index}" for index in range(len(batch))]
    layout = SupervisorLayout(str(folder), "p0")
    text = render_daemon(layout, as_root=os.geteuid() == 0)
    for name, (words, environment) in zip(names, batch, strict=True):
        argv = [str(stub), str(folder / name), *words]
        text += render_program(SupervisorLayout(str(folder), name), argv, environment, None, OPTIONS)
    Path(layout.config).write_text(text, newline="")
    client = SupervisorClient(layout.socket, 60)
    start_daemon([SUPERVISORD], layout, client)
    try:
        for name, (words, environment) in zip(names, batch, strict=True):
            eventually((folder / f"{name}.environ").exists)
            received = (folder / f"{name}.argv").read_bytes().split(b"\0")[3:-1]
            assert received == [word.encode() for word in words], text
            items = (folder / f"{name}.environ").read_bytes().split(b"\0")
            own = dict(item.split(b"=", 1) for item in items if item.startswith(b"T_"))
            assert own == {key.encode(): value.encode() for key, value in environment.items()}, text
    finally:
        end_daemon(layout, client, 5)
