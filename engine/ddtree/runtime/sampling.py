"""From the target's logits at one position to a token: temperature, filters, and one random number a token."""

import torch

from ddtree.runtime.types import SamplingParams


def filtered_probs(logits: torch.Tensor, params: SamplingParams) -> torch.Tensor:
    """logits [V]. Returns float64 [V], sum 1: the distribution that plain sampling draws from. temperature > 0.

    Filters apply one after the other: top-k, then top-p (the smallest set of likeliest tokens that holds at least that
    mass), then min-p (relative to the likeliest token). The likeliest token always stays.
    """
    logits = logits.double() / params.temperature
    if 0 < params.top_k < logits.numel():
        threshold = logits.topk(params.top_k).values[-1]
        logits = logits.masked_fill(logits < threshold, float("-inf"))
    probs = logits.softmax(-1)
    if params.top_p < 1.0:
        ordered, order = probs.sort(descending=True, stable=True)
        outside = ordered.cumsum(-1) - ordered >= params.top_p  # the mass before a token already suffices
        outside[0] = False
        probs = probs.index_fill(0, order[outside], 0.0)
    if params.min_p > 0.0:
        probs = probs.where(probs >= params.min_p * probs.max(), 0.0)
    return probs / probs.sum()


class Sampler:
    """Draws tokens in order. It spends one random number a token, so a seed gives the same text in every mode."""

    def __init__(self, params: SamplingParams) -> None:
        self._params = params
        self._random = torch.Generator()  # on the host: the same numbers on every device
        if params.seed is None:
            self._random.seed()
        else:
            self._random.manual_seed(params.seed)

    @property
    def greedy(self) -> bool:
        return self._params.temperature == 0.0

    def sample(self, logits: torch.Tensor) -> int:
        """logits [V] of the next position. Inverse transform sampling over the token ids in their order."""
        cumulative = filtered_probs(logits, self._params).cumsum(-1)
        point = torch.rand((), generator=self._random, dtype=torch.float64).to(cumulative.device) * cumulative[-1]
        return int(torch.searchsorted(cumulative, point, right=True).clamp_(max=logits.numel() - 1))
