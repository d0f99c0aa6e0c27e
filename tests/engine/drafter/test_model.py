"""The drafter's forward: against a plain reference, in pieces, with windows, and never reading stale slots."""

import json

import pytest
import torch
from engine_kit import drafter_values, random_drafter
from torch.nn import functional

HIDDEN, BLOCK = 24, 8


@pytest.fixture
def values(tmp_path):
    target = {"hidden_size": HIDDEN, "num_hidden_layers": 5, "vocab_size": 13}
    (tmp_path / "config.json").write_text(json.dumps(target))
    return drafter_values(tmp_path)


@pytest.fixture
def inputs():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(21, 2 * HIDDEN, generator=generator), torch.randn(BLOCK, HIDDEN, generator=generator)


def run(drafter, taps, block, pieces=None, window=None, poison=False):
    context = drafter.new_context(len(taps) + BLOCK, window)
    if poison:
        context.keys.fill_(float("nan"))
        context.values.fill_(float("nan"))
    for piece in taps.split(pieces or len(taps)):
        drafter.extend(context, piece)
    return drafter(context, block)


def reference(drafter, taps, block, first_visible=0):
    """One dense forward in double precision, from the description: no cache, explicit softmax, complex rotary."""
    config = drafter.config
    weights = {name: tensor.double() for name, tensor in drafter.state_dict().items()}
    taps, hidden = taps.double(), block.double()
    heads, kv_heads, size = config.num_heads, config.num_kv_heads, config.head_dim

    def norm(x, name):
        return x / (x.pow(2).mean(-1, keepdim=True) + config.rms_norm_eps).sqrt() * weights[f"{name}.weight"]

    def project(x, name):
        return x @ weights[f"{name}.weight"].T

    def rotate(x, positions):
        turns = positions[:, None] * config.rope.theta ** (-torch.arange(0, size, 2).double() / size)
        pairs = torch.complex(x[..., : size // 2], x[..., size // 2 :]) * torch.polar(torch.ones_like(turns), turns)
        return torch.cat([pairs.real, pairs.imag], -1)

    length = len(taps)
    context = norm(project(taps, "fc"), "hidden_norm")[first_visible:]
    block_positions = torch.arange(length, length + len(block)).double()
    positions = torch.cat([torch.arange(first_visible, length).double(), block_positions])
    for number in range(config.num_layers):
        prefix = f"layers.{number}"
        x = norm(hidden, f"{prefix}.input_layernorm")
        both = torch.cat([context, x])
        out = []
        for head in range(heads):
            shared = head // (heads // kv_heads)
            q = project(x, f"{prefix}.self_attn.q_proj")[:, head * size : (head + 1) * size]
            k = project(both, f"{prefix}.self_attn.k_proj")[:, shared * size : (shared + 1) * size]
            v = project(both, f"{prefix}.self_attn.v_proj")[:, shared * size : (shared + 1) * size]
            q = rotate(norm(q, f"{prefix}.self_attn.q_norm"), block_positions)
            k = rotate(norm(k, f"{prefix}.self_attn.k_norm"), positions)
            out.append((q @ k.T / size**0.5).softmax(-1) @ v)
        hidden = hidden + project(torch.cat(out, -1), f"{prefix}.self_attn.o_proj")
        x = norm(hidden, f"{prefix}.post_attention_layernorm")
        gate = functional.silu(project(x, f"{prefix}.mlp.gate_proj"))
        hidden = hidden + project(gate * project(x, f"{prefix}.mlp.up_proj"), f"{prefix}.mlp.down_proj")
    return norm(hidden, "norm")


def test_forward_equals_the_plain_reference(values, inputs):
    drafter = random_drafter(values)
    torch.testing.assert_close(run(drafter, *inputs).double(), reference(drafter, *inputs), atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("pieces", [1, 2, 5, 20])
def test_context_in_pieces_equals_context_at_once(values, inputs, pieces):
    drafter = random_drafter(values)
    torch.testing.assert_close(run(drafter, *inputs, pieces=pieces), run(drafter, *inputs), atol=1e-5, rtol=1e-5)


def test_slots_that_were_not_written_are_not_read(values, inputs):
    drafter = random_drafter(values)
    assert torch.equal(run(drafter, *inputs, pieces=3, poison=True), run(drafter, *inputs, pieces=3))
    windowed = run(drafter, *inputs, pieces=3, window=4, poison=True)
    assert torch.equal(windowed, run(drafter, *inputs, pieces=3, window=4))


def test_a_draft_leaves_the_context_as_it_was(values, inputs):
    drafter, (taps, block) = random_drafter(values), inputs
    context = drafter.new_context(len(taps) + BLOCK)
    drafter.extend(context, taps[:10])
    first = drafter(context, block)
    assert torch.equal(drafter(context, block), first)
    assert context.length == 10
    drafter.extend(context, taps[10:])  # written where the block lay
    torch.testing.assert_close(drafter(context, block), run(drafter, taps, block), atol=1e-5, rtol=1e-5)


def test_rows_of_the_block_see_each_other_in_both_directions(values, inputs):
    drafter, (taps, block) = random_drafter(values), inputs
    changed = block.clone()
    changed[-1] += 1.0
    before, after = run(drafter, taps, block), run(drafter, taps, changed)
    assert (before[0] - after[0]).abs().max() > 1e-3, "the first row does not see the last one"


@pytest.mark.parametrize("window", [1, 4, 20, 21, 100])
def test_window_hides_the_older_context_and_keeps_positions(values, inputs, window):
    drafter = random_drafter(values)
    expected = reference(drafter, *inputs, first_visible=max(0, 21 - window))
    for pieces in (1, 6, 21):
        found = run(drafter, *inputs, pieces=pieces, window=window).double()
        torch.testing.assert_close(found, expected, atol=2e-4, rtol=2e-4)


def test_window_of_the_config_holds_in_its_layers_only(values, inputs):
    mixed = {**values, "layer_types": ["full_attention", "sliding_attention"], "sliding_window": 4}
    everywhere = {**values, "layer_types": ["sliding_attention"] * 2, "sliding_window": 4}
    outputs = [run(random_drafter(v), *inputs, pieces=2) for v in (values, mixed, everywhere)]
    assert not torch.allclose(outputs[0], outputs[1])
    assert not torch.allclose(outputs[1], outputs[2])
    narrow = run(random_drafter(values), *inputs, window=4)
    torch.testing.assert_close(outputs[2], narrow, atol=1e-5, rtol=1e-5)
