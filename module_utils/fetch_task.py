"""One file on its way: its state, its bytes so far, and how often it may still be tried."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.fetch_progress import MIB, progress_row
from ansible.module_utils.hub_wait import WaitBudget
from ansible.module_utils.part_file import PartFile

WAITING, RESOLVING, DOWNLOADING, READING, VERIFYING, DONE = (
    "waiting",
    "resolving",  # asking the hub for an address, or waiting until it may be asked again
    "downloading",  # by aria2
    "reading",  # by our own client
    "verifying",
    "done",
)
IN_WORK = (RESOLVING, DOWNLOADING, READING, VERIFYING)
TRIES_WITHOUT_PROGRESS = 6


@dataclass
class FetchTask:
    """`future` belongs to the states resolving, reading and verifying, `gid` to downloading."""

    entry: Any
    part: PartFile
    budget: WaitBudget
    state: str = WAITING
    future: Any = None
    gid: str | None = None
    uris: tuple = ()
    single_stream: bool = False
    wrong_downloads: int = 0
    trusted_part: bool = False
    done_bytes: int = 0
    resumed_bytes: int = 0
    received_bytes: int = 0
    bytes_per_s: float = 0.0
    hashed_bytes: int = 0
    _best_bytes: int = 0
    _started: float = field(default_factory=time.monotonic)

    def begin(self):
        """A download starts at what the partial file holds."""
        self.resumed_bytes = self.done_bytes = self.part.resumed_bytes()
        self._best_bytes = max(self._best_bytes, self.done_bytes)
        self._started = time.monotonic()

    def advance(self, done_bytes, bytes_per_s):
        self.done_bytes = max(done_bytes, self.resumed_bytes)
        self.bytes_per_s = bytes_per_s

    def receive(self, count):
        """More bytes, read by our own client."""
        self.done_bytes += count
        self.bytes_per_s = self.done_bytes / max(time.monotonic() - self._started, 0.001)

    def end(self):
        """A download has ended, well or not: accounts for what it brought."""
        self.received_bytes += self.done_bytes - self.resumed_bytes
        self.bytes_per_s = 0.0
        self.gid = None
        if self.done_bytes > self._best_bytes:
            self._best_bytes = self.done_bytes
            self.budget.reset()

    def restart(self, forget=False):
        """This file, from its first byte. It has to get further than before to count as progress, unless `forget`."""
        self.part.delete()
        self.done_bytes = self.resumed_bytes = 0
        if forget:
            self._best_bytes = 0

    def row(self):
        """Its line in the progress file."""
        done_bytes = self.hashed_bytes if self.state == VERIFYING else self.done_bytes
        row = progress_row(self.entry.size_bytes, done_bytes, self.bytes_per_s / MIB)
        return {"path": self.entry.path, "state": self.state, **row}


def make_task(folder, entry, rate_limit_wait_s):
    """A task for a manifest entry, ready to start."""
    return FetchTask(entry, PartFile(folder, entry), WaitBudget(rate_limit_wait_s, TRIES_WITHOUT_PROGRESS))
