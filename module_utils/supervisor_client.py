"""Talks to a supervisord over its Unix socket (XML-RPC), with the standard library alone."""

from __future__ import annotations

import http.client
import socket
import xmlrpc.client
from contextlib import contextmanager

from ansible.module_utils.provision_error import ProvisionError

# States of supervisor.states.ProcessStates in which it neither runs nor is about to.
STOPPED_STATES = ("STOPPED", "EXITED", "FATAL", "UNKNOWN")


class SupervisorClient:
    """One call, one connection. Every method raises ProvisionError with what supervisord said."""

    def __init__(self, path: str, timeout_s: float):
        self.path = path
        self._proxy = xmlrpc.client.ServerProxy("http://localhost/RPC2", transport=_UnixTransport(path, timeout_s))

    def pid(self) -> int | None:
        """Process id of supervisord; None when nobody answers on the socket."""
        try:
            return self._proxy.supervisor.getPID()
        except OSError:
            return None
        except xmlrpc.client.Error as error:
            raise ProvisionError(f"supervisord on {self.path} answers {error}; is it still shutting down?") from error

    def program(self, name: str) -> dict | None:
        """What supervisord knows of a program (statename, pid, spawnerr …); None for one it does not supervise."""
        try:
            return self._proxy.supervisor.getProcessInfo(name)
        except xmlrpc.client.Fault as fault:
            if fault.faultString.startswith("BAD_NAME"):
                return None
            raise ProvisionError(f"supervisord on {self.path} says of {name}: {fault.faultString}") from fault
        except OSError as error:
            raise ProvisionError(f"supervisord on {self.path} does not answer: {error}") from error

    def update(self) -> bool:
        """Has the configuration read again, and programs added, changed or removed; True when there were any."""
        with self._explained("read its configuration again"):
            added, changed, removed = self._proxy.supervisor.reloadConfig()[0]
            for group in [*removed, *changed]:
                self._proxy.supervisor.stopProcessGroup(group)
                self._proxy.supervisor.removeProcessGroup(group)
            for group in [*changed, *added]:
                self._proxy.supervisor.addProcessGroup(group)
        return bool(added or changed or removed)

    def start(self, name: str) -> None:
        """Returns when its process was started; whether it stays is for others to see."""
        with self._explained(f"start {name}"):
            self._proxy.supervisor.startProcess(name, False)

    def stop(self, name: str) -> None:
        """Returns when its processes are gone."""
        with self._explained(f"stop {name}"):
            self._proxy.supervisor.stopProcess(name, True)

    def shutdown(self) -> None:
        """Asks supervisord to stop its programs and itself; returns at once."""
        with self._explained("shut down"):
            self._proxy.supervisor.shutdown()

    @contextmanager
    def _explained(self, action: str):
        try:
            yield
        except xmlrpc.client.Fault as fault:
            raise ProvisionError(f"supervisord on {self.path} did not {action}: {fault.faultString}") from fault
        except (OSError, xmlrpc.client.Error, http.client.HTTPException) as error:
            raise ProvisionError(
                f"supervisord on {self.path} did not {action}: {error}; see its supervisord.log"
            ) from error


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float):
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class _UnixTransport(xmlrpc.client.Transport):
    def __init__(self, path: str, timeout_s: float):
        super().__init__()
        self._path = path
        self._timeout_s = timeout_s

    def make_connection(self, host):  # noqa: ARG002 (the socket's path is the address)
        return _UnixConnection(self._path, self._timeout_s)
