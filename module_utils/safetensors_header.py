"""Reads and checks the header of a safetensors file, by the format's rules, without loading a tensor.

Eight bytes: header length n, little-endian. Then n bytes: a UTF-8 JSON object, tensor name → dtype, shape,
data_offsets, and optionally `__metadata__`, text → text. Then the tensors' bytes, without a gap. Whatever the
safetensors library refuses is refused here, in words. None of it proves the tensors' bytes: only a hash does.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from ansible.module_utils.byte_count import readable_bytes

PREFIX_BYTES = 8
HEADER_LIMIT_BYTES = 100_000_000
UNSIGNED_LIMIT = 2**64
TENSOR_KEYS = {"dtype", "shape", "data_offsets"}
DTYPE_BITS = {
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}


class InvalidSafetensors(Exception):
    """What is wrong with a file, in words, without the file's name."""


@dataclass(frozen=True)
class Tensor:
    """One tensor of a header; `begin` and `end` count from the first byte after the header."""

    name: str
    dtype: str
    shape: tuple
    begin: int
    end: int

    @property
    def size_bytes(self):
        return self.end - self.begin


def read_header(path):
    """{tensor name: Tensor} of the safetensors file at `path`; raises InvalidSafetensors, or OSError."""
    with open(path, "rb") as file:
        return read_header_from(file, os.fstat(file.fileno()).st_size)


def read_header_from(file, file_bytes):
    """The same of an open binary file with `file_bytes` bytes, read from its beginning."""
    if file_bytes < PREFIX_BYTES:
        raise InvalidSafetensors(f"{file_bytes} bytes are too few for a header, which begins with {PREFIX_BYTES}")
    header_bytes = int.from_bytes(file.read(PREFIX_BYTES), "little")
    if header_bytes > HEADER_LIMIT_BYTES:
        raise InvalidSafetensors(f"header length {header_bytes:,} is above the format's {HEADER_LIMIT_BYTES:,}")
    if PREFIX_BYTES + header_bytes > file_bytes:
        raise InvalidSafetensors(_short(PREFIX_BYTES + header_bytes, file_bytes))
    tensors = parse_header(file.read(header_bytes))
    data_bytes = max((tensor.end for tensor in tensors.values()), default=0)
    needed_bytes = PREFIX_BYTES + header_bytes + data_bytes
    if needed_bytes > file_bytes:
        raise InvalidSafetensors(_short(needed_bytes, file_bytes))
    if needed_bytes < file_bytes:
        raise InvalidSafetensors(
            f"header accounts for {needed_bytes:,} bytes, file has {file_bytes:,} "
            f"({readable_bytes(file_bytes - needed_bytes)} too long)"
        )
    return tensors


def parse_header(header):
    """{tensor name: Tensor} of the header's bytes."""
    if not header.startswith(b"{"):
        raise InvalidSafetensors(f"header does not begin with '{{' but with {header[:16]!r}")
    try:
        fields = json.loads(
            header.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_int=_unsigned,
            parse_float=_no_number,
            parse_constant=_no_number,
        )
    except UnicodeDecodeError as error:
        raise InvalidSafetensors(f"header is not UTF-8 at byte {error.start}") from error
    except RecursionError as error:
        raise InvalidSafetensors("header is nested too deeply") from error
    except ValueError as error:
        raise InvalidSafetensors(f"header is not JSON: {error}") from error
    _check_metadata(fields.pop("__metadata__", None))
    tensors = {name: _tensor(name, value) for name, value in fields.items()}
    _check_layout(tensors)
    return tensors


def _short(needed_bytes, file_bytes):
    missing = readable_bytes(needed_bytes - file_bytes)
    return f"header needs {needed_bytes:,} bytes, file has {file_bytes:,} ({missing} short)"


def _unique(pairs):
    fields = dict(pairs)
    if len(fields) != len(pairs):
        seen = set()
        twice = next(key for key, _value in pairs if key in seen or seen.add(key))
        raise InvalidSafetensors(f"key {twice!r} stands twice in the header")
    for key in fields:
        _check_text(key)
    return fields


def _unsigned(text):
    if text.startswith("-") or len(text) > 20 or int(text) >= UNSIGNED_LIMIT:
        raise InvalidSafetensors(f"number {text[:24]} in the header is not an unsigned 64-bit integer")
    return int(text)


def _no_number(text):
    raise InvalidSafetensors(f"number {text[:24]} in the header is not an unsigned 64-bit integer")


def _check_text(text):
    """JSON escapes can spell half a surrogate pair, which is no character."""
    if any(0xD800 <= ord(character) <= 0xDFFF for character in text):
        raise InvalidSafetensors(f"text {text!r} in the header is not Unicode")


def _check_metadata(metadata):
    if metadata is None:
        return
    if not isinstance(metadata, dict):
        raise InvalidSafetensors("__metadata__ is not an object")
    for key, value in metadata.items():
        if not isinstance(value, str):
            raise InvalidSafetensors(f"__metadata__ {key!r} is {value!r}, not a text")
        _check_text(value)


def _tensor(name, value):
    if not isinstance(value, dict) or value.keys() != TENSOR_KEYS:
        raise InvalidSafetensors(f"tensor {name!r} does not have exactly dtype, shape and data_offsets")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        raise InvalidSafetensors(f"tensor {name!r} has dtype {dtype!r}; known are {', '.join(DTYPE_BITS)}")
    if not _are_unsigned(shape):
        raise InvalidSafetensors(f"tensor {name!r} has shape {shape!r}, not a list of unsigned integers")
    if not _are_unsigned(offsets) or len(offsets) != 2:
        raise InvalidSafetensors(f"tensor {name!r} has data_offsets {offsets!r}, not two unsigned integers")
    return Tensor(name, dtype, tuple(shape), *offsets)


def _are_unsigned(values):
    # JSON's true and false arrive as bool, which is an int to Python.
    return isinstance(values, list) and all(type(value) is int for value in values)


def _check_layout(tensors):
    """By offset, the tensors begin at 0, follow one another without a gap, and are as long as their shape says."""
    position = 0
    for tensor in sorted(tensors.values(), key=lambda tensor: (tensor.begin, tensor.end)):
        if tensor.begin != position or tensor.end < tensor.begin:
            raise InvalidSafetensors(
                f"tensor {tensor.name!r} has data_offsets [{tensor.begin}, {tensor.end}], expected to start "
                f"at {position}"
            )
        size_bits = _checked_product((*tensor.shape, DTYPE_BITS[tensor.dtype]), tensor.name)
        if size_bits % 8:
            raise InvalidSafetensors(f"tensor {tensor.name!r} has {size_bits} bits, not whole bytes")
        if tensor.size_bytes != size_bits // 8:
            raise InvalidSafetensors(
                f"tensor {tensor.name!r} of {tensor.dtype} {list(tensor.shape)} needs {size_bits // 8:,} bytes, "
                f"its data_offsets hold {tensor.size_bytes:,}"
            )
        position = tensor.end


def _checked_product(factors, name):
    product = 1
    for factor in factors:
        product *= factor
        if product >= UNSIGNED_LIMIT:
            raise InvalidSafetensors(f"tensor {name!r}: its size overflows 64 bits")
    return product
