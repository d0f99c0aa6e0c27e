"""Packed weights give nn.Linear's results, for any number of rows."""

import pytest
import torch
from torch import nn

from ddtree.runtime.packed_linear import ONE_ROW, SEVERAL_ROWS, PackedLinear, pack_linears


@pytest.mark.parametrize("layouts", [(ONE_ROW,), (SEVERAL_ROWS,), (ONE_ROW, SEVERAL_ROWS)])
@pytest.mark.parametrize("shape", [(576, 192), (7, 13), (64, 1), (33, 500)])
@pytest.mark.parametrize("bias", [True, False])
@torch.inference_mode()
def test_same_result_for_any_number_of_rows(layouts, shape, bias):
    generator = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Linear(*shape, bias=bias))
    x = torch.randn(1, 70, shape[0], generator=generator)
    expected = model(x)
    assert pack_linears(model, layouts)
    assert type(model[0]) is PackedLinear
    for rows in (1, 2, 3, 16, 17, 33, 70):
        torch.testing.assert_close(model(x[:, :rows]), expected[:, :rows], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(model(x[0, :rows]), expected[0, :rows], atol=1e-5, rtol=1e-4)


def test_other_types_stay_as_they_are():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4, dtype=torch.bfloat16))
    assert not pack_linears(model, (ONE_ROW,))
    assert [type(layer) for layer in model] == [nn.Linear, nn.Linear]
