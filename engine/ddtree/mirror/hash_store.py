"""Remembers the hashes of files that have not changed since, in memory and in one small JSON file a repository."""

import contextlib
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

from ddtree.mirror.folder_scan import FoundFile
from ddtree.mirror.hashing import HashKind

logger = logging.getLogger("ddtree.mirror")

SCHEMA = 1


class HashStore:
    """Hashes of one repository's files. An entry holds for one size, modification time and inode, and for no other."""

    def __init__(self, path: Path | None, folder: Path) -> None:
        """`path` is the JSON file, None keeps all in memory; `folder` is the real path of what the entries describe."""
        self._path = path
        self._folder = str(folder)
        self._lock = threading.Lock()
        self._entries: dict[str, dict[str, Any]] = self._load()
        self._changed = False

    def get(self, path: str, found: FoundFile, kind: HashKind) -> str | None:
        with self._lock:
            entry = self._entries.get(path)
        if entry is None or any(entry.get(key) != value for key, value in _state(found, kind).items()):
            return None
        return entry.get("hash")

    def has_other(self, path: str, found: FoundFile, kind: HashKind) -> bool:
        """True if the file was known in another state: it has changed."""
        with self._lock:
            known = path in self._entries
        return known and self.get(path, found, kind) is None

    def put(self, path: str, found: FoundFile, kind: HashKind, value: str) -> None:
        with self._lock:
            self._entries[path] = {**_state(found, kind), "hash": value}
            self._changed = True

    def forget_others(self, keep: set[str]) -> None:
        """Drops the entries of files that are not named in `keep`."""
        with self._lock:
            gone = self._entries.keys() - keep
            for path in gone:
                del self._entries[path]
            self._changed |= bool(gone)

    def save(self) -> None:
        """Writes the entries if any has changed. Failure is logged and costs hashing only."""
        with self._lock:
            if self._path is None or not self._changed:
                return
            text = json.dumps({"schema": SCHEMA, "folder": self._folder, "files": self._entries}, indent=1)
            self._changed = False
        # Named by process and thread: two mirrors over one folder may write at once, and the last one wins.
        scratch = self._path.with_name(f"{self._path.name}.{os.getpid()}.{threading.get_ident()}.new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            scratch.write_text(text, encoding="utf-8")
            scratch.replace(self._path)
        except OSError as error:
            logger.warning("hashes are not kept (%s); name a writable --state-dir", error)
            self._path = None
            with contextlib.suppress(OSError):
                scratch.unlink(missing_ok=True)

    def _load(self) -> dict[str, dict[str, Any]]:
        if self._path is None:
            return {}
        try:
            data = json.loads(self._path.read_bytes())
            if data["schema"] != SCHEMA or data["folder"] != self._folder:
                return {}
            return {path: entry for path, entry in data["files"].items() if isinstance(entry, dict)}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}


def _state(found: FoundFile, kind: HashKind) -> dict[str, Any]:
    return {
        "size_bytes": found.size_bytes,
        "mtime_ns": found.mtime_ns,
        "inode": found.inode,
        "hash_kind": kind,
    }
