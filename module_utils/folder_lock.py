"""One writer a model folder: a flock whose file names the holder.

The lock's descriptor is handed to aria2c too. A run that was killed therefore keeps its folder locked for the second
in which its orphaned aria2c still writes, and the next run waits for that end instead of writing into the same file.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager

from ansible.module_utils.provision_error import ProvisionError

# aria2c looks once a second whether the run that started it is alive, then saves its state and ends.
ORPHAN_WAIT_S = 15


@contextmanager
def folder_lock(folder):
    """Holds the lock of a ModelFolder that exists; yields the descriptor. Fails at once where a living run holds it."""
    descriptor = os.open(folder.lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _acquire(descriptor, folder)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _acquire(descriptor, folder):
    deadline = time.monotonic() + ORPHAN_WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).strip().decode(errors="replace")
            if _alive(holder) or time.monotonic() > deadline:
                raise ProvisionError(
                    f"model folder {folder.dest}: locked by another run, process {holder or 'unknown'} "
                    f"(lock {folder.lock}); wait for it to end or stop it, then rerun"
                ) from None
        time.sleep(0.1)


def _alive(pid):
    return pid.isdigit() and os.path.exists(f"/proc/{pid}")
