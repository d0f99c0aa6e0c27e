"""From tokens to text: how many tokens a step brings changes neither the text nor the token count."""

from hypothesis import given
from hypothesis import strategies as st
from serving_stub import make_tokenizer

from ddtree.serving.detokenizer import decode_all
from ddtree.serving.text_stream import TextStream

VOCABULARY = len(make_tokenizer())
TOKENS = st.lists(st.integers(0, VOCABULARY - 1), max_size=40)
STOPS = st.lists(st.text("the fox\ufffd", min_size=1, max_size=3), max_size=3)


def reply(token_ids, stops, sizes):
    """Text, token count and whether a stop was met, with steps of these sizes in turn."""
    stream, sent, at, turn = TextStream(make_tokenizer(), stops), "", 0, 0
    while at < len(token_ids) and not stream.stopped:
        size = sizes[turn % len(sizes)]
        sent += stream.push(token_ids[at : at + size])
        at, turn = at + size, turn + 1
    sent += stream.finish()
    return sent, stream.num_tokens, stream.stopped


@given(TOKENS, STOPS, st.lists(st.integers(1, 17), min_size=1, max_size=5))
def test_step_sizes_do_not_matter(token_ids, stops, sizes):
    assert reply(token_ids, stops, sizes) == reply(token_ids, stops, [1])


@given(TOKENS, STOPS)
def test_the_text_is_that_of_the_tokens_up_to_the_first_stop(token_ids, stops):
    text = decode_all(make_tokenizer(), token_ids)
    expected = min([text, *(text.split(stop)[0] for stop in stops)], key=len)
    sent, _, stopped = reply(token_ids, stops, [3])
    assert sent == expected
    assert stopped == any(stop in text for stop in stops)


def test_tokens_behind_the_stop_do_not_count(tokenizer):
    token_ids = tokenizer.encode("the fox") + tokenizer.encode("X") + tokenizer.encode(" the lazy dog")
    sent, num_tokens, stopped = reply(token_ids, ["X"], [len(token_ids)])
    assert (sent, stopped) == ("the fox", True)
    assert num_tokens == len(tokenizer.encode("the fox")) + 1
