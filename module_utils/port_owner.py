"""Who listens on a TCP port: the kernel says whether, /proc/net/tcp{,6} which socket, /proc/PID/fd whose it is."""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import socket
import sys
from dataclasses import dataclass

from ansible.module_utils.process_facts import command_of
from ansible.module_utils.provision_error import ProvisionError

_LISTEN = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


@dataclass(frozen=True)
class PortOwner:
    """`pid`, `name` and `command` are None where the process belongs to somebody else and we are not root."""

    address: str
    port: int
    pid: int | None
    name: str | None
    command: str | None


def parse_listeners(text: str) -> list[tuple[str, int, str]]:
    """(address, port, inode) of the listening sockets in the text of /proc/net/tcp or tcp6."""
    listeners = []
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 10 or fields[3] != _LISTEN:
            continue
        address, port = fields[1].split(":")
        # The address stands there as 32-bit words in the machine's byte order.
        words = [int(address[start : start + 8], 16).to_bytes(4, sys.byteorder) for start in range(0, len(address), 8)]
        listeners.append((str(ipaddress.ip_address(b"".join(words))), int(port, 16), fields[9]))
    return listeners


def port_owner(host: str, port: int) -> PortOwner | None:
    """The one whose listening socket keeps us from listening on host:port, or None.

    Errors: ProvisionError for a host that is unknown or not this one.
    """
    addresses = _addresses(host, port)
    if all(_can_listen(family, address, host) for family, address in addresses):
        return None
    wanted = [ipaddress.ip_address(address[0].partition("%")[0]) for _, address in addresses]
    for address, listening_port, inode in _listeners():
        if listening_port == port and _collide(ipaddress.ip_address(address), wanted):
            pid = _holder_of(inode)
            return PortOwner(address, port, pid, _name_of(pid) if pid else None, command_of(pid) if pid else None)
    # A socket of another network namespace that forwards here, for one.
    return PortOwner(host, port, None, None, None)


def _addresses(host: str, port: int) -> list[tuple]:
    """(family, socket address) of every address that the host's name stands for."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise ProvisionError(f"host: {host!r} is not an address or a known name: {error.strerror}") from error
    return [(entry[0], entry[4]) for entry in found]


def _can_listen(family: int, address: tuple, host: str) -> bool:
    """Asks the kernel by listening for a moment."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # As servers do: without it, connections of a server that just ended (TIME_WAIT) would count as a listener.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        if error.errno == errno.EADDRNOTAVAIL:
            # Of `localhost`, a host without IPv6 lacks ::1; only a name's single address must be there.
            if family == socket.AF_INET6 and host == "localhost":
                return True
            raise ProvisionError(
                f"host: {host} is not an address of this host; correct it, or use 127.0.0.1 or 0.0.0.0"
            ) from error
        if error.errno == errno.EACCES:
            raise ProvisionError(f"port {address[1]} may only be opened by root; choose one from 1024 on") from error
        if error.errno == errno.EAFNOSUPPORT:
            return True
        raise
    return True


def _collide(listening, wanted: list) -> bool:
    """Equal addresses collide, and so does the wildcard with every one. `::` usually takes IPv4 as well."""
    for address in wanted:
        if listening == address or (
            listening.is_unspecified and (listening.version == address.version or listening.version == 6)
        ):
            return True
        if address.is_unspecified and (listening.version == address.version or address.version == 6):
            return True
    return False


def _listeners():
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/net/{name}", encoding="ascii") as file:
                yield from parse_listeners(file.read())
        except FileNotFoundError:
            continue


def _holder_of(inode: str) -> int | None:
    """The oldest process with the socket open: a server's workers inherit it from their parent."""
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdecimal()):
        folder = f"/proc/{pid}/fd"
        try:
            for descriptor in os.listdir(folder):
                match = _SOCKET.fullmatch(os.readlink(f"{folder}/{descriptor}"))
                if match and match[1] == inode:
                    return pid
        except OSError:
            continue
    return None


def _name_of(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None
