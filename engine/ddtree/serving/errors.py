"""Errors that a client sees: one exception that becomes OpenAI's error object."""

from typing import Any


class ApiError(Exception):
    """A request ends with this HTTP status and this message.

    param names the offending request field, code is OpenAI's machine-readable word (`model_not_found`, …).
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.headers = headers or {}

    def body(self) -> dict[str, Any]:
        """The JSON that OpenAI's clients turn into an exception."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


def unavailable(message: str, code: str, retry_after_s: int) -> ApiError:
    """503 with Retry-After: the client may send the same request again later."""
    return ApiError(503, message, code=code, headers={"Retry-After": str(retry_after_s)})
