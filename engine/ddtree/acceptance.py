"""The walk: which drafted nodes the target's own choices confirm. Reference, on the host.

The target chooses a token at every node it visits, exactly as it would after the same prefix without a draft. As long
as the choice is a child of the node, the walk goes on there; the first choice that is no child ends it and is committed
as well. So the committed tokens are the target's, whatever was drafted (DDTree, arXiv 2604.12989).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ddtree.tree import ROOT, DraftTree


@dataclass(frozen=True)
class Walk:
    """path: accepted nodes, the root first. token_ids: what the target chose at each of them."""

    path: tuple[int, ...]
    token_ids: tuple[int, ...]

    @property
    def accepted(self) -> int:
        """Drafted tokens that were accepted; the last of token_ids is not one of them."""
        return len(self.path) - 1


def greedy_walk(tree: DraftTree, argmax: Sequence[int]) -> Walk:
    """argmax: the target's likeliest next token at each of the N = 1 + B nodes."""
    return sampled_walk(tree, argmax.__getitem__)


def sampled_walk(tree: DraftTree, choose: Callable[[int], int]) -> Walk:
    """choose(node) draws a token from the target's distribution after that node; called once a visited node, in order.

    Exact: each draw is from the distribution that plain sampling would use, and no draw is ever thrown away.
    """
    children = {
        (parent, token): node
        for node, (parent, token) in enumerate(zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True), start=1)
    }
    path, token_ids = [ROOT], []
    while True:
        token = choose(path[-1])
        token_ids.append(token)
        child = children.get((path[-1], token))
        if child is None:
            return Walk(tuple(path), tuple(token_ids))
        path.append(child)
