"""Reads a DFlash drafter's config.json (z-lab's layout) into a frozen dataclass; refuses what it cannot do."""

import logging
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddtree.errors import UserError
from ddtree.json_file import read_json

logger = logging.getLogger(__name__)

ARCHITECTURE = "DFlashDraftModel"
DFLASH_KEYS = ("mask_token_id", "target_layer_ids")
# Keys that describe training, other frameworks or the tokenizer: they do not change what the drafter computes.
IGNORED_KEYS = frozenset(
    {
        "_name_or_path",
        "architectures",
        "attention_dropout",
        "auto_map",
        "bos_token_id",
        "dtype",
        "eos_token_id",
        "initializer_range",
        "max_position_embeddings",
        "max_window_layers",
        "model_type",
        "pad_token_id",
        "tie_word_embeddings",
        "torch_dtype",
        "transformers_version",
        "use_cache",
    }
)


@dataclass(frozen=True)
class RopeConfig:
    """Rotary embedding. factor 1.0 is plain; greater values are YaRN's context extension (arXiv 2309.00071)."""

    theta: float
    factor: float = 1.0
    original_context: int = 0  # tokens; used by YaRN alone
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    amplitude: float = 1.0  # multiplies cos and sin


@dataclass(frozen=True)
class DrafterConfig:
    """Shapes of a DFlash drafter. A window is in context tokens; None means all of them."""

    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    vocab_size: int
    block_size: int  # rows of a draft block, the anchor's row included
    num_target_layers: int
    target_layer_ids: tuple[int, ...]  # tap of layer i = hidden_states[i + 1] in Hugging Face's terms
    mask_token_id: int
    rope: RopeConfig
    layer_windows: tuple[int | None, ...]  # one a layer


def read_drafter_config(folder: Path) -> DrafterConfig:
    """Raises UserError if config.json is missing, is no DFlash configuration, or asks for what is not supported."""
    path = folder / "config.json"
    return parse_drafter_config(read_json(path), str(path))


def parse_drafter_config(values: dict[str, Any], where: str) -> DrafterConfig:
    """values: config.json as a dict. where: what error messages call it."""
    reader = _Reader(values, where)
    if values.get("architectures") != [ARCHITECTURE]:
        reader.fail("architectures", f"[{ARCHITECTURE!r}]; this folder holds no DFlash drafter")
    dflash = _Reader(reader.take("dflash_config", dict, "an object"), f"{where}, dflash_config")
    layer_ids = dflash.take("target_layer_ids", list, "a list of layer numbers")
    if not layer_ids or any(type(i) is not int or i < 0 for i in layer_ids) or layer_ids != sorted(set(layer_ids)):
        dflash.fail("target_layer_ids", "a rising list of layer numbers, 0 for the first layer")
    mask_token_id = dflash.take("mask_token_id", int, "a token id", minimum=0)
    if unknown := sorted(set(dflash.values) - set(DFLASH_KEYS)):
        raise UserError(f"{dflash.where}: unknown key {unknown[0]!r}; known are {', '.join(DFLASH_KEYS)}")
    num_heads, num_kv_heads = reader.count("num_attention_heads"), reader.count("num_key_value_heads")
    if num_heads % num_kv_heads:
        reader.fail("num_attention_heads", f"a multiple of num_key_value_heads = {num_kv_heads}")
    num_layers = reader.count("num_hidden_layers")
    if reader.optional("attention_bias", False) is not False:
        reader.fail("attention_bias", "false; drafters with biases are not supported")
    if reader.optional("hidden_act", "silu") != "silu":
        reader.fail("hidden_act", "'silu'; no other activation is supported")
    block_size = reader.count("block_size")
    if block_size < 2:
        reader.fail("block_size", "at least 2: the anchor and one drafted token")
    config = DrafterConfig(
        hidden_size=reader.count("hidden_size"),
        intermediate_size=reader.count("intermediate_size"),
        num_layers=num_layers,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=reader.count("head_dim"),
        rms_norm_eps=reader.take("rms_norm_eps", float, "a small positive number", minimum=0),
        vocab_size=reader.count("vocab_size"),
        block_size=block_size,
        num_target_layers=reader.count("num_target_layers"),
        target_layer_ids=tuple(layer_ids),
        mask_token_id=mask_token_id,
        rope=_read_rope(reader),
        layer_windows=_read_windows(reader, num_layers),
    )
    if mask_token_id >= config.vocab_size:
        dflash.fail("mask_token_id", f"below vocab_size = {config.vocab_size}")
    if layer_ids[-1] >= config.num_target_layers:
        dflash.fail("target_layer_ids", f"layers below num_target_layers = {config.num_target_layers}")
    # A key that changed the computation would lower the acceptance, never spoil the text: worth a warning only.
    for key in sorted(set(values) - reader.known - IGNORED_KEYS):
        logger.warning("%s: key %r is not known and has no effect", where, key)
    return config


def _read_rope(reader: "_Reader") -> RopeConfig:
    parameters = reader.optional("rope_parameters", None) or {}
    scaling = _Reader({**parameters, **(reader.optional("rope_scaling", None) or {})}, f"{reader.where}, rope_scaling")
    theta = scaling.values.get("rope_theta", reader.optional("rope_theta", None))
    if not isinstance(theta, int | float) or theta <= 0:
        reader.fail("rope_theta", "a positive number")
    kind = scaling.values.get("rope_type", scaling.values.get("type", "default"))
    if kind == "default":
        return RopeConfig(theta=float(theta))
    if kind != "yarn":
        raise UserError(f"{scaling.where}: rope_type is {kind!r}; supported are 'default' and 'yarn'")
    factor = scaling.take("factor", float, "at least 1", minimum=1)
    amplitude = scaling.values.get("attention_factor")
    if amplitude is None:
        amplitude = 0.1 * math.log(factor) + 1.0
    return RopeConfig(
        theta=float(theta),
        factor=factor,
        original_context=scaling.count("original_max_position_embeddings"),
        beta_fast=float(scaling.optional("beta_fast", 32.0)),
        beta_slow=float(scaling.optional("beta_slow", 1.0)),
        amplitude=float(amplitude),
    )


def _read_windows(reader: "_Reader", num_layers: int) -> tuple[int | None, ...]:
    window = reader.optional("sliding_window", None)
    used = reader.optional("use_sliding_window", window is not None)
    kinds = reader.optional("layer_types", None) or ["sliding_attention" if used else "full_attention"] * num_layers
    if not isinstance(kinds, list) or len(kinds) != num_layers:
        reader.fail("layer_types", f"a list of num_hidden_layers = {num_layers} entries")
    for kind in kinds:
        if kind not in ("full_attention", "sliding_attention"):
            reader.fail("layer_types", "entries 'full_attention' or 'sliding_attention'")
    if "sliding_attention" in kinds and (type(window) is not int or window < 1):
        reader.fail("sliding_window", "a number of tokens, because layer_types asks for sliding attention")
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)


class _Reader:
    """Takes keys out of a JSON object, with errors that name the file, the key, its value and what it should be."""

    def __init__(self, values: dict[str, Any], where: str) -> None:
        self.values = values
        self.where = where
        self.known: set[str] = set()

    def take(self, key: str, kind: type, expected: str, minimum: float | None = None) -> Any:
        self.known.add(key)
        if key not in self.values:
            raise UserError(f"{self.where}: {key} is missing; it must be {expected}; fetch the drafter again")
        value = self.values[key]
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind or (minimum is not None and not value >= minimum):
            self.fail(key, expected)
        return value

    def count(self, key: str) -> int:
        return self.take(key, int, "a positive integer", minimum=1)

    def optional(self, key: str, default: Any) -> Any:
        self.known.add(key)
        return self.values.get(key, default)

    def fail(self, key: str, expected: str) -> None:
        raise UserError(f"{self.where}: {key} is {self.values.get(key)!r}, must be {expected}")
