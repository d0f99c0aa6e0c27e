"""Starts and ends the supervisord of one service, and clears away what a killed one left running."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import time

from ansible.module_utils.process_facts import ancestry, environment_of
from ansible.module_utils.provision_error import ProvisionError
from ansible.module_utils.service_log import last_lines
from ansible.module_utils.supervisor_client import SupervisorClient
from ansible.module_utils.supervisor_layout import SupervisorLayout

_START_TIMEOUT_S = 30
_MARGIN_S = 15
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def daemon_pid(layout: SupervisorLayout, client: SupervisorClient) -> int | None:
    """The supervisord that runs, as its socket says, or as its pid file says where the socket is gone."""
    return client.pid() or _pid_without_socket(layout)


def start_daemon(supervisord: list[str], layout: SupervisorLayout, client: SupervisorClient) -> None:
    """Returns when supervisord answers. Its programs inherit its environment: a plain one, not that of a deployment."""
    account = pwd.getpwuid(os.geteuid())
    environment = {
        "PATH": _PATH,
        "HOME": account.pw_dir,
        "USER": account.pw_name,
        "LOGNAME": account.pw_name,
        "LANG": "C.UTF-8",
    }
    command = [*supervisord, "-c", layout.config]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_START_TIMEOUT_S,
            env=environment,
            cwd=layout.folder,
        )
    except OSError as error:
        raise ProvisionError(
            f"supervisord: {command[0]} cannot be run: {error.strerror}; install the package supervisor there"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ProvisionError(
            f"supervisord did not go into the background within {_START_TIMEOUT_S} s; see {layout.log}"
        ) from error
    if done.returncode != 0:
        raise ProvisionError(
            f"supervisord ended with status {done.returncode}: {done.stdout.strip()[-2000:]}; see {layout.log}"
        )
    if not _wait(lambda: client.pid() is not None, _START_TIMEOUT_S):
        raise ProvisionError(
            f"supervisord does not answer on {layout.socket}; last lines of its log:\n"
            + "\n".join(last_lines(20, log_file=layout.log))
        )


def end_daemon(layout: SupervisorLayout, client: SupervisorClient, stop_timeout_s: int) -> None:
    """Returns when supervisord and every process of its programs are gone."""
    pid = daemon_pid(layout, client)
    if pid is not None:
        if client.pid() is not None:
            client.shutdown()
        else:
            os.kill(pid, signal.SIGTERM)
        if not _wait(lambda: not is_alive(pid), stop_timeout_s + _MARGIN_S):
            raise ProvisionError(
                f"supervisord (pid {pid}) did not end within {stop_timeout_s + _MARGIN_S} s; kill it (see {layout.log})"
            )
    end_orphans(layout, stop_timeout_s)


def end_orphans(layout: SupervisorLayout, stop_timeout_s: int) -> list[int]:
    """Ends processes that outlived a killed supervisord: they would keep the port and the memory. Their pids."""
    orphans = find_orphans(layout)
    for number, patience_s in ((signal.SIGTERM, stop_timeout_s), (signal.SIGKILL, _MARGIN_S)):
        for pid in filter(is_alive, orphans):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if _wait(lambda: not any(map(is_alive, orphans)), patience_s):
            return orphans
    raise ProvisionError(
        f"processes {', '.join(map(str, filter(is_alive, orphans)))} of {layout.name} cannot be ended; look at them"
    )


def find_orphans(layout: SupervisorLayout) -> list[int]:
    """Processes that a supervisord with this socket started; ask only while none runs."""
    found, own = [], ancestry(os.getpid())
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdecimal()):
        try:
            url = environment_of(pid, ["SUPERVISOR_SERVER_URL"])["SUPERVISOR_SERVER_URL"]
        except ProvisionError:  # another user's
            continue
        if url == f"unix://{layout.socket}" and pid not in own and is_alive(pid):
            found.append(pid)
    return found


def is_alive(pid: int) -> bool:
    """False for a zombie as well: it is gone but for its entry."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def _pid_without_socket(layout: SupervisorLayout) -> int | None:
    try:
        with open(layout.pidfile, encoding="ascii", errors="replace") as file:
            pid = int(file.read())
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            arguments = file.read().split(b"\0")
    except (OSError, ValueError):
        return None
    # The number may belong to another process by now.
    return pid if os.fsencode(layout.config) in arguments and is_alive(pid) else None


def _wait(condition, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
