"""Attention of the target: torch's fused kernel on the key/value heads as they are, registered with transformers.

transformers' own "sdpa" copies every key and value head once for each query head of its group whenever there is a mask.
"""

import torch
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

NAME = "ddtree_sdpa"
_UNSUPPORTED = ("softcap", "s_aux", "position_bias")  # what some models add to attention


def grouped_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **kwargs,
) -> tuple[torch.Tensor, None]:
    """query [1, heads, N, head_dim], key and value [1, kv_heads, T, head_dim]; returns [1, N, heads, head_dim]."""
    for name in _UNSUPPORTED:
        if kwargs.get(name) is not None:
            raise NotImplementedError(f"{type(module).__name__} needs {name} in attention, which is not supported")
    causal = attention_mask is None and query.shape[2] > 1
    out = functional.scaled_dot_product_attention(
        query, key, value, attn_mask=attention_mask, is_causal=causal, scale=scaling, enable_gqa=True
    )
    return out.transpose(1, 2).contiguous(), None


def register() -> str:
    """Makes the attention known to transformers and returns its name."""
    AttentionInterface.register(NAME, grouped_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    return NAME
