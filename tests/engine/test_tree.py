"""Tree building against brute force: every prefix of tiny marginals is enumerated."""

import itertools
import random

import pytest
import torch

from ddtree.tree import ancestor_mask, build_best_first, build_chain, build_seeded, empty_tree

SHAPES = [(1, 1), (1, 4), (2, 2), (3, 3), (4, 2), (5, 1), (3, 5)]


def marginals(seed, depth, ranks, step=None):
    """Random marginals, likeliest first; with `step` on a coarse grid, so that sums tie."""
    generator = random.Random(seed)
    rows = []
    for _ in range(depth):
        row = sorted((-generator.random() * 4 for _ in range(ranks)), reverse=True)
        rows.append([-step * round(-value / step) for value in row] if step else row)
    ids = [generator.sample(range(100), ranks) for _ in range(depth)]
    return torch.tensor(ids), torch.tensor(rows, dtype=torch.float64)


def all_prefixes(ids, log_probs):
    """Every prefix as (score, tokens)."""
    depth, ranks = ids.shape
    for length in range(1, depth + 1):
        for choice in itertools.product(range(ranks), repeat=length):
            score = sum(log_probs[d, r].item() for d, r in enumerate(choice))
            yield score, tuple(ids[d, r].item() for d, r in enumerate(choice))


def paths(tree):
    """Each node's tokens from the root, by node number."""
    found = {0: ()}
    for node, (token, parent) in enumerate(zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True), start=1):
        assert parent in found, f"node {node} comes before its parent {parent}"
        found[node] = (*found[parent], token)
    return [found[node] for node in range(1, len(tree) + 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(5))
def test_best_first_takes_the_most_probable_prefixes(shape, seed):
    ids, log_probs = marginals(seed, *shape)
    every = sorted(all_prefixes(ids, log_probs), reverse=True)
    for budget in (1, 2, 3, 7, 20, len(every), len(every) + 5):
        tree = build_best_first(ids, log_probs, budget)
        best = every[:budget]
        assert len(tree) == len(best), "an existing prefix was left out, or one was made up"
        assert sorted(paths(tree)) == sorted(tokens for _, tokens in best)
        assert tree.scores.tolist() == pytest.approx([score for score, _ in best])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(5))
def test_tied_scores_still_give_an_optimal_sum_and_the_same_tree_again(shape, seed):
    ids, log_probs = marginals(seed, *shape, step=1.0)
    every = sorted((score for score, _ in all_prefixes(ids, log_probs)), reverse=True)
    for budget in (1, 4, 11):
        first, second = (build_best_first(ids, log_probs, budget) for _ in range(2))
        assert sum(first.scores.tolist()) == pytest.approx(sum(every[:budget]))
        assert paths(first) == paths(second)
        assert len(set(paths(first))) == len(first)


@pytest.mark.parametrize("build", [build_best_first, build_seeded, build_chain])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_tree_is_well_formed(build, shape):
    ids, log_probs = marginals(7, *shape)
    for budget in (1, 2, 5, 16, 1000):
        tree = build(ids, log_probs, budget)
        assert 1 <= len(tree) <= budget
        found = paths(tree)
        assert [len(path) for path in found] == tree.depths.tolist()
        assert len(set(found)) == len(found), "two children of one node carry the same token"
        assert {tree.tokens.dtype, tree.parents.dtype, tree.depths.dtype} == {torch.int64}
        for path, score in zip(found, tree.scores.tolist(), strict=True):
            ranks = [ids[d].tolist().index(token) for d, token in enumerate(path)]
            assert score == pytest.approx(sum(log_probs[d, r].item() for d, r in enumerate(ranks)))


@pytest.mark.parametrize("shape", SHAPES)
def test_chain_is_the_argmax_of_each_depth(shape):
    ids, log_probs = marginals(3, *shape)
    for budget in (1, 3, 50):
        tree = build_chain(ids, log_probs, budget)
        assert tree.tokens.tolist() == ids[:, 0].tolist()[:budget]
        assert tree.parents.tolist() == list(range(len(tree)))


@pytest.mark.parametrize("seed", range(5))
def test_seeded_tree_holds_the_spine_and_then_the_most_probable_rest(seed):
    ids, log_probs = marginals(seed, 3, 3)
    spine = [tuple(ids[:length, 0].tolist()) for length in (1, 2, 3)]
    rest = sorted((entry for entry in all_prefixes(ids, log_probs) if entry[1] not in spine), reverse=True)
    for budget in (2, 3, 4, 10, 39):
        tree = build_seeded(ids, log_probs, budget)
        assert paths(tree)[: min(3, budget)] == spine[:budget]
        assert sorted(paths(tree)[3:]) == sorted(tokens for _, tokens in rest[: max(budget - 3, 0)])


@pytest.mark.parametrize("seed", range(5))
def test_ancestor_mask_is_the_transitive_closure(seed):
    ids, log_probs = marginals(seed, 4, 3)
    tree = build_best_first(ids, log_probs, 25)
    prefixes = [(), *paths(tree)]
    expected = [[prefixes[i][: len(prefixes[j])] == prefixes[j] for j in range(26)] for i in range(26)]
    assert ancestor_mask(tree).tolist() == expected


def test_empty_tree_is_the_root_alone():
    assert len(empty_tree()) == 0
    assert ancestor_mask(empty_tree()).tolist() == [[True]]
