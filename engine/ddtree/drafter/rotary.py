"""Rotary position embedding of the drafter: the angles' table, and its application to queries and keys."""

import math

import torch

from ddtree.drafter.config import RopeConfig


def rotary_table(rope: RopeConfig, head_dim: int, num_positions: int, device: torch.device, dtype: torch.dtype):
    """Returns (cos, sin), each [num_positions, head_dim] in `dtype`, both halves alike, amplitude applied.

    Computed in float32: bf16 angles lose whole turns beyond a few hundred positions.
    """
    frequencies = _frequencies(rope, head_dim).to(device)
    angles = torch.arange(num_positions, device=device, dtype=torch.float32)[:, None] * frequencies
    angles = torch.cat([angles, angles], dim=-1)
    return (angles.cos() * rope.amplitude).to(dtype), (angles.sin() * rope.amplitude).to(dtype)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x [..., T, head_dim] turned by the angles of T positions, cos and sin [T, head_dim]."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def _frequencies(rope: RopeConfig, head_dim: int) -> torch.Tensor:
    """Radians a position, float32 [head_dim / 2]; YaRN by parts (arXiv 2309.00071, section 3.2) where factor > 1."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    plain = rope.theta**-exponents
    if rope.factor == 1.0:
        return plain

    def index_of(turns: float) -> float:
        """The (fractional) index of the frequency that makes so many turns within the original context."""
        return head_dim * math.log(rope.original_context / (turns * 2 * math.pi)) / (2 * math.log(rope.theta))

    low = max(math.floor(index_of(rope.beta_fast)), 0)
    high = min(math.ceil(index_of(rope.beta_slow)), head_dim - 1)
    ramp = ((torch.arange(head_dim // 2, dtype=torch.float32) - low) / max(high - low, 0.001)).clamp(0, 1)
    return plain / rope.factor * ramp + plain * (1 - ramp)
