"""Loaded models for tests, and tiny random targets and drafters written as real model folders."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors.torch import save_file

from ddtree.drafter.config import parse_drafter_config
from ddtree.drafter.model import Drafter
from ddtree.runtime.engine import Engine
from ddtree.runtime.loading import Parts
from ddtree.runtime.types import EngineConfig, SamplingParams

VOCAB = 13
NUM_LAYERS = 5
# Other ratios of query to key/value heads than the demo model's, and head sizes that do not divide the hidden size.
FAMILIES = {
    "llama": {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 8},
    "llama-mha": {"hidden_size": 24, "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 8},
    "qwen3": {"hidden_size": 40, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 12},
}


@dataclass(frozen=True)
class Kit:
    """Loaded models; `engine` makes engines of them with other options, at no cost."""

    config: EngineConfig
    parts: Parts

    def engine(self, **options) -> Engine:
        """options: fields of EngineConfig, or eos_token_ids and max_context."""
        fields = {name: options.pop(name) for name in ("eos_token_ids", "max_context") if name in options}
        return Engine(replace(self.config, **options), replace(self.parts, **fields))

    def steps(self, prompt_ids, mode="tree", max_tokens=32, params=None, **options) -> list:
        params = params or SamplingParams(max_tokens=max_tokens)
        return list(self.engine(**options).generate(list(prompt_ids), params, mode))

    def tokens(self, prompt_ids, mode="tree", max_tokens=32, params=None, **options) -> list[int]:
        return flatten(self.steps(prompt_ids, mode, max_tokens, params, **options))


def flatten(steps) -> list[int]:
    return [token for step in steps for token in step.token_ids]


def acceptance_length(steps) -> float:
    """Tokens a round, the prefill's token left out."""
    return (sum(len(step.token_ids) for step in steps) - 1) / (len(steps) - 1)


def write_tiny_target(folder: Path, family: str, *, seed: int = 2, vocab: int = VOCAB) -> Path:
    """A random causal language model with a word-level tokenizer and a chat template, in two or more shards."""
    import transformers

    shape = {
        **FAMILIES[family],
        "vocab_size": vocab,
        "intermediate_size": 48,
        "num_hidden_layers": NUM_LAYERS,
        "max_position_embeddings": 256,
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": 0,
        "pad_token_id": 0,
    }
    kinds = {"llama": ("LlamaConfig", "LlamaForCausalLM"), "qwen3": ("Qwen3Config", "Qwen3ForCausalLM")}
    config_name, model_name = kinds[family.split("-")[0]]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = getattr(transformers, model_name)(getattr(transformers, config_name)(**shape))
        for parameter in model.parameters():
            if parameter.ndim == 2:  # wide enough for texts that vary
                torch.nn.init.normal_(parameter, std=0.4)
    model.save_pretrained(folder, max_shard_size="30KB")
    _write_tokenizer(folder, vocab)
    return folder


def _write_tokenizer(folder: Path, vocab: int) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel({f"w{i}": i for i in range(vocab)}, unk_token="w1"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="w0", unk_token="w1")
    fast.chat_template = "{% for message in messages %}w2 {{ message['content'] }} w3{% endfor %}"
    fast.save_pretrained(folder)


def drafter_values(target_folder: Path, **changes) -> dict:
    """A config.json for a drafter of that target."""
    target = json.loads((target_folder / "config.json").read_text())
    return {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "block_size": 8,
        "num_target_layers": target["num_hidden_layers"],
        "hidden_size": target["hidden_size"],
        "intermediate_size": 36,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "attention_bias": False,
        "vocab_size": target["vocab_size"],
        "dflash_config": {"mask_token_id": 3, "target_layer_ids": [1, 3]},
        **changes,
    }


def random_drafter(values: dict, seed: int = 0) -> Drafter:
    drafter = Drafter(parse_drafter_config(values, "config.json"))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for parameter in drafter.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
    return drafter.eval().requires_grad_(False)


def write_tiny_drafter(folder: Path, target_folder: Path, *, seed: int = 0, **changes) -> Path:
    """A random drafter in two shards, in z-lab's layout."""
    values = drafter_values(target_folder, **changes)
    folder.mkdir(parents=True)
    tensors = {name: tensor.clone() for name, tensor in random_drafter(values, seed).state_dict().items()}
    names = sorted(tensors)
    weight_map = {}
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        shard = f"model-{number:05d}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / shard)
        weight_map |= dict.fromkeys(part, shard)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    (folder / "config.json").write_text(json.dumps(values))
    return folder
