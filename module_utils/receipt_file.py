"""The receipt of a model folder: which files were verified, and what they looked like then.

{"schema": 1, "commit": "…", "digest": "…", "completed_at": "2026-01-31T12:00:00Z" | null,
 "files": {path: {"size_bytes", "mtime_ns", "inode", "hash"}}}

An entry whose size, modification time and inode still match stands for the hash: a second run over 590 GB costs one
stat a file. `completed_at` is null until every file of the manifest was verified.
"""

from __future__ import annotations

import json
import os
import time

from ansible.module_utils.durable_json import write_json

SCHEMA = 1
UNIQUE_KEYS = ("size_bytes", "mtime_ns", "inode")


class Receipt:
    """What is known to be verified in one folder; `save` writes only where something changed."""

    def __init__(self, path, data=None):
        self.path = path
        self._written = data
        self.files = dict((data or {}).get("files", {}))
        self.completed_at = (data or {}).get("completed_at")

    def recorded_hash(self, path, name):
        """The hash that was verified for the file at `path`, or None when it has changed since, or never was."""
        record = self.files.get(name)
        if not isinstance(record, dict):
            return None
        try:
            now = describe(os.stat(path))
        except OSError:
            return None
        return record.get("hash") if all(record.get(key, now[key]) == now[key] for key in UNIQUE_KEYS) else None

    def record(self, name, status, hash_hex):
        """Notes that the file with this os.stat result was verified to have this hash."""
        self.files[name] = {**describe(status), "hash": hash_hex}

    def forget(self, name):
        self.files.pop(name, None)

    def save(self, manifest, complete):
        """Writes the entries of the manifest's files, if that changes anything; keeps the time of completion."""
        known = {name: record for name, record in sorted(self.files.items()) if name in manifest.by_path}
        data = {"schema": SCHEMA, "commit": manifest.commit, "digest": manifest.digest, "completed_at": None}
        data["files"] = known
        if complete:
            unchanged = self.completed_at and self._written == {**data, "completed_at": self.completed_at}
            data["completed_at"] = self.completed_at if unchanged else _now()
        if data == self._written:
            return
        write_json(self.path, data)
        self._written = data
        self.completed_at = data["completed_at"]


def load_receipt(path):
    """The receipt in the file `path`; an absent or damaged one is empty, which costs hashing and never trust."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError):
        return Receipt(path)
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or not isinstance(data.get("files"), dict):
        return Receipt(path)
    return Receipt(path, data)


def describe(status):
    """The parts of an os.stat result that an ordinary change of a file's content changes too."""
    return {"size_bytes": status.st_size, "mtime_ns": status.st_mtime_ns, "inode": status.st_ino}


def _now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
