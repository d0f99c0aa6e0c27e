"""Plain, chain and tree decoding of the same prompts: figures side by side, and whether the texts are the same."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ddtree.runtime.types import MODES, GenerationStats, Mode, SamplingParams

if TYPE_CHECKING:
    from ddtree.runtime.engine import Engine

DEFAULT_PROMPTS = {
    "chat": "Give me three tips for learning a new language.",
    "code": "Write a Python function that returns the n-th Fibonacci number, with a docstring.",
}
_HEADER = ("prompt", "mode", "tokens", "tokens/s", "acceptance length", "target forwards", "speed-up", "same text")


@dataclass(frozen=True)
class Run:
    """One prompt decoded in one mode. tokens_per_s leaves the prefill out, as does the speed-up over plain decoding."""

    prompt: str
    mode: Mode
    tokens: int
    tokens_per_s: float
    acceptance_length: float
    target_forwards: int
    prefill_s: float
    decode_s: float
    speedup: float
    identical: bool  # its tokens are those of plain decoding
    finish_reason: str
    token_ids: tuple[int, ...]


def compare_modes(
    engine: "Engine",
    prompts: Mapping[str, Sequence[int]],
    params: SamplingParams,
    progress: Callable[[str], None] = lambda _text: None,
) -> list[Run]:
    """prompts: name → token ids. Every mode decodes once untimed first, so that none of them pays for the first use."""
    warm_up = SamplingParams(max_tokens=3, ignore_eos=True)
    for mode in MODES:
        progress(f"warming up, {mode}")
        for _ in engine.generate(list(next(iter(prompts.values()))), warm_up, mode):
            pass
    runs: list[Run] = []
    for name, prompt_ids in prompts.items():
        plain = None
        for mode in MODES:
            run = _decode(engine, name, list(prompt_ids), params, mode, plain, progress)
            plain = plain or run
            runs.append(run)
    return runs


def _decode(
    engine: "Engine",
    name: str,
    prompt_ids: list[int],
    params: SamplingParams,
    mode: Mode,
    plain: Run | None,
    progress: Callable[[str], None],
) -> Run:
    from ddtree.runtime.stats import measured

    stats, token_ids = GenerationStats(), []
    for step in measured(engine.generate(prompt_ids, params, mode), stats):
        token_ids += step.token_ids
        progress(f"{name}, {mode}: {len(token_ids)} of at most {params.max_tokens} tokens")
    speed = stats.decode_tokens_per_s
    return Run(
        prompt=name,
        mode=mode,
        tokens=stats.tokens,
        tokens_per_s=speed,
        acceptance_length=stats.acceptance_length,
        target_forwards=stats.target_forwards,
        prefill_s=stats.prefill_s,
        decode_s=stats.decode_s,
        speedup=1.0 if plain is None else speed / plain.tokens_per_s if plain.tokens_per_s else 0.0,
        identical=plain is None or tuple(token_ids) == plain.token_ids,
        finish_reason=stats.finish_reason,
        token_ids=tuple(token_ids),
    )


def format_table(runs: Sequence[Run]) -> str:
    """Aligned columns: names to the left, figures to the right."""
    rows = [_HEADER] + [
        (
            run.prompt,
            run.mode,
            str(run.tokens),
            f"{run.tokens_per_s:.1f}",
            f"{run.acceptance_length:.2f}",
            str(run.target_forwards),
            f"{run.speedup:.2f}x",
            "yes" if run.identical else "NO",
        )
        for run in runs
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def as_json(runs: Sequence[Run], conditions: Mapping[str, Any]) -> dict[str, Any]:
    """conditions: what stands beside the figures (models, budget, dtype …)."""
    return {"schema": 1, "conditions": dict(conditions), "runs": [asdict(run) for run in runs]}
