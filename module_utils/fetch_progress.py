"""The progress file of a running fetch, for a watcher: rewritten every second, gone when the run has ended.

{"schema": 1, "pid", "started_at", "updated_at" (seconds since the epoch), "phase": "check" | "fetch",
 "total": {"files", "files_done", "size_bytes", "done_bytes", "mib_per_s", "eta_s" | null},
 "files": [{"path", "state", "size_bytes", "done_bytes", "mib_per_s", "eta_s" | null}]}      those in work
"""

from __future__ import annotations

import os
import threading
import time

from ansible.module_utils.durable_json import write_json
from ansible.module_utils.part_file import remove_file

SCHEMA = 1
PERIOD_S = 1.0
MIB = 1024 * 1024


class ProgressFile:
    """Writes at most once a second. `tick` may be called from any thread, as often as one likes."""

    def __init__(self, path):
        self._path = path
        self._started_at = time.time()
        self._next = 0.0
        self._lock = threading.Lock()

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        remove_file(self._path)

    def tick(self, describe):
        """`describe()` -> (phase, files, files_done, size_bytes, done_bytes, rows); called only when it is time."""
        with self._lock:
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + PERIOD_S
            phase, files, files_done, size_bytes, done_bytes, rows = describe()
            total = {"files": files, "files_done": files_done}
            total |= progress_row(size_bytes, done_bytes, sum(row["mib_per_s"] for row in rows))
            value = {"schema": SCHEMA, "pid": os.getpid(), "started_at": self._started_at, "updated_at": time.time()}
            write_json(self._path, {**value, "phase": phase, "total": total, "files": rows}, durable=False)


def progress_row(size_bytes, done_bytes, mib_per_s):
    """The figures of one file or of all."""
    remaining = max(size_bytes - done_bytes, 0)
    return {
        "size_bytes": size_bytes,
        "done_bytes": done_bytes,
        "mib_per_s": round(mib_per_s, 2),
        "eta_s": round(remaining / (mib_per_s * MIB), 1) if mib_per_s > 0 else None,
    }
