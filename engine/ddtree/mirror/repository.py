"""One repository's folder: looks at it on every request, and works its snapshot out anew only when it has changed."""

import logging
import os
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from ddtree.mirror.completeness import check_complete
from ddtree.mirror.folder_scan import FoundFile, scan_folder
from ddtree.mirror.hash_store import HashStore
from ddtree.mirror.hasher import Hasher
from ddtree.mirror.hashing import HashKind, hash_kind
from ddtree.mirror.pinned import Pinned, read_pinned, state_files
from ddtree.mirror.refusals import RepoBusy, RepoIncomplete, RepoNotFound
from ddtree.mirror.snapshot import ServedFile, Snapshot, content_commit

logger = logging.getLogger("ddtree.mirror")


@dataclass(frozen=True)
class _Look:
    """All that a snapshot depends on; equal looks have equal snapshots."""

    files: dict[str, FoundFile]
    state: tuple[tuple[int, int, int] | None, ...]  # of manifest and receipt: size, mtime_ns, inode


class Repository:
    """Safe to use from several threads."""

    def __init__(
        self, repo_id: str, folder: Path, root: Path, store: HashStore, hasher: Hasher, inline_bytes: int
    ) -> None:
        """`folder` and `root` are real paths; at most `inline_bytes` are hashed while a request waits."""
        self.repo_id = repo_id
        self.folder = folder
        self._root = root
        self._store = store
        self._hasher = hasher
        self._inline_bytes = inline_bytes
        self._lock = threading.Lock()
        self._look: _Look | None = None
        self._outcome: Snapshot | RepoIncomplete | RepoNotFound | None = None
        self._job: Future[Exception | None] | None = None

    def snapshot(self) -> Snapshot:
        """The repository as it is now. Raises RepoIncomplete, RepoNotFound, or RepoBusy while it is being hashed."""
        with self._lock:
            look = self._look_at_folder()
            if look != self._look or self._outcome is None:
                self._look, self._outcome = look, None
                self._outcome = self._work_out(look.files)
                self._tell(self._outcome)
            if isinstance(self._outcome, Snapshot):
                return self._outcome
            raise type(self._outcome)(str(self._outcome))

    def _look_at_folder(self) -> _Look:
        try:
            files = scan_folder(self.folder, self._root)
        except OSError as error:
            raise RepoNotFound(f"{self.repo_id} cannot be read: {error.strerror}") from error
        return _Look(files, tuple(_state(path) for path in state_files(self.folder)))

    def _work_out(self, found: dict[str, FoundFile]) -> Snapshot | RepoIncomplete | RepoNotFound:
        """A final outcome is returned, the passing RepoBusy is raised."""
        try:
            pinned = read_pinned(self.folder)
            if pinned is None:
                check_complete(found)
                kinds = {path: hash_kind(path, file.size_bytes) for path, file in found.items()}
            else:
                _check_sizes(pinned, found)
                found = {path: found[path] for path in sorted(pinned.files)}
                kinds = {path: file.hash_kind for path, file in pinned.files.items()}
                self._adopt(pinned, found)
            if not found:
                return RepoNotFound(f"{self.repo_id} holds no file that can be served")
            self._hash_unknown(found, kinds)
            files = [
                ServedFile(path, file, kinds[path], self._known(path, file, kinds)) for path, file in found.items()
            ]
            if pinned is not None:
                _check_hashes(pinned, files)
        except RepoIncomplete as incomplete:
            return incomplete
        self._store.forget_others(set(found))
        self._store.save()
        commit = pinned.commit if pinned else content_commit(files)
        by_path = {file.path: file for file in files}
        return Snapshot(self.repo_id, self.folder, commit, by_path, pinned is not None)

    def _adopt(self, pinned: Pinned, found: dict[str, FoundFile]) -> None:
        """Takes over the manifest's hash of every file that need not be hashed to be believed.

        With a receipt that is what the receipt vouches for. Without one it is every file of the right size, unless it
        was seen before and has changed since. Clients compare hashes in the end; this decides what is refused before.
        """
        for path, file in found.items():
            entry = pinned.files[path]
            vouched = pinned.vouches_for(path, file)
            if vouched is None:
                vouched = not self._store.has_other(path, file, entry.hash_kind)
            if vouched and self._store.get(path, file, entry.hash_kind) is None:
                self._store.put(path, file, entry.hash_kind, entry.hash)

    def _hash_unknown(self, found: dict[str, FoundFile], kinds: dict[str, HashKind]) -> None:
        unknown = [
            (path, file, kinds[path])
            for path, file in found.items()
            if self._store.get(path, file, kinds[path]) is None
        ]
        if self._job is not None and self._job.done():
            error, self._job = self._job.result(), None
            if error is not None:
                raise RepoIncomplete(f"hashing failed: {type(error).__name__} {error}")
        if not unknown:
            return
        unknown_bytes = sum(file.size_bytes for _, file, _ in unknown)
        if self._job is None and unknown_bytes <= self._inline_bytes:
            error = self._hasher.run(self.repo_id, self._store, unknown)
            if error is not None:
                raise RepoIncomplete(f"hashing failed: {type(error).__name__} {error}")
            return
        if self._job is None:
            self._job = self._hasher.start(self.repo_id, self._store, unknown)
        raise RepoBusy(f"{self.repo_id} is being hashed ({unknown_bytes / 1e9:.1f} GB left); ask again", self._job)

    def _known(self, path: str, file: FoundFile, kinds: dict[str, HashKind]) -> str:
        value = self._store.get(path, file, kinds[path])
        if value is None:
            raise RepoIncomplete(f"{path} changed while it was being hashed")
        return value

    def _tell(self, outcome: Snapshot | RepoIncomplete | RepoNotFound) -> None:
        if not isinstance(outcome, Snapshot):
            logger.warning("%s is not served: %s", self.repo_id, outcome)
            return
        origin = "of its manifest" if outcome.pinned else "of its content"
        size = _size(outcome.total_bytes)
        logger.info("%s: %d files, %s, commit %s %s", self.repo_id, len(outcome.files), size, outcome.commit, origin)


def _check_sizes(pinned: Pinned, found: dict[str, FoundFile]) -> None:
    for path, entry in pinned.files.items():
        if path not in found:
            raise RepoIncomplete(f"{path} is missing; the manifest names it with {entry.size_bytes:,} bytes")
        if found[path].size_bytes != entry.size_bytes:
            raise RepoIncomplete(
                f"{path} has {found[path].size_bytes:,} bytes, the manifest says {entry.size_bytes:,}; fetch it again"
            )


def _check_hashes(pinned: Pinned, files: list[ServedFile]) -> None:
    for file in files:
        entry = pinned.files[file.path]
        if file.hash != entry.hash:
            raise RepoIncomplete(f"{file.path} has {entry.hash_kind} {file.hash}, the manifest says {entry.hash}")


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:,.1f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:,.1f} MB"
