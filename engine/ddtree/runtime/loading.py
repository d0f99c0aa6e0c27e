"""Loads what an engine consists of, cheapest checks first: options, folders, configurations, then weights."""

import sys
from dataclasses import dataclass

import torch
import transformers

from ddtree.drafter.config import DrafterConfig, read_drafter_config
from ddtree.drafter.model import Drafter, load_drafter
from ddtree.drafter.pairing import check_pairing, require_drafter
from ddtree.errors import UserError
from ddtree.runtime.model_folder import check_model_folder
from ddtree.runtime.packed_linear import ONE_ROW, SEVERAL_ROWS, pack_linears
from ddtree.runtime.target import Target, eos_token_ids, load_target, load_tokenizer, quiet_loading, read_target_config
from ddtree.runtime.types import EngineConfig
from ddtree.runtime.validation import check_engine_config


@dataclass(frozen=True, eq=False)
class Parts:
    """What several engines with different options may share, one at a time."""

    target: Target
    drafter: Drafter | None
    tokenizer: transformers.PreTrainedTokenizerBase
    eos_token_ids: frozenset[int]  # empty if the model names none
    max_context: int  # prompt + reply, tokens


def load_parts(config: EngineConfig) -> Parts:
    """Raises UserError: bad option, incomplete folder, unsupported model, drafter of another target, no drafter."""
    check_engine_config(config)
    require_drafter(config.mode, config.drafter_path)
    device = parse_device(config.device)
    check_model_folder(config.model_path)
    target_config = read_target_config(config.model_path)
    max_context = _context_limit(config, target_config)
    if config.drafter_path is not None:
        check_model_folder(config.drafter_path)
        drafter_config = read_drafter_config(config.drafter_path)
        _check_fit(config, drafter_config, target_config)
    tokenizer = load_tokenizer(config.model_path)
    dtype = getattr(torch, config.dtype)
    with quiet_loading(show=sys.stderr.isatty()):
        target = load_target(config.model_path, dtype, device)
    pack_linears(target.model, (ONE_ROW, SEVERAL_ROWS) if config.drafter_path is not None else (ONE_ROW,))
    drafter = None
    if config.drafter_path is not None:
        drafter = load_drafter(config.drafter_path, dtype, device)
        pack_linears(drafter, (SEVERAL_ROWS,))
        target.tap_layers(drafter.config.target_layer_ids)
    return Parts(target, drafter, tokenizer, eos_token_ids(target.model, tokenizer), max_context)


def parse_device(name: str) -> torch.device:
    """Raises UserError for a name torch does not know or a device that is not there."""
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise UserError(
            f"device is {name!r}: {str(error).splitlines()[0]}; use cpu, cuda, cuda:1 or the like"
        ) from error
    return device


def _context_limit(config: EngineConfig, target_config: transformers.PretrainedConfig) -> int:
    limit = target_config.max_position_embeddings
    if config.max_context is not None and config.max_context > limit:
        raise UserError(f"max_context is {config.max_context}, {config.model_path} was made for {limit}; lower it")
    return config.max_context or limit


def _check_fit(config: EngineConfig, drafter: DrafterConfig, target: transformers.PretrainedConfig) -> None:
    check_pairing(
        drafter,
        hidden_size=target.hidden_size,
        vocab_size=target.vocab_size,
        num_layers=target.num_hidden_layers,
        drafter_path=config.drafter_path,
        target_path=config.model_path,
    )
    if config.block is not None and config.block > drafter.block_size:
        raise UserError(
            f"block is {config.block}, drafter {config.drafter_path} was trained for {drafter.block_size}; lower it"
        )
