#!/usr/bin/python
"""Ansible module: what a service runs right now: its process, when that began, chosen variables it was started with."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.process_facts import environment_of, started_at
from ansible.module_utils.provision_error import exit_with
from ansible.module_utils.service_state import service_state

DOCUMENTATION = r"""
module: running_service
short_description: Read which process a service runs, and which release it was started with
description:
  - Asks systemd or supervisord for the main process, and the process for variables of its environment. Changes nothing.
  - A service that does not exist is not active; that is no failure.
  - Runs with the system's Python (3.10 or newer) and its standard library. Needs root or the service's own user for
    the environment.
options:
  unit:
    description: systemd unit.
    type: str
  supervisor:
    description: Program of supervisord.
    type: dict
    suboptions:
      ctl:
        description: Argv of supervisorctl with its configuration.
        type: list
        elements: str
        required: true
      program:
        description: Name of the program.
        type: str
        required: true
  variables:
    description: Variables to return; no other is, as some are secrets.
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full, description: Only reads.}
  diff_mode: {support: none, description: Changes nothing.}
author: [ddtree-infra maintainers]
"""

EXAMPLES = r"""
- name: Which release runs?
  running_service:
    unit: ddtree.service
    variables: [DDTREE_RELEASE]
  register: running
"""

RETURN = r"""
active:
  description: Whether its process runs (that it serves is for serving_health to say).
  returned: always
  type: bool
state:
  description: State in the supervisor's own words, such as C(active/running), C(RUNNING) or C(not-found).
  returned: always
  type: str
description:
  description: The state as a sentence, with the exit status of a process that died.
  returned: always
  type: str
main_pid:
  description: The process, or null.
  returned: always
  type: int
environment:
  description: The variables asked for; null for one the process was not given, or when there is no process.
  returned: always
  type: dict
started_at:
  description: When the process began (ISO 8601, UTC), or null.
  returned: always
  type: str
"""


def read_service(params):
    state = service_state(params["unit"], params["supervisor"])
    pid = state.main_pid
    return {
        "changed": False,
        "active": state.active and pid is not None,
        "state": state.state,
        "description": state.description,
        "main_pid": pid,
        "environment": environment_of(pid, params["variables"]) if pid else dict.fromkeys(params["variables"]),
        "started_at": started_at(pid) if pid else None,
    }


def main():
    module = AnsibleModule(
        argument_spec={
            "unit": {"type": "str"},
            "supervisor": {
                "type": "dict",
                "options": {
                    "ctl": {"type": "list", "elements": "str", "required": True},
                    "program": {"type": "str", "required": True},
                },
            },
            "variables": {"type": "list", "elements": "str", "default": []},
        },
        required_one_of=[("unit", "supervisor")],
        mutually_exclusive=[("unit", "supervisor")],
        supports_check_mode=True,
    )
    exit_with(module, lambda module: read_service(module.params))


if __name__ == "__main__":
    main()
