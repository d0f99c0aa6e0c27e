"""What goes into the engine and what comes out: configuration, sampling, steps, statistics. Imports no torch."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Mode = Literal["ar", "chain", "tree"]
FinishReason = Literal["stop", "length"]
MODES: tuple[Mode, ...] = ("ar", "chain", "tree")
DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class SamplingParams:
    """How the target's distribution is turned into tokens, and when to stop. temperature 0 is greedy."""

    max_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0  # 0: all tokens
    min_p: float = 0.0  # drop tokens below min_p × the likeliest token's probability
    seed: int | None = None  # None: a fresh one every call
    ignore_eos: bool = False


@dataclass(frozen=True)
class EngineConfig:
    """What an engine is made of. `budget` counts drafted nodes without the root, `block` rows with the anchor.

    The defaults are for a CPU: budget, topk and depth were the fastest of 8–20 nodes, 4–12 candidates, depths 5–15 on
    six chat and four coding prompts with SmolLM2-135M, float32, 2 cores of an EPYC 7002. Milliseconds a forward there:
    1 row 74; 12 rows 110, 13 rows 119, 17 rows 127 (oneDNN works on 6 rows at once); a draft of depth 7 or 15 27 or 38.
    With these times and the acceptance along the greedy texts, the speed-up over plain decoding (harmonic mean of the
    prompts) is: tree 11/8/7 1.50, 8/4/15 1.36, 16/4/15 1.28; chain at its best, 4 to 6 deep, 1.25, 15 deep 1.03; 8 rows
    drafted of a block of 16 save little and accept less (1.45). Timed on the default prompts, chat and code:
    tree 1.40 and 2.35, chain 1.28 and 1.78.
    """

    model_path: Path
    drafter_path: Path | None = None
    mode: Mode = "tree"
    budget: int = 11
    topk: int = 8  # candidates a depth
    depth: int = 7  # deepest drafted token that is used, at most block - 1
    block: int | None = None  # rows a draft block, at most the drafter's; None: the drafter's
    window: int | None = None  # context tokens the drafter sees; None: what its config says
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    device: str = "cpu"
    max_context: int | None = None  # prompt + reply in tokens; None: the target's


@dataclass(frozen=True)
class Step:
    """What one target forward committed. The first step of a generation is the prefill: one token, nothing drafted."""

    token_ids: tuple[int, ...]  # in order; cut after an end-of-sequence token and at max_tokens
    accepted: int = 0  # how many of token_ids were drafted (the last one is the target's own, unless it was cut off)
    drafted: int = 0  # nodes verified, without the root
    finish_reason: FinishReason | None = None
    drafted_depth: int = 0  # depth of the deepest node verified; 0 without drafts


@dataclass
class GenerationStats:
    """Sums over the steps of one generation (or several: `add` takes any step)."""

    tokens: int = 0
    target_forwards: int = 0  # prefill included
    rounds: int = 0  # target forwards after the prefill
    prefills: int = 0
    drafted: int = 0
    accepted_histogram: Counter[int] = field(default_factory=Counter)  # rounds by number of accepted drafts
    prefill_s: float = 0.0
    decode_s: float = 0.0
    finish_reason: FinishReason | None = None

    def add(self, step: Step, elapsed_s: float, *, prefill: bool) -> None:
        self.tokens += len(step.token_ids)
        self.target_forwards += 1
        self.finish_reason = step.finish_reason
        if prefill:
            self.prefills += 1
            self.prefill_s += elapsed_s
            return
        self.rounds += 1
        self.drafted += step.drafted
        self.accepted_histogram[step.accepted] += 1
        self.decode_s += elapsed_s

    @property
    def acceptance_length(self) -> float:
        """Tokens a decode round committed, the target's own token included; 0.0 before the first round."""
        return (self.tokens - self.prefills) / self.rounds if self.rounds else 0.0

    @property
    def decode_tokens_per_s(self) -> float:
        return (self.tokens - self.prefills) / self.decode_s if self.decode_s else 0.0
