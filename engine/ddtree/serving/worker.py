"""The one thread that owns the engine: loads it, proves it with a few tokens, then serves jobs in their order.

A job that is cancelled frees the thread at its next step. An engine that fails a job must prove itself again before
it gets another one; if it cannot, the worker is dead and says why.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ddtree.errors import UserError
from ddtree.runtime.types import Step
from ddtree.serving.errors import ApiError, unavailable
from ddtree.serving.generation import generate_reply, self_check
from ddtree.serving.job import Failed, Job
from ddtree.serving.metrics import ServingMetrics

if TYPE_CHECKING:
    from ddtree.runtime.engine import Engine

logger = logging.getLogger("ddtree.serving")

State = Literal["loading", "ready", "checking", "draining", "failed"]
LOADING_RETRY_S = 5
BUSY_RETRY_S = 2


@dataclass(frozen=True)
class Health:
    """ok: a request sent now would be generated. reason: why not."""

    ok: bool
    status: str
    reason: str | None = None


class Worker:
    """All methods may be called from any thread."""

    def __init__(
        self, load: Callable[[], "Engine"], metrics: ServingMetrics, *, max_queue: int, stall_s: float
    ) -> None:
        """load runs in the worker's thread."""
        self._load = load
        self._metrics = metrics
        self._max_queue = max_queue
        self._stall_s = stall_s
        # Called in the worker's thread when load or the first self-check fails, after start_error is set.
        self.on_start_failure: Callable[[], None] = lambda: None
        self.start_error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ddtree-engine", daemon=True)
        self._wake = threading.Condition()  # guards everything below
        self._engine: Engine | None = None  # set once it has proved itself
        self._state: State = "loading"
        self._reason = "the model is loading; no token was generated yet"
        self._queue: deque[Job] = deque()
        self._running: Job | None = None
        self._progress_at = time.monotonic()
        self._stopping = False
        metrics.watch(in_flight=lambda: int(self._running is not None), queued=lambda: len(self._queue))

    def start(self) -> None:
        self._thread.start()

    def health(self) -> Health:
        with self._wake:
            if self._state != "ready":
                return Health(False, self._state, self._reason)
            if not self._thread.is_alive():
                return Health(False, "failed", "the engine's thread has ended")
            silent_s = time.monotonic() - self._progress_at
            if self._running is not None and silent_s > self._stall_s:
                return Health(False, "stalled", f"request {self._running.id} made no progress for {silent_s:.0f} s")
        return Health(True, "ok")

    def engine(self) -> "Engine":
        """Raises ApiError (503) while the engine is loading, failed or shutting down."""
        with self._wake:
            if self._state == "failed":
                raise _engine_failed(self._reason)
            if self._state == "draining":
                raise _shutting_down()
            if self._engine is None:
                raise unavailable("the model is loading; try again later", "model_loading", LOADING_RETRY_S)
            return self._engine

    def submit(self, job: Job) -> None:
        """Queues a job. Raises ApiError (503, with Retry-After) when the queue is full or the engine is not ready."""
        with self._wake:
            self.engine()
            # A job that the thread has not taken up yet will not wait for a running one.
            if len(self._queue) + (self._running is not None) > self._max_queue:
                message = f"the queue is full ({self._max_queue} requests wait behind the running one); try again later"
                raise unavailable(message, "queue_full", BUSY_RETRY_S)
            self._queue.append(job)
            self._wake.notify_all()

    def cancel(self, job: Job) -> None:
        """Nobody reads this job's events any more: takes it out of the queue, or ends it at its next step."""
        job.cancelled.set()
        with self._wake:
            if job in self._queue:
                self._queue.remove(job)

    def drain(self) -> None:
        """Takes no new jobs and drops the waiting ones; the running one goes on."""
        with self._wake:
            if self._state != "failed":
                self._state, self._reason = "draining", "the server is shutting down"
            self._drop_queue(_shutting_down())

    def cut(self) -> None:
        """Ends the running job: its reader gets an error at once, the thread is free at its next step."""
        with self._wake:
            if self._running is not None:
                self._running.cancelled.set()
                self._running.emit(Failed(_shutting_down()))

    def stop(self, timeout_s: float) -> bool:
        """Ends the thread. False when it still sits in a step (or in loading) after timeout_s."""
        self.drain()
        self.cut()
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            engine = self._load()
            self_check(engine)
        except BaseException as error:
            self.start_error = error
            self._fail(error)
            self.on_start_failure()
            return
        with self._wake:
            self._engine = engine
        self._become("ready", was="loading")
        try:
            while (job := self._next_job()) is not None:
                self._serve(engine, job)
        except BaseException as error:
            logger.exception("the engine's thread ends")
            self._fail(error)

    def _next_job(self) -> Job | None:
        with self._wake:
            self._running = None
            while not self._queue and not self._stopping:
                self._wake.wait()
            if self._stopping:
                return None
            self._running = self._queue.popleft()
            self._progress_at = time.monotonic()
            return self._running

    def _serve(self, engine: "Engine", job: Job) -> None:
        """Generates one reply. Raises when the engine fails it and then fails the self-check too."""

        def on_step(step: Step) -> None:
            self._progress_at = time.monotonic()
            self._metrics.step(job.record, step)

        outcome = "failed"
        try:
            outcome = generate_reply(engine, job, on_step)
        except UserError as error:  # the request's fault: the engine is sound
            outcome = "refused"
            job.emit(Failed(ApiError(400, str(error))))
        except Exception as error:
            logger.exception("request %s: the engine failed", job.id)
            job.emit(Failed(ApiError(500, f"the engine failed: {_describe(error)}", code="engine_error")))
            self._become("checking", was="ready", reason=f"the engine failed a request: {_describe(error)}")
            self_check(engine)
            self._become("ready", was="checking")
        finally:
            self._metrics.finished(job.record)
            logger.info("request %s: %s, %s", job.id, outcome, job.record.summary())

    def _become(self, state: State, *, was: State, reason: str = "") -> None:
        """Changes the state unless something else, such as a shutdown, changed it first."""
        with self._wake:
            if self._state == was:
                self._state, self._reason = state, reason
                logger.info("engine: %s%s", state, reason and f" ({reason})")

    def _fail(self, error: BaseException) -> None:
        with self._wake:
            self._state, self._reason = "failed", _describe(error)
            self._running = None
            self._drop_queue(_engine_failed(self._reason))

    def _drop_queue(self, error: ApiError) -> None:
        while self._queue:
            self._queue.popleft().emit(Failed(error))


def _describe(error: BaseException) -> str:
    return str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"


def _engine_failed(reason: str) -> ApiError:
    return ApiError(503, f"the engine has failed: {reason}", code="engine_failed")


def _shutting_down() -> ApiError:
    return unavailable("the server is shutting down", "shutting_down", LOADING_RETRY_S)
