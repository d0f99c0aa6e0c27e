"""Times the steps of a generation and sums them up."""

import time
from collections.abc import Iterator

from ddtree.runtime.types import GenerationStats, Step

__all__ = ["GenerationStats", "measured"]


def measured(steps: Iterator[Step], stats: GenerationStats) -> Iterator[Step]:
    """Passes the steps of one generation on and adds them to `stats`. The consumer's time is not counted."""
    while True:
        start_s = time.perf_counter()
        step = next(steps, None)
        if step is None:
            return
        stats.add(step, time.perf_counter() - start_s, prefill=stats.target_forwards == 0)
        yield step
