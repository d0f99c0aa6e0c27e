"""The control file reader, on files built by hand after aria2's manual."""

import math
import random
import struct

import pytest
from ansible.module_utils.aria2_control_file import ControlFile, read_control_file

PIECE = 1024 * 1024


def control(total_bytes, done, in_flight=(), piece_bytes=PIECE, version=1):
    """The bytes of a control file; `done` are indices of pieces, `in_flight` is (index, length, blocks present)."""
    field = bytearray(math.ceil(total_bytes / piece_bytes / 8))
    for index in done:
        field[index // 8] |= 0x80 >> index % 8
    content = struct.pack(">HIIIQQI", version, 0, 0, piece_bytes, total_bytes, 0, len(field)) + field
    content += struct.pack(">I", len(in_flight))
    for index, length, blocks in in_flight:
        bits = bytearray(math.ceil(length / 16384 / 8))
        for block in blocks:
            bits[block // 8] |= 0x80 >> block % 8
        content += struct.pack(">III", index, length, len(bits)) + bits
    return bytes(content)


@pytest.fixture
def read(tmp_path):
    def read(content):
        path = tmp_path / "x.aria2"
        path.write_bytes(content)
        return read_control_file(path)

    return read


def test_nothing_yet(read):
    assert read(control(10 * PIECE, [])) == ControlFile(10 * PIECE, 0)


def test_pieces_and_a_short_last_one(read):
    total = 9 * PIECE + 5
    assert read(control(total, [0, 8])) == ControlFile(total, 2 * PIECE)
    assert read(control(total, [9])) == ControlFile(total, 5)
    assert read(control(total, range(10))) == ControlFile(total, total)


def test_blocks_of_a_piece_in_flight(read):
    assert read(control(3 * PIECE, [0], [(1, PIECE, [0, 1, 63])])).completed_bytes == PIECE + 3 * 16384
    assert read(control(PIECE + 100, [0], [(1, 100, [0])])).completed_bytes == PIECE + 100


def test_every_truncation_is_noticed(read):
    whole = control(20 * PIECE, [1, 5], [(2, PIECE, [7])])
    assert all(read(whole[:length]) is None for length in range(len(whole)))


def test_what_is_no_control_file(read, tmp_path):
    assert read_control_file(tmp_path / "none") is None
    assert read(control(PIECE, [], version=0)) is None
    assert read(control(PIECE, [], [(7, PIECE, [])])) is None
    assert read(control(PIECE, [], piece_bytes=2**31)[:-30]) is None
    noise = random.Random(3)
    for _ in range(200):
        read(noise.randbytes(noise.randrange(120)))  # never an exception
