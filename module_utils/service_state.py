"""How a service is doing, asked of the one that supervises it: systemd (a unit) or supervisord (a program)."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass

from ansible.module_utils.provision_error import ProvisionError

_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "MainPID",
    "NRestarts",
    "ExecMainCode",
    "ExecMainStatus",
    "Job",
)
# `ddtree   RUNNING   pid 4711, uptime 0:00:05`
_STATUS_LINE = re.compile(r"^(?P<program>\S+)\s+(?P<state>[A-Z]+)\s*(?P<detail>.*)$")
_PID = re.compile(r"\bpid (\d+)")
_TIMEOUT_S = 30


@dataclass(frozen=True)
class ServiceState:
    """One look at a service.

    active       runs or is being started
    restarting   ended by itself; its supervisor is about to start it again
    dead         does not run, and nobody is about to change that
    restarts     automatic restarts since the service was started (systemd only; None elsewhere)
    description  a sentence for messages
    """

    name: str
    state: str
    active: bool
    restarting: bool
    dead: bool
    main_pid: int | None
    restarts: int | None
    description: str


def unit_state(unit: str) -> ServiceState:
    """State of a systemd unit; a host without systemctl has no unit, so nothing runs there."""
    if shutil.which("systemctl") is None:
        return ServiceState(
            unit, "not-found", False, False, True, None, None, f"{unit} cannot run: systemctl is missing on this host"
        )
    output = _output(["systemctl", "show", unit, f"--property={','.join(_PROPERTIES)}"], unit)
    values = dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
    active_state, sub_state = values.get("ActiveState", ""), values.get("SubState", "")
    main_pid = int(values.get("MainPID") or 0) or None
    if values.get("LoadState") != "loaded":
        return ServiceState(
            unit,
            "not-found",
            False,
            False,
            True,
            None,
            None,
            f"{unit} is not installed (LoadState={values.get('LoadState')})",
        )
    description = f"{unit} is {active_state} ({sub_state})"
    # A crash shows as auto-restart between two attempts; systemd 254 added auto-restart-queued.
    restarting = sub_state.startswith("auto-restart") or active_state == "deactivating"
    ended = active_state in ("failed", "inactive")
    if restarting or ended:
        # ExecMainCode: 1 exited, 2 killed, 3 dumped core (CLD_* of waitid(2)).
        how = {"1": "exited with status", "2": "was killed by signal", "3": "dumped core on signal"}.get(
            values.get("ExecMainCode", "")
        )
        description += f", result {values.get('Result')}" + (
            f"; its process {how} {values.get('ExecMainStatus')}" if how else ""
        )
    queued = values.get("Job") not in (None, "", "0")
    return ServiceState(
        name=unit,
        state=f"{active_state}/{sub_state}",
        active=not restarting and not ended,
        restarting=restarting,
        dead=ended and not queued,
        main_pid=main_pid,
        restarts=int(values.get("NRestarts") or 0),
        description=description,
    )


def program_state(ctl: list[str], program: str) -> ServiceState:
    """State of a program of supervisord; `ctl` is the argv of supervisorctl with its configuration."""
    output = _output([*ctl, "status", program], program).strip()
    match = _STATUS_LINE.match(output.splitlines()[-1]) if output else None
    if match is None or match["program"] != program:
        # `unix:///… no such file`, `refused connection`, `ERROR (no such process)`
        return ServiceState(
            program,
            "not-found",
            False,
            False,
            True,
            None,
            None,
            f"{program} is not supervised: {output or 'no answer'}",
        )
    state, pid = match["state"], _PID.search(match["detail"])
    if state == "STARTING" and pid is None:
        # Its line shows no process before it counts as running.
        pid = re.fullmatch(r"([1-9]\d*)", _output([*ctl, "pid", program], program).strip())
    return ServiceState(
        name=program,
        state=state,
        active=state in ("RUNNING", "STARTING"),
        restarting=state in ("BACKOFF", "EXITED"),
        dead=state in ("FATAL", "STOPPED", "UNKNOWN"),
        main_pid=int(pid[1]) if pid else None,
        restarts=None,
        description=f"{program} is {state} ({match['detail']})" if match["detail"] else f"{program} is {state}",
    )


def service_state(unit: str | None, supervisor: dict | None) -> ServiceState:
    """Whichever of the two a module was given."""
    return unit_state(unit) if unit else program_state(supervisor["ctl"], supervisor["program"])


def _output(command: list[str], name: str) -> str:
    """Standard output and error. supervisorctl exits non-zero for a program that does not run: the text decides."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
        )
    except FileNotFoundError:
        return f"{command[0]} does not exist"
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProvisionError(f"cannot ask for the state of {name}: {error}") from error
    return done.stdout
