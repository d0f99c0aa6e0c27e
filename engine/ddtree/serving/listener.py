"""The listening socket, opened before the model loads."""

import socket

from ddtree.errors import UserError


def open_port(host: str, port: int) -> socket.socket:
    """A listening TCP socket, before anything slow happens; port 0 takes a free one. Raises UserError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UserError(f"--host {host}: no address of this machine ({error})") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        hint = f"stop what listens there (ss -ltnp 'sport = :{port}') or choose another --port"
        raise UserError(f"cannot listen on {host} port {port}: {error.strerror}; {hint}") from None
    return listener
