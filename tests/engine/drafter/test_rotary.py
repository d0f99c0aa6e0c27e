"""Rotary embedding: relative positions only, and YaRN's limits."""

import json

import pytest
import torch

from ddtree.drafter.config import RopeConfig, parse_drafter_config
from ddtree.drafter.rotary import rotary_table, rotate

CPU = torch.device("cpu")


def test_scores_depend_on_the_distance_alone():
    cos, sin = rotary_table(RopeConfig(theta=1e4), 16, 64, CPU, torch.float32)
    q, k = torch.randn(2, 1, 16, generator=torch.Generator().manual_seed(0))

    def score(i, j):
        return (rotate(q, cos[i : i + 1], sin[i : i + 1]) * rotate(k, cos[j : j + 1], sin[j : j + 1])).sum()

    torch.testing.assert_close(score(7, 3), score(44, 40), atol=1e-4, rtol=1e-4)
    assert (score(7, 3) - score(7, 0)).abs() > 1e-2


def test_yarn_keeps_fast_frequencies_stretches_slow_ones_and_scales():
    plain = RopeConfig(theta=1e6)
    yarn = RopeConfig(theta=1e6, factor=4.0, original_context=4096, amplitude=1.5)
    cos, sin = rotary_table(plain, 128, 2, CPU, torch.float64)
    yarn_cos, yarn_sin = rotary_table(yarn, 128, 2, CPU, torch.float64)
    angle, yarn_angle = torch.atan2(sin[1], cos[1]), torch.atan2(yarn_sin[1], yarn_cos[1])
    torch.testing.assert_close(yarn_angle[0], angle[0])
    torch.testing.assert_close(yarn_angle[63] * 4, angle[63], rtol=1e-4, atol=1e-9)
    torch.testing.assert_close(yarn_cos[0], torch.full((128,), 1.5, dtype=torch.float64))


@pytest.mark.parametrize("factor", [2.0, 64.0])
def test_yarn_equals_transformers(factor, drafter_folder):
    from transformers import Qwen3Config
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    scaling = {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": 4096, "rope_theta": 5e4}
    config = Qwen3Config(head_dim=64, rope_parameters=scaling, max_position_embeddings=int(4096 * factor))
    frequencies, amplitude = ROPE_INIT_FUNCTIONS["yarn"](config, CPU)
    values = json.loads((drafter_folder / "config.json").read_text())
    own = parse_drafter_config(
        {**values, "rope_theta": 5e4, "rope_scaling": {k: v for k, v in scaling.items() if k != "rope_theta"}}, "x"
    ).rope
    assert own.amplitude == pytest.approx(amplitude)
    cos, sin = rotary_table(own, 64, 2, CPU, torch.float32)
    torch.testing.assert_close(cos[1, :32], frequencies.cos() * amplitude, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(sin[1, :32], frequencies.sin() * amplitude, atol=1e-6, rtol=1e-5)


def test_far_positions_keep_their_angle_in_half_precision():
    cos, _ = rotary_table(RopeConfig(theta=1e4), 8, 5000, CPU, torch.bfloat16)
    expected = torch.tensor(4999.0).cos()
    assert abs(cos[4999, 0].float() - expected) < 0.01
