"""The two hashes a hub names: sha-256 for large files (Git LFS), the git blob sha-1 for small ones."""

import hashlib
import os
from collections.abc import Callable
from typing import Literal

HashKind = Literal["sha256", "git-sha1"]

LFS_SIZE_BYTES = 10 * 1024 * 1024
LFS_SUFFIXES = (".safetensors", ".gguf", ".bin")
_CHUNK_BYTES = 4 * 1024 * 1024


def hash_kind(path: str, size_bytes: int) -> HashKind:
    """Which hash a hub would name for this file."""
    return "sha256" if size_bytes >= LFS_SIZE_BYTES or path.endswith(LFS_SUFFIXES) else "git-sha1"


def hash_descriptor(fd: int, size_bytes: int, kind: HashKind, on_bytes: Callable[[int], None]) -> str:
    """Hashes the open file from its start, in hex; `on_bytes` is told the size of every chunk and may raise to stop."""
    digest = hashlib.sha256() if kind == "sha256" else hashlib.sha1(b"blob %d\0" % size_bytes, usedforsecurity=False)
    offset = 0
    while chunk := os.pread(fd, _CHUNK_BYTES, offset):
        digest.update(chunk)
        offset += len(chunk)
        on_bytes(len(chunk))
    return digest.hexdigest()


def git_blob_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()


def lfs_pointer(sha256: str, size_bytes: int) -> bytes:
    """The text that git holds in place of a large file; a hub names its size and its blob id."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size_bytes}\n".encode()
