"""An aria2c of our own: JSON-RPC on loopback, a random secret, and an end that does not outlive ours.

The secret reaches aria2c in a configuration file that exists in memory alone (memfd), so that neither the command
line nor a disk ever holds it, however we end. `stop-with-process` ends aria2c when we die, even by SIGKILL, and the
folder's lock, which it inherits, tells the next run until when it wrote.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time

from ansible.module_utils.provision_error import ProvisionError, require_library

START_TRIES = 5
START_TIMEOUT_S = 15
STOP_TIMEOUT_S = 20
RPC_TIMEOUT_S = 30
FIRST_RPC_TIMEOUT_S = 3
# What aria2c needs of our environment: no token, no netrc's HOME.
ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def find_aria2c(name="aria2c"):
    """The absolute path of the aria2c binary, by name from PATH or by path."""
    if path := shutil.which(name):
        return path
    raise ProvisionError(
        f"aria2c: no executable {name!r} on PATH {os.environ.get('PATH', '')!r}; "
        "install the package aria2 (as root: apt-get install aria2) or name the binary by the option aria2c"
    )


class Aria2Daemon:
    """A running aria2c; a context manager. `client` is an aria2p.Client that speaks to it alone."""

    def __init__(self, options, binary="aria2c", inherit=()):
        """`options` go into its configuration file; `inherit` are file descriptors that it keeps open (the lock)."""
        self._binary = find_aria2c(binary)
        self._options = dict(options)
        self._inherit = tuple(inherit)
        self._aria2p = require_library("aria2p", "to drive aria2c")
        self._requests = require_library("requests", "to drive aria2c")

    def __enter__(self):
        for _ in range(START_TRIES):
            if self._start():
                return self
        raise ProvisionError(
            f"aria2c {self._binary}: does not answer on loopback after {START_TRIES} starts "
            f"(exit status {self.process.returncode}): {self._said() or 'it said nothing'}"
        )

    def __exit__(self, *_exception):
        self.stop()

    def stop(self):
        """Ends aria2c; it saves its control files first."""
        if self.process.poll() is None:
            self.process.terminate()
            # An idle aria2c looks for signals once a second; a request wakes it.
            with contextlib.suppress(self._requests.RequestException, self._aria2p.ClientException, ValueError):
                self.client.get_version()
            try:
                self.process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._output.close()

    def call(self, method, *arguments):
        """Calls a method of aria2p's client. An aria2c that has died, or does not answer, raises ProvisionError."""
        try:
            return getattr(self.client, method)(*arguments)
        except (self._requests.RequestException, self._aria2p.ClientException, ValueError) as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1)
            self.require_alive()
            raise ProvisionError(
                f"aria2c (process {self.process.pid}): {method} failed ({type(error).__name__}: {error}); "
                "rerun, the partial files are resumed"
            ) from error

    def require_alive(self):
        """Raises ProvisionError where aria2c has ended although nobody asked it to."""
        if self.process.poll() is not None:
            raise ProvisionError(
                f"aria2c (process {self.process.pid}) ended with exit status {self.process.returncode} in the middle "
                f"of its work: {self._said() or 'it said nothing'}; rerun, the partial files are resumed"
            )

    def _start(self):
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - aria2c writes there until stop() closes it
        port, secret = _free_port(), secrets.token_urlsafe(32)
        conf = os.memfd_create("aria2.conf")
        try:
            os.write(conf, _configuration(self._options, port, secret).encode())
            self.process = subprocess.Popen(
                [self._binary, f"--conf-path=/proc/self/fd/{conf}"],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=(conf, *self._inherit),
                env=_environment(),
            )
        finally:
            os.close(conf)
        self.client = _loopback_client(self._aria2p, self._requests, port, secret)
        return self._answers()

    def _answers(self):
        """Waits for the first answer. Only our aria2c knows the secret: another program on the port cannot pass.

        While nobody listens, aria2c is still starting. A listener that gives no good answer is somebody else (aria2c
        goes on without the port then); the next start takes another port.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                self.client.get_version()
                self.client.timeout = RPC_TIMEOUT_S
                return True
            except self._requests.ConnectionError:
                time.sleep(0.02)
            except (self._requests.RequestException, self._aria2p.ClientException, ValueError, KeyError):
                break
        self.process.kill()
        self.process.wait()
        return False

    def _said(self):
        self._output.seek(0)
        return self._output.read()[-2000:].decode(errors="replace").strip()


def _configuration(options, port, secret):
    ours = {
        "enable-rpc": "true",
        "rpc-listen-all": "false",
        "rpc-listen-port": port,
        "rpc-secret": secret,
        "rpc-max-request-size": "8M",
        "stop-with-process": os.getpid(),
        "no-netrc": "true",
        "quiet": "true",
        "show-console-readout": "false",
        "summary-interval": "0",
        "disk-cache": "64M",
        "max-download-result": "1000",
    }
    return "".join(f"{key}={value}\n" for key, value in {**options, **ours}.items())


def _environment():
    """Ours without what aria2c must not see. Proxies may be written in either case."""
    kept = {name: value for name, value in os.environ.items() if name in ENVIRONMENT or name.lower() in PROXIES}
    return {**kept, "HOME": "/nonexistent"}


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _loopback_client(aria2p, requests, port, secret):
    session = requests.Session()
    session.trust_env = False  # a proxy of the environment must not see the secret, nor loopback addresses

    class LoopbackClient(aria2p.Client):
        def post(self, payload):
            return session.post(self.server, data=payload, timeout=self.timeout).json()

    return LoopbackClient(host="http://127.0.0.1", port=port, secret=secret, timeout=FIRST_RPC_TIMEOUT_S)
