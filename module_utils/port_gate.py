"""Lets a service start only when its port is free, or held by the service itself. Used by the port_free module."""

from __future__ import annotations

from ansible.module_utils.port_owner import port_owner
from ansible.module_utils.process_facts import ancestry, unit_of
from ansible.module_utils.provision_error import ProvisionError

_COMMAND_LENGTH = 200


def require_free_port(host: str, port: int, allowed_unit: str | None, allowed_pids: list[int], variable: str) -> dict:
    """Result of the module: free, allowed, owner. `variable` is where the port is set.

    Raises ProvisionError when somebody else holds the port.
    """
    if not 0 < port < 65536:
        raise ProvisionError(f"port: {port} is not a port; choose one from 1 to 65535")
    owner = port_owner(host, port)
    if owner is None:
        return {"changed": False, "free": True, "allowed": True, "owner": None}
    found = {"pid": owner.pid, "name": owner.name, "command": owner.command, "address": owner.address}
    if owner.pid is not None and (
        (allowed_unit is not None and unit_of(owner.pid) == allowed_unit)
        or set(allowed_pids) & set(ancestry(owner.pid))
    ):
        return {"changed": False, "free": False, "allowed": True, "owner": found}
    if owner.pid is None:
        who = "by a process that this user may not look at (run the task as root to have it named)"
    else:
        command = owner.command if len(owner.command) <= _COMMAND_LENGTH else owner.command[:_COMMAND_LENGTH] + "…"
        who = f"by pid {owner.pid} ({owner.name}: {command})"
    raise ProvisionError(
        f"port {port} on {host} is in use {who}; stop it or set {variable} to another port",
        free=False,
        allowed=False,
        owner=found,
    )
