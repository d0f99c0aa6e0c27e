"""The optional API key: read from a file, compared in constant time."""

import hmac
from pathlib import Path

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ddtree.errors import UserError
from ddtree.serving.errors import ApiError

# Supervisors and Prometheus ask without a key; neither answer holds anything of a request.
OPEN_PATHS = frozenset({"/health", "/metrics"})


def read_api_key(path: Path) -> str:
    """The key in a file: one line. Never an argument, which every user of the machine could read."""
    try:
        lines = path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--api-key-file {path}: cannot be read ({error}); write the key into it as one line") from None
    if len(lines) != 1 or not lines[0].isascii():
        raise UserError(
            f"--api-key-file {path}: must hold one key of ASCII characters without spaces, has {len(lines)} words"
        )
    return lines[0]


class Authentication:
    """ASGI middleware: `Authorization: Bearer KEY`, or 401 in OpenAI's format."""

    def __init__(self, app: ASGIApp, api_key: str) -> None:
        self._app = app
        self._expected = b"Bearer " + api_key.encode("ascii")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                problem = (
                    "Incorrect API key provided" if given else "No API key provided; send Authorization: Bearer KEY"
                )
                error = ApiError(401, problem, code="invalid_api_key")
                response = JSONResponse(error.body(), 401, headers={"WWW-Authenticate": "Bearer"})
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)
