"""The manifest of a model folder: a repository at one commit, every file with its size and hash.

{"schema": 1, "repo_id": "org/name", "revision": "main", "commit": "<40 hex>", "endpoint": "https://…",
 "allow_patterns": […], "deny_patterns": […],
 "files": [{"path", "size_bytes", "hash_kind": "sha256" | "git-sha1", "hash"}], "total_bytes": …}
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field

from ansible.module_utils.file_hash import HEX_DIGITS
from ansible.module_utils.model_folder import name_problem, names_problem
from ansible.module_utils.provision_error import ProvisionError

SCHEMA = 1
COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class FileEntry:
    """One file: its name in the repository, exact size, and hash in lower-case hex."""

    path: str
    size_bytes: int
    hash_kind: str
    hash: str

    def to_dict(self):
        return {"path": self.path, "size_bytes": self.size_bytes, "hash_kind": self.hash_kind, "hash": self.hash}


@dataclass(frozen=True)
class Manifest:
    """A repository at one commit; `files` are sorted by path and their names are safe inside a model folder."""

    repo_id: str
    revision: str
    commit: str
    endpoint: str
    files: tuple
    allow_patterns: tuple = ()
    deny_patterns: tuple = ()
    by_path: dict = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        for entry in self.files:
            if problem := name_problem(entry.path):
                raise ProvisionError(
                    f"repository {self.repo_id} at {self.commit}: file name {entry.path!r} {problem}; "
                    "refused, because it could be written outside its folder; exclude it by deny_patterns"
                )
        if problem := names_problem([entry.path for entry in self.files]):
            raise ProvisionError(f"repository {self.repo_id} at {self.commit}: {problem}; the hub's list is unusable")
        object.__setattr__(self, "files", tuple(sorted(self.files, key=lambda entry: entry.path)))
        object.__setattr__(self, "by_path", {entry.path: entry for entry in self.files})

    @property
    def total_bytes(self):
        return sum(entry.size_bytes for entry in self.files)

    @property
    def digest(self):
        """sha-256 over the compact JSON list of [path, size_bytes, hash], sorted by path: the content alone."""
        canonical = json.dumps([[e.path, e.size_bytes, e.hash] for e in self.files], separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def to_dict(self):
        return {
            "schema": SCHEMA,
            "repo_id": self.repo_id,
            "revision": self.revision,
            "commit": self.commit,
            "endpoint": self.endpoint,
            "allow_patterns": list(self.allow_patterns),
            "deny_patterns": list(self.deny_patterns),
            "files": [entry.to_dict() for entry in self.files],
            "total_bytes": self.total_bytes,
        }


def load_manifest(path):
    """The manifest in the file `path`, or None where there is none. A damaged one raises ProvisionError."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ProvisionError(
            f"manifest {path}: cannot be read ({error}); delete it and rerun, the hub is then asked again"
        ) from error
    return parse_manifest(data, path)


def parse_manifest(data, origin):
    """A Manifest from its dict form; `origin` names the file or argument in errors."""
    try:
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema is {data['schema']!r}, this version reads {SCHEMA}")
        entries = tuple(_parse_entry(item) for item in data["files"])
        manifest = Manifest(
            repo_id=str(data["repo_id"]),
            revision=str(data["revision"]),
            commit=str(data["commit"]),
            endpoint=str(data["endpoint"]),
            files=entries,
            allow_patterns=tuple(data.get("allow_patterns") or ()),
            deny_patterns=tuple(data.get("deny_patterns") or ()),
        )
        if not COMMIT.fullmatch(manifest.commit):
            raise ValueError(f"commit {manifest.commit!r} is not 40 hex digits")
        if data["total_bytes"] != manifest.total_bytes:
            raise ValueError(f"total_bytes {data['total_bytes']} is not the files' sum {manifest.total_bytes}")
    except KeyError as error:
        raise ProvisionError(f"manifest {origin}: key {error} is missing; delete it and rerun") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise ProvisionError(f"manifest {origin}: {error}; delete it and rerun") from error
    return manifest


def _parse_entry(item):
    entry = FileEntry(item["path"], item["size_bytes"], item["hash_kind"], item["hash"])
    if entry.hash_kind not in HEX_DIGITS:
        raise ValueError(f"file {entry.path!r}: hash_kind {entry.hash_kind!r}, known are {', '.join(HEX_DIGITS)}")
    if not re.fullmatch(r"[0-9a-f]+", entry.hash) or len(entry.hash) != HEX_DIGITS[entry.hash_kind]:
        raise ValueError(f"file {entry.path!r}: {entry.hash!r} is not a {entry.hash_kind} in hex")
    if not isinstance(entry.size_bytes, int) or isinstance(entry.size_bytes, bool) or entry.size_bytes < 0:
        raise ValueError(f"file {entry.path!r}: size_bytes is {entry.size_bytes!r}")
    return entry
