"""Range headers mean what RFC 9110 says, for any numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtree.mirror.byte_range import RangeNotSatisfiable, etag_matches, parse_range, range_still_applies

NUMBERS = st.integers(0, 60)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_a_closed_range_is_the_slice(first: int, last: int, size_bytes: int) -> None:
    content = bytes(range(size_bytes))
    header = f"bytes={first}-{last}"
    if last < first:
        assert parse_range(header, size_bytes) is None
    elif first >= size_bytes:
        with pytest.raises(RangeNotSatisfiable):
            parse_range(header, size_bytes)
    else:
        start, length = parse_range(header, size_bytes)
        assert content[start : start + length] == content[first : last + 1]
        assert 0 < length <= size_bytes - start


@given(NUMBERS, NUMBERS)
def test_an_open_range_runs_to_the_end(first: int, size_bytes: int) -> None:
    if first >= size_bytes:
        with pytest.raises(RangeNotSatisfiable):
            parse_range(f"bytes={first}-", size_bytes)
    else:
        assert parse_range(f"bytes={first}-", size_bytes) == (first, size_bytes - first)


@given(NUMBERS, NUMBERS)
def test_a_suffix_is_the_last_bytes(count: int, size_bytes: int) -> None:
    if count == 0 or size_bytes == 0:
        with pytest.raises(RangeNotSatisfiable):
            parse_range(f"bytes=-{count}", size_bytes)
    else:
        start, length = parse_range(f"bytes=-{count}", size_bytes)
        assert bytes(range(size_bytes))[start : start + length] == bytes(range(size_bytes))[-count:]


@pytest.mark.parametrize(
    "header",
    [None, "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=0-1,4-5", "items=0-1", "bytes=0-1-2", "bytes=٣-٥"],
)
def test_what_is_no_single_range_is_ignored(header: str | None) -> None:
    assert parse_range(header, 10) is None


def test_a_huge_number_is_only_a_number() -> None:
    assert parse_range("bytes=0-" + "9" * 100, 10) == (0, 10)


def test_conditions_compare_the_entity_tag() -> None:
    assert etag_matches('"a", W/"b"', '"b"')
    assert etag_matches("*", '"b"')
    assert not etag_matches('"a"', '"b"')
    assert not etag_matches(None, '"b"')
    assert range_still_applies(None, '"b"', "date")
    assert range_still_applies('"b"', '"b"', "date")
    assert range_still_applies("date", '"b"', "date")
    assert not range_still_applies('"a"', '"b"', "date")
