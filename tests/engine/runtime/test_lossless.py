"""Speculation never changes the text: tiny random models of several shapes, every mode, every option."""

import itertools

import pytest
import torch
from engine_kit import FAMILIES, VOCAB, flatten

from ddtree.runtime import engine as engine_module
from ddtree.runtime.kv_cache import KvCache
from ddtree.runtime.types import SamplingParams

PROMPT = [2, 7, 4, 9, 11, 5]
LENGTH = 40


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("block", [2, 5, 8])
def test_greedy_text_is_that_of_plain_decoding(tiny_kit, family, block):
    kit = tiny_kit(family)
    params = SamplingParams(max_tokens=LENGTH, ignore_eos=True)
    plain = kit.tokens(PROMPT, "ar", params=params)
    assert len(set(plain)) > 6, "the fixture's text must vary"
    assert kit.tokens(PROMPT, "chain", params=params, block=block) == plain
    accepted = 0
    for budget, topk in itertools.product((1, 3, 40), (1, VOCAB, 100)):
        steps = kit.steps(PROMPT, "tree", params=params, block=block, budget=budget, topk=topk)
        assert flatten(steps) == plain, f"budget {budget}, topk {topk}"
        accepted += sum(step.accepted for step in steps)
    assert accepted > 10, "too few drafts were accepted for the test to mean anything"


@pytest.mark.parametrize("window", [1, 3, 1000])
def test_a_drafter_with_a_window_changes_nothing(tiny_kit, window):
    kit = tiny_kit("qwen3")
    params = SamplingParams(max_tokens=LENGTH, ignore_eos=True)
    plain = kit.tokens(PROMPT, "ar", params=params)
    assert kit.tokens(PROMPT, params=params, budget=30, topk=VOCAB, window=window) == plain


@pytest.mark.parametrize("depth", [1, 2, 5, 100])
def test_depth_bounds_the_drafts_and_changes_nothing_else(tiny_kit, depth):
    kit = tiny_kit("llama")
    params = SamplingParams(max_tokens=LENGTH, ignore_eos=True)
    plain = kit.tokens(PROMPT, "ar", params=params)
    for mode in ("chain", "tree"):
        steps = kit.steps(PROMPT, mode, params=params, depth=depth, budget=30, topk=4)
        assert flatten(steps) == plain
        deepest = max(step.drafted_depth for step in steps)
        assert deepest == min(depth, 7) if mode == "chain" else deepest <= depth


@pytest.mark.parametrize("vocab", [5, 13])
def test_a_tree_wider_than_what_exists(tiny_kit, vocab):
    """Block 2 drafts one depth: at most as many nodes as there are tokens; with all of them, one is always accepted."""
    kit = tiny_kit("llama", vocab=vocab)
    params = SamplingParams(max_tokens=12, ignore_eos=True)
    steps = kit.steps([2, 4, 1], params=params, block=2, budget=1000, topk=1000)
    assert flatten(steps) == kit.tokens([2, 4, 1], "ar", params=params)
    full = [step for step in steps[1:] if step.drafted]
    assert all(step.drafted == vocab and step.accepted == 1 for step in full)
    assert full


@pytest.mark.parametrize(
    "options", [{"temperature": 1.0}, {"temperature": 0.7, "top_p": 0.9, "top_k": 8, "min_p": 0.02}]
)
def test_a_seed_gives_the_same_sampled_text_in_every_mode(tiny_kit, options):
    kit = tiny_kit("llama")
    for seed in range(3):
        params = SamplingParams(max_tokens=40, ignore_eos=True, seed=seed, **options)
        plain = kit.tokens(PROMPT, "ar", params=params)
        assert kit.tokens(PROMPT, "chain", params=params) == plain
        assert kit.tokens(PROMPT, "tree", params=params, budget=40, topk=VOCAB) == plain


def test_sampled_tree_output_has_the_plain_distribution(tiny_kit):
    """χ² of the third token over 300 runs of each mode; no two runs share a seed."""
    kit = tiny_kit("llama", vocab=5)
    counts = torch.zeros(2, 5, dtype=torch.float64)
    for run in range(300):
        for row, mode in enumerate(("ar", "tree")):
            params = SamplingParams(max_tokens=3, temperature=3.0, seed=2 * run + row, ignore_eos=True)
            counts[row, kit.tokens([1, 4], mode, params=params, budget=10, topk=5)[2]] += 1
    used = counts[:, counts.sum(0) >= 10]
    expected = used.sum(0, keepdim=True) / 2
    statistic = ((used - expected) ** 2 / expected).sum().item()
    assert statistic < 20, f"χ² = {statistic:.1f} with {used.shape[1] - 1} degrees of freedom"


def test_committed_keys_and_values_equal_a_recomputation(tiny_kit, monkeypatch):
    kit = tiny_kit("qwen3")
    engine = kit.engine(budget=40, topk=VOCAB)
    params = SamplingParams(max_tokens=80, ignore_eos=True)
    moved = []
    commit = KvCache.commit
    monkeypatch.setattr(KvCache, "commit", lambda self, path: (moved.append(list(path)), commit(self, path))[1])
    sequence = engine._start(PROMPT, params, "tree")
    tokens = [*PROMPT, *engine.prefill(sequence).token_ids]
    for _ in range(12):
        tokens += engine.step(sequence).token_ids
    assert any(path != list(range(len(path))) for path in moved), "no round had to move anything"
    length = sequence.cache.length
    assert length == len(tokens) - 1
    fresh = engine._target.new_cache(length)
    with torch.inference_mode():
        engine._target.forward(torch.tensor(tokens[:length]), torch.arange(length), fresh)
    torch.testing.assert_close(sequence.cache.keys[:, :, :, :length], fresh.keys, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(sequence.cache.values[:, :, :, :length], fresh.values, atol=1e-4, rtol=1e-4)


def test_stale_slots_are_never_read(tiny_kit, monkeypatch):
    kit = tiny_kit("llama")
    params = SamplingParams(max_tokens=LENGTH, ignore_eos=True)
    expected = kit.tokens(PROMPT, params=params, budget=30, topk=VOCAB)
    allocate = KvCache._allocate
    monkeypatch.setattr(KvCache, "_allocate", lambda self, states: allocate(self, states).fill_(float("nan")))
    assert kit.tokens(PROMPT, params=params, budget=30, topk=VOCAB) == expected


def test_without_the_ancestor_mask_the_text_is_wrong(tiny_kit, monkeypatch):
    """The canary of the tests above: they must be able to fail."""
    kit = tiny_kit("llama")
    params = SamplingParams(max_tokens=LENGTH, ignore_eos=True)
    plain = kit.tokens(PROMPT, "ar", params=params)
    monkeypatch.setattr(
        engine_module, "ancestor_mask", lambda tree: torch.ones(1 + len(tree), 1 + len(tree)).tril().bool()
    )
    assert kit.tokens(PROMPT, params=params, budget=30, topk=VOCAB) != plain
