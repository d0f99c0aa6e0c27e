"""Writes a small JSON file so that a reader, or a power cut, sees the old content or the new one, never half."""

from __future__ import annotations

import json
import os


def write_json(path, value, durable=True):
    """Replaces `path` by `value` as JSON, mode 0644. One writer at a time (the folder's lock) is assumed.

    `durable` waits for the disk; without it (progress files) a reader still never sees half a file.
    """
    temporary = f"{path}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1, ensure_ascii=False)
        file.write("\n")
        os.fchmod(file.fileno(), 0o644)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    os.replace(temporary, path)
    if durable:
        sync_folder(os.path.dirname(path))


def sync_folder(path):
    """Makes the renames inside a folder survive a power cut."""
    descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
