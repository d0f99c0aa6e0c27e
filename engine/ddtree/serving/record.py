"""What one generation did: the figures that its usage, its acceptance report, its log line and the metrics show."""

from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from ddtree.runtime.types import GenerationStats, Step


@dataclass
class GenerationRecord:
    """Filled by the worker, step by step; times are of time.monotonic(), in seconds."""

    mode: str
    prompt_tokens: int
    submitted_at: float = field(default_factory=monotonic)
    started_at: float | None = None  # left the queue
    first_token_at: float | None = None
    last_token_at: float | None = None
    completion_tokens: int = 0  # of the reply: tokens behind a stop string do not count, though the engine made them
    engine: GenerationStats = field(default_factory=GenerationStats)

    def start(self) -> None:
        self.started_at = monotonic()

    def add_step(self, step: Step) -> None:
        """Counts one forward of the target. The first one is the prefill."""
        now = monotonic()
        if self.first_token_at is None:
            self.engine.add(step, now - self.started_at, prefill=True)
            self.first_token_at = now
        else:
            self.engine.add(step, now - self.last_token_at, prefill=False)
        self.last_token_at = now

    @property
    def acceptance_length(self) -> float | None:
        """Tokens committed in a decode round, the target's own one included; None before the first round."""
        return self.engine.acceptance_length if self.engine.rounds else None

    def summary(self) -> str:
        """One line for the log."""
        length = self.acceptance_length
        return (
            f"{self.prompt_tokens} prompt tokens, {self.completion_tokens} completion tokens, "
            f"{self.engine.decode_tokens_per_s:.1f} tok/s, "
            f"acceptance length {'–' if length is None else f'{length:.2f}'}, mode {self.mode}"
        )

    def usage(self) -> dict[str, int]:
        """OpenAI's usage object."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
        }

    def report(self) -> dict[str, Any]:
        """The `ddtree` object of a reply. accepted_histogram[k]: decode rounds that accepted k drafted tokens."""
        histogram = self.engine.accepted_histogram
        return {
            "mode": self.mode,
            "acceptance_length": self.acceptance_length,
            "target_forwards": self.engine.target_forwards,
            "decode_rounds": self.engine.rounds,
            "accepted_histogram": [histogram[accepted] for accepted in range(max(histogram, default=-1) + 1)],
            "generated_tokens": self.engine.tokens,
            "decode_tokens_per_s": round(self.engine.decode_tokens_per_s, 3),
            "queue_s": round((self.started_at or self.submitted_at) - self.submitted_at, 6),
            "prefill_s": round(self.engine.prefill_s, 6),
            "decode_s": round(self.engine.decode_s, 6),
        }
