"""config.json of a drafter: the shipped one is read, every wrong value is refused by name."""

import json

import pytest

from ddtree.drafter.config import parse_drafter_config, read_drafter_config
from ddtree.errors import UserError


@pytest.fixture
def values(drafter_folder):
    return json.loads((drafter_folder / "config.json").read_text())


def test_shipped_drafter(drafter_folder):
    config = read_drafter_config(drafter_folder)
    assert (config.block_size, config.num_layers, config.head_dim) == (16, 4, 64)
    assert config.target_layer_ids == (1, 7, 14, 20, 27)
    assert config.mask_token_id == 3
    assert config.rope.theta == 100000.0
    assert config.layer_windows == (None, None, None, None)


REQUIRED = [
    "architectures",
    "block_size",
    "dflash_config",
    "head_dim",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "num_target_layers",
    "rms_norm_eps",
    "rope_theta",
    "vocab_size",
]


@pytest.mark.parametrize("key", REQUIRED)
def test_missing_key_is_named(values, key):
    del values[key]
    with pytest.raises(UserError, match=key):
        parse_drafter_config(values, "config.json")


WRONG = [
    ("architectures", ["LlamaForCausalLM"]),
    ("block_size", 1),
    ("block_size", "16"),
    ("hidden_size", 0),
    ("hidden_size", 576.5),
    ("num_key_value_heads", 2),
    ("num_hidden_layers", True),
    ("rms_norm_eps", "small"),
    ("rope_theta", -1),
    ("attention_bias", True),
    ("hidden_act", "gelu"),
    ("rope_scaling", {"rope_type": "ntk", "factor": 2.0}),
    ("rope_scaling", {"rope_type": "yarn"}),
    ("layer_types", ["full_attention"]),
    ("layer_types", ["linear_attention"] * 4),
    ("layer_types", ["sliding_attention"] * 4),
    ("dflash_config", [1]),
    ("dflash_config", {"mask_token_id": 3}),
    ("dflash_config", {"target_layer_ids": [1, 7]}),
    ("dflash_config", {"mask_token_id": -1, "target_layer_ids": [1, 7]}),
    ("dflash_config", {"mask_token_id": 49152, "target_layer_ids": [1, 7]}),
    ("dflash_config", {"mask_token_id": 3, "target_layer_ids": []}),
    ("dflash_config", {"mask_token_id": 3, "target_layer_ids": [7, 1]}),
    ("dflash_config", {"mask_token_id": 3, "target_layer_ids": [1, 30]}),
    ("dflash_config", {"mask_token_id": 3, "target_layer_ids": [1, 7], "anchors": 512}),
]


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_wrong_value_is_refused_by_name(values, key, value):
    values[key] = value
    with pytest.raises(UserError, match=r"config\.json") as error:
        parse_drafter_config(values, "config.json")
    names = {key, *(value if isinstance(value, dict) else ()), "mask_token_id", "target_layer_ids", "sliding_window"}
    names |= {"num_attention_heads", "original_max_position_embeddings", "factor"}
    assert any(name in str(error.value) for name in names)


def test_unknown_key_is_reported_and_has_no_effect(values, caplog):
    plain = parse_drafter_config(values, "config.json")
    assert not caplog.records
    assert parse_drafter_config({**values, "use_magic": True}, "config.json") == plain
    assert "use_magic" in caplog.text


def test_window_of_the_sliding_layers(values):
    kinds = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
    config = parse_drafter_config({**values, "layer_types": kinds, "sliding_window": 2048}, "config.json")
    assert config.layer_windows == (None, 2048, 2048, None)


def test_yarn(values):
    scaling = {"rope_type": "yarn", "factor": 64.0, "original_max_position_embeddings": 4096, "beta_fast": 32}
    rope = parse_drafter_config({**values, "rope_scaling": scaling}, "config.json").rope
    assert (rope.factor, rope.original_context) == (64.0, 4096)
    assert rope.amplitude == pytest.approx(1.4159, abs=1e-4)
    assert (
        parse_drafter_config(
            {**values, "rope_scaling": {**scaling, "attention_factor": 1.0}}, "config.json"
        ).rope.amplitude
        == 1.0
    )


@pytest.mark.parametrize("content", [None, "{", "[1]", b"\xff\xfe"])
def test_unreadable_file(tmp_path, content):
    if content is not None:
        (tmp_path / "config.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=r"config\.json"):
        read_drafter_config(tmp_path)
