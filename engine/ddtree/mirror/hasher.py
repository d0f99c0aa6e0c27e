"""Hashes files in the background, several at once, and says how far it is."""

import logging
import os
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from ddtree.mirror.folder_scan import FoundFile
from ddtree.mirror.hash_store import HashStore
from ddtree.mirror.hashing import HashKind, hash_descriptor

logger = logging.getLogger("ddtree.mirror")

_REPORT_EVERY_S = 5.0
_SAVE_FROM_BYTES = 64 * 1024 * 1024  # the work for a file of this size is worth keeping at once

Work = tuple[str, FoundFile, HashKind]  # path in the repository, the file, which hash


class HashingStopped(Exception):
    """The mirror is being closed."""


class Hasher:
    """A pool of hashing threads for all repositories; hashlib runs outside the interpreter's lock."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(min(8, os.cpu_count() or 1), thread_name_prefix="mirror-hash")
        self._stop = threading.Event()

    def start(self, repo_id: str, store: HashStore, work: list[Work]) -> "Future[Exception | None]":
        """Puts the hash of each file into `store`, unless the file changes meanwhile.

        The future's result is the first error, None where there was none; it never raises.
        """
        return _Job(repo_id, store, work, self._stop).start(self._pool)

    def run(self, repo_id: str, store: HashStore, work: list[Work]) -> Exception | None:
        """The same at once, in the calling thread: a small repository does not wait behind a large one."""
        return _Job(repo_id, store, work, self._stop).run()

    def close(self) -> None:
        """Makes running jobs end at their next chunk."""
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)


class _Job:
    def __init__(self, repo_id: str, store: HashStore, work: list[Work], stop: threading.Event) -> None:
        self._repo_id = repo_id
        self._store = store
        self._work = work
        self._stop = stop
        self._total_bytes = sum(found.size_bytes for _, found, _ in work)
        self._lock = threading.Lock()
        self._hashed_bytes = 0
        self._left = len(work)
        self._error: Exception | None = None
        self._reported_at = time.monotonic()
        self._done: Future[Exception | None] = Future()

    def start(self, pool: ThreadPoolExecutor) -> "Future[Exception | None]":
        try:
            for item in self._work:
                pool.submit(self._hash, *item).add_done_callback(self._finished)
        except RuntimeError:  # the pool is closed
            if not self._done.done():
                self._done.set_result(HashingStopped())
        return self._done

    def run(self) -> Exception | None:
        try:
            for item in self._work:
                self._hash(*item)
        except (OSError, HashingStopped) as error:
            return error
        return None

    def _hash(self, path: str, found: FoundFile, kind: HashKind) -> None:
        fd = _open(found.real_path)
        try:
            if not found.is_still(os.fstat(fd)):
                return
            value = hash_descriptor(fd, found.size_bytes, kind, self._count)
            if found.is_still(os.fstat(fd)):
                self._store.put(path, found, kind, value)
                if found.size_bytes >= _SAVE_FROM_BYTES:
                    self._store.save()
        finally:
            os.close(fd)

    def _count(self, size_bytes: int) -> None:
        if self._stop.is_set():
            raise HashingStopped
        with self._lock:
            self._hashed_bytes += size_bytes
            if time.monotonic() - self._reported_at < _REPORT_EVERY_S:
                return
            self._reported_at = time.monotonic()
        done, total = self._hashed_bytes / 1e9, self._total_bytes / 1e9
        logger.info("%s: hashing, %.1f of %.1f GB", self._repo_id, done, total)

    def _finished(self, future: "Future[None]") -> None:
        error = HashingStopped() if future.cancelled() else future.exception()
        with self._lock:
            self._left -= 1
            self._error = self._error or error
            last = self._left == 0
        if last and not self._done.done():
            self._done.set_result(self._error)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
