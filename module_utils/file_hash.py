"""The two hashes a hub states for a file: sha-256 of its content, or git's blob sha-1."""

from __future__ import annotations

import hashlib
import os

CHUNK_BYTES = 4 * 1024 * 1024
HEX_DIGITS = {"sha256": 64, "git-sha1": 40}


class HashCancelled(Exception):
    """The caller asked to stop in the middle of a file."""


def hash_file(path, hash_kind, on_bytes=None, cancelled=None):
    """Lower-case hex digest of the file at `path`.

    `hash_kind` is "sha256" or "git-sha1" (sha-1 of `blob <size>\\0` and the content). `on_bytes(n)` is called after
    every chunk; a set `cancelled` event raises HashCancelled. hashlib releases the interpreter
    lock: call it from threads.
    """
    buffer = bytearray(CHUNK_BYTES)
    view = memoryview(buffer)
    with open(path, "rb", buffering=0) as file:
        digest = _new_digest(hash_kind, os.fstat(file.fileno()).st_size)
        while count := file.readinto(buffer):
            if cancelled is not None and cancelled.is_set():
                raise HashCancelled(path)
            digest.update(view[:count])
            if on_bytes is not None:
                on_bytes(count)
    return digest.hexdigest()


def hash_bytes(content, hash_kind):
    """The same digest of bytes in memory."""
    digest = _new_digest(hash_kind, len(content))
    digest.update(content)
    return digest.hexdigest()


def _new_digest(hash_kind, size_bytes):
    if hash_kind == "sha256":
        return hashlib.sha256()
    if hash_kind == "git-sha1":
        return hashlib.sha1(b"blob %d\0" % size_bytes, usedforsecurity=False)
    raise ValueError(f"hash kind {hash_kind!r}: known are {', '.join(HEX_DIGITS)}")
