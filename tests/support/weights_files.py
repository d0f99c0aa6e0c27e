"""Builds small sharded safetensors models, as bytes by file name, for tests of fetching and verifying."""

import json

import numpy
import safetensors.numpy

INDEX = "model.safetensors.index.json"


def shard_name(number, count):
    return f"model-{number:05d}-of-{count:05d}.safetensors"


def sharded_model(count=3, seed=0, rows=64):
    """{file name: bytes}: `count` shards of two tensors each, their index, a config."""
    source = numpy.random.default_rng(seed)
    files, weight_map, total = {}, {}, 0
    for number in range(1, count + 1):
        tensors = {f"layer.{number}.{part}": source.normal(size=(rows, 8)).astype("float32") for part in ("a", "b")}
        name = shard_name(number, count)
        files[name] = safetensors.numpy.save(tensors, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(tensors, name)
        total += sum(tensor.nbytes for tensor in tensors.values())
    files[INDEX] = json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}).encode()
    files["config.json"] = b"{}"
    return files


def write_files(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
