"""The walk: greedy takes the longest confirmed path; sampling leaves the target's distribution as it is."""

import random
from collections import Counter

import pytest
import torch

from ddtree.acceptance import greedy_walk, sampled_walk
from ddtree.tree import build_best_first, build_chain, empty_tree

VOCAB = 4


def small_tree(budget, seed=0):
    generator = torch.Generator().manual_seed(seed)
    log_probs, ids = torch.randn(3, VOCAB, generator=generator).log_softmax(-1).sort(-1, descending=True)
    return build_best_first(ids, log_probs, budget)


def test_greedy_walk_follows_the_argmax_and_ends_with_a_token_of_the_targets():
    #        root(0) → 5 (1) → 6 (2) → 7 (3)
    tree = build_chain(torch.tensor([[5], [6], [7]]), torch.zeros(3, 1), 3)
    assert greedy_walk(tree, [5, 6, 9, 0]).token_ids == (5, 6, 9)
    assert greedy_walk(tree, [5, 6, 9, 0]).path == (0, 1, 2)
    assert greedy_walk(tree, [8, 6, 7, 1]).token_ids == (8,)
    assert greedy_walk(tree, [5, 6, 7, 1]).token_ids == (5, 6, 7, 1)
    assert greedy_walk(tree, [5, 6, 7, 1]).accepted == 3


def test_walk_goes_through_children_of_the_visited_node_only():
    #  root → a=1 (node 1), root → b=2 (node 2), a → 3 (node 3); after b the target wants 3, which only a has
    tree = small_tree(0 + 1)
    object.__setattr__(tree, "tokens", torch.tensor([1, 2, 3]))
    object.__setattr__(tree, "parents", torch.tensor([0, 0, 1]))
    object.__setattr__(tree, "depths", torch.tensor([1, 1, 2]))
    assert greedy_walk(tree, [2, 9, 3, 9]).token_ids == (2, 3)
    assert greedy_walk(tree, [1, 3, 9, 4]).token_ids == (1, 3, 4)


def test_empty_tree_commits_one_token():
    assert greedy_walk(empty_tree(), [42]).token_ids == (42,)


@pytest.mark.parametrize("budget", [1, 3, 8, 30])
def test_sampled_output_has_the_targets_distribution(budget):
    """χ² over the first three tokens of 20,000 runs; the target's next token depends on the whole prefix."""
    tree, runs, length = small_tree(budget, seed=budget), 20_000, 3
    generator = random.Random(budget)
    tables: dict[tuple[int, ...], list[float]] = {}

    def probs(prefix):
        if prefix not in tables:
            weights = [random.Random(f"{prefix}{token}").random() for token in range(VOCAB)]
            tables[prefix] = [weight / sum(weights) for weight in weights]
        return tables[prefix]

    prefixes = {0: ()}
    for node, (token, parent) in enumerate(zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True), start=1):
        prefixes[node] = (*prefixes[parent], token)
    counts = Counter()
    for _ in range(runs):
        walk = sampled_walk(tree, lambda node: generator.choices(range(VOCAB), probs(prefixes[node]))[0])
        tokens = walk.token_ids
        while len(tokens) < length:  # what the next rounds would add
            tokens = (*tokens, generator.choices(range(VOCAB), probs(tokens))[0])
        counts[tokens[:length]] += 1
    statistic = 0.0
    for a in range(VOCAB):
        for b in range(VOCAB):
            for c in range(VOCAB):
                expected = runs * probs(())[a] * probs((a,))[b] * probs((a, b))[c]
                statistic += (counts[a, b, c] - expected) ** 2 / expected
    # 63 degrees of freedom: 108 is exceeded with probability 0.0003.
    assert statistic < 108, f"χ² = {statistic:.1f}: the tree changes the distribution"
