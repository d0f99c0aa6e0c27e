"""Streams a byte range of an open file, and breaks the connection rather than send anything but the file it opened."""

import asyncio
import logging
import os
from concurrent.futures import Future, ThreadPoolExecutor

from starlette.types import Receive, Scope, Send

from ddtree.mirror.folder_scan import FoundFile

logger = logging.getLogger("ddtree.mirror")

# Large enough that Python's share of the work is small, small enough for hundreds of connections at once.
CHUNK_BYTES = 1024 * 1024


class FileChanged(Exception):
    """The file is no longer what it was when its hash was taken."""


def open_exactly(found: FoundFile) -> int:
    """A descriptor of the file, if it still is the one found. Raises FileChanged."""
    try:
        fd = os.open(found.real_path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise FileChanged from error
    if not found.is_still(os.fstat(fd)):
        os.close(fd)
        raise FileChanged
    return fd


class FileBody:
    """An ASGI response: `length` bytes of the open file from `start`. Owns `fd` and closes it.

    The next chunk is read while the last one is sent. A file that is replaced goes on from its open descriptor; one
    that is overwritten in place or cut short ends the connection before its last byte.
    """

    def __init__(
        self,
        fd: int,
        found: FoundFile,
        start: int,
        length: int,
        status: int,
        headers: dict[str, str],
        pool: ThreadPoolExecutor,
    ) -> None:
        self._fd = fd
        self._found = found
        self._start = start
        self._length = length
        self._status = status
        self._headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        self._pool = pool
        self._reading: Future[bytes] | None = None

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_disconnected(receive))
        try:
            await send({"type": "http.response.start", "status": self._status, "headers": self._headers})
            await self._send_body(send, gone)
        except FileChanged:
            # The response is left unfinished: the server then closes the connection, and the client sees it is short.
            logger.warning("%s changed while it was being sent; the connection is closed", self._found.real_path)
        except asyncio.CancelledError:  # the mirror is being stopped
            logger.warning("%s was being sent when the mirror was stopped", self._found.real_path)
        finally:
            gone.cancel()
            self.close()

    def close(self) -> None:
        """Closes the file once no thread reads from it any more."""
        if self._reading is None:
            os.close(self._fd)
        else:
            self._reading.add_done_callback(lambda _: os.close(self._fd))

    async def _send_body(self, send: Send, gone: "asyncio.Task[None]") -> None:
        offset, end = self._start, self._start + self._length
        self._read_ahead(offset, end)
        while True:
            chunk = await asyncio.wrap_future(self._reading)
            offset += len(chunk)
            if offset < end:
                self._read_ahead(offset, end)
            await send({"type": "http.response.body", "body": chunk, "more_body": offset < end})
            if offset == end or gone.done():
                return

    def _read_ahead(self, offset: int, end: int) -> None:
        self._reading = self._pool.submit(self._read, offset, min(CHUNK_BYTES, end - offset), end)

    def _read(self, offset: int, length: int, end: int) -> bytes:
        chunk = os.pread(self._fd, length, offset)
        if len(chunk) < length or (offset + length == end and not self._found.is_still(os.fstat(self._fd))):
            raise FileChanged
        return chunk


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
