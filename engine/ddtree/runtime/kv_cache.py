"""The target's keys and values: one preallocated store for all layers, with a window behind the committed tokens.

A forward writes its N rows into the window. `commit` keeps the rows of the accepted path, moved to the window's head,
and the rest is overwritten by the next forward: nothing is ever concatenated or rebuilt.
"""

from collections.abc import Sequence

import torch
from transformers.cache_utils import Cache, CacheLayerMixin


class KvCache(Cache):
    """A transformers cache for one sequence and models whose layers all attend to everything."""

    def __init__(self, num_layers: int, capacity: int) -> None:
        """capacity in tokens, windows included. The store is allocated by the first update, which knows the shapes."""
        super().__init__(layers=[_LayerView(self) for _ in range(num_layers)])
        self.capacity = capacity
        self.length = 0  # committed tokens; the next forward's first slot
        self.keys: torch.Tensor | None = None  # [num_layers, 1, num_kv_heads, capacity, head_dim]
        self.values: torch.Tensor | None = None

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *_args, **_kwargs):
        """Writes one layer's rows [1, num_kv_heads, N, head_dim] into the window.

        Returns views of all keys and values up to the window's end, [1, num_kv_heads, length + N, head_dim] each.
        """
        if self.keys is None:
            self.keys = self._allocate(key_states)
            self.values = self._allocate(value_states)
        end = self.length + key_states.shape[2]
        if end > self.capacity:
            raise ValueError(f"the key/value store holds {self.capacity} tokens, {end} are needed")
        keys, values = self.keys[layer_idx], self.values[layer_idx]
        keys[:, :, self.length : end] = key_states
        values[:, :, self.length : end] = value_states
        return keys[:, :, :end], values[:, :, :end]

    def commit(self, path: Sequence[int]) -> None:
        """Keeps the window's rows `path` (rising, from 0) as the next committed tokens, in all layers."""
        moved = next((i for i, row in enumerate(path) if i != row), len(path))
        if moved < len(path):  # rows before lie in their places already
            sources = torch.tensor(path[moved:], device=self.keys.device) + self.length
            start, end = self.length + moved, self.length + len(path)
            for store in (self.keys, self.values):
                store[:, :, :, start:end] = store.index_select(3, sources)
        self.length += len(path)

    def get_seq_length(self, layer_idx: int = 0) -> int:  # noqa: ARG002 (transformers passes it by name)
        return self.length

    def get_mask_sizes(self, query_length: int, layer_idx: int = 0) -> tuple[int, int]:  # noqa: ARG002
        return self.length + query_length, 0

    def _allocate(self, states: torch.Tensor) -> torch.Tensor:
        batch, heads, _, head_dim = states.shape
        return states.new_empty(len(self.layers), batch, heads, self.capacity, head_dim)


class _LayerView(CacheLayerMixin):
    """What transformers asks of a single layer; the store belongs to the cache."""

    is_sliding = False

    def __init__(self, cache: KvCache) -> None:
        super().__init__()
        self._cache = cache

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._cache.get_mask_sizes(query_length)

    def get_seq_length(self) -> int:
        return self._cache.length

    def get_max_length(self) -> int:
        return -1

    get_max_cache_shape = get_max_length  # its name before transformers 5.20

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        raise NotImplementedError("the store is allocated by KvCache.update")

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_args, **_kwargs):
        raise NotImplementedError("layers are written through KvCache.update")
