"""What the drafter remembers of the committed tokens: keys and values of all its layers, preallocated."""

import torch

from ddtree.drafter.config import DrafterConfig


class DraftContext:
    """Slot i holds the token at position i. A draft block is written behind the last slot and then forgotten."""

    def __init__(
        self, config: DrafterConfig, capacity: int, window: int | None, device: torch.device, dtype: torch.dtype
    ) -> None:
        """capacity: committed tokens plus one block. window: every layer sees at most that many context tokens."""
        shape = (config.num_layers, config.num_kv_heads, capacity, config.head_dim)
        self.keys = torch.empty(shape, device=device, dtype=dtype)
        self.values = torch.empty(shape, device=device, dtype=dtype)
        self.length = 0  # committed tokens; the next one's position
        self._windows = tuple(_narrower(window, own) for own in config.layer_windows)

    @property
    def capacity(self) -> int:
        return self.keys.shape[2]

    @property
    def reach(self) -> int | None:
        """Tokens further back than this are never looked at again; None if some layer sees everything."""
        return None if None in self._windows else max(self._windows)

    def first_visible(self, layer: int) -> int:
        """The slot from which on this layer's block rows see the context."""
        window = self._windows[layer]
        return 0 if window is None else max(0, self.length - window)


def _narrower(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)
