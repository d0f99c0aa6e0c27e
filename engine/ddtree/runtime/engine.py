"""The embedded engine: one sequence at a time; plain, chain and tree decoding share one loop.

A round is draft → build → verify → walk → commit. Plain decoding is the round with an empty tree.
"""

from collections.abc import Iterator

import torch

from ddtree.acceptance import Walk, greedy_walk, sampled_walk
from ddtree.drafter.pairing import require_drafter
from ddtree.errors import UserError
from ddtree.runtime.drafting import Proposer
from ddtree.runtime.loading import Parts, load_parts
from ddtree.runtime.sampling import Sampler
from ddtree.runtime.sequence import Sequence
from ddtree.runtime.stats import GenerationStats
from ddtree.runtime.target import Forward
from ddtree.runtime.types import EngineConfig, Mode, SamplingParams, Step
from ddtree.runtime.validation import check_mode, check_sampling_params
from ddtree.tree import DraftTree, ancestor_mask, empty_tree

__all__ = ["Engine", "EngineConfig", "GenerationStats", "SamplingParams", "Step"]


class Engine:
    """Not thread-safe: one generation at a time. Closing the iterator ends a generation and frees its memory."""

    def __init__(self, config: EngineConfig, parts: Parts) -> None:
        self.config = config
        self.tokenizer = parts.tokenizer
        self.eos_token_ids = parts.eos_token_ids
        self.max_context = parts.max_context
        self._target = parts.target
        self._proposer: Proposer | None = None
        if parts.drafter is not None:
            self._proposer = Proposer(
                parts.drafter, parts.target, block=config.block, topk=config.topk, depth=config.depth
            )

    @classmethod
    def load(cls, config: EngineConfig) -> "Engine":
        """Raises UserError: bad option, incomplete folder, unsupported model, drafter of another target, no drafter."""
        return cls(config, load_parts(config))

    def generate(self, prompt_ids: list[int], params: SamplingParams, mode: Mode | None = None) -> Iterator[Step]:
        """One Step a target forward, the prefill first; the last one carries the finish reason.

        Raises UserError at once for an empty or too long prompt, a bad parameter, or a mode that lacks its drafter.
        """
        mode = mode or self.config.mode
        check_mode(mode)
        require_drafter(mode, self._proposer)
        check_sampling_params(params)
        self._check_prompt(prompt_ids)
        return self._run(prompt_ids, params, mode)

    def _run(self, prompt_ids: list[int], params: SamplingParams, mode: Mode) -> Iterator[Step]:
        sequence = self._start(prompt_ids, params, mode)
        step = self.prefill(sequence)
        yield step
        while step.finish_reason is None:
            step = self.step(sequence)
            yield step

    @torch.inference_mode()
    def prefill(self, sequence: Sequence) -> Step:
        """Processes the prompt and commits the first token."""
        prompt = torch.tensor(sequence.prompt_ids, device=self._target.device)
        positions = torch.arange(len(prompt), device=prompt.device)
        forward = self._target.forward(
            prompt, positions, sequence.cache, last_row_only=True, with_taps=sequence.context is not None
        )
        walk = self._walk(sequence, empty_tree(), forward)
        sequence.cache.commit(range(len(prompt)))
        if sequence.context is not None:
            self._proposer.drafter.extend(sequence.context, forward.taps)
        token_ids, finish_reason = sequence.commit(walk.token_ids)
        return Step(token_ids, finish_reason=finish_reason)

    @torch.inference_mode()
    def step(self, sequence: Sequence) -> Step:
        """One round."""
        tree = self._draft(sequence)
        forward = self._verify(sequence, tree)
        walk = self._walk(sequence, tree, forward)
        self._commit(sequence, walk, forward)
        token_ids, finish_reason = sequence.commit(walk.token_ids)
        depth = int(tree.depths.max()) if len(tree) else 0
        return Step(token_ids, min(walk.accepted, len(token_ids)), len(tree), finish_reason, depth)

    def _draft(self, sequence: Sequence) -> DraftTree:
        # The round commits one token more than it accepts, and no more than may follow.
        budget, depth = min(self.config.budget, sequence.room), sequence.remaining - 1
        if sequence.context is None or min(budget, depth) < 1:
            return empty_tree()
        build = self._proposer.tree if sequence.mode == "tree" else self._proposer.chain
        return build(sequence.context, sequence.anchor, budget, depth)

    def _verify(self, sequence: Sequence, tree: DraftTree) -> Forward:
        device = self._target.device
        token_ids = torch.cat([torch.tensor([sequence.anchor]), tree.tokens]).to(device)
        positions = torch.cat([torch.tensor([0]), tree.depths]).to(device) + sequence.cache.length
        visible = ancestor_mask(tree).to(device) if len(tree) else None
        return self._target.forward(
            token_ids, positions, sequence.cache, visible=visible, with_taps=sequence.context is not None
        )

    def _walk(self, sequence: Sequence, tree: DraftTree, forward: Forward) -> Walk:
        if sequence.sampler.greedy:
            return greedy_walk(tree, forward.logits.argmax(-1).tolist())
        return sampled_walk(tree, lambda node: sequence.sampler.sample(forward.logits[node]))

    def _commit(self, sequence: Sequence, walk: Walk, forward: Forward) -> None:
        sequence.cache.commit(walk.path)
        if sequence.context is not None:
            self._proposer.drafter.extend(sequence.context, forward.taps[list(walk.path)])

    def _start(self, prompt_ids: list[int], params: SamplingParams, mode: Mode) -> Sequence:
        remaining = min(params.max_tokens, self.max_context - len(prompt_ids))
        longest = len(prompt_ids) + remaining
        width = 0 if mode == "ar" else self.config.budget
        context = None
        if mode != "ar":
            context = self._proposer.drafter.new_context(longest + self._proposer.block, self.config.window)
        return Sequence(
            prompt_ids=prompt_ids,
            mode=mode,
            params=params,
            sampler=Sampler(params),
            eos_token_ids=frozenset() if params.ignore_eos else self.eos_token_ids,
            remaining=remaining,
            cache=self._target.new_cache(min(longest + width, self.max_context)),
            context=context,
        )

    def _check_prompt(self, prompt_ids: list[int]) -> None:
        if not prompt_ids:
            raise UserError("the prompt is empty; it must hold at least one token")
        if len(prompt_ids) >= self.max_context:
            raise UserError(
                f"the prompt has {len(prompt_ids)} tokens, the context holds {self.max_context} for prompt and reply; "
                "shorten the prompt or raise the context limit"
            )
        vocab_size = self._target.embedding.shape[0]
        if not 0 <= min(prompt_ids) <= max(prompt_ids) < vocab_size:
            raise UserError(
                f"the prompt holds token ids outside 0 … {vocab_size - 1}; encode it with this model's tokenizer"
            )
