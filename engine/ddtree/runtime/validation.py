"""Checks of what the caller chose; every message names the option, its value and what it may be."""

import math

from ddtree.errors import UserError
from ddtree.runtime.types import DTYPES, MODES, EngineConfig, SamplingParams

MAX_BUDGET = 1024  # wider verifications never pay; the limit keeps a typing error from filling the memory


def check_mode(mode: str) -> None:
    if mode not in MODES:
        raise UserError(f"mode is {mode!r}; it may be {', '.join(MODES)}")


def check_engine_config(config: EngineConfig) -> None:
    """Raises UserError. What depends on the models (context, block) is checked when they are loaded."""
    check_mode(config.mode)
    if config.dtype not in DTYPES:
        raise UserError(f"dtype is {config.dtype!r}; it may be {', '.join(DTYPES)}")
    _check_count("budget", config.budget, 1, MAX_BUDGET)
    _check_count("topk", config.topk, 1, MAX_BUDGET)
    _check_count("depth", config.depth, 1)
    if config.block is not None:
        _check_count("block", config.block, 2)
    if config.window is not None:
        _check_count("window", config.window, 1)
    if config.max_context is not None:
        _check_count("max_context", config.max_context, 2)


def check_sampling_params(params: SamplingParams) -> None:
    """Raises UserError."""
    _check_count("max_tokens", params.max_tokens, 1)
    _check_count("top_k", params.top_k, 0)
    if not 0.0 <= params.temperature < math.inf:
        raise UserError(f"temperature is {params.temperature!r}; it must be 0 (greedy) or more")
    if not 0.0 < params.top_p <= 1.0:
        raise UserError(f"top_p is {params.top_p!r}; it must be above 0 and at most 1")
    if not 0.0 <= params.min_p <= 1.0:
        raise UserError(f"min_p is {params.min_p!r}; it must be from 0 to 1")
    if params.seed is not None and not -(2**63) <= params.seed < 2**64:
        raise UserError(f"seed is {params.seed!r}; it must be a 64-bit integer")


def _check_count(name: str, value: int, minimum: int, maximum: int | None = None) -> None:
    if type(value) is not int or value < minimum or (maximum is not None and value > maximum):
        bounds = f"from {minimum} to {maximum}" if maximum is not None else f"of at least {minimum}"
        raise UserError(f"{name} is {value!r}; it must be an integer {bounds}")
