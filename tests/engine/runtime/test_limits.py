"""Where a reply ends: token limit, end-of-sequence token, context; and what is refused before it begins."""

from contextlib import closing

import pytest
from engine_kit import VOCAB, flatten

from ddtree.errors import UserError
from ddtree.runtime.types import SamplingParams

PROMPT = [2, 7, 4, 9, 11, 5]
WIDE = {"budget": 40, "topk": VOCAB}
MODES = ["ar", "chain", "tree"]


@pytest.fixture
def kit(tiny_kit):
    return tiny_kit("llama")


@pytest.mark.parametrize("mode", MODES)
def test_token_limit_cuts_within_a_round(kit, mode):
    full = kit.tokens(PROMPT, "ar", params=SamplingParams(max_tokens=20, ignore_eos=True))
    for limit in range(1, 21):
        steps = kit.steps(PROMPT, mode, params=SamplingParams(max_tokens=limit, ignore_eos=True), **WIDE)
        assert flatten(steps) == full[:limit]
        assert [step.finish_reason for step in steps] == [None] * (len(steps) - 1) + ["length"]


def test_no_node_is_verified_that_could_not_be_committed(kit):
    steps = kit.steps(PROMPT, "tree", params=SamplingParams(max_tokens=4, ignore_eos=True), **WIDE)
    left = 3
    for step in steps[1:]:
        assert step.drafted_depth <= left - 1
        left -= len(step.token_ids)


def test_end_of_sequence_within_an_accepted_path(kit):
    params = SamplingParams(max_tokens=60, ignore_eos=True)
    steps = kit.steps(PROMPT, "tree", params=params, **WIDE)
    full = flatten(steps)
    cut = None
    for number, step in enumerate(steps):
        before = flatten(steps[:number])
        # a drafted token that is followed by more tokens of the same round, and was not there before
        if step.accepted >= 1 and step.token_ids[0] not in before:
            cut = (len(before) + 1, step.token_ids[0])
            break
    assert cut, "the fixture has no such round"
    for mode in MODES:
        ended = kit.steps(PROMPT, mode, max_tokens=60, eos_token_ids=frozenset({cut[1]}), **WIDE)
        assert flatten(ended) == full[: cut[0]]
        assert ended[-1].finish_reason == "stop"
    assert ended[-1].accepted == len(ended[-1].token_ids), "the end was drafted, the target's own token was cut off"


@pytest.mark.parametrize("mode", MODES)
def test_the_context_limits_the_reply(kit, mode):
    full = kit.tokens(PROMPT, "ar", params=SamplingParams(max_tokens=30, ignore_eos=True))
    for room in (1, 2, 3, 10):
        params = SamplingParams(max_tokens=1000, ignore_eos=True)
        steps = kit.steps(PROMPT, mode, params=params, max_context=len(PROMPT) + room, **WIDE)
        assert flatten(steps) == full[:room]
        assert steps[-1].finish_reason == "length"


@pytest.mark.parametrize("mode", MODES)
def test_the_models_whole_context_can_be_used(kit, mode):
    prompt = [2 + i % (VOCAB - 2) for i in range(240)]
    steps = kit.steps(prompt, mode, params=SamplingParams(max_tokens=10**6, ignore_eos=True), **WIDE)
    assert len(flatten(steps)) == 256 - 240


@pytest.mark.parametrize(
    ("prompt", "message"),
    [([], "empty"), ([1] * 256, "256 tokens"), ([1] * 300, "300 tokens"), ([VOCAB], "token ids"), ([-1], "token ids")],
)
def test_bad_prompts_are_refused_at_once(kit, prompt, message):
    with pytest.raises(UserError, match=message):
        kit.engine().generate(prompt, SamplingParams())


@pytest.mark.parametrize(
    "params",
    [
        {"max_tokens": 0},
        {"max_tokens": 1.5},
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"top_k": -1},
        {"min_p": 2.0},
        {"seed": 2**64},
    ],
)
def test_bad_parameters_are_refused_by_name(kit, params):
    with pytest.raises(UserError, match=next(iter(params))):
        kit.engine().generate(PROMPT, SamplingParams(**params))


def test_bad_mode(kit):
    with pytest.raises(UserError, match="ar, chain, tree"):
        kit.engine().generate(PROMPT, SamplingParams(), "beam")


def test_closing_ends_a_generation_and_the_engine_goes_on(kit):
    engine = kit.engine(**WIDE)
    params = SamplingParams(max_tokens=30, ignore_eos=True)
    with closing(engine.generate(PROMPT, params)) as steps:
        next(steps)
        next(steps)
    assert flatten(engine.generate(PROMPT, params)) == kit.tokens(PROMPT, "ar", params=params)


def test_steps_say_what_happened(kit):
    steps = kit.steps(PROMPT, "tree", params=SamplingParams(max_tokens=40, ignore_eos=True), **WIDE)
    assert (steps[0].accepted, steps[0].drafted, len(steps[0].token_ids)) == (0, 0, 1)
    for step in steps[1:-1]:
        assert len(step.token_ids) == step.accepted + 1
        assert 1 <= step.drafted <= 40
        assert 1 <= step.drafted_depth <= 7
