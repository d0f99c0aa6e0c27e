"""The DFlash drafter: one forward proposes a distribution for each of the next tokens (arXiv 2602.06036).

Keys and values of the committed tokens come from the target's tapped hidden states, those of the block from the
anchor's and the mask token's embeddings; the block's rows see each other in both directions. Embedding and lm_head are
the target's. Module names are those of z-lab's checkpoints.
"""

from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from ddtree.drafter.config import DrafterConfig, read_drafter_config
from ddtree.drafter.context import DraftContext
from ddtree.drafter.rotary import rotary_table, rotate
from ddtree.errors import UserError


class RMSNorm(nn.Module):
    """Root-mean-square norm over the last dimension."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.rms_norm(x, self.weight.shape, self.weight, self.eps)


class Attention(nn.Module):
    """Context and block share the key and value projections; queries come from the block alone."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, config.num_heads * config.head_dim, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, config.num_kv_heads * config.head_dim, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, config.num_kv_heads * config.head_dim, bias=False)
        self.o_proj = nn.Linear(config.num_heads * config.head_dim, config.hidden_size, bias=False)
        self.q_norm = RMSNorm(config.head_dim, config.rms_norm_eps)
        self.k_norm = RMSNorm(config.head_dim, config.rms_norm_eps)

    def write(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, keys: torch.Tensor, values: torch.Tensor):
        """Writes the keys and values of x [T, H] into keys and values, views [num_kv_heads, T, head_dim]."""
        keys.copy_(rotate(self.k_norm(self._heads(self.k_proj(x))), cos, sin))
        values.copy_(self._heads(self.v_proj(x)))

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, keys: torch.Tensor, values: torch.Tensor):
        """x [b, H]; keys, values [num_kv_heads, context + b, head_dim]. Returns [b, H]."""
        queries = rotate(self.q_norm(self._heads(self.q_proj(x))), cos, sin)
        out = functional.scaled_dot_product_attention(queries[None], keys[None], values[None], enable_gqa=True)
        return self.o_proj(out[0].transpose(0, 1).flatten(1))

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(0, 1)


class MLP(nn.Module):
    """SwiGLU."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = MLP(config)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class Drafter(nn.Module):
    """Use: `context = new_context(…)`, `extend(context, taps)` after every commit, `forward(context, embeddings)`."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.fc = nn.Linear(len(config.target_layer_ids) * config.hidden_size, config.hidden_size, bias=False)
        self.hidden_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self._rotary: tuple[torch.Tensor, torch.Tensor] | None = None

    def new_context(self, capacity: int, window: int | None = None) -> DraftContext:
        """An empty context. capacity: committed tokens plus the rows of one block."""
        weight = self.norm.weight
        if self._rotary is None or self._rotary[0].shape[0] < capacity:
            self._rotary = rotary_table(self.config.rope, self.config.head_dim, capacity, weight.device, weight.dtype)
        return DraftContext(self.config, capacity, window, weight.device, weight.dtype)

    def extend(self, context: DraftContext, taps: torch.Tensor) -> None:
        """Appends T committed tokens. taps [T, n·H]: the target's tapped hidden states, side by side in tap order."""
        start, end = context.length, context.length + taps.shape[0]
        context.length = end
        if context.reach is not None and end - context.reach > start:
            taps, start = taps[end - context.reach - start :], end - context.reach
        features = self.hidden_norm(self.fc(taps))
        cos, sin = self._angles(start, end)
        for number, layer in enumerate(self.layers):
            slots = context.keys[number, :, start:end], context.values[number, :, start:end]
            layer.self_attn.write(features, cos, sin, *slots)

    def forward(self, context: DraftContext, embeddings: torch.Tensor) -> torch.Tensor:
        """embeddings [b, H] of the anchor and b − 1 mask tokens. Returns [b, H]: the target's lm_head on row k ≥ 1
        gives the logits of the token k positions after the anchor. The context is left as it was.
        """
        start, end = context.length, context.length + embeddings.shape[0]
        cos, sin = self._angles(start, end)
        hidden = embeddings
        for number, layer in enumerate(self.layers):
            keys, values = context.keys[number], context.values[number]
            x = layer.input_layernorm(hidden)
            layer.self_attn.write(x, cos, sin, keys[:, start:end], values[:, start:end])
            visible = slice(context.first_visible(number), end)
            hidden = hidden + layer.self_attn(x, cos, sin, keys[:, visible], values[:, visible])
            hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
        return self.norm(hidden)

    def _angles(self, start: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        cos, sin = self._rotary
        return cos[start:end], sin[start:end]


def load_drafter(folder: Path, dtype: torch.dtype, device: torch.device) -> Drafter:
    """Raises UserError if the folder is incomplete or its tensors do not fit its config.json."""
    from safetensors.torch import load_file

    from ddtree.runtime.model_folder import check_model_folder

    config = read_drafter_config(folder)
    tensors = {name: tensor for shard in check_model_folder(folder) for name, tensor in load_file(shard).items()}
    with torch.device("meta"):
        drafter = Drafter(config)
    expected = {name: tuple(tensor.shape) for name, tensor in drafter.state_dict().items()}
    if missing := sorted(set(expected) - set(tensors)):
        raise UserError(f"{folder}: tensor {missing[0]} is missing ({len(missing)} in all); fetch the drafter again")
    if unknown := sorted(set(tensors) - set(expected)):
        raise UserError(f"{folder}: tensor {unknown[0]} has no place in a DFlash drafter of this config.json")
    for name, shape in expected.items():
        if tuple(tensors[name].shape) != shape:
            found = tuple(tensors[name].shape)
            raise UserError(
                f"{folder}: tensor {name} is {found}, config.json asks for {shape}; fetch the drafter again"
            )
    drafter.load_state_dict({name: tensor.to(device, dtype) for name, tensor in tensors.items()}, assign=True)
    return drafter.eval().requires_grad_(False)
