"""The Range, If-Range and If-None-Match headers of RFC 9110, as far as a file server needs them."""

import re

_SINGLE = re.compile(r"bytes=\s*(\d*)-(\d*)\s*", re.ASCII | re.IGNORECASE)


class RangeNotSatisfiable(Exception):
    """The range begins behind the end of the file."""


def parse_range(header: str | None, size_bytes: int) -> tuple[int, int] | None:
    """Returns (first byte, length) of a single range, cut to the file; None where the whole file is the answer.

    That is without a header, and with one that is malformed or asks for several ranges, which a server may ignore.
    Raises RangeNotSatisfiable.
    """
    match = _SINGLE.fullmatch(header) if header is not None else None
    if match is None or match.groups() == ("", ""):
        return None
    first_text, last_text = match.groups()
    if not first_text:  # the last bytes
        length = min(int(last_text), size_bytes)
        if length == 0:
            raise RangeNotSatisfiable
        return size_bytes - length, length
    first = int(first_text)
    if last_text and int(last_text) < first:
        return None  # malformed
    if first >= size_bytes:
        raise RangeNotSatisfiable
    last = min(int(last_text), size_bytes - 1) if last_text else size_bytes - 1
    return first, last - first + 1


def range_still_applies(if_range: str | None, etag: str, last_modified: str) -> bool:
    """False if the client's part belongs to another content: then it gets the whole file."""
    return if_range is None or if_range.strip() in (etag, last_modified)


def etag_matches(if_none_match: str | None, etag: str) -> bool:
    """True if the client has this content already."""
    if if_none_match is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return "*" in tags or etag in tags
