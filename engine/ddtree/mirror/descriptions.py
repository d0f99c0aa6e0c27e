"""The JSON in which a hub describes repositories and files."""

import hashlib
from datetime import UTC, datetime
from typing import Any

from ddtree.mirror.snapshot import ServedFile, Snapshot


def model_info(snapshot: Snapshot, blobs: bool) -> dict[str, Any]:
    """What `GET /api/models/<org>/<name>` answers; with `blobs`, every file's size and hash as well."""
    newest_ns = max(file.found.mtime_ns for file in snapshot.files.values())
    modified = datetime.fromtimestamp(newest_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return {
        "id": snapshot.repo_id,
        "modelId": snapshot.repo_id,
        "author": snapshot.repo_id.partition("/")[0],
        "sha": snapshot.commit,
        "lastModified": modified,
        "private": False,
        "gated": False,
        "disabled": False,
        "tags": [],
        "downloads": 0,
        "likes": 0,
        "usedStorage": snapshot.total_bytes,
        "siblings": [_sibling(file, blobs) for file in snapshot.files.values()],
    }


def tree(snapshot: Snapshot, folder: str, recursive: bool) -> list[dict[str, Any]] | None:
    """Files and folders below `folder` ("" is the top), sorted by path; None if there is no such folder."""
    prefix = f"{folder}/" if folder else ""
    inside = [path for path in snapshot.files if path.startswith(prefix)]
    if not inside:
        return None
    folders: set[str] = set()
    entries = []
    for path in inside:
        parts = path.removeprefix(prefix).split("/")
        depths = range(1, len(parts)) if recursive else range(1, min(len(parts), 2))
        folders.update(prefix + "/".join(parts[:depth]) for depth in depths)
        if recursive or len(parts) == 1:
            entries.append(file_entry(snapshot.files[path]))
    entries += [folder_entry(snapshot, path) for path in folders]
    return sorted(entries, key=lambda entry: entry["path"])


def paths_info(snapshot: Snapshot, paths: list[str]) -> list[dict[str, Any]]:
    """The files and folders among `paths`; a hub leaves out what does not exist."""
    entries = []
    for path in dict.fromkeys(path.strip("/") for path in paths):
        if path in snapshot.files:
            entries.append(file_entry(snapshot.files[path]))
        elif path and any(name.startswith(f"{path}/") for name in snapshot.files):
            entries.append(folder_entry(snapshot, path))
    return entries


def file_entry(file: ServedFile) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "oid": file.blob_id, "size": file.size_bytes, "path": file.path}
    if lfs := file.lfs:
        entry["lfs"] = {"oid": lfs["sha256"], "size": lfs["size"], "pointerSize": lfs["pointerSize"]}
    return entry


def folder_entry(snapshot: Snapshot, path: str) -> dict[str, Any]:
    # A hub names git's tree id; here it is some digest that changes with the folder's content.
    digest = hashlib.sha256()
    for name, file in snapshot.files.items():
        if name.startswith(f"{path}/"):
            digest.update(f"{name}\0{file.hash}\n".encode())
    return {"type": "directory", "oid": digest.hexdigest()[:40], "size": 0, "path": path}


def _sibling(file: ServedFile, blobs: bool) -> dict[str, Any]:
    if not blobs:
        return {"rfilename": file.path}
    sibling: dict[str, Any] = {"rfilename": file.path, "size": file.size_bytes, "blobId": file.blob_id}
    if lfs := file.lfs:
        sibling["lfs"] = lfs
    return sibling
