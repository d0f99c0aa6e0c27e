"""Token ids to text, one token at a time, such that the pieces join to the text of all the tokens.

A character may be spread over several tokens, and some tokenizers drop a space at the start of what they decode.
So each piece is the difference between two decodings that begin at the same earlier token.
"""

from collections.abc import Sequence
from typing import Protocol

REPLACEMENT = "\ufffd"
# A UTF-8 character has at most four bytes: at most three may still be waiting for the rest of it.
MAX_PENDING_BYTES = 3


class Decoder(Protocol):
    """What is needed of a tokenizer (transformers' have it)."""

    def decode(
        self, token_ids: Sequence[int], *, skip_special_tokens: bool, clean_up_tokenization_spaces: bool
    ) -> str: ...


def decode_all(tokenizer: Decoder, token_ids: Sequence[int]) -> str:
    """The text of a whole sequence, without special tokens: what the pieces must join to."""
    return tokenizer.decode(list(token_ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)


class IncrementalDetokenizer:
    """Holds an unfinished character back until its bytes are complete or the text ends."""

    def __init__(self, tokenizer: Decoder) -> None:
        self._tokenizer = tokenizer
        self._context: list[int] = []  # tokens already turned into text, kept as left context of the next ones
        self._context_size = 0  # characters of the context's own text
        self._pending: list[int] = []
        self._sent = 0  # characters of the pending tokens' text that were let out already

    def push(self, token_id: int) -> str:
        """Takes one token, returns the text that is final by now (often one word, sometimes nothing)."""
        self._pending.append(token_id)
        text = self._pending_text()
        unfinished = len(text) - len(text.rstrip(REPLACEMENT))
        # Some tokenizers show several U+FFFD for one incomplete character. More tokens than a character has bytes
        # cannot all be part of it: what stands before its last bytes is broken for good, and may leave.
        held = unfinished if len(self._pending) <= MAX_PENDING_BYTES else min(unfinished, MAX_PENDING_BYTES)
        final = text[: len(text) - held]
        piece = final[self._sent :]
        self._sent = max(self._sent, len(final))
        # A context that decodes to nothing (special tokens) would lose a leading space: move on only past text.
        if text and not unfinished:
            self._context, self._pending, self._sent = self._pending, [], 0
            self._context_size = len(decode_all(self._tokenizer, self._context))
        return piece

    def finish(self) -> str:
        """The text has ended: returns what was held back, an unfinished character as U+FFFD."""
        piece = self._pending_text()[self._sent :]
        self._pending, self._sent = [], 0
        return piece

    def _pending_text(self) -> str:
        return decode_all(self._tokenizer, self._context + self._pending)[self._context_size :]
