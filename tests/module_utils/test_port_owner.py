"""The kernel's table of sockets, as recorded, and the live one."""

import os
import socket

import pytest
from ansible.module_utils.port_owner import parse_listeners, port_owner

TCP = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0000 100 0 0 10 0
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 17 1 0000 100 0 0 10 0
   2: 0100007F:9C40 0100007F:1F40 01 00000000:00000000 00:00000000 00000000     0        0 4243 1 0000 100 0 0 10 0
"""
TCP6 = (
    "  sl  local_address                         remote_address                        st tx_queue rx_queue …\n"
    "   0: 00000000000000000000000001000000:1F40 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000     0        0 99 1 0000 100 0 0 10 0\n"
)


def test_listening_sockets_alone_are_listeners():
    assert parse_listeners(TCP) == [("127.0.0.1", 8000, "4242"), ("0.0.0.0", 22, "17")]
    assert parse_listeners(TCP6) == [("::1", 8000, "99")]


def test_the_owner_of_a_socket_of_this_process():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        owner = port_owner("127.0.0.1", port)
        assert (owner.pid, owner.address, owner.port) == (os.getpid(), "127.0.0.1", port)
        assert owner.command
    assert port_owner("127.0.0.1", port) is None


def test_a_port_with_connections_in_time_wait_is_free():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
    accepted.close()  # the server closes first, so that its side waits
    client.close()
    assert port_owner("127.0.0.1", port) is None


@pytest.mark.parametrize(
    ("listening", "wanted", "collides"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("0.0.0.0", "127.0.0.1", True),
        ("127.0.0.1", "0.0.0.0", True),
        ("127.0.0.1", "localhost", True),
        ("127.0.0.2", "127.0.0.3", False),
    ],
)
def test_which_addresses_collide(listening, wanted, collides):
    with socket.create_server((listening, 0)) as server:
        assert (port_owner(wanted, server.getsockname()[1]) is not None) == collides
