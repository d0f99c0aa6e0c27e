"""Faster float32 matrix products on the CPU for the few rows of a verification: weights laid out once for oneDNN.

torch's own choice for `linear` (MKL) packs the weights again in every call, which a handful of rows never pays back.
Measured on one core of an EPYC 7002, all linear layers of SmolLM2-135M: 1 row 75 → 68 ms, 9 rows 139 → 103 ms, 17 rows
180 → 135 ms, 33 rows 263 → 177 ms; the lm_head alone 52 → 25 ms at 17 rows. One row and several want different layouts:
that for several rows costs 92 ms at 1 row, that for one row 150 ms at 17.
"""

import logging
from functools import cache

import torch
from torch import nn

logger = logging.getLogger(__name__)

ONE_ROW, SEVERAL_ROWS = 1, 16  # numbers of rows that oneDNN is asked to lay weights out for
# Two layouts double the memory of the weights: worth it for a small model, not for one that fills the machine.
TWO_LAYOUTS_LIMIT_BYTES = 2 * 1024**3


class PackedLinear(nn.Module):
    """Same result as nn.Linear up to rounding; float32 on the CPU, no gradient. Does not keep the plain weight."""

    def __init__(self, linear: nn.Linear, layouts: tuple[int, ...]) -> None:
        """layouts: one or two numbers of rows; the first serves inputs of one row, the last all others."""
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self._bias = linear.bias
        packed = [torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), rows) for rows in layouts]
        self._one_row, self._several_rows = packed[0], packed[-1]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self._one_row if x.numel() == self.in_features else self._several_rows
        return torch.ops.mkldnn._linear_pointwise(x, weight, self._bias, "none", [], "")


def pack_linears(module: nn.Module, layouts: tuple[int, ...]) -> bool:
    """Replaces every nn.Linear below `module`, or none where that is not possible. Returns whether it did.

    layouts: ONE_ROW, SEVERAL_ROWS or both, for the numbers of rows the module mostly sees.
    """
    linears = [(name, child) for name, child in module.named_modules() if type(child) is nn.Linear]
    if not linears or not all(_can_pack(linear) for _, linear in linears):
        return False
    if sum(linear.weight.nbytes for _, linear in linears) > TWO_LAYOUTS_LIMIT_BYTES:
        layouts = layouts[:1]
    for name, linear in linears:
        parent_name, _, own_name = name.rpartition(".")
        setattr(module.get_submodule(parent_name), own_name, PackedLinear(linear, layouts))
    logger.info("%d linear layers of %s laid out for oneDNN, rows %s", len(linears), type(module).__name__, layouts)
    return True


def _can_pack(linear: nn.Linear) -> bool:
    return linear.weight.device.type == "cpu" and linear.weight.dtype == torch.float32 and _operators_work()


@cache
def _operators_work() -> bool:
    """The operators are made for torch's compiler and carry no promise: one product is tried before they are used."""
    linear, x = nn.Linear(24, 8), torch.linspace(-1, 1, 72).view(3, 24)
    try:
        with torch.inference_mode():
            return torch.allclose(PackedLinear(linear, (SEVERAL_ROWS,))(x), linear(x), atol=1e-5)
    except (AttributeError, NotImplementedError, RuntimeError):
        return False
