"""Checks a sharded model's index (`….safetensors.index.json`) against the headers of its shards.

{"metadata": {"total_size": bytes of all tensors}, "weight_map": {tensor name: file name beside the index}}
Tensor and file names are data: nothing is derived from how they are spelled.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field

from ansible.module_utils.model_folder import name_problem
from ansible.module_utils.safetensors_header import InvalidSafetensors

NAMES_SHOWN = 3


@dataclass
class IndexCheck:
    """`problems` make the model unusable; `warnings` are facts that hubs get wrong without harm."""

    problems: list = field(default_factory=list)
    warnings: list = field(default_factory=list)


def read_weight_map(path):
    """(weight_map, total_size or None) of the index at `path`; raises InvalidSafetensors with what is wrong."""
    try:
        with open(path, encoding="utf-8") as file:
            index = json.load(file)
    except (ValueError, RecursionError) as error:
        raise InvalidSafetensors(f"index is not JSON: {error}") from error
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise InvalidSafetensors("index has no weight_map, or an empty one")
    for tensor, file in weight_map.items():
        if problem := name_problem(file):
            raise InvalidSafetensors(f"weight_map places tensor {tensor!r} in file {file!r}, which {problem}")
    metadata = index.get("metadata")
    total_size = metadata.get("total_size") if isinstance(metadata, dict) else None
    return weight_map, total_size


def check_index(name, weight_map, total_size, headers):
    """Compares the index `name` (path in the model folder) with its shards; returns an IndexCheck.

    `headers` maps path in the model folder → {tensor name: Tensor}, → None where the file's own check has failed; a
    file that is not there has no key. Every problem is (path of the file it is about, text).
    """
    check = IndexCheck()
    folder = os.path.dirname(name)
    shards = {}
    for tensor, file in weight_map.items():
        shards.setdefault(os.path.join(folder, file), set()).add(tensor)
    complete = True
    for shard, tensors in sorted(shards.items()):
        if shard not in headers:
            check.problems.append((name, f"names the shard {shard} for {len(tensors)} tensors, which is not there"))
            complete = False
        elif headers[shard] is None:
            complete = False
        else:
            _compare(check, name, shard, tensors, headers[shard])
    if complete:
        _check_total(check, name, total_size, [headers[shard] for shard in shards])
    return check


def _compare(check, name, shard, named, header):
    if absent := sorted(named - header.keys()):
        check.problems.append((shard, f"has no tensor {_some(absent)} in its header, where {name} places it"))
    if unnamed := sorted(header.keys() - named):
        check.problems.append((name, f"does not list tensor {_some(unnamed)} of shard {shard} under that shard"))


def _check_total(check, name, total_size, headers):
    actual = sum(tensor.size_bytes for header in headers for tensor in header.values())
    if total_size is not None and total_size != actual:
        check.warnings.append(
            f"{name}: metadata.total_size is {total_size!r}, the shards' tensors have {actual:,} bytes"
        )


def _some(names):
    shown = ", ".join(repr(name) for name in names[:NAMES_SHOWN])
    return shown + (f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else "")
