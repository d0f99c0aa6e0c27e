"""The key/value store: what is committed is exactly the accepted path, and nothing else is ever read."""

import pytest
import torch

from ddtree.runtime.kv_cache import KvCache

LAYERS, HEADS, CAPACITY = 3, 2, 24


def rows(first, count):
    """keys [1, HEADS, count, 4] and values [1, HEADS, count, 6] that name their row."""
    numbers = torch.arange(first, first + count, dtype=torch.float32)[None, None, :, None]
    return numbers.expand(1, HEADS, count, 4) * 1.0, numbers.expand(1, HEADS, count, 6) * -1.0


def write(cache, first, count):
    for layer in range(LAYERS):
        keys, values = rows(first, count)
        seen = cache.update(keys + 1000 * layer, values, layer)
    return seen


@pytest.mark.parametrize("path", [(0,), (0, 1, 2), (0, 2), (0, 3, 4, 7), (0, 1, 5), (0, 7)])
def test_commit_keeps_the_path_in_all_layers(path):
    cache = KvCache(LAYERS, CAPACITY)
    write(cache, 0, 5)
    cache.commit(range(5))
    write(cache, 100, 8)
    cache.commit(path)
    assert cache.length == cache.get_seq_length() == 5 + len(path)
    expected = torch.tensor([*range(5), *(100 + row for row in path)], dtype=torch.float32)
    for layer in range(LAYERS):
        assert torch.equal(cache.keys[layer, 0, 1, : cache.length, 3] - 1000 * layer, expected)
        assert torch.equal(cache.values[layer, 0, 0, : cache.length, 5], -expected)


def test_update_shows_the_committed_tokens_and_the_window_alone():
    cache = KvCache(LAYERS, CAPACITY)
    keys, values = write(cache, 0, 4)
    assert keys.shape == (1, HEADS, 4, 4)
    assert values.shape == (1, HEADS, 4, 6)
    cache.commit(range(4))
    write(cache, 50, 9)  # a wide window, of which one row stays
    cache.commit((0,))
    keys, _ = write(cache, 60, 2)
    assert keys[0, 0, :, 0].tolist() == [2000.0 + n for n in (0, 1, 2, 3, 50, 60, 61)]


def test_the_store_never_moves():
    cache = KvCache(LAYERS, CAPACITY)
    write(cache, 0, 2)
    address = cache.keys.data_ptr()
    for _ in range(5):
        cache.commit((0, 2) if cache.length else (0, 1))
        write(cache, 7, 4)
    assert cache.keys.data_ptr() == address


def test_overflow_is_an_error():
    cache = KvCache(LAYERS, 4)
    with pytest.raises(ValueError, match="holds 4 tokens, 5 are needed"):
        write(cache, 0, 5)
