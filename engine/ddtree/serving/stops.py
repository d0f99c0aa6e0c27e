"""Stop strings over a stream of text: nothing that could still become a stop string is let out.

The text ends before the stop string that begins first, as min(text.split(stop)[0] for stop in stops) would say of
the whole text. The result does not depend on how the text was cut into pieces, hence not on the decoding mode.
"""


class StopMatcher:
    """Feeds on pieces of text and lets out what is certain to stand before every stop string."""

    def __init__(self, stops: list[str]) -> None:
        """stops: non-empty strings; none means that all text passes at once."""
        if any(not stop for stop in stops):
            raise ValueError("a stop string must not be empty")
        self._stops = stops
        self._longest = max(map(len, stops), default=0)
        self._held = ""
        self.stopped = False

    def push(self, piece: str) -> str:
        """Takes the next piece of text, returns the text that may be sent; `stopped` says that a stop was met."""
        if self.stopped:
            return ""
        if not self._stops:
            return piece
        self._held += piece
        found = self._first_stop()
        growing = self._first_partial()
        # "bc" may be complete while an "abcd" that began earlier is still growing: the earlier one decides.
        if found is not None and growing >= found:
            return self._stop_at(found)
        text, self._held = self._held[:growing], self._held[growing:]
        return text

    def finish(self) -> str:
        """The text has ended: returns what was held back, cut before a stop that was complete."""
        if self.stopped:
            return ""
        found = self._first_stop()
        if found is not None:
            return self._stop_at(found)
        text, self._held = self._held, ""
        return text

    def _stop_at(self, position: int) -> str:
        self.stopped = True
        text, self._held = self._held[:position], ""
        return text

    def _first_stop(self) -> int | None:
        positions = [at for stop in self._stops if (at := self._held.find(stop)) >= 0]
        return min(positions, default=None)

    def _first_partial(self) -> int:
        """Where the earliest beginning of a stop string runs into the end of the held text; its length if nowhere."""
        size = len(self._held)
        for start in range(max(0, size - self._longest + 1), size):
            tail = self._held[start:]
            if any(len(stop) > len(tail) and stop.startswith(tail) for stop in self._stops):
                return start
        return size
