"""Incremental detokenisation: the pieces join to the text of all tokens, and come as early as they can."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving_stub import make_tokenizer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from ddtree.serving.detokenizer import IncrementalDetokenizer, decode_all

VOCABULARY = len(make_tokenizer())


def pieces_of(tokenizer, token_ids):
    detokenizer = IncrementalDetokenizer(tokenizer)
    pieces = [detokenizer.push(token_id) for token_id in token_ids]
    return [*pieces, detokenizer.finish()]


@given(st.lists(st.integers(0, VOCABULARY - 1), max_size=40))
def test_any_tokens_at_all_join_to_their_text(token_ids):
    """Random byte tokens are mostly broken UTF-8; special tokens stand anywhere."""
    tokenizer = make_tokenizer()
    assert "".join(pieces_of(tokenizer, token_ids)) == decode_all(tokenizer, token_ids)


@given(st.text(max_size=30))
def test_any_text_comes_back(text):
    tokenizer = make_tokenizer()
    token_ids = tokenizer.encode(text)
    assert "".join(pieces_of(tokenizer, token_ids)) == decode_all(tokenizer, token_ids)


@pytest.mark.parametrize(
    "text", ["😀", "👩‍👩‍👧‍👦 family", "naïve café", "世界", " leading", "\n\n  x", "a\u0301", "🇩🇪"]
)
def test_characters_over_several_tokens_are_never_shown_broken(tokenizer, text):
    token_ids = tokenizer.encode(text)
    assert len(token_ids) > 1
    pieces = pieces_of(tokenizer, token_ids)
    assert "".join(pieces) == text
    assert not any("\ufffd" in piece for piece in pieces)


def test_plain_text_is_not_held_back(tokenizer):
    for word in ["the", " quick", " fox"]:
        detokenizer = IncrementalDetokenizer(tokenizer)
        assert "".join(detokenizer.push(token) for token in tokenizer.encode(word)) == word


def test_an_unfinished_character_comes_out_at_the_end(tokenizer):
    token_ids = tokenizer.encode("x😀")[:-1]
    pieces = pieces_of(tokenizer, token_ids)
    assert "".join(pieces[:-1]) == "x"
    assert pieces[-1] == "\ufffd"


def test_endless_broken_bytes_do_not_hold_the_stream_back(tokenizer):
    broken = tokenizer.convert_tokens_to_ids("ÿ")  # byte 0xff, never part of a character
    detokenizer = IncrementalDetokenizer(tokenizer)
    assert len("".join(detokenizer.push(broken) for _ in range(50))) >= 47


@pytest.fixture(scope="module")
def spaced_tokenizer():
    """The other family: words with ▁ for a space, dropped at the start of a decoding, and bytes as <0x..> tokens."""
    words = ["<s>", "▁hello", "▁world", "▁", "a", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer = Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, [], byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(), decoders.Fuse()])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>")


@pytest.mark.parametrize(
    "words",
    [
        ["▁hello", "▁world", "▁", "▁hello"],
        ["<s>", "▁hello", "<s>", "▁world"],
        ["▁hello", *(f"<0x{byte:02X}>" for byte in "😀é".encode()), "▁world"],
        ["▁", "▁", "a"],
    ],
)
def test_tokenizers_that_drop_a_leading_space(spaced_tokenizer, words):
    token_ids = spaced_tokenizer.convert_tokens_to_ids(words)
    pieces = pieces_of(spaced_tokenizer, token_ids)
    assert "".join(pieces) == decode_all(spaced_tokenizer, token_ids)
