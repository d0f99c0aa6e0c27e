"""Addresses of a hub: checking an endpoint, comparing origins, building the address of a file."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from ansible.module_utils.provision_error import ProvisionError

DEFAULT_PORTS = {"http": 80, "https": 443}


def checked_endpoint(endpoint):
    """The endpoint without a trailing slash; an address that cannot be a hub raises ProvisionError."""
    parts = urlsplit(endpoint)
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or parts.query or parts.fragment:
        raise ProvisionError(f"endpoint {endpoint!r}: not a hub's address; write it like https://huggingface.co")
    if "@" in parts.netloc:
        raise ProvisionError(
            f"endpoint {parts.scheme}://…@{parts.hostname}: must not hold a user or password "
            "(they would be logged with every address); use the option token"
        )
    return endpoint.rstrip("/")


def origin(url):
    """(scheme, host, port): what decides whether a token may go there."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or DEFAULT_PORTS.get(parts.scheme)


def file_url(endpoint, repo_id, commit, path):
    """The hub's address of one file at one commit."""
    return f"{endpoint}/{quote(repo_id)}/resolve/{commit}/{quote(path)}"
