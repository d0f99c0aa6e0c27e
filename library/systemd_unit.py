#!/usr/bin/python
"""Ansible module: a systemd unit from data, every string escaped, verified before it replaces the installed one."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.provision_error import exit_with
from ansible.module_utils.unit_install import install_unit

DOCUMENTATION = r"""
module: systemd_unit
short_description: Install a systemd unit whose process receives exactly the strings given
description:
  - Renders a unit from data. Percent and dollar signs, quotes, backslashes, JSON, spaces, semicolons, control
    characters and
    empty strings reach the process unchanged. Newlines, NUL characters and text that is not valid UTF-8 are refused.
  - Lets C(systemd-analyze verify) judge the candidate before it replaces the installed file; any output about this
    unit is a failure.
  - Replaces the file in one step, and reloads systemd only when the file (or a file systemd has not reloaded yet)
    changed.
  - Neither starts nor enables the unit, and does not stop it when the file goes; M(ansible.builtin.systemd_service)
    does.
  - Runs with the system's Python (3.10 or newer) and its standard library.
notes:
  - Everyone on the host can read a unit and its environment. A secret belongs in a file of mode 0600 named by
    C(EnvironmentFile) in the C([Service]) section (systemd expands neither C(%) nor C($) in it), or in
    C(LoadCredential).
options:
  name:
    description: Name of the unit with its suffix, such as C(ddtree.service).
    type: str
    required: true
  sections:
    description:
      - Section to settings, written in the order given; required with O(state=present).
      - A section is a dictionary, or a list of dictionaries where a key must come twice in a certain order.
      - A value is text in systemd's own syntax (C(%h), quotes and lists keep their meaning), a number, or a boolean
        (C(yes) and C(no)).
        A list repeats the key, an empty string resets it, null leaves it out.
      - In keys that begin with C(Exec) a list of strings is one argv and is escaped; a list of lists is several
        commands.
        The program may carry the prefixes C(-), C(+) and C(!).
    type: dict
    default: {}
  argv:
    description: The program (absolute path) and its arguments, written as C(ExecStart) of the C([Service]) section.
    type: list
    elements: raw
  environment:
    description: Variables, written as C(Environment) lines of the C([Service]) section. Never a secret, see the notes.
    type: dict
    default: {}
  path:
    description: Folder of units.
    type: path
    default: /etc/systemd/system
  mode:
    description: Octal mode of the file, quoted.
    type: str
    default: '0644'
  owner:
    description: Owner of the file (name or number).
    type: str
    default: root
  group:
    description: Group of the file (name or number).
    type: str
    default: root
  state:
    description: Whether the file is there.
    type: str
    choices: [present, absent]
    default: present
  verify:
    description: Whether C(systemd-analyze verify) must have nothing to say about the unit.
    type: bool
    default: true
  daemon_reload:
    description: Whether systemd is reloaded after a change; without it no running systemd is needed.
    type: bool
    default: true
attributes:
  check_mode:
    support: full
    description: The candidate is rendered and verified as well; programs that are not there yet are a warning then,
      not a failure.
  diff_mode: {support: full, description: Shows the text, and mode and owner in the headers.}
author: [ddtree-infra maintainers]
"""

EXAMPLES = r"""
- name: Install the service
  systemd_unit:
    name: ddtree.service
    sections:
      Unit: {Description: DDTree server, After: network-online.target, Wants: network-online.target}
      Service:
        User: ddtree
        EnvironmentFile: /etc/ddtree/secrets.env
        LimitMEMLOCK: infinity
        ReadWritePaths: [/var/lib/ddtree, /var/cache/ddtree]
        Restart: always
      Install: {WantedBy: multi-user.target}
    environment: {DDTREE_RELEASE: "42", TRITON_CACHE_DIR: /var/cache/ddtree/triton}
    argv: [/opt/ddtree/venv/bin/ddtree, serve, --model, "/srv/models/100% real", --extra, '{"rope": "it''s $5"}']
  register: unit

- name: Remove the file of a service that was stopped and disabled before
  systemd_unit:
    name: ddtree.service
    state: absent
"""

RETURN = r"""
path:
  description: The unit's file.
  returned: always
  type: str
reloaded:
  description: Whether systemd was reloaded (in check mode, would be).
  returned: success
  type: bool
faults:
  description: Lines of systemd-analyze.
  returned: when the unit did not pass
  type: list
unit_text:
  description: The text that did not pass.
  returned: when the unit did not pass
  type: str
"""


def main():
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "sections": {"type": "dict", "default": {}},
            "argv": {"type": "list", "elements": "raw"},
            "environment": {"type": "dict", "default": {}},
            "path": {"type": "path", "default": "/etc/systemd/system"},
            "mode": {"type": "str", "default": "0644"},
            "owner": {"type": "str", "default": "root"},
            "group": {"type": "str", "default": "root"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "verify": {"type": "bool", "default": True},
            "daemon_reload": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    exit_with(module, lambda module: install_unit(module.params, module.check_mode))


if __name__ == "__main__":
    main()
