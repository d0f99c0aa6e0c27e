#!/usr/bin/python
"""Ansible module: what a node has (Python, commands, memory, disk, GPUs), read and never changed."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.node_probe_facts import probe

DOCUMENTATION = r"""
module: node_probe
short_description: Read what a node has before anything is installed on it
description:
  - Runs on a bare host with the system's Python and its standard library.
  - Changes nothing, in check mode or out of it.
options:
  python:
    description: Interpreter (name or path) that is to own the virtual environments.
    type: str
    default: python3
  commands:
    description: Commands to look for on the PATH.
    type: list
    elements: str
    default: []
  path:
    description: Folder that will hold the installation; it need not exist.
    type: path
    required: true
  models_path:
    description: Folder that will hold the models; it need not exist.
    type: path
    required: true
attributes:
  check_mode: {support: full, description: Only reads.}
  diff_mode: {support: none, description: Only reads.}
author: [ddtree-infra maintainers]
"""

EXAMPLES = r"""
- name: Read the node
  node_probe:
    python: python3.12
    commands: [aria2c, apt-get]
    path: /opt/ddtree
    models_path: /opt/ddtree/models
  register: node
"""

RETURN = r"""
node:
  description: >-
    C(python) (found, executable, version, ensurepip, headers), C(commands) (name to path or null), C(is_root),
    C(systemd),
    C(memory_bytes), C(disk) and C(models_disk) (free_bytes, measured_at), C(models_bytes) (already there),
    C(gpus) (index, name, compute_capability, memory_bytes, driver_version), C(nvidia_smi),
    C(error) (what nvidia-smi said when it failed).
  returned: always
  type: dict
"""


def main():
    module = AnsibleModule(
        argument_spec={
            "python": {"type": "str", "default": "python3"},
            "commands": {"type": "list", "elements": "str", "default": []},
            "path": {"type": "path", "required": True},
            "models_path": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    module.exit_json(changed=False, node=probe(**module.params))


if __name__ == "__main__":
    main()
