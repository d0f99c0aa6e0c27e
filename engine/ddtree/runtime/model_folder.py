"""Is a model folder whole? Looks at config.json, the index and the headers of the shards; reads no tensor data."""

import json
import struct
from pathlib import Path

from ddtree.errors import UserError
from ddtree.json_file import read_json

INDEX_NAME = "model.safetensors.index.json"
SINGLE_NAME = "model.safetensors"
_MAX_HEADER_BYTES = 100_000_000  # the format's own limit


def check_model_folder(folder: Path) -> list[Path]:
    """Returns the folder's safetensors files, sorted. Raises UserError naming the first fault. Quick for any size."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"model folder {folder} does not exist; name the folder of a fetched model")
    read_json(folder / "config.json")
    if (folder / INDEX_NAME).is_file():
        weight_map = read_json(folder / INDEX_NAME).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise UserError(f"{folder / INDEX_NAME} has no weight_map; fetch the file again")
    elif (folder / SINGLE_NAME).is_file():
        weight_map = None
    else:
        raise UserError(f"{folder} holds neither {INDEX_NAME} nor {SINGLE_NAME}; fetch the model again")
    names = sorted(set(weight_map.values())) if weight_map else [SINGLE_NAME]
    for name in names:
        shard = folder / str(name)
        if not shard.is_file():
            raise UserError(
                f"{folder}: shard {name} is missing, {INDEX_NAME} names it; run the fetch again, it gets only that file"
            )
        held = _tensor_names(shard)
        absent = {tensor for tensor, place in weight_map.items() if place == name} - held if weight_map else set()
        if absent:
            raise UserError(f"{shard}: tensor {min(absent)} is not in it, {INDEX_NAME} says it is; fetch both again")
    return [folder / str(name) for name in names]


def _tensor_names(shard: Path) -> set[str]:
    size_bytes = shard.stat().st_size
    try:
        with shard.open("rb") as file:
            (header_bytes,) = struct.unpack("<Q", file.read(8))
            if header_bytes > min(size_bytes - 8, _MAX_HEADER_BYTES):
                raise ValueError("the header is longer than the file")
            header = json.loads(file.read(header_bytes))
        header.pop("__metadata__", None)
        ends = [entry["data_offsets"][1] for entry in header.values()]
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise UserError(f"shard {shard} is no safetensors file ({error}); fetch it again") from error
    expected_bytes = 8 + header_bytes + max(ends, default=0)
    if expected_bytes != size_bytes:
        raise UserError(
            f"shard {shard}: its header needs {expected_bytes:,} bytes, the file has {size_bytes:,}; fetch it again"
        )
    return set(header)
