"""Reads aria2's control file (`….aria2`): how long the file will be, and which pieces of it are on the disk.

Layout, big-endian (aria2 manual, "Control File Format", version 1): version u16, extension u32, info hash (u32 length
and bytes), piece length u32, total length u64, upload length u64, bitfield (u32 length and bytes), number of pieces in
flight u32, and for each: index u32, length u32, bitfield (u32 length and bytes) over blocks of 16 KiB.
"""

from __future__ import annotations

from dataclasses import dataclass

VERSION = 1
BLOCK_BYTES = 16 * 1024


@dataclass(frozen=True)
class ControlFile:
    """`completed_bytes` of `total_bytes` are on the disk."""

    total_bytes: int
    completed_bytes: int


def read_control_file(path):
    """The ControlFile at `path`, or None where it is absent, empty, cut short or damaged."""
    try:
        with open(path, "rb") as file:
            return _parse(_Reader(file.read()))
    except (OSError, ValueError):
        return None


def _parse(reader):
    if reader.unsigned(2) != VERSION:
        raise ValueError("unknown version")
    reader.take(4)
    reader.take(reader.unsigned(4))
    piece_bytes, total_bytes = reader.unsigned(4), reader.unsigned(8)
    reader.take(8)
    pieces = -(-total_bytes // piece_bytes) if piece_bytes else 0
    bitfield = reader.take(reader.unsigned(4))
    if len(bitfield) != -(-pieces // 8):
        raise ValueError("the bitfield does not fit the length")
    done = _set_bits(bitfield, pieces)
    completed = len(done) * piece_bytes
    if pieces and pieces - 1 in done:
        completed -= pieces * piece_bytes - total_bytes
    for _ in range(reader.unsigned(4)):
        index, length = reader.unsigned(4), reader.unsigned(4)
        blocks = reader.take(reader.unsigned(4))
        if index >= pieces or length > piece_bytes:
            raise ValueError("a piece in flight lies outside the file")
        completed += min(len(_set_bits(blocks, -(-length // BLOCK_BYTES))) * BLOCK_BYTES, length)
    return ControlFile(total_bytes, completed)


def _set_bits(field, count):
    """Indices below `count` whose bit is set, most significant bit first."""
    return {index for index in range(count) if index // 8 < len(field) and field[index // 8] & (0x80 >> index % 8)}


class _Reader:
    def __init__(self, content):
        self._content = content
        self._position = 0

    def take(self, count):
        """The next `count` bytes; a file cut short raises ValueError."""
        piece = self._content[self._position : self._position + count]
        if len(piece) != count:
            raise ValueError("cut short")
        self._position += count
        return piece

    def unsigned(self, width):
        return int.from_bytes(self.take(width), "big")
