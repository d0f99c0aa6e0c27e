"""Shards are cut in layer order below a limit, and are the same bytes every time."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from ddtree.demo.convert import write_shards

LIMIT_BYTES = 1000


@pytest.fixture
def tensors() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    names = [f"model.layers.{i}.mlp.weight" for i in (10, 2, 1, 0)] + ["model.norm.weight", "model.embed_tokens.weight"]
    return {name: torch.randn(15 * (3 + i), generator=generator).bfloat16() for i, name in enumerate(names)}


def test_what_is_written_is_what_is_read(tmp_path: Path, tensors: dict[str, torch.Tensor]) -> None:
    write_shards(tensors, tmp_path, LIMIT_BYTES // 5)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    loaded = {path.name: load_file(path) for path in tmp_path.glob("*.safetensors")}
    assert len(loaded) > 2
    assert index["weight_map"] == {tensor: name for name, shard in loaded.items() for tensor in shard}
    assert index["weight_map"].keys() == tensors.keys()
    for name, shard in loaded.items():
        assert name.endswith(f"-of-{len(loaded):05d}.safetensors")
        assert len(shard) == 1 or sum(tensor.nbytes for tensor in shard.values()) <= LIMIT_BYTES // 5
        for tensor, value in shard.items():
            assert torch.equal(value, tensors[tensor])


def test_layers_follow_in_order(tmp_path: Path, tensors: dict[str, torch.Tensor]) -> None:
    write_shards(tensors, tmp_path, 1)  # every tensor in a shard of its own
    weight_map = json.loads((tmp_path / "model.safetensors.index.json").read_text())["weight_map"]
    assert sorted(weight_map, key=weight_map.get) == [
        "model.embed_tokens.weight",
        *(f"model.layers.{i}.mlp.weight" for i in (0, 1, 2, 10)),
        "model.norm.weight",
    ]


def test_the_same_tensors_give_the_same_bytes(tmp_path: Path, tensors: dict[str, torch.Tensor]) -> None:
    for folder, order in (("a", list(tensors)), ("b", list(reversed(tensors)))):
        (tmp_path / folder).mkdir()
        write_shards({name: tensors[name] for name in order}, tmp_path / folder, LIMIT_BYTES)
    first, second = ({p.name: p.read_bytes() for p in (tmp_path / folder).iterdir()} for folder in "ab")
    assert first == second
