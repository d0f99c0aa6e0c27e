"""Draft trees: which prefixes of the drafter's marginals the target verifies in one forward. Reference, on the host.

Nodes are numbered 0 … B: node 0 is the root, that is the anchor (the last committed token); node i + 1 is row i of the
tree's tensors. A parent's number is always smaller than its children's. Source: DDTree, arXiv 2604.12989, section 3.
"""

import heapq
from dataclasses import dataclass

import torch

ROOT = 0


@dataclass(frozen=True, eq=False)
class DraftTree:
    """B drafted nodes below the root. Children of one node carry different tokens."""

    tokens: torch.Tensor  # int64 [B]
    parents: torch.Tensor  # int64 [B], node numbers: 0 is the root
    depths: torch.Tensor  # int64 [B], 1 for the root's children
    scores: torch.Tensor  # float64 [B], sum of the log-probabilities on the way from the root, natural logarithm

    def __len__(self) -> int:
        return self.tokens.numel()


def build_best_first(ids: torch.Tensor, log_probs: torch.Tensor, budget: int) -> DraftTree:
    """The `budget` most probable prefixes if the marginals are independent of the path; fewer if no more exist.

    ids int64 [L, K] and log_probs float [L, K]: the K likeliest tokens of each depth, likeliest first, each once.
    Nodes come out by falling score; equal scores in the order in which their parents, then their ranks, came out.
    """
    return _grow(ids, log_probs, budget, spine_length=0)


def build_seeded(ids: torch.Tensor, log_probs: torch.Tensor, budget: int) -> DraftTree:
    """The argmax chain first, as far as the budget goes, then the likeliest of the remaining prefixes.

    Arguments as in `build_best_first`. A budget of at least L accepts at least what the chain accepts.
    """
    return _grow(ids, log_probs, budget, spine_length=min(ids.shape[0], budget))


def build_chain(ids: torch.Tensor, log_probs: torch.Tensor, budget: int) -> DraftTree:
    """The likeliest token of each depth, one below the other. Arguments as in `build_best_first`."""
    return build_seeded(ids[:, :1], log_probs[:, :1], budget)


def empty_tree() -> DraftTree:
    """Nothing but the root: the target's forward is a plain decoding step."""
    return _as_tree([], [], [], [])


def ancestor_mask(tree: DraftTree) -> torch.Tensor:
    """bool [N, N], N = 1 + B: entry [i, j] says that node j is node i or an ancestor of it. On the tree's device."""
    num_nodes = 1 + len(tree)
    itself = torch.arange(num_nodes, device=tree.parents.device)
    parents = torch.cat([itself[:1], tree.parents])  # the root is its own parent, so that every walk may go on
    mask = torch.zeros(num_nodes, num_nodes, dtype=torch.bool, device=tree.parents.device)
    ancestors, depth = itself, int(tree.depths.max()) if len(tree) else 0
    for _ in range(depth + 1):
        mask[itself, ancestors] = True
        ancestors = parents[ancestors]
    return mask


def _grow(ids: torch.Tensor, log_probs: torch.Tensor, budget: int, spine_length: int) -> DraftTree:
    """Emits the spine, then pops the likeliest candidate until the budget is used up.

    A candidate is a node whose parent is in the tree and whose likelier siblings are: its next sibling and its first
    child become candidates when it is emitted, so the heap always holds the likeliest prefix that is not in the tree.
    """
    ids_, log_probs_ = ids.tolist(), log_probs.double().tolist()
    num_depths, num_ranks = ids.shape
    tokens: list[int] = []
    parents: list[int] = []
    depths: list[int] = []
    scores: list[float] = []
    heap: list[tuple[float, int, int, int, float]] = []  # -score, parent, rank, depth - 1, parent's score

    def offer(parent: int, rank: int, row: int, base: float) -> None:
        if row < num_depths and rank < num_ranks:
            heapq.heappush(heap, (-(base + log_probs_[row][rank]), parent, rank, row, base))

    def emit(parent: int, rank: int, row: int, score: float) -> int:
        tokens.append(ids_[row][rank])
        parents.append(parent)
        depths.append(row + 1)
        scores.append(score)
        return len(tokens)

    node, score = ROOT, 0.0
    for row in range(spine_length):
        offer(node, 1, row, score)
        score += log_probs_[row][0]
        node = emit(node, 0, row, score)
    offer(node, 0, spine_length, score)

    while heap and len(tokens) < budget:
        negative_score, parent, rank, row, base = heapq.heappop(heap)
        node = emit(parent, rank, row, -negative_score)
        offer(parent, rank + 1, row, base)
        offer(node, 0, row + 1, -negative_score)
    return _as_tree(tokens, parents, depths, scores)


def _as_tree(tokens: list[int], parents: list[int], depths: list[int], scores: list[float]) -> DraftTree:
    return DraftTree(
        tokens=torch.tensor(tokens, dtype=torch.int64),
        parents=torch.tensor(parents, dtype=torch.int64),
        depths=torch.tensor(depths, dtype=torch.int64),
        scores=torch.tensor(scores, dtype=torch.float64),
    )
