"""Writes tokenizer.json and its companions from the metadata of the GGUF file.

The files are written here, not converted by transformers: its conversions lose the digit-splitting step, and differ
from release to release in the end-of-sequence token, the decoder and the unknown token.
"""

import json
from pathlib import Path
from typing import Any

_CONTROL_TOKEN = 3  # GGUF's token type of <|im_start|> and its like

# As in the original model's tokenizer.json: every digit is a token of its own, then GPT-2's byte-level splitting.
PRE_TOKENIZER = {
    "type": "Sequence",
    "pretokenizers": [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ],
}


def write_tokenizer(metadata: dict[str, Any], folder: Path, max_length: int) -> None:
    """Writes tokenizer.json, tokenizer_config.json and chat_template.jinja into `folder`.

    `metadata` maps GGUF keys to values, `max_length` is the model's context in tokens.
    """
    tokens: list[str] = metadata["tokenizer.ggml.tokens"]
    types: list[int] = metadata["tokenizer.ggml.token_type"]
    special = [
        {
            "id": index,
            "content": tokens[index],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index, kind in enumerate(types)
        if kind == _CONTROL_TOKEN
    ]
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": PRE_TOKENIZER,
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in metadata["tokenizer.ggml.merges"]],
        },
    }
    config = {
        "add_prefix_space": False,
        "bos_token": tokens[metadata["tokenizer.ggml.bos_token_id"]],
        "clean_up_tokenization_spaces": False,
        "eos_token": tokens[metadata["tokenizer.ggml.eos_token_id"]],
        "model_max_length": max_length,
        "pad_token": tokens[metadata["tokenizer.ggml.padding_token_id"]],
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": tokens[metadata["tokenizer.ggml.unknown_token_id"]],
    }
    _write_json(folder / "tokenizer.json", tokenizer)
    _write_json(folder / "tokenizer_config.json", config)
    template = metadata["tokenizer.chat_template"]
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8", newline="")


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8", newline="")
