"""Signs that a folder without a manifest is not whole yet: a shard cut short, or missing though the index names it.

This is no verification of the content; it keeps a copy in progress from being served.
"""

import json
import os

from ddtree.mirror.folder_scan import FoundFile
from ddtree.mirror.refusals import RepoIncomplete

_HEADER_LIMIT_BYTES = 100_000_000


def check_complete(files: dict[str, FoundFile]) -> None:
    """Raises RepoIncomplete that names the first file which is missing or shorter than its own header says."""
    for path, found in files.items():
        if path.endswith(".safetensors.index.json"):
            _check_index(path, found, files)
        elif path.endswith(".safetensors"):
            _check_shard(path, found)


def _check_index(path: str, found: FoundFile, files: dict[str, FoundFile]) -> None:
    try:
        shards = sorted(set(json.loads(found.real_path.read_bytes())["weight_map"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RepoIncomplete(f"{path} is no readable index: {type(error).__name__} {error}") from error
    folder = path.rpartition("/")[0]
    for shard in shards:
        if f"{folder}/{shard}".lstrip("/") not in files:
            raise RepoIncomplete(f"{shard} is missing; {path} names it")


def _check_shard(path: str, found: FoundFile) -> None:
    try:
        with found.real_path.open("rb") as file:
            header_bytes = int.from_bytes(file.read(8), "little")
            if not 0 < header_bytes <= min(_HEADER_LIMIT_BYTES, found.size_bytes - 8):
                raise RepoIncomplete(f"{path} has {found.size_bytes:,} bytes and no whole safetensors header")
            header = json.loads(file.read(header_bytes))
            status = os.fstat(file.fileno())
        ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        expected_bytes = 8 + header_bytes + max(ends, default=0)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise RepoIncomplete(f"{path} has no readable safetensors header: {type(error).__name__} {error}") from error
    if status.st_size != expected_bytes:
        raise RepoIncomplete(f"{path} has {status.st_size:,} bytes, its header says {expected_bytes:,}")
