"""The header reader against the safetensors library: what the library refuses, it never accepts.

The differences the other way are few and wanted: keys that stand twice, white space before the object, and fields or
forms that no writer makes. They are listed in STRICTER.
"""

import io
import json
import struct

import numpy
import pytest
import safetensors
import safetensors.numpy
from ansible.module_utils.safetensors_header import (
    DTYPE_BITS,
    InvalidSafetensors,
    parse_header,
    read_header,
    read_header_from,
)
from hypothesis import given, settings
from hypothesis import strategies as st

QUICK = settings(deadline=None, max_examples=300, derandomize=True)


def file_bytes(header, data=b""):
    """A file from a header (bytes, or something JSON can write) and the tensors' bytes."""
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(header)) + header + data


def tensor(dtype="F32", shape=(1,), begin=0, end=4):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def problem(content):
    """What the reader says against a file with this content, or None."""
    try:
        read_header_from(io.BytesIO(content), len(content))
    except InvalidSafetensors as error:
        return str(error)
    return None


def library_accepts(content):
    try:
        safetensors.deserialize(content)
    except safetensors.SafetensorError:
        return False
    return True


VALID = {
    "no tensor": file_bytes({}),
    "padded header": file_bytes(b"{}      \n\t\r"),
    "metadata": file_bytes({"__metadata__": {"format": "pt", "": "", "ü": "\U0001f600"}}),
    "metadata is null": file_bytes(b'{"__metadata__":null}'),
    "scalar": file_bytes({"a": tensor(shape=())}, bytes(4)),
    "empty tensor": file_bytes({"a": tensor(shape=(3, 0, 5), end=0)}),
    "empty name": file_bytes({"": tensor()}, bytes(4)),
    "empty tensors between": file_bytes(
        {"a": tensor(), "b": tensor(shape=(0,), begin=4), "c": tensor(shape=(0,), end=0)}, bytes(4)
    ),
    "not in order": file_bytes({"a": tensor(begin=4, end=8), "b": tensor("I32")}, bytes(8)),
    "huge empty": file_bytes({"a": tensor(shape=(0, 2**63, 4), end=0)}),
    "half bytes": file_bytes({"a": tensor("F4", (3, 2), end=3)}, bytes(3)),
    "six bits": file_bytes({"a": tensor("F6_E2M3", (4,), end=3)}, bytes(3)),
    "surrogate pair": file_bytes(b'{"\\ud83d\\ude00":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4)),
}

INVALID = {
    "nothing": (b"", "0 bytes are too few"),
    "seven bytes": (bytes(7), "7 bytes are too few"),
    "zero length": (bytes(8), "does not begin with '{'"),
    "zeros": (bytes(1000), "does not begin with '{'"),
    "header longer than the file": (struct.pack("<Q", 50) + b"{}", "header needs 58 bytes, file has 10 (48 B short)"),
    "header too long": (struct.pack("<Q", 100_000_001) + b"{}", "header length 100,000,001 is above"),
    "html": (b"<!DOCTYPE html><html><body>502 Bad Gateway</body></html>", "is above the format's 100,000,000"),
    "lfs pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "is above the format's"),
    "not an object": (file_bytes(b"[]"), "does not begin"),
    "not utf-8": (file_bytes(b'{"\xff":1}'), "not UTF-8 at byte 2"),
    "byte order mark": (file_bytes(b"\xef\xbb\xbf{}"), "does not begin"),
    "not json": (file_bytes(b"{"), "not JSON"),
    "trailing nul": (file_bytes(b"{}\0"), "not JSON"),
    "trailing comma": (file_bytes(b'{"__metadata__":{},}'), "not JSON"),
    "control character": (file_bytes(b'{"__metadata__":{"\x01":""}}'), "not JSON"),
    "half a surrogate": (file_bytes(b'{"__metadata__":{"a":"\\udc00"}}'), "not Unicode"),
    "half a surrogate as name": (
        file_bytes(b'{"\\ud800":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'),
        "not Unicode",
    ),
    "metadata is a list": (file_bytes({"__metadata__": []}), "not an object"),
    "metadata of numbers": (file_bytes({"__metadata__": {"a": 1}}), "'a' is 1, not a text"),
    "metadata twice": (file_bytes(b'{"__metadata__":{},"__metadata__":{}}'), "'__metadata__' stands twice"),
    "tensor is null": (file_bytes({"a": None}), "'a' does not have exactly"),
    "field missing": (file_bytes({"a": {"dtype": "F32", "shape": []}}), "'a' does not have exactly"),
    "field twice": (
        file_bytes(b'{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4)),
        "'dtype' stands twice",
    ),
    "unknown dtype": (file_bytes({"a": tensor("F128")}, bytes(4)), "has dtype 'F128'; known are"),
    "lower-case dtype": (file_bytes({"a": tensor("f32")}, bytes(4)), "has dtype 'f32'"),
    "negative shape": (file_bytes({"a": tensor(shape=(-1,))}, bytes(4)), "number -1 "),
    "negative zero": (file_bytes(b'{"a":{"dtype":"F32","shape":[-0],"data_offsets":[0,0]}}'), "number -0 "),
    "broken number": (file_bytes(b'{"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}', bytes(4)), "number 1.0 "),
    "not a number": (file_bytes(b'{"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,4]}}', bytes(4)), "number NaN "),
    "number above 64 bits": (file_bytes({"a": tensor(shape=(2**64,), end=0)}), "number 18446744073709551616 "),
    "true is no number": (file_bytes({"a": tensor(shape=(True,))}, bytes(4)), "shape [True]"),
    "three offsets": (file_bytes({"a": {**tensor(), "data_offsets": [0, 4, 8]}}, bytes(4)), "not two unsigned"),
    "does not begin at 0": (file_bytes({"a": tensor(begin=4, end=8)}, bytes(8)), "[4, 8], expected to start at 0"),
    "a gap": (file_bytes({"a": tensor(), "b": tensor(begin=5, end=9)}, bytes(9)), "expected to start at 4"),
    "an overlap": (file_bytes({"a": tensor(), "b": tensor(begin=2, end=6)}, bytes(6)), "expected to start at 4"),
    "end before begin": (file_bytes({"a": tensor(end=4), "b": tensor(begin=4, end=0)}, bytes(4)), "[4, 0]"),
    "shape says more": (file_bytes({"a": tensor(shape=(2,))}, bytes(4)), "needs 8 bytes, its data_offsets hold 4"),
    "half a byte": (file_bytes({"a": tensor("F4", (1,), end=0)}), "4 bits, not whole bytes"),
    "overflow": (file_bytes({"a": tensor(shape=(2**62, 4), end=0)}), "overflows 64 bits"),
    "overflow before a zero": (file_bytes({"a": tensor(shape=(2**63, 4, 0), end=0)}), "overflows 64 bits"),
    "data too short": (file_bytes({"a": tensor()}, bytes(3)), "needs 73 bytes, file has 72 (1 B short)"),
    "data too long": (file_bytes({"a": tensor()}, bytes(5)), "accounts for 73 bytes, file has 74 (1 B too long)"),
}

STRICTER = {
    "white space before": (file_bytes(b" {}"), "does not begin"),
    "tensor twice": (
        file_bytes(
            b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
            bytes(4),
        ),
        "'a' stands twice",
    ),
    "metadata key twice": (file_bytes(b'{"__metadata__":{"a":"b","a":"c"}}'), "'a' stands twice"),
    "unknown field": (file_bytes({"a": {**tensor(), "x": 1}}, bytes(4)), "exactly dtype, shape and data_offsets"),
    "tensor as a list": (file_bytes({"a": ["F32", [1], [0, 4]]}, bytes(4)), "exactly dtype, shape and data_offsets"),
}


@pytest.mark.parametrize("content", VALID.values(), ids=VALID)
def test_valid(content):
    assert problem(content) is None
    assert library_accepts(content)


@pytest.mark.parametrize(("content", "said"), INVALID.values(), ids=INVALID)
def test_invalid(content, said):
    assert said in problem(content)
    assert not library_accepts(content)


@pytest.mark.parametrize(("content", "said"), STRICTER.values(), ids=STRICTER)
def test_stricter_than_the_library(content, said):
    assert said in problem(content)
    assert library_accepts(content)


def test_a_header_nested_a_million_deep():
    assert problem(file_bytes(b'{"a":' + b"[" * 10**6))


@pytest.mark.parametrize("dtype", DTYPE_BITS)
def test_every_dtype_has_the_library_s_size(dtype):
    for count in (1, 2, 3, 4, 8):
        around = DTYPE_BITS[dtype] * count // 8
        for size_bytes in range(max(around - 1, 0), around + 2):
            content = file_bytes({"a": tensor(dtype, (count,), end=size_bytes)}, bytes(size_bytes))
            assert (problem(content) is None) == library_accepts(content), (dtype, count, size_bytes)


def test_what_a_header_says(tmp_path):
    scratch = tmp_path / "x.safetensors"
    arrays = {"w": numpy.zeros((3, 5), "float16"), "b": numpy.ones((), "int64"), "e": numpy.zeros((0, 2), "float32")}
    safetensors.numpy.save_file(arrays, scratch, metadata={"format": "np"})
    header = read_header(scratch)
    with safetensors.safe_open(scratch, "numpy") as library:
        assert set(header) == set(library.keys())
        for name, found in header.items():
            piece = library.get_slice(name)
            assert (list(found.shape), found.dtype) == (piece.get_shape(), piece.get_dtype())
            assert found.size_bytes == arrays[name].nbytes


SMALL = file_bytes(
    {"__metadata__": {"f": "pt"}, "w": tensor("BF16", (2, 1), 0, 4), "é": tensor("U8", (2,), 4, 6)}, bytes(range(6))
)


def test_every_truncation_is_refused():
    assert problem(SMALL) is None
    for length in range(len(SMALL)):
        assert problem(SMALL[:length]), length
        assert not library_accepts(SMALL[:length])


def test_no_single_byte_mutation_is_accepted_that_the_library_refuses():
    """Every byte of prefix and header, replaced by every value."""
    header_end = len(SMALL) - 6
    accepted = 0
    for position in range(header_end):
        for value in range(256):
            content = SMALL[:position] + bytes([value]) + SMALL[position + 1 :]
            if problem(content) is None:
                accepted += 1
                assert library_accepts(content), (position, value)
    assert accepted > header_end  # at least each byte by itself, and other letters inside names


names = st.text(max_size=6)
dtypes = st.sampled_from(sorted(DTYPE_BITS))
shapes = st.lists(st.integers(0, 5), max_size=3)


@st.composite
def valid_files(draw):
    """A file laid out by the rules, its header in any order, with any names and metadata."""
    header, position = {}, 0
    for name in draw(st.lists(names.filter(lambda n: n != "__metadata__"), max_size=5, unique=True)):
        dtype, shape = draw(dtypes), draw(shapes)
        bits = DTYPE_BITS[dtype]
        for extent in shape:
            bits *= extent
        if bits % 8:
            shape = [*shape, 8]
            bits *= 8
        header[name] = tensor(dtype, shape, position, position + bits // 8)
        position += bits // 8
    items = draw(st.permutations(list(header.items())))
    if draw(st.booleans()):
        items.append(("__metadata__", draw(st.dictionaries(names, names, max_size=3))))
    text = json.dumps(dict(items), ensure_ascii=draw(st.booleans()))
    return file_bytes(text.encode() + b" " * draw(st.integers(0, 8)), bytes(position))


@QUICK
@given(content=valid_files())
def test_whatever_is_laid_out_by_the_rules_is_accepted_by_both(content):
    assert problem(content) is None
    assert library_accepts(content)


@QUICK
@given(content=valid_files(), edits=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=4))
def test_random_edits_agree_with_the_library(content, edits):
    damaged = bytearray(content)
    for position, value in edits:
        damaged[position % len(damaged)] = value
    if problem(bytes(damaged)) is None:
        assert library_accepts(bytes(damaged))


@QUICK
@given(header=st.binary(max_size=60))
def test_noise_is_never_more_than_refused(header):
    for candidate in (header, b"{" + header, b'{"' + header):
        try:
            parse_header(candidate)
        except InvalidSafetensors:
            continue
