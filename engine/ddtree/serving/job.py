"""One request on its way through the worker: what to generate, and the events that come back.

The worker thread writes, the event loop reads; the one thing that crosses in the other direction is `cancelled`.
"""

import asyncio
import threading
from dataclasses import dataclass

from ddtree.runtime.types import Mode, SamplingParams
from ddtree.serving.errors import ApiError
from ddtree.serving.record import GenerationRecord


@dataclass(frozen=True)
class Delta:
    """More text of the reply; never empty."""

    text: str


@dataclass(frozen=True)
class Finished:
    """The reply is complete: OpenAI's finish reason, "stop" or "length"."""

    reason: str


@dataclass(frozen=True)
class Failed:
    """The reply will not be completed."""

    error: ApiError


Event = Delta | Finished | Failed


class Job:
    """Made on the event loop, which reads `next_event()` until a Finished or a Failed."""

    def __init__(
        self, job_id: str, prompt_ids: list[int], params: SamplingParams, stops: list[str], mode: Mode
    ) -> None:
        self.id = job_id
        self.prompt_ids = prompt_ids
        self.params = params
        self.stops = stops
        self.mode = mode
        self.record = GenerationRecord(mode=mode, prompt_tokens=len(prompt_ids))
        self.cancelled = threading.Event()  # the worker looks at it between two steps
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._lock = threading.Lock()
        self._closed = False

    async def next_event(self) -> Event:
        return await self._events.get()

    def emit(self, event: Event) -> bool:
        """Hands an event to the reader, from any thread. False when the last event was handed over before."""
        with self._lock:
            if self._closed:
                return False
            self._closed = not isinstance(event, Delta)
        try:
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)
        except RuntimeError:  # the event loop has ended, and with it the reader
            return False
        return True
