"""The manifest and the receipt that provisioning leaves in a model folder, as far as the mirror needs them."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddtree.mirror.folder_scan import FoundFile, is_hidden
from ddtree.mirror.hashing import HashKind
from ddtree.mirror.refusals import RepoIncomplete

STATE_FOLDER = ".ddtree"
SCHEMA = 1
_HEX = {"sha256": re.compile("[0-9a-f]{64}"), "git-sha1": re.compile("[0-9a-f]{40}")}


@dataclass(frozen=True)
class PinnedFile:
    size_bytes: int
    hash_kind: HashKind
    hash: str


@dataclass(frozen=True)
class Pinned:
    """What a model folder should hold, and what was verified there."""

    commit: str
    files: dict[str, PinnedFile]  # hidden files (.gitattributes) left out
    receipt: dict[str, Any] | None  # by path; None where no receipt lies beside the manifest

    def vouches_for(self, path: str, found: FoundFile) -> bool | None:
        """Whether the receipt says that the file, as found, has the manifest's hash; None without a receipt."""
        if self.receipt is None:
            return None
        record = self.receipt.get(path)
        expected = {
            "size_bytes": found.size_bytes,
            "mtime_ns": found.mtime_ns,
            "inode": found.inode,
            "hash": self.files[path].hash,
        }
        return isinstance(record, dict) and all(record.get(key) == value for key, value in expected.items())


def state_files(folder: Path) -> tuple[Path, Path]:
    """(manifest, receipt) of a model folder; either may be absent."""
    return folder / STATE_FOLDER / "manifest.json", folder / STATE_FOLDER / "receipt.json"


def read_pinned(folder: Path) -> Pinned | None:
    """The folder's manifest with its receipt, or None without a manifest. A damaged manifest raises RepoIncomplete."""
    manifest_path, receipt_path = state_files(folder)
    try:
        data = json.loads(manifest_path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise RepoIncomplete(f"manifest {manifest_path} cannot be read: {error}") from error
    try:
        if data["schema"] != SCHEMA:
            raise ValueError(f"its schema is {data['schema']!r}, expected {SCHEMA}")
        if not _HEX["git-sha1"].fullmatch(data["commit"]):
            raise ValueError(f"its commit {data['commit']!r} is not 40 hex digits")
        files = {item["path"]: _parse_file(item) for item in data["files"] if not is_hidden(item["path"])}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RepoIncomplete(f"manifest {manifest_path} is damaged: {type(error).__name__} {error}") from error
    return Pinned(data["commit"], files, _read_receipt(receipt_path))


def _parse_file(item: dict[str, Any]) -> PinnedFile:
    size_bytes, kind, value = item["size_bytes"], item["hash_kind"], item["hash"]
    if type(size_bytes) is not int or kind not in _HEX or not _HEX[kind].fullmatch(value):
        raise ValueError(f"entry {item!r} has no size or hash")
    return PinnedFile(size_bytes, kind, value)


def _read_receipt(path: Path) -> dict[str, Any] | None:
    try:
        files = json.loads(path.read_bytes())["files"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # damaged: it vouches for nothing, and every file is hashed
    return files if isinstance(files, dict) else {}
