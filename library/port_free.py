#!/usr/bin/python
"""Ansible module: fails when a TCP port is taken by anybody but the service itself, and names the process."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.port_gate import require_free_port
from ansible.module_utils.provision_error import exit_with

DOCUMENTATION = r"""
module: port_free
short_description: Fail when a TCP port is in use by another process
description:
  - Reads the listening sockets and the processes behind them, and finally asks the kernel. Changes nothing.
  - Runs with the system's Python (3.10 or newer) and its standard library. Processes of other users are named only to
    root.
options:
  host:
    description: Address the service is to listen on.
    type: str
    default: 127.0.0.1
  port:
    description: Port the service is to listen on.
    type: int
    required: true
  allowed_unit:
    description: systemd unit whose processes may hold the port; the service that runs already, such as
      C(ddtree.service).
    type: str
  allowed_pids:
    description: Processes that may hold the port, their children included.
    type: list
    elements: int
    default: []
  variable:
    description: Variable in which the port is set; the message names it.
    type: str
    default: serve_port
attributes:
  check_mode: {support: full, description: Only reads.}
  diff_mode: {support: none, description: Changes nothing.}
author: [ddtree-infra maintainers]
"""

EXAMPLES = r"""
- name: The port is free, or already ours
  port_free:
    port: 8000
    allowed_unit: ddtree.service
"""

RETURN = r"""
free:
  description: Whether nobody listens.
  returned: always
  type: bool
allowed:
  description: Whether the service may start (free, or held by itself).
  returned: always
  type: bool
owner:
  description: C(pid), C(name), C(command) and C(address) of the listener; null where there is none.
  returned: always
  type: dict
"""


def main():
    module = AnsibleModule(
        argument_spec={
            "host": {"type": "str", "default": "127.0.0.1"},
            "port": {"type": "int", "required": True},
            "allowed_unit": {"type": "str"},
            "allowed_pids": {"type": "list", "elements": "int", "default": []},
            "variable": {"type": "str", "default": "serve_port"},
        },
        supports_check_mode=True,
    )
    exit_with(module, lambda module: require_free_port(**module.params))


if __name__ == "__main__":
    main()
