"""One generation in progress: what is committed, what is left to generate, and the caches that belong to it."""

from dataclasses import dataclass

from ddtree.drafter.context import DraftContext
from ddtree.runtime.kv_cache import KvCache
from ddtree.runtime.sampling import Sampler
from ddtree.runtime.types import FinishReason, Mode, SamplingParams


@dataclass
class Sequence:
    """`remaining` falls with every committed token. The anchor is the last one; the target has not processed it yet."""

    prompt_ids: list[int]
    mode: Mode
    params: SamplingParams
    sampler: Sampler
    eos_token_ids: frozenset[int]  # empty where they are to be ignored
    remaining: int
    cache: KvCache
    context: DraftContext | None  # None in mode ar
    anchor: int = -1

    @property
    def room(self) -> int:
        """Nodes that still fit into the cache's window beside the anchor."""
        return self.cache.capacity - self.cache.length - 1

    def commit(self, token_ids: tuple[int, ...]) -> tuple[tuple[int, ...], FinishReason | None]:
        """Returns the tokens that belong to the reply, cut where it ends, and why it ends there."""
        for count, token in enumerate(token_ids, start=1):
            self.remaining -= 1
            self.anchor = token
            if token in self.eos_token_ids:
                return token_ids[:count], "stop"
            if self.remaining == 0:
                return token_ids[:count], "length"
        return token_ids, None
