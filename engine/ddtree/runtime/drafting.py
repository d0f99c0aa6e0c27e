"""From the committed tokens to a draft tree: one drafter forward, each depth's likeliest tokens, a tree of them."""

import torch

from ddtree.drafter.context import DraftContext
from ddtree.drafter.model import Drafter
from ddtree.runtime.target import Target
from ddtree.tree import DraftTree, build_best_first, build_chain


class Proposer:
    """The drafter with the target's frozen embedding and lm_head around it."""

    def __init__(self, drafter: Drafter, target: Target, *, block: int | None, topk: int, depth: int) -> None:
        """block: rows a draft block, None for the drafter's. topk: candidates a depth. depth: the deepest to use."""
        self.drafter = drafter
        self.block = block or drafter.config.block_size
        self._depth = min(depth, self.block - 1)
        self._topk = min(topk, target.embedding.shape[0])
        self._lm_head = target.lm_head
        self._embedding = target.embedding
        self._mask_embedding = target.embedding[drafter.config.mask_token_id].expand(self.block - 1, -1)

    def marginals(self, context: DraftContext, anchor: int, depth: int, topk: int) -> tuple[torch.Tensor, torch.Tensor]:
        """ids int64 [depth, topk] and log_probs float32 [depth, topk] of the next `depth` positions, likeliest first.

        The whole block goes through the drafter, as it was trained; the lm_head is spared the rows beyond `depth`.
        """
        embeddings = torch.cat([self._embedding[anchor : anchor + 1], self._mask_embedding])
        hidden = self.drafter(context, embeddings)[1 : 1 + depth]
        logits = self._lm_head(hidden).float()
        top, ids = logits.topk(topk, dim=-1)
        return ids, top - logits.logsumexp(-1, keepdim=True)

    def chain(self, context: DraftContext, anchor: int, budget: int, depth: int) -> DraftTree:
        depth = min(depth, budget, self._depth)
        return build_chain(*self.marginals(context, anchor, depth, 1), budget)

    def tree(self, context: DraftContext, anchor: int, budget: int, depth: int) -> DraftTree:
        depth = min(depth, budget, self._depth)
        return build_best_first(*self.marginals(context, anchor, depth, min(self._topk, budget)), budget)
