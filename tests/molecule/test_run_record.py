"""The callback that tests read counts from, run by the real ansible-playbook."""

import json
import os
import subprocess
import sys
from pathlib import Path

PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  tasks:
    - name: Change something
      ansible.builtin.debug: {msg: "changed=3"}
      changed_when: change | default(true) | bool
    - name: Change nothing
      ansible.builtin.debug: {msg: "changed=7"}
"""


def test_every_run_adds_a_line_with_its_own_counts(tools, tmp_path):
    playbook, record = tmp_path / "play.yml", tmp_path / "folder" / "runs.jsonl"
    playbook.write_text(PLAYBOOK)
    environment = os.environ | {
        "ANSIBLE_CALLBACK_PLUGINS": str(tools.parent / "plugins" / "callback"),
        "ANSIBLE_CALLBACKS_ENABLED": "run_record",
        "DDTREE_RUN_RECORD": str(record),
        "ANSIBLE_LOCALHOST_WARNING": "false",
    }
    command = [Path(sys.executable).with_name("ansible-playbook"), "-c", "local", "-i", "localhost,", playbook]
    subprocess.run(command, env=environment, capture_output=True, check=True)
    subprocess.run([*command, "--check", "-e", "change=false"], env=environment, capture_output=True, check=True)
    first, second = [json.loads(line) for line in record.read_text().splitlines()]
    assert first["playbook"] == second["playbook"] == "play.yml"
    assert (first["check_mode"], second["check_mode"]) == (False, True)
    assert (first["hosts"]["localhost"]["changed"], second["hosts"]["localhost"]["changed"]) == (1, 0)
    assert first["changed_tasks"] == [{"host": "localhost", "task": "Change something"}]
    assert second["changed_tasks"] == []
    assert second["hosts"]["localhost"]["ok"] == 2
