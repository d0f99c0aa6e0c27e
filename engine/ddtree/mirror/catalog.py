"""The repositories below a root folder: every `<root>/<org>/<name>/` is one."""

import logging
import os
import re
import threading
from pathlib import Path

from ddtree.errors import UserError
from ddtree.mirror.folder_scan import is_hidden
from ddtree.mirror.hash_store import HashStore
from ddtree.mirror.hasher import Hasher
from ddtree.mirror.refusals import Refusal, RepoBusy, RepoNotFound
from ddtree.mirror.repository import Repository
from ddtree.mirror.snapshot import Snapshot

logger = logging.getLogger("ddtree.mirror")

STATE_FOLDER = ".ddtree-mirror"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# A request waits for so much hashing (a fraction of a second); more is done in the background.
_INLINE_HASH_BYTES = 64 * 1024 * 1024


class Catalog:
    """Finds repositories by name; folders may come, change and go while it runs. Safe to use from several threads."""

    def __init__(self, root: Path, state_dir: Path | None = None, inline_bytes: int = _INLINE_HASH_BYTES) -> None:
        """`state_dir` keeps hashes; by default a hidden folder of `root` does, or memory alone if that is read-only."""
        if not root.is_dir():
            raise UserError(f"--root {root} is no folder; name the one that holds <org>/<name>/ model folders")
        self.root = root.resolve()
        self._state_dir = self._choose_state_dir(state_dir)
        self._inline_bytes = inline_bytes
        self._hasher = Hasher()
        self._lock = threading.Lock()
        self._repositories: dict[str, Repository] = {}
        self._closed = threading.Event()

    def repo_ids(self) -> list[str]:
        """Names of the folders that look like repositories, sorted; whether they can be served is not looked at."""
        return sorted(
            f"{org}/{name}"
            for org in _folders(self.root)
            for name in _folders(self.root / org)
            if self._folder(org, name)
        )

    def snapshot(self, repo_id: str) -> Snapshot:
        """The repository as it is now. Raises a Refusal."""
        org, _, name = repo_id.partition("/")
        folder = self._folder(org, name)
        with self._lock:
            if folder is None:
                self._repositories.pop(repo_id, None)
                raise RepoNotFound(f"there is no repository {repo_id} here")
            repository = self._repositories.get(repo_id)
            if repository is None or repository.folder != folder:
                store = HashStore(self._state_dir / org / f"{name}.json" if self._state_dir else None, folder)
                repository = Repository(repo_id, folder, self.root, store, self._hasher, self._inline_bytes)
                self._repositories[repo_id] = repository
        return repository.snapshot()

    def prepare(self) -> None:
        """Works out every repository's snapshot, however long the hashing takes; what is refused was logged."""
        for repo_id in self.repo_ids():
            while not self._closed.is_set():
                try:
                    self.snapshot(repo_id)
                except RepoBusy as busy:
                    busy.done.result()
                    continue
                except Refusal:
                    pass
                break

    def close(self) -> None:
        """Stops hashing; what was hashed so far is lost unless its repository was done."""
        self._closed.set()
        self._hasher.close()

    def _folder(self, org: str, name: str) -> Path | None:
        """The real path of a repository's folder, or None. A link may lead to a visible folder inside the root."""
        if not (_NAME.fullmatch(org) and _NAME.fullmatch(name)):
            return None
        folder = Path(os.path.realpath(self.root / org / name))
        if not folder.is_dir() or not folder.is_relative_to(self.root):
            return None
        return None if is_hidden(folder.relative_to(self.root).as_posix()) else folder

    def _choose_state_dir(self, state_dir: Path | None) -> Path | None:
        if state_dir is not None:
            try:
                state_dir.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UserError(f"--state-dir {state_dir} cannot be made: {error.strerror}; name another") from error
            if not os.access(state_dir, os.W_OK):
                raise UserError(f"--state-dir {state_dir} cannot be written to; name another")
            return state_dir.resolve()
        if os.access(self.root, os.W_OK):
            return self.root / STATE_FOLDER
        logger.info("%s is read-only: hashes are kept in memory only; --state-dir keeps them", self.root)
        return None


def _folders(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return []
