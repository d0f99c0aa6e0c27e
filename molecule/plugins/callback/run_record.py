"""Callback plugin: one line of JSON a playbook run, so that tests read counts and durations, not printed text."""

import json
import time
from pathlib import Path

from ansible import context
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: run_record
type: aggregate
short_description: Append one line of JSON for every playbook run to a file
description:
  - A line holds the playbook's name, whether it ran in check mode, its duration, the counts of every host as the play
    recap shows them, and every task that reported a change.
requirements:
  - enable in configuration
options:
  path:
    description: File to append to.
    required: true
    type: path
    env:
      - name: DDTREE_RUN_RECORD
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "run_record"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._playbook = ""
        self._started_s = time.monotonic()
        self._changed_tasks: list[dict[str, str]] = []

    def v2_playbook_on_start(self, playbook) -> None:
        self._playbook = Path(playbook._file_name).name
        self._started_s = time.monotonic()

    def v2_runner_on_ok(self, result) -> None:
        if result.is_changed():
            self._changed_tasks.append({"host": result.host.get_name(), "task": result.task.get_name()})

    def v2_playbook_on_stats(self, stats) -> None:
        record = {
            "playbook": self._playbook,
            "check_mode": bool(context.CLIARGS.get("check")),
            "seconds": round(time.monotonic() - self._started_s, 1),
            "hosts": {host: stats.summarize(host) for host in sorted(stats.processed)},
            "changed_tasks": self._changed_tasks,
        }
        path = Path(self.get_option("path"))
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")
