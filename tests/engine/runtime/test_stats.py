"""Sums over steps, and what counts as acceptance length."""

from ddtree.runtime.stats import GenerationStats, measured
from ddtree.runtime.types import Step

STEPS = [Step((5,)), Step((6, 7, 8), accepted=2, drafted=16), Step((9,), 0, 16), Step((1, 2), 1, 16, "length")]


def test_sums():
    stats = GenerationStats()
    assert list(measured(iter(STEPS), stats)) == STEPS
    assert (stats.tokens, stats.target_forwards, stats.rounds, stats.drafted) == (7, 4, 3, 48)
    assert dict(stats.accepted_histogram) == {0: 1, 1: 1, 2: 1}
    assert stats.acceptance_length == 6 / 3
    assert stats.finish_reason == "length"
    assert stats.prefill_s >= 0
    assert stats.decode_s >= 0


def test_nothing_generated():
    assert GenerationStats().acceptance_length == 0.0
    assert GenerationStats().decode_tokens_per_s == 0.0
