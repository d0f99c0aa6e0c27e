"""Puts a service under a supervisord of its own, keeps it so, or takes both away."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from ansible.module_utils.provision_error import ProvisionError
from ansible.module_utils.supervisor_client import STOPPED_STATES, SupervisorClient
from ansible.module_utils.supervisor_config import SupervisorConfigError, render_daemon, render_program
from ansible.module_utils.supervisor_daemon import daemon_pid, end_daemon, end_orphans, find_orphans, start_daemon
from ansible.module_utils.supervisor_layout import SupervisorLayout
from ansible.module_utils.system_file import FileState, describe_change, read_state, remove, write_atomically

_SPAWN_TIMEOUT_S = 15


@dataclass(frozen=True)
class _Plan:
    """What has to happen for a program to be present."""

    write: bool  # the configuration file
    end_first: bool  # a supervisord that cannot be reached or was started with other settings of its own
    begin: bool  # supervisord
    restart: bool  # the program gets a new process


def install_program(params: dict, check_mode: bool) -> dict:
    """The result of the module for its parameters; `check_mode` predicts it and touches nothing."""
    layout = SupervisorLayout(os.path.abspath(params["dir"]), params["name"])
    client = SupervisorClient(layout.socket, params["stop_timeout_s"] + 60)
    before, after, warnings = read_state(layout.config), FileState(), []
    if params["state"] == "absent":
        outcome = _remove(params, layout, client, check_mode)
    else:
        daemon_text, program_text = _texts(params, layout)
        after = FileState(daemon_text + program_text, 0o600, os.geteuid(), os.getegid())
        missing = [*_missing_program(params["argv"][0]), *_missing_program(params["supervisord"][0])]
        if missing and not check_mode:
            raise ProvisionError(f"{layout.name}: {' and '.join(missing)}; install it first")
        # On a bare host the earlier stages, which would have installed the programs, were only predicted too.
        warnings += [f"{layout.name}: {problem}" for problem in missing]
        pid = daemon_pid(layout, client)
        program = client.program(layout.name) if pid and client.pid() else None
        plan = _plan(params, pid, program, before, after, daemon_text)
        outcome = _predicted(plan, program) if check_mode else _apply(plan, params, layout, client, after)
    return {
        "config": layout.config,
        "socket": layout.socket,
        "log_file": layout.program_log,
        "ctl": supervisorctl(params["supervisord"], layout.config) if params["supervisord"] else None,
        "diff": describe_change(layout.config, before, after),
        "warnings": warnings,
        **outcome,
    }


def supervisorctl(supervisord: list[str], config: str) -> list[str]:
    """The argv of supervisorctl beside a supervisord, with its configuration; other modules take it as `ctl`."""
    folder, name = os.path.split(supervisord[-1])
    return [*supervisord[:-1], os.path.join(folder, name.replace("supervisord", "supervisorctl")), "-c", config]


def _texts(params: dict, layout: SupervisorLayout) -> tuple[str, str]:
    try:
        return (
            render_daemon(layout, as_root=os.geteuid() == 0),
            render_program(layout, params["argv"], params["environment"], params["directory"], params),
        )
    except SupervisorConfigError as error:
        raise ProvisionError(f"{layout.name}: {error}") from error


def _plan(
    params: dict, pid: int | None, program: dict | None, before: FileState, after: FileState, daemon_text: str
) -> _Plan:
    """`pid` of a running supervisord; `program` as it reports it, None where it does not answer or does not know it."""
    if not params["started"]:
        return _Plan(write=before != after, end_first=False, begin=False, restart=False)
    end_first = pid is not None and (program is None or not (before.text or "").startswith(daemon_text))
    begin = pid is None or end_first
    stopped = program is None or program["statename"] in STOPPED_STATES
    restart = begin or stopped or before.text != after.text or params["restarted"]
    return _Plan(write=before != after, end_first=end_first, begin=begin, restart=restart)


def _predicted(plan: _Plan, program: dict | None) -> dict:
    changed = plan.write or plan.restart
    return {"changed": changed, "supervisord_started": plan.begin, "restarted": plan.restart, **_facts(program)}


def _apply(plan: _Plan, params: dict, layout: SupervisorLayout, client: SupervisorClient, after: FileState) -> dict:
    layout.make_folders()
    if plan.write:
        write_atomically(layout.config, after)
    restarted = plan.begin
    if plan.end_first:
        end_daemon(layout, client, params["stop_timeout_s"])
    if plan.begin:
        end_orphans(layout, params["stop_timeout_s"])
        start_daemon(params["supervisord"], layout, client)
    elif params["started"]:
        # Asked for every time: an earlier run may have ended between the file and this.
        restarted = client.update() or _revive(client, layout.name, params["restarted"])
    program = _spawned(client, layout) if params["started"] else None
    changed = plan.write or restarted
    return {"changed": changed, "supervisord_started": plan.begin, "restarted": restarted, **_facts(program)}


def _revive(client: SupervisorClient, name: str, restart: bool) -> bool:
    """Starts a program that is stopped, and on demand one that runs anew; True when it did."""
    if client.program(name)["statename"] not in STOPPED_STATES:
        if not restart:
            return False
        client.stop(name)
    client.start(name)
    return True


def _spawned(client: SupervisorClient, layout: SupervisorLayout) -> dict:
    """The program once its process was started or could not be: supervisord does it a moment later than it is told."""
    deadline = time.monotonic() + _SPAWN_TIMEOUT_S
    while True:
        program = client.program(layout.name)
        if program and program["statename"] != "STOPPED":
            return program
        if time.monotonic() > deadline:
            raise ProvisionError(f"supervisord does not start {layout.name}; see {layout.log}")
        time.sleep(0.05)


def _facts(program: dict | None) -> dict:
    return {"pid": (program or {}).get("pid") or None, "program_state": (program or {}).get("statename")}


def _missing_program(program) -> list[str]:
    """What keeps a program from being run: nothing, or one sentence."""
    path = str(program)
    if not os.path.exists(path):
        return [f"the program {path} does not exist"]
    if os.path.isdir(path) or not os.access(path, os.X_OK):
        return [f"{path} is not an executable file"]
    return []


def _remove(params: dict, layout: SupervisorLayout, client: SupervisorClient, check_mode: bool) -> dict:
    running = daemon_pid(layout, client) is not None or bool(find_orphans(layout))
    changed = running or bool(layout.files())
    if not check_mode:
        end_daemon(layout, client, params["stop_timeout_s"])
        for path in layout.files():
            remove(path)
        for folder in {layout.folder, os.path.dirname(layout.socket)}:
            if os.path.isdir(folder) and not os.listdir(folder):
                os.rmdir(folder)
    return {"changed": changed, "supervisord_started": False, "restarted": False, **_facts(None)}
