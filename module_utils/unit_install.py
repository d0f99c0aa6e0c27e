"""Installs or removes a systemd unit: render, verify, replace in one step, reload systemd only after a change."""

from __future__ import annotations

import os
import re
import subprocess

from ansible.module_utils.provision_error import ProvisionError
from ansible.module_utils.system_file import FileState, describe_change, owner_ids, read_state, remove, write_atomically
from ansible.module_utils.unit_file import UnitError, render
from ansible.module_utils.unit_verify import unit_faults

_NAME = re.compile(r"[A-Za-z0-9:_.@\\-]+\.(service|socket|target|mount|automount|swap|timer|path|slice)")
_SECRET_NAME = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|SECRET_KEY|ACCESS_KEY)$", re.IGNORECASE)
RUNTIME_FOLDER = "/run/systemd/system"


def install_unit(params: dict, check_mode: bool) -> dict:
    """The result of the systemd_unit module for its parameters; `check_mode` predicts it and writes nothing."""
    name, path = params["name"], os.path.join(params["path"], params["name"])
    if not _NAME.fullmatch(name):
        raise ProvisionError(f"name: {name!r} is not the name of a unit, such as ddtree.service")
    running = os.path.isdir(RUNTIME_FOLDER)
    if params["daemon_reload"] and params["state"] == "present" and not running:
        raise ProvisionError(
            f"systemd does not run on this host ({RUNTIME_FOLDER} is missing): run the service under supervisord "
            "(module supervisor_program), or set daemon_reload: false to only write the file, as for an image"
        )
    result = {"path": path, "reloaded": False, "warnings": []}
    if os.path.islink(path) and os.path.realpath(path) == os.devnull:
        if params["state"] == "present":
            raise ProvisionError(
                f"{name} is masked ({path} points to {os.devnull}); run `systemctl unmask {name}` first"
            )
        return {**result, "changed": False}
    before = read_state(path)
    after = FileState() if params["state"] == "absent" else _wanted(params, check_mode, result["warnings"])
    written = before != after
    # True as well where an earlier run was interrupted between the file and the reload.
    reload = params["daemon_reload"] and running and (written or _needs_reload(name))
    if not check_mode:
        if written:
            _apply(path, after)
        if reload:
            _systemctl("daemon-reload")
    return {**result, "changed": written or reload, "reloaded": reload, "diff": describe_change(path, before, after)}


def _wanted(params: dict, check_mode: bool, warnings: list[str]) -> FileState:
    """The file as it is to be; faults are raised before anything is written."""
    name = params["name"]
    try:
        text = render(params["sections"], params["argv"], params["environment"])
    except UnitError as error:
        raise ProvisionError(f"{name}: {error}") from error
    for variable in params["environment"]:
        if _SECRET_NAME.search(variable):
            warnings.append(
                f"{name}: environment variable {variable} looks like a secret, and everyone on the host can read "
                "a unit; put it into a file of mode 0600 and name the file in [Service] EnvironmentFile"
            )
    if params["verify"]:
        faults, missing = unit_faults(name, text)
        if check_mode:
            # On a bare host the earlier stages, which would have installed the program, were only predicted too.
            warnings += missing
        else:
            faults += missing
        if faults:
            raise ProvisionError(
                f"{name} is not installed, systemd-analyze verify says: " + "; ".join(faults),
                faults=faults,
                unit_text=text,
            )
    return FileState(text, _mode(params["mode"]), *owner_ids(params["owner"], params["group"]))


def _mode(mode: str) -> int:
    try:
        return int(mode, 8)
    except ValueError as error:
        raise ProvisionError(f"mode: {mode!r} is not an octal number; quote it, as in '0644'") from error


def _apply(path: str, after: FileState) -> None:
    if after.text is None:
        remove(path)
    elif not os.path.isdir(os.path.dirname(path)):
        raise ProvisionError(f"{os.path.dirname(path)} is not a folder; create it or set `path` to the folder of units")
    else:
        write_atomically(path, after)


def _needs_reload(name: str) -> bool:
    return _systemctl("show", "--property=NeedDaemonReload", "--value", name).strip() == "yes"


def _systemctl(*arguments: str) -> str:
    """Standard output of systemctl; its failure is raised with what it said."""
    command = ["systemctl", *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True).stdout
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip()
        raise ProvisionError(f"`{' '.join(command)}` failed: {said}; run the task as root (become: true)") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProvisionError(f"`{' '.join(command)}` failed: {error}") from error
