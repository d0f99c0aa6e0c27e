"""Counts every answered request by endpoint and status."""

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ddtree.serving.metrics import ServingMetrics

_STATUS_KEY = "ddtree.status"


def note_status(request: Request, status: int) -> None:
    """Counts this request under another status than the one that was sent (a client that left, a cut stream)."""
    request.scope[_STATUS_KEY]["status"] = status


class Accounting:
    """ASGI middleware, outermost: it also sees the requests that another layer refuses."""

    def __init__(self, app: ASGIApp, metrics: ServingMetrics, endpoints: frozenset[str]) -> None:
        """endpoints: paths that get a label of their own; all others count as "other", so that labels stay few."""
        self._app = app
        self._metrics = metrics
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = 500  # an application that ends without an answer

        async def watched_send(message: Message) -> None:
            nonlocal sent
            if message["type"] == "http.response.start":
                sent = message["status"]
            await send(message)

        # Inner layers copy the scope's dict, not what is in it.
        noted: dict[str, int] = {}
        scope = {**scope, _STATUS_KEY: noted}
        try:
            await self._app(scope, receive, watched_send)
        finally:
            self._metrics.answered(self._endpoint(scope["path"]), noted.get("status", sent))

    def _endpoint(self, path: str) -> str:
        if path.startswith("/v1/models/"):
            return "/v1/models/{id}"
        return path if path in self._endpoints else "other"
