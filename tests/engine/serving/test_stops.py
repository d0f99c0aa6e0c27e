"""Stop strings: the text ends before the one that begins first, and nothing of it ever leaves."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ddtree.serving.stops import StopMatcher

# Few letters, so that stops overlap, nest and repeat.
LETTERS = st.text("ab", max_size=4) | st.text("abé😀", min_size=1, max_size=3)
STOPS = st.lists(
    st.text("ab", min_size=1, max_size=5) | st.text("abé😀", min_size=1, max_size=3), min_size=1, max_size=4
)


def stream(pieces, stops):
    """All pieces that leave the matcher; pushing ends when a stop was met, as generation does."""
    matcher = StopMatcher(stops)
    sent = []
    for piece in pieces:
        sent.append(matcher.push(piece))
        if matcher.stopped:
            return sent, matcher
    sent.append(matcher.finish())
    return sent, matcher


@given(st.lists(LETTERS, max_size=12), STOPS)
@example(["abcd"], ["abcd", "bc"])
@example(["abc", "d"], ["abcd", "bc"])
@example(["ab", "c", "x"], ["abcd", "bc"])
@example(["a", "a", "b"], ["aab", "ab"])
def test_text_is_what_split_leaves(pieces, stops):
    text = "".join(pieces)
    expected = min((text.split(stop)[0] for stop in stops), key=len)
    sent, matcher = stream(pieces, stops)
    assert "".join(sent) == expected
    assert matcher.stopped == (expected != text)


@given(st.lists(LETTERS, max_size=12), STOPS)
def test_no_prefix_of_the_stream_shows_the_beginning_of_a_stop_that_is_met(pieces, stops):
    text = "".join(pieces)
    cut = min(len(text.split(stop)[0]) for stop in stops)
    sent, _ = stream(pieces, stops)
    seen = 0
    for piece in sent:
        seen += len(piece)
        assert seen <= cut


@given(st.text("ab", max_size=30), STOPS)
@example("abab", ["abab", "ba"])
def test_cutting_the_text_into_other_pieces_changes_nothing(text, stops):
    whole, _ = stream([text], stops)
    single, _ = stream(list(text), stops)
    assert "".join(whole) == "".join(single)


def test_text_that_cannot_become_a_stop_leaves_at_once():
    matcher = StopMatcher(["\n\nQ:"])
    assert matcher.push("hello") == "hello"
    assert matcher.push(" world\n") == " world"
    assert matcher.push("next") == "\nnext"


def test_without_stops_everything_leaves_at_once():
    matcher = StopMatcher([])
    assert matcher.push("a") == "a"
    assert matcher.finish() == ""


def test_nothing_leaves_after_the_stop():
    matcher = StopMatcher(["x"])
    assert matcher.push("axb") == "a"
    assert matcher.push("c") == ""
    assert matcher.finish() == ""


def test_an_empty_stop_is_refused():
    with pytest.raises(ValueError, match="must not be empty"):
        StopMatcher(["a", ""])
