"""The process around the application: a listening socket, uvicorn, signals, and an orderly end."""

import asyncio
import contextlib
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI

from ddtree.serving.app import create_app
from ddtree.serving.metrics import ServingMetrics
from ddtree.serving.settings import ServingSettings
from ddtree.serving.worker import Worker

if TYPE_CHECKING:
    from ddtree.runtime.engine import Engine

logger = logging.getLogger("ddtree.serving")

# After the running request was cut: time for the last bytes to leave.
CLOSE_S = 2


class _Uvicorn(uvicorn.Server):
    """uvicorn would end the process by the signal that stopped it; here a stop is a success."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class ApiServer:
    """Serves until stop() is called, a signal arrives, or the engine fails to start."""

    def __init__(self, app: FastAPI, worker: Worker, listener: socket.socket, settings: ServingSettings) -> None:
        self._worker = worker
        self._listener = listener
        self._drain_s = settings.drain_s
        self._uvicorn = _Uvicorn(
            uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                access_log=settings.access_log,
                timeout_graceful_shutdown=int(settings.drain_s) + CLOSE_S,
            )
        )
        host, port = listener.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stops = 0

    def run(self, on_loop: Callable[[], None] = lambda: None) -> bool:
        """Blocks until the server has ended. Returns False when the engine's thread could not be ended in time.

        on_loop is called once the event loop runs. Raises the engine's error when it failed to start.
        """
        logger.info("listening on %s; /health answers 200 when the model is loaded", self.url)
        asyncio.run(self._serve(on_loop))
        ended = self._worker.stop(CLOSE_S)
        if self._worker.start_error is not None:
            raise self._worker.start_error
        return ended

    def stop(self) -> None:
        """From any thread: accepts nothing more, lets the running request go on for drain_s, then cuts it.

        A second call cuts it at once.
        """
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop has ended already
            self._loop.call_soon_threadsafe(self._stop)

    async def _serve(self, on_loop: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._loop.add_signal_handler(number, self._stop)
        self._worker.on_start_failure = self.stop
        self._worker.start()
        on_loop()
        await self._uvicorn.serve(sockets=[self._listener])

    def _stop(self) -> None:
        self._stops += 1
        if self._stops == 1:
            if self._worker.start_error is None:
                logger.info("stopping: a running request has %g s", self._drain_s)
            self._worker.drain()
            self._uvicorn.should_exit = True
            asyncio.get_running_loop().call_later(self._drain_s, self._worker.cut)
        else:
            self._worker.cut()


def build_server(
    settings: ServingSettings, listener: socket.socket, load: Callable[[], "Engine"], build_labels: dict[str, str]
) -> ApiServer:
    """Puts worker, metrics and application together. load runs in the engine's thread.

    build_labels: what ddtree_build_info says besides version and model.
    """
    metrics = ServingMetrics({"model": settings.model_name, **build_labels})
    worker = Worker(load, metrics, max_queue=settings.max_queue, stall_s=settings.stall_s)
    app = create_app(settings, worker, metrics, created=int(time.time()))
    return ApiServer(app, worker, listener, settings)
