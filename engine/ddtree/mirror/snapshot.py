"""A repository at one commit: what the API describes and the file routes serve."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ddtree.mirror.folder_scan import FoundFile
from ddtree.mirror.hashing import HashKind, git_blob_sha1, lfs_pointer


@dataclass(frozen=True)
class ServedFile:
    """A file whose hash is known for exactly the state `found` describes."""

    path: str
    found: FoundFile
    hash_kind: HashKind
    hash: str

    @property
    def size_bytes(self) -> int:
        return self.found.size_bytes

    @property
    def lfs(self) -> dict[str, str | int] | None:
        """sha256, size and pointerSize of a large file; None for a small one."""
        if self.hash_kind != "sha256":
            return None
        pointer_size = len(lfs_pointer(self.hash, self.size_bytes))
        return {"sha256": self.hash, "size": self.size_bytes, "pointerSize": pointer_size}

    @property
    def blob_id(self) -> str:
        """The git blob sha-1: of the content of a small file, of the pointer to a large one."""
        if self.hash_kind == "git-sha1":
            return self.hash
        return git_blob_sha1(lfs_pointer(self.hash, self.size_bytes))


@dataclass(frozen=True)
class Snapshot:
    repo_id: str
    folder: Path
    commit: str
    files: dict[str, ServedFile]  # by path, sorted
    pinned: bool  # commit and hashes come from the folder's manifest

    @property
    def total_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files.values())


def content_commit(files: list[ServedFile]) -> str:
    """40 hex digits that stand for these paths, sizes and hashes, and change with any of them."""
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.path):
        digest.update(f"{file.path}\0{file.size_bytes}\0{file.hash_kind}\0{file.hash}\n".encode())
    return digest.hexdigest()[:40]
