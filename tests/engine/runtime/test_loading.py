"""What cannot be loaded is refused with one message, the cheap checks first."""

import json
from dataclasses import replace

import pytest
import torch
from engine_kit import write_tiny_drafter, write_tiny_target

from ddtree.errors import UserError
from ddtree.runtime.engine import Engine
from ddtree.runtime.types import EngineConfig, SamplingParams


@pytest.fixture
def config(tmp_path):
    target = write_tiny_target(tmp_path / "target", "llama")
    return EngineConfig(target, write_tiny_drafter(tmp_path / "drafter", target))


def edit(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mode": "beam"}, "ar, chain, tree"),
        ({"budget": 0}, "budget"),
        ({"budget": 10**6}, "budget"),
        ({"topk": 0}, "topk"),
        ({"depth": 0}, "depth"),
        ({"block": 1}, "block"),
        ({"block": 9}, "block is 9, drafter .* trained for 8"),
        ({"window": 0}, "window"),
        ({"dtype": "int8"}, "float32, bfloat16, float16"),
        ({"device": "abacus"}, "device is 'abacus'"),
        ({"max_context": 1}, "max_context"),
        ({"max_context": 257}, "max_context is 257, .* made for 256"),
        ({"drafter_path": None}, "mode tree needs a drafter"),
    ],
)
def test_bad_options(config, change, message):
    with pytest.raises(UserError, match=message):
        Engine.load(replace(config, **change))


def test_a_model_without_a_drafter_decodes_plainly_and_refuses_the_rest(config):
    engine = Engine.load(replace(config, drafter_path=None, mode="ar"))
    assert (
        sum(len(step.token_ids) for step in engine.generate([2, 3], SamplingParams(max_tokens=5, ignore_eos=True))) == 5
    )
    for mode in ("chain", "tree"):
        with pytest.raises(UserError, match=f"mode {mode} needs a drafter"):
            engine.generate([2, 3], SamplingParams(), mode)


@pytest.mark.parametrize(("key", "value"), [("hidden_size", 64), ("vocab_size", 99), ("num_target_layers", 61)])
def test_drafter_of_another_target(config, key, value):
    edit(config.drafter_path, **{key: value})
    with pytest.raises(UserError, match=f"{key} {value}"):
        Engine.load(config)


def test_drafter_whose_tensors_do_not_fit_its_config(config):
    edit(config.drafter_path, intermediate_size=50)
    with pytest.raises(UserError, match=r"mlp\.\w+\.weight is"):
        Engine.load(config)
    edit(config.drafter_path, intermediate_size=36, num_hidden_layers=3)
    with pytest.raises(UserError, match=r"tensor layers\.2\.\S+ is missing"):
        Engine.load(config)
    edit(config.drafter_path, num_hidden_layers=1)
    with pytest.raises(UserError, match=r"tensor layers\.1\.\S+ has no place"):
        Engine.load(config)


def test_a_model_folder_in_the_drafters_place(config):
    with pytest.raises(UserError, match="no DFlash drafter"):
        Engine.load(replace(config, drafter_path=config.model_path))


@pytest.mark.parametrize("which", ["model_path", "drafter_path"])
def test_missing_shard(config, which):
    shard = next(getattr(config, which).glob("*.safetensors"))
    shard.unlink()
    with pytest.raises(UserError, match=f"shard {shard.name} is missing"):
        Engine.load(config)


def test_tensor_that_no_shard_holds(config):
    from safetensors.torch import load_file, save_file

    name = "model.layers.0.self_attn.q_proj.weight"
    index_path = config.model_path / "model.safetensors.index.json"
    index = json.loads(index_path.read_text())
    shard = config.model_path / index["weight_map"].pop(name)
    index_path.write_text(json.dumps(index))
    tensors = load_file(shard)
    del tensors[name]
    tensors["model.nothing"] = torch.zeros(1)  # a shard needs at least one tensor
    save_file(tensors, shard, metadata={"format": "pt"})
    with pytest.raises(UserError, match=name.replace(".", r"\.")):
        Engine.load(config)


def test_models_with_sliding_windows_are_refused(config):
    edit(config.model_path, layer_types=["sliding_attention"] * 5, sliding_window=16)
    with pytest.raises(UserError, match="sliding_attention"):
        Engine.load(config)


def test_model_type_that_transformers_does_not_know(config):
    edit(config.model_path, model_type="abacus")
    with pytest.raises(UserError, match="transformers"):
        Engine.load(config)


def test_missing_tokenizer(config):
    for path in config.model_path.glob("token*"):
        path.unlink()
    with pytest.raises(UserError, match="tokenizer"):
        Engine.load(config)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_other_number_types_decode_too(config, dtype):
    engine = Engine.load(replace(config, dtype=dtype))
    steps = list(engine.generate([2, 3, 4], SamplingParams(max_tokens=12, ignore_eos=True)))
    assert sum(len(step.token_ids) for step in steps) == 12
