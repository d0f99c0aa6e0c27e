"""Tests, before the first byte, that what is still to come fits on the disk."""

from __future__ import annotations

import os

from ansible.module_utils.byte_count import readable_bytes
from ansible.module_utils.provision_error import ProvisionError


def free_bytes(path):
    """Bytes an ordinary user may still write on the filesystem of `path`, or of its nearest folder that exists."""
    path = os.path.abspath(path)
    while not os.path.exists(path):
        path = os.path.dirname(path)
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def require_free_space(path, needed_bytes, reserve_bytes):
    """Raises ProvisionError where `needed_bytes` do not fit while `reserve_bytes` stay free. Returns the free bytes."""
    available_bytes = free_bytes(path)
    missing_bytes = needed_bytes + reserve_bytes - available_bytes
    if missing_bytes > 0:
        raise ProvisionError(
            f"disk of {path}: {readable_bytes(needed_bytes)} are still to be fetched and "
            f"{readable_bytes(reserve_bytes)} must stay free (reserve_bytes), but "
            f"{readable_bytes(available_bytes)} are free ({readable_bytes(missing_bytes)} too few); "
            "free space there, lower reserve_bytes, or choose another dest",
            needed_bytes=needed_bytes,
            reserve_bytes=reserve_bytes,
            free_bytes=available_bytes,
        )
    return available_bytes


def allocated_bytes(path):
    """Bytes the file at `path` occupies on the disk; 0 where there is none."""
    try:
        return os.stat(path).st_blocks * 512
    except OSError:
        return 0
