"""Faster float32 matrix products on the CPU for the few rows of a verification: weights laid out once for oneDNN.

torch's own choice for `linear` (MKL) packs the weights again in every call, which a handful of rows never pays back.
Measured on 2 cores of an EPYC 7002, SmolLM2-135M (all its linear layers, CPU time): 1 row 75 → 68 ms, 9 rows 139 → 103,
17 rows 180 → 135, 33 rows 263 → 177; its lm_head alone 52 → 25 ms at 17 rows. One row and several want different layouts:
the several-row layout costs 92 ms at 1 row, the one-row layout 150 ms at 17.
"""

import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)

ROWS_HINT = 16
# Two layouts double the memory of the weights: worth it for a small model, not for one that fills the machine.
TWO_LAYOUTS_LIMIT_BYTES = 2 * 1024**3


class PackedLinear(nn.Module):
    """Same result as nn.Linear up to rounding; no gradient, float32 on the CPU only. The plain weight is given up."""

    def __init__(self, linear: nn.Linear, *, both: bool) -> None:
        """both: a layout for one row and another for several; otherwise the one-row layout serves all."""
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self._bias = linear.bias
        weight = linear.weight.detach()
        self._one_row = torch.ops.mkldnn._reorder_linear_weight(weight, 1)
        self._rows = torch.ops.mkldnn._reorder_linear_weight(weight, ROWS_HINT) if both else self._one_row

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self._one_row if x.numel() == self.in_features else self._rows
        return torch.ops.mkldnn._linear_pointwise(x, weight, self._bias, "none", [], "")


def pack_linears(module: nn.Module, *, several_rows: bool) -> bool:
    """Replaces every nn.Linear below `module` where that is possible. Returns whether it was.

    several_rows: forwards of more than one row are frequent, so that a second layout pays.
    """
    linears = [(name, child) for name, child in module.named_modules() if type(child) is nn.Linear]
    if not all(_can_pack(linear) for _, linear in linears) or not linears:
        return False
    size_bytes = sum(linear.weight.nbytes for _, linear in linears)
    both = several_rows and size_bytes <= TWO_LAYOUTS_LIMIT_BYTES
    for name, linear in linears:
        parent = module.get_submodule(name.rpartition(".")[0])
        setattr(parent, name.rpartition(".")[2], PackedLinear(linear, both=both))
    logger.info("%d linear layers packed for oneDNN, %s", len(linears), "two layouts" if both else "one layout")
    return True


def _can_pack(linear: nn.Linear) -> bool:
    return (
        linear.weight.device.type == "cpu"
        and linear.weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )
