"""What /proc says about a process: command line, chosen variables of its environment, parents, when it began."""

from __future__ import annotations

import datetime
import os

from ansible.module_utils.provision_error import ProvisionError


def command_of(pid: int) -> str:
    """The command line in one line, or the bare name of a process without one; "" when it is gone."""
    for name in ("cmdline", "comm"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                text = " ".join(file.read().replace(b"\0", b" ").decode(errors="replace").split())
        except OSError:
            return ""
        if text:
            return text
    return ""


def environment_of(pid: int, names: list[str]) -> dict[str, str | None]:
    """Values of the named variables as the process was started with; None for one it was not given.

    Never all of them: some are secrets. Errors: ProvisionError for another user's process.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            items = file.read().split(b"\0")
    except PermissionError as error:
        raise ProvisionError(
            f"cannot read the environment of process {pid} ({command_of(pid)}): it belongs to another user; "
            "run the task as root (become: true)"
        ) from error
    except OSError:
        items = []
    values = dict(os.fsdecode(item).split("=", 1) for item in items if b"=" in item)
    return {name: values.get(name) for name in names}


def _stat_fields(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third on: the second, the name, may itself hold spaces and brackets."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def started_at(pid: int) -> str | None:
    """When the process began, ISO 8601 in UTC to the second; None when it is gone."""
    try:
        ticks = int(_stat_fields(pid)[19])
        with open("/proc/stat", encoding="ascii") as file:
            boot_s = next(int(line.split()[1]) for line in file if line.startswith("btime "))
    except OSError:
        return None
    moment = datetime.datetime.fromtimestamp(boot_s + ticks // os.sysconf("SC_CLK_TCK"), datetime.timezone.utc)  # noqa: UP017 (Python 3.10)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def ancestry(pid: int) -> list[int]:
    """The process, its parent, its parent's parent …, without process 1."""
    chain = []
    while pid > 1 and pid not in chain:
        chain.append(pid)
        try:
            pid = int(_stat_fields(pid)[1])
        except OSError:
            break
    return chain


def unit_of(pid: int) -> str | None:
    """The systemd unit whose control group holds the process, such as ddtree.service; None outside of services."""
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as file:
            parts = [part for line in file for part in line.strip().split("/")]
    except OSError:
        return None
    # A service's own sub-groups come after it: the last one that ends in .service is the innermost unit.
    units = [part for part in parts if part.endswith(".service")]
    return units[-1] if units else None
