"""The questions that tell whether an OpenAI-compatible server serves: /health, /v1/models, one generated token."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_BODY_BYTES = 1 << 20
_EXCERPT = 300


class NotReady(Exception):
    """Not yet: worth asking again."""


class WrongServer(Exception):
    """Asking again is pointless: another program, another model, or a key that is refused."""


@dataclass(frozen=True)
class CompletionsClient:
    """Talks to one address and nowhere else: no proxy, no redirect, so that the key cannot leave it."""

    url: str
    api_key: str | None = field(default=None, repr=False)

    def check_health(self, timeout_s: float) -> None:
        """Returns when /health answers 200."""
        status, headers, body = self._request("GET", "/health", None, timeout_s)
        if status == 200:
            return
        if status == 429 or status >= 500:
            raise NotReady(f"/health answers {status} {_excerpt(body)}".rstrip())
        server = headers.get("Server")
        raise WrongServer(
            f"{self.url} answers {status} to /health{f' (Server: {server})' if server else ''}: "
            "another program listens there; stop it or serve on another port"
        )

    def models(self, timeout_s: float) -> list[str]:
        """Ids of /v1/models."""
        status, _, body = self._request("GET", "/v1/models", None, timeout_s)
        if status == 429 or status >= 500:
            raise NotReady(f"/v1/models answers {status} {_excerpt(body)}".rstrip())
        try:
            ids = [entry["id"] for entry in json.loads(body)["data"]]
        except (ValueError, TypeError, KeyError):
            ids = None
        if status != 200 or ids is None:
            raise WrongServer(f"{self.url} answers {status} to /v1/models without a list of models: {_excerpt(body)}")
        if not ids:
            raise NotReady("/v1/models lists no model yet")
        return ids

    def generate_token(self, model: str, prompt: str, timeout_s: float) -> int:
        """Has one token generated; returns usage.completion_tokens (at least 1)."""
        request = {"model": model, "prompt": prompt, "max_tokens": 1, "temperature": 0}
        status, _, body = self._request("POST", "/v1/completions", request, timeout_s)
        if status == 429 or status >= 500:
            raise NotReady(f"/v1/completions answers {status} {_excerpt(body)}".rstrip())
        if status != 200:
            raise WrongServer(
                f"{self.url} answers {status} to a completion of one token by model {model}: {_excerpt(body)}"
            )
        try:
            tokens = int(json.loads(body)["usage"]["completion_tokens"])
        except (ValueError, TypeError, KeyError):
            tokens = 0
        if tokens < 1:
            raise NotReady(f"/v1/completions answers 200 without a token: {_excerpt(body)}")
        return tokens

    def _request(self, method: str, path: str, data: dict | None, timeout_s: float):
        parts = urlsplit(self.url)
        connection_class = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = connection_class(parts.hostname, parts.port, timeout=timeout_s)
        headers = {"Accept": "application/json", "Connection": "close"}
        body = None
        if data is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(data).encode()
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        try:
            connection.request(method, parts.path.rstrip("/") + path, body, headers)
            response = connection.getresponse()
            answer = response.status, response.headers, response.read(_BODY_BYTES)
        except socket.gaierror as error:
            raise WrongServer(
                f"{parts.hostname} is not a known host: {error.strerror}; correct the URL {self.url}"
            ) from error
        except ssl.SSLError as error:
            raise WrongServer(f"{self.url} does not speak TLS that this host trusts: {error}") from error
        except TimeoutError as error:
            raise NotReady(f"{path} gives no answer within {timeout_s:.0f} s") from error
        except OSError as error:  # refused, reset, closed without an answer (RemoteDisconnected is one)
            raise NotReady(f"{path}: {error.strerror or error}") from error
        except http.client.IncompleteRead as error:
            raise NotReady(f"{path}: the answer breaks off") from error
        except http.client.HTTPException as error:
            raise WrongServer(
                f"{self.url} answers, but not in HTTP ({str(error)[:_EXCERPT]}): "
                "another program listens there; stop it or serve on another port"
            ) from error
        finally:
            connection.close()
        if answer[0] in (401, 403):
            raise WrongServer(
                f"{self.url} answers {answer[0]} to {path}: "
                f"it wants {'another' if self.api_key else 'an'} API key (api_key)"
            )
        return answer


def _excerpt(body: bytes) -> str:
    return " ".join(body[:_EXCERPT].decode(errors="replace").split())
