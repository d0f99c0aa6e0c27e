"""Reads one file with our own HTTP client: for a hub that serves the bytes itself and wants the token for them.

One connection, from the start each time. The token goes to that host only; a redirect is refused, not followed.
"""

from __future__ import annotations

from ansible.module_utils.provision_error import ProvisionError

CHUNK_BYTES = 1024 * 1024


class DirectCancelled(Exception):
    """The run is ending."""


class DirectFailure(Exception):
    """The transfer broke off; another attempt may succeed. `headers` are the answer's, or empty."""

    def __init__(self, message, headers=None):
        super().__init__(message)
        self.headers = headers or {}


def download_direct(session, url, part, on_bytes, cancelled):
    """Writes the file of the PartFile `part` from `url`. `on_bytes(n)` after every chunk."""
    part.delete()
    part.prepare()
    try:
        with session.request("GET", url, stream=True) as answer:
            if answer.is_redirect:
                raise ProvisionError(
                    f"file {part.entry.path}: the hub redirects its own address under a token; use another endpoint"
                )
            if answer.status_code != 200:
                raise DirectFailure(f"HTTP {answer.status_code}", answer.headers)
            with open(part.path, "wb") as file:
                received = 0
                for chunk in answer.iter_content(CHUNK_BYTES):
                    if cancelled.is_set():
                        raise DirectCancelled(part.entry.path)
                    received += len(chunk)
                    if received > part.entry.size_bytes:
                        raise DirectFailure(f"more than {part.entry.size_bytes:,} bytes")
                    file.write(chunk)
                    on_bytes(len(chunk))
    except session.failures as error:
        raise DirectFailure(f"{type(error).__name__}: {error}") from error
