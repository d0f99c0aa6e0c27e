"""The process around the mirror: listening socket, first look at the repositories, uvicorn, and an orderly end."""

import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Iterator

import uvicorn

from ddtree.mirror.app import create_app
from ddtree.mirror.catalog import Catalog

logger = logging.getLogger("ddtree.mirror")

# Downloads that run when the mirror is stopped get so long, then they are cut; clients resume elsewhere.
_CLOSE_S = 1
# Longer than a client takes to verify a shard before it asks for the next one on the same connection.
_KEEP_ALIVE_S = 75


class _Uvicorn(uvicorn.Server):
    """uvicorn would end the process by the signal that stopped it; here the caller decides."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class MirrorServer:
    """Serves a catalog on a listening socket until stop() is called or a signal arrives."""

    def __init__(self, catalog: Catalog, listener: socket.socket) -> None:
        self._catalog = catalog
        self._listener = listener
        self._prepared = threading.Event()
        self._interrupted = False
        self._uvicorn = _Uvicorn(
            uvicorn.Config(
                create_app(catalog, self._prepared.is_set),
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=_CLOSE_S,
            )
        )
        host, port = listener.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def run(self) -> None:
        """Blocks until the server has ended. Raises KeyboardInterrupt after Ctrl-C."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, self._on_signal)
        logger.info(
            "serving %s on %s; /health answers 200 when every file's hash is known", self._catalog.root, self.url
        )
        threading.Thread(target=self._prepare, name="mirror-prepare", daemon=True).start()
        try:
            self._uvicorn.run(sockets=[self._listener])
        finally:
            self._catalog.close()
            self._listener.close()
        if self._interrupted:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """From any thread: accepts nothing more and ends soon."""
        self._uvicorn.should_exit = True

    def _prepare(self) -> None:
        self._catalog.prepare()
        if not self._catalog.repo_ids():
            logger.warning("%s holds no <org>/<name>/ folder yet; one that appears is served", self._catalog.root)
        self._prepared.set()

    def _on_signal(self, number: int, _: object) -> None:
        self._interrupted |= number == signal.SIGINT
        self._uvicorn.force_exit |= self._uvicorn.should_exit  # a second signal waits for nothing
        self._uvicorn.should_exit = True
