"""Reading a request: its body, within a limit, and the moment its client goes away."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.requests import Request

from ddtree.serving.errors import ApiError

MAX_BODY_BYTES = 16 * 1024 * 1024


async def read_body(request: Request) -> bytes:
    """Raises ApiError (413) beyond MAX_BODY_BYTES, ClientDisconnect when the client leaves while sending."""
    chunks, size_bytes = [], 0
    async for chunk in request.stream():
        size_bytes += len(chunk)
        if size_bytes > MAX_BODY_BYTES:
            raise ApiError(413, f"the request body is larger than {MAX_BODY_BYTES} bytes", code="request_too_large")
        chunks.append(chunk)
    return b"".join(chunks)


@asynccontextmanager
async def on_disconnect(request: Request, action: Callable[[], None]) -> AsyncIterator[None]:
    """Calls action once when the client closes the connection inside the block. The body must have been read."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        action()

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
