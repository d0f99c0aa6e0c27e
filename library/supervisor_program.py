#!/usr/bin/python
"""Ansible module: a service under a supervisord of its own, for hosts without systemd and users without root."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.provision_error import exit_with
from ansible.module_utils.supervisor_install import install_program

DOCUMENTATION = r"""
module: supervisor_program
short_description: Run a service under a supervisord of its own
description:
  - Writes C(supervisord.conf), starts supervisord where it does not run, and applies what changed.
  - The program receives exactly the strings given. Newlines, carriage returns and NUL characters are refused.
  - supervisord starts the program again whenever it ends, and stops its whole process group.
  - A supervisord that was killed, and programs that outlived it, are cleared away first.
  - Runs with the system's Python (3.10 or newer) and its standard library; supervisord is the one named (supervisor
    4.3 or newer).
notes:
  - The socket lies in O(dir), or in a private folder below /tmp where that path is too long for a Unix socket (107
    bytes).
  - A variable whose value mixes both kinds of quotes, begins or ends with one, or has C(;) or C(#) after a space
    cannot stand in
    supervisord's C(environment); it is set by C(/usr/bin/env) in front of the command.
  - The configuration is readable by its owner alone. Secrets still belong in a file that the program reads.
options:
  name:
    description: Name of the program.
    type: str
    required: true
  dir:
    description: Folder for the configuration, logs, pid file and socket. One folder holds one program.
    type: path
    required: true
  supervisord:
    description: Argv that runs supervisord, such as C([/opt/ddtree/venv/bin/supervisord]). Required with
      O(state=present).
    type: list
    elements: str
  argv:
    description: The program (absolute path) and its arguments. Required with O(state=present).
    type: list
    elements: raw
  environment:
    description: Variables of the program, added to a plain environment (PATH, HOME, USER, LOGNAME, LANG).
    type: dict
    default: {}
  directory:
    description: Working directory of the program.
    type: path
  state:
    description: C(absent) stops the program and supervisord and removes the files they and this module made.
    type: str
    choices: [present, absent]
    default: present
  started:
    description: Whether supervisord and the program must run; C(false) only writes the configuration.
    type: bool
    default: true
  restarted:
    description: Whether the program gets a new process even without a change.
    type: bool
    default: false
  start_s:
    description: Seconds the program must live to count as running. Ending earlier is retried O(start_retries) times,
      then given up (FATAL).
    type: int
    default: 5
  start_retries:
    description: Attempts before supervisord gives up.
    type: int
    default: 3
  stop_timeout_s:
    description: Seconds between the request to end (SIGTERM) and the kill.
    type: int
    default: 60
  log_max_mb:
    description: Size in megabytes at which the program's log is rotated.
    type: int
    default: 50
  log_backups:
    description: Rotated logs that are kept.
    type: int
    default: 3
attributes:
  check_mode:
    support: full
    description: Predicts the change; a program that is not there yet is a warning then, not a failure.
  diff_mode: {support: full, description: Shows the configuration.}
author: [ddtree-infra maintainers]
"""

EXAMPLES = r"""
- name: Serve without systemd
  supervisor_program:
    name: ddtree
    dir: /home/me/ddtree/run
    supervisord: [/home/me/ddtree/venv/bin/supervisord]
    argv: [/home/me/ddtree/venv/bin/ddtree, serve, --model, /home/me/ddtree/models/org/name]
    environment: {DDTREE_RELEASE: "42"}
  register: service

- name: Stop it and leave nothing
  supervisor_program:
    name: ddtree
    dir: /home/me/ddtree/run
    state: absent
"""

RETURN = r"""
supervisord_started:
  description: Whether supervisord was started (in check mode, would be).
  returned: success
  type: bool
restarted:
  description: Whether the program got a new process (in check mode, would get).
  returned: success
  type: bool
pid:
  description: The program's process, or null.
  returned: success
  type: int
program_state:
  description: supervisord's word for the program's state, or null.
  returned: success
  type: str
ctl:
  description: Argv of supervisorctl for this supervisord, as C(supervisor.ctl) of serving_health and running_service
    wants it.
  returned: with O(supervisord)
  type: list
config:
  description: The configuration file.
  returned: success
  type: str
socket:
  description: The Unix socket.
  returned: success
  type: str
log_file:
  description: The program's output.
  returned: success
  type: str
"""


def main():
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "dir": {"type": "path", "required": True},
            "supervisord": {"type": "list", "elements": "str"},
            "argv": {"type": "list", "elements": "raw"},
            "environment": {"type": "dict", "default": {}},
            "directory": {"type": "path"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "started": {"type": "bool", "default": True},
            "restarted": {"type": "bool", "default": False},
            "start_s": {"type": "int", "default": 5},
            "start_retries": {"type": "int", "default": 3},
            "stop_timeout_s": {"type": "int", "default": 60},
            "log_max_mb": {"type": "int", "default": 50},
            "log_backups": {"type": "int", "default": 3},
        },
        required_if=[("state", "present", ["supervisord", "argv"])],
        supports_check_mode=True,
    )
    exit_with(module, lambda module: install_program(module.params, module.check_mode))


if __name__ == "__main__":
    main()
