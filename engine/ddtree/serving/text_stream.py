"""From committed tokens to the text of a reply: detokenisation, then stop strings."""

from collections.abc import Iterable

from ddtree.serving.detokenizer import Decoder, IncrementalDetokenizer
from ddtree.serving.stops import StopMatcher


class TextStream:
    """One reply being written. Tokens go in one by one, so that the result is the same however many a step brings."""

    def __init__(self, tokenizer: Decoder, stops: list[str]) -> None:
        self._detokenizer = IncrementalDetokenizer(tokenizer)
        self._matcher = StopMatcher(stops)
        self.num_tokens = 0  # tokens used so far: those behind a stop string do not count

    @property
    def stopped(self) -> bool:
        """A stop string was met: no more tokens are wanted."""
        return self._matcher.stopped

    def push(self, token_ids: Iterable[int]) -> str:
        """Takes the tokens of one step, returns the text that may be sent."""
        pieces = []
        for token_id in token_ids:
            if self.stopped:
                break
            self.num_tokens += 1
            pieces.append(self._matcher.push(self._detokenizer.push(token_id)))
        return "".join(pieces)

    def finish(self) -> str:
        """No more tokens: returns the text that was held back. It may turn out to contain a stop string."""
        if self.stopped:
            return ""
        last = self._matcher.push(self._detokenizer.finish())
        return last + self._matcher.finish()
