"""Sampling: the filters against their definitions, the draw against the distribution, seeds."""

import math
from collections import Counter

import pytest
import torch

from ddtree.runtime.sampling import Sampler, filtered_probs
from ddtree.runtime.types import SamplingParams

LOGITS = torch.tensor([0.1, 2.0, -1.0, 1.5, 0.7, 1.5, -3.0])


def expected_probs(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    """The definition, in plain Python: later filters work on what the earlier ones left."""
    weights = {i: math.exp(value / temperature) for i, value in enumerate(LOGITS.tolist())}
    ordered = sorted(weights, key=lambda i: (-weights[i], i))
    if top_k:
        ordered = [i for i in ordered if weights[i] >= weights[ordered[min(top_k, len(ordered)) - 1]]]
    total, mass, kept = sum(weights[i] for i in ordered), 0.0, []
    for i in ordered:
        if kept and mass >= top_p:
            break
        kept.append(i)
        mass += weights[i] / total
    kept = [i for i in kept if weights[i] >= min_p * weights[ordered[0]]]
    return [weights[i] / sum(weights[j] for j in kept) if i in kept else 0.0 for i in range(len(LOGITS))]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.3},
        {"temperature": 5.0},
        {"top_k": 1},
        {"top_k": 2},
        {"top_k": 100},
        {"top_p": 0.01},
        {"top_p": 0.5},
        {"top_p": 0.95},
        {"min_p": 0.3},
        {"min_p": 1.0},
        {"temperature": 0.7, "top_k": 4, "top_p": 0.8, "min_p": 0.1},
    ],
)
def test_filters_follow_their_definition(options):
    probs = filtered_probs(LOGITS, SamplingParams(**{"temperature": 1.0, **options}))
    assert probs.tolist() == pytest.approx(expected_probs(**options))


def test_draws_follow_the_distribution():
    params = SamplingParams(temperature=0.9, top_p=0.9, seed=5)
    sampler, runs = Sampler(params), 20_000
    counts = Counter(sampler.sample(LOGITS) for _ in range(runs))
    probs = filtered_probs(LOGITS, params).tolist()
    assert all(probs[token] > 0 for token in counts)
    statistic = sum((counts[i] - runs * p) ** 2 / (runs * p) for i, p in enumerate(probs) if p > 0)
    assert statistic < 24, f"χ² = {statistic:.1f}"  # at most 6 degrees of freedom: probability 0.0005


def test_a_seed_repeats_and_no_seed_does_not():
    def draw(seed):
        sampler = Sampler(SamplingParams(temperature=1.0, seed=seed))
        return [sampler.sample(LOGITS) for _ in range(40)]

    assert draw(3) == draw(3)
    assert draw(3) != draw(4)
    assert draw(None) != draw(None)


def test_extreme_logits_do_not_overflow():
    logits = torch.tensor([1e4, -1e4, float("-inf"), 1e4])
    probs = filtered_probs(logits, SamplingParams(temperature=0.01, top_p=0.99, min_p=0.01))
    assert probs.tolist() == [0.5, 0.0, 0.0, 0.5]
