"""One line on a terminal that says what is going on; nothing where the output is no terminal."""

from typing import TextIO


class StatusLine:
    """Use as a context manager: the line is wiped at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream if stream.isatty() else None

    def __enter__(self) -> "StatusLine":
        return self

    def __exit__(self, *_exception) -> None:
        self.show("")

    def show(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(f"\r\x1b[K{text}")
            self._stream.flush()
