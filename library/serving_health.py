#!/usr/bin/python
"""Ansible module: waits until a server is healthy and has generated one token, and reports a dead service at once."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.provision_error import exit_with
from ansible.module_utils.serving_health_probe import wait_until_ready

DOCUMENTATION = r"""
module: serving_health
short_description: Wait until an OpenAI-compatible server really serves
description:
  - Ready means that C(/health) answers 200 and that one token was generated through C(/v1/completions). An open port
    and
    C(/v1/models) come minutes too early, and a broken engine has answered C(/health) with 200.
  - Looks at the service meanwhile. One that died is reported at once, with the last lines of its log.
  - Another program on the port (no HTTP, no C(/health), another model, a refused key) is named and not waited for.
  - Talks to O(url) alone, through no proxy and following no redirect. Changes nothing.
  - Runs with the system's Python (3.10 or newer) and its standard library.
options:
  url:
    description: Address of the server, such as C(http://127.0.0.1:8000).
    type: str
    required: true
  model:
    description: Name the server must serve; the first of C(/v1/models) where it is left out.
    type: str
  prompt:
    description: Text of the test completion.
    type: str
    default: The
  api_key:
    description: Sent as a bearer token to O(url).
    type: str
  timeout_s:
    description: Seconds from the call until it must be ready.
    type: float
    default: 600
  interval_s:
    description: Seconds between two questions, and between two looks at the service.
    type: float
    default: 1
  request_timeout_s:
    description: Seconds after which one question is given up and asked again. The first token may include compilation.
    type: float
    default: 120
  unit:
    description: systemd unit to watch.
    type: str
  supervisor:
    description: Program of supervisord to watch.
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
  max_restarts:
    description: Automatic restarts that are tolerated while waiting.
    type: int
    default: 0
  log_file:
    description: The service's log; the journal of O(unit) where it is left out.
    type: path
  log_lines:
    description: How many of the log's last lines a failure shows.
    type: int
    default: 50
attributes:
  check_mode:
    support: full
    description: Looks once, does not wait, and never fails for a server that is not up; RV(ready) says what it saw.
  diff_mode: {support: none, description: Changes nothing.}
author: [ddtree-infra maintainers]
"""

EXAMPLES = r"""
- name: Wait for the service
  serving_health:
    url: http://127.0.0.1:8000
    model: kimi-k2.6
    unit: ddtree.service
    timeout_s: 3600

- name: Wait for a program of supervisord
  serving_health:
    url: http://127.0.0.1:8000
    supervisor:
      ctl: [/opt/ddtree/venv/bin/supervisorctl, -c, /opt/ddtree/run/supervisord.conf]
      program: ddtree
    log_file: /opt/ddtree/run/ddtree.log
"""

RETURN = r"""
ready:
  description: Whether it serves.
  returned: always
  type: bool
model:
  description: The model that generated the token.
  returned: when ready
  type: str
seconds:
  description: Seconds waited in all.
  returned: when ready or failed
  type: float
health_s:
  description: Seconds until /health answered 200.
  returned: when ready
  type: float
first_token_s:
  description: Seconds from the first request for a token to its arrival.
  returned: when ready
  type: float
reason:
  description: Why it is not ready, in one sentence.
  returned: failed
  type: str
log:
  description: Last lines of the log.
  returned: failed
  type: list
"""


def main():
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "model": {"type": "str"},
            "prompt": {"type": "str", "default": "The"},
            "api_key": {"type": "str", "no_log": True},
            "timeout_s": {"type": "float", "default": 600},
            "interval_s": {"type": "float", "default": 1},
            "request_timeout_s": {"type": "float", "default": 120},
            "unit": {"type": "str"},
            "supervisor": {
                "type": "dict",
                "options": {
                    "ctl": {"type": "list", "elements": "str", "required": True},
                    "program": {"type": "str", "required": True},
                },
            },
            "max_restarts": {"type": "int", "default": 0},
            "log_file": {"type": "path"},
            "log_lines": {"type": "int", "default": 50},
        },
        mutually_exclusive=[("unit", "supervisor")],
        supports_check_mode=True,
    )
    exit_with(module, lambda module: wait_until_ready(module.params, module.check_mode))


if __name__ == "__main__":
    main()
