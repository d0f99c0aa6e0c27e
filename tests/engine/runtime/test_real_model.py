"""The demo model with the shipped drafter: the text is transformers' own, and the drafter earns its keep."""

from dataclasses import replace

import pytest
import torch
from engine_kit import acceptance_length, flatten

from ddtree.runtime import engine as engine_module
from ddtree.runtime.comparison import DEFAULT_PROMPTS
from ddtree.runtime.drafting import Proposer
from ddtree.runtime.prompting import chat_prompt_ids
from ddtree.runtime.target import Target

pytestmark = pytest.mark.model

LENGTH = 40
PROMPTS = {**DEFAULT_PROMPTS, "letter": "Write a short letter that thanks a friend for a birthday present."}
# mode, budget, topk, block, prompt
CASES = [
    ("ar", 8, 4, 16, "chat"),
    ("ar", 8, 4, 16, "code"),
    ("chain", 15, 1, 16, "code"),
    ("chain", 7, 1, 8, "chat"),
    ("tree", 1, 1, 16, "chat"),
    ("tree", 8, 2, 8, "letter"),
    ("tree", 8, 8, 16, "code"),
    ("tree", 32, 4, 8, "chat"),
    ("tree", 32, 8, 16, "letter"),
    ("tree", 32, 8, 16, "code"),
]


@pytest.fixture(scope="module")
def prompt_ids(real):
    return {name: chat_prompt_ids(real.parts.tokenizer, text) for name, text in PROMPTS.items()}


@pytest.fixture(scope="module")
def reference(plain_model, prompt_ids):
    """What transformers' greedy generate says, by prompt."""
    texts = {}
    for name, ids in prompt_ids.items():
        out = plain_model.generate(torch.tensor([ids]), max_new_tokens=LENGTH, do_sample=False)
        texts[name] = out[0, len(ids) :].tolist()
    return texts


@pytest.mark.parametrize(("mode", "budget", "topk", "block", "prompt"), CASES)
def test_text_is_that_of_transformers_token_for_token(real, prompt_ids, reference, mode, budget, topk, block, prompt):
    options = {"budget": budget, "topk": topk, "depth": 15, "block": block}
    steps = real.steps(prompt_ids[prompt], mode, LENGTH, **options)
    assert flatten(steps) == reference[prompt]
    if mode == "ar":
        assert len(steps) == LENGTH
    if mode == "tree" and prompt == "code" and budget > 1:
        assert acceptance_length(steps) > 2


def test_taps_are_the_hidden_states_behind_their_layers(real, plain_model, prompt_ids):
    ids = torch.tensor(prompt_ids["chat"])
    target, layers = real.parts.target, real.parts.drafter.config.target_layer_ids
    with torch.inference_mode():
        taps = target.forward(ids, torch.arange(len(ids)), target.new_cache(len(ids))).taps
        states = plain_model(ids[None], output_hidden_states=True).hidden_states
    expected = torch.cat([states[layer + 1][0] for layer in layers], dim=-1)
    torch.testing.assert_close(taps, expected, atol=2e-3, rtol=2e-3)


@torch.inference_mode()
def mean_loss(kit, prompt, reply, shift):
    """Cross-entropy in nats of the drafter's depths 1 to 3 along a text, its taps taken `shift` layers later."""
    target = Target(kit.parts.target.model)
    target.tap_layers(tuple(layer + shift for layer in kit.parts.drafter.config.target_layer_ids))
    proposer = Proposer(kit.parts.drafter, target, block=16, topk=1, depth=3)
    ids = torch.tensor(prompt + reply)
    taps = target.forward(ids, torch.arange(len(ids)), target.new_cache(len(ids))).taps
    context = proposer.drafter.new_context(len(ids) + 16)
    proposer.drafter.extend(context, taps[: len(prompt)])
    losses = []
    for anchor in range(len(prompt), len(ids) - 3):
        token_ids, log_probs = proposer.marginals(context, ids[anchor], 3, len(target.embedding))
        truth = token_ids == ids[anchor + 1 : anchor + 4, None]
        losses.append(-log_probs[truth].mean())
        proposer.drafter.extend(context, taps[anchor : anchor + 1])
    return torch.stack(losses).mean().item()


def test_taps_one_layer_off_cost_accuracy(real, prompt_ids, reference):
    """The commonest porting bug: the text stays right, and a little of the speed is gone (0.09 and 0.17 nats here)."""
    prompt, reply = prompt_ids["code"], reference["code"]
    right = mean_loss(real, prompt, reply, 0)
    for shift in (-1, 1):
        assert mean_loss(real, prompt, reply, shift) > right + 0.03, f"taps {shift:+d} layers off are as good"


def test_nodes_without_their_mask_or_position_spoil_the_text(real, prompt_ids, reference, monkeypatch):
    """Canaries: the equality above must be able to fail."""
    everything = lambda tree: torch.ones(1 + len(tree), 1 + len(tree), dtype=torch.bool).tril()  # noqa: E731
    with monkeypatch.context() as patch:
        patch.setattr(engine_module, "ancestor_mask", everything)
        assert real.tokens(prompt_ids["code"], "tree", LENGTH, budget=32, topk=8) != reference["code"]
    build = engine_module.Proposer.tree

    def index_as_depth(*args):
        tree = build(*args)
        return replace(tree, depths=torch.arange(1, 1 + len(tree)))

    monkeypatch.setattr(engine_module.Proposer, "tree", index_as_depth)
    assert real.tokens(prompt_ids["code"], "tree", LENGTH, budget=32, topk=8) != reference["code"]
