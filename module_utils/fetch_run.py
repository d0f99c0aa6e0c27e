"""Fetches the files of a plan: resolves each address as its turn comes, lets aria2 download, proves, installs.

waiting → resolving → downloading (aria2) or reading (own client) → verifying → done
An expired address, a rate limit, a fault or a stall leads back to resolving, with what has arrived kept; a wrong
content leads back with nothing kept. Hashing runs in threads beside the downloads, so it costs no time of its own.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from ansible.module_utils import fetch_task as task_state
from ansible.module_utils.aria2_download import (
    NETWORK_ERRORS,
    NO_RESUME,
    STATUS_KEYS,
    file_options,
    http_status,
    raise_if_final,
)
from ansible.module_utils.direct_download import DirectFailure, download_direct
from ansible.module_utils.fetch_plan import hash_threads
from ansible.module_utils.fetch_task import IN_WORK, make_task
from ansible.module_utils.file_install import content_problem, install, set_aside
from ansible.module_utils.part_file import EMPTY, UNPROVEN
from ansible.module_utils.provision_error import ProvisionError

TICK_S = 0.05
RATE_LIMITED = 429


class FetchRun:
    """One pass over `plan.fetch`; `run` returns when every file is in place and raises at the first that cannot be."""

    def __init__(self, folder, manifest, plan, receipt, resolver, session, daemon, progress, settings, cancelled):
        self._folder = folder
        self._manifest = manifest
        self._plan = plan
        self._receipt = receipt
        self._resolver = resolver
        self._session = session
        self._daemon = daemon
        self._progress = progress
        self._settings = settings
        self._cancelled = cancelled
        self._source_count = max(1, len(settings["sources"]))
        # The largest first: the small ones then fill the gaps while the last large ones are hashed.
        by_size = sorted(plan.fetch, key=lambda entry: -entry.size_bytes)
        self.tasks = [make_task(folder, entry, settings["rate_limit_wait_s"]) for entry in by_size]
        self._in_the_way = set(plan.wrong)

    def run(self):
        connections = self._settings["parallel_files"]
        # The hub's answers and our own reading wait for the network, hashing needs a core.
        with ThreadPoolExecutor(connections) as self._network, ThreadPoolExecutor(hash_threads()) as self._hashing:
            try:
                while not all(task.state == task_state.DONE for task in self.tasks):
                    self._daemon.require_alive()
                    self._start_waiting()
                    finished = [task for task in self.tasks if task.state in IN_WORK and self._step(task)]
                    if finished:
                        self._receipt.save(self._manifest, complete=False)
                    self._progress.tick(self._describe)
                    self._cancelled.wait(TICK_S)
            finally:
                self._cancelled.set()

    def finished(self):
        """Manifest entries whose files this run has put in place."""
        return [task.entry for task in self.tasks if task.state == task_state.DONE]

    def received_bytes(self):
        """Bytes that came over the network; what partial files already held does not count."""
        return sum(task.received_bytes for task in self.tasks)

    def _start_waiting(self):
        busy = sum(task.state in IN_WORK and task.state != task_state.VERIFYING for task in self.tasks)
        for task in self.tasks:
            if task.state != task_state.WAITING or busy >= self._settings["parallel_files"]:
                continue
            task.part.prepare()
            if task.entry.size_bytes == 0:
                # aria2 has nothing to do for an empty file; its name and hash are still checked.
                with open(task.part.path, "wb"):
                    pass
                self._verify(task)
            elif task.part.state() == UNPROVEN:
                self._verify(task, trusted=False)
            else:
                self._resolve(task)
                busy += 1

    def _step(self, task):
        """Moves a task on if it can be; returns True when its file has just been put in place."""
        if task.state == task_state.DOWNLOADING:
            self._watch(task)
        elif task.future.done():
            if task.state == task_state.RESOLVING:
                self._download(task, task.future.result())
            elif task.state == task_state.READING:
                self._read_ended(task)
            else:
                return self._verified(task)
        return False

    def _resolve(self, task, pause_s=0.0, refused_uri=None):
        task.state = task_state.RESOLVING
        task.future = self._network.submit(self._resolve_job, task, pause_s, refused_uri)

    def _resolve_job(self, task, pause_s, refused_uri):
        if refused_uri is not None:
            pause_s = self._refusal_wait_s(task, refused_uri)
        if self._cancelled.wait(pause_s):
            return None
        return self._resolver.resolve(task.entry, rotate=task.wrong_downloads)

    def _refusal_wait_s(self, task, uri):
        """aria2 does not tell the headers of a 429: asks for one byte and reads there how long to wait."""
        try:
            with self._session.request(
                "GET", uri, with_token=False, stream=True, headers={"Range": "bytes=0-0"}
            ) as answer:
                headers = answer.headers if answer.status_code == RATE_LIMITED else {}
        except self._session.failures:
            headers = {}
        return self._pause_s(task, f"HTTP {RATE_LIMITED} (rate limit)", headers)

    def _download(self, task, resolved):
        self._clear_the_way()
        if resolved.direct is not None:
            task.begin()
            task.state = task_state.READING
            task.done_bytes = task.resumed_bytes = 0
            task.future = self._network.submit(
                download_direct, self._session, resolved.direct, task.part, task.receive, self._cancelled
            )
            return
        if task.single_stream:
            task.restart()
        task.part.prepare()
        task.begin()
        task.uris = resolved.uris
        task.gid = self._daemon.call("add_uri", list(resolved.uris), file_options(task.part, task.single_stream))
        task.state = task_state.DOWNLOADING

    def _clear_the_way(self):
        """Sets all wrong files aside, once a hub has answered: until then they are better than nothing.

        A file whose complete partial file is being proven is replaced in one step and needs no clearing.
        """
        for task in self.tasks:
            name = task.entry.path
            if name in self._in_the_way and task.state in (task_state.WAITING, task_state.RESOLVING):
                set_aside(self._folder, name, name in self._plan.superseded)
                self._in_the_way.discard(name)

    def _watch(self, task):
        status = self._daemon.call("tell_status", task.gid, STATUS_KEYS)
        task.advance(int(status["completedLength"]), float(status["downloadSpeed"]))
        if status["status"] in ("active", "waiting", "paused"):
            return
        self._daemon.call("remove_download_result", task.gid)
        task.end()
        if status["status"] == "complete":
            self._verify(task)
            return
        self._failed(task, status.get("errorCode", "1"), status.get("errorMessage", ""))

    def _failed(self, task, code, message):
        raise_if_final(task.entry, self._folder, code, message)
        if code == NO_RESUME:
            task.single_stream = True
        if code not in NETWORK_ERRORS or task.part.state() == EMPTY:
            task.restart()
        if http_status(message) == RATE_LIMITED:
            self._resolve(task, refused_uri=task.uris[0])
            return
        self._resolve(task, self._pause_s(task, f"{message or 'no message'} (aria2 error {code})", {}))

    def _read_ended(self, task):
        task.end()
        try:
            task.future.result()
        except DirectFailure as error:
            task.restart()
            self._resolve(task, self._pause_s(task, str(error), error.headers))
            return
        self._verify(task)

    def _pause_s(self, task, reason, headers):
        pause_s = task.budget.next_wait_s(headers)
        if pause_s is None:
            raise ProvisionError(
                f"file {task.entry.path}: given up after {task.budget.attempt + 1} attempts without a new byte, the "
                f"last one ended with: {reason}; rerun later to resume, or name another hub in sources"
            )
        return pause_s

    def _verify(self, task, trusted=True):
        """`trusted`: the bytes were just fetched, so a wrong content is the source's fault and counts."""
        task.trusted_part = trusted
        task.hashed_bytes = 0
        task.state = task_state.VERIFYING
        task.future = self._hashing.submit(self._verify_job, task)

    def _verify_job(self, task):
        def on_bytes(count):
            task.hashed_bytes += count

        problem = content_problem(task.part, on_bytes, self._cancelled)
        return problem, None if problem else install(self._folder, task.part)

    def _verified(self, task):
        problem, status = task.future.result()
        if problem is None:
            if not task.received_bytes:
                task.done_bytes = task.entry.size_bytes
            self._receipt.record(task.entry.path, status, task.entry.hash)
            task.state = task_state.DONE
            return True
        task.restart(forget=True)
        if task.trusted_part:
            task.wrong_downloads += 1
            # Once from all sources together, then once from each.
            if task.wrong_downloads > self._source_count:
                hosts = ", ".join(self._settings["sources"])
                raise ProvisionError(
                    f"file {task.entry.path}: {hosts} served {problem}, {task.wrong_downloads} times; the manifest "
                    "pins another content: use another mirror in sources, or pin anew by hub_manifest with refresh=true"
                )
        self._resolve(task)
        return False

    def _describe(self):
        finished = [task for task in self.tasks if task.state == task_state.DONE]
        rows = [task.row() for task in self.tasks if task.state in IN_WORK]
        size_bytes = sum(task.entry.size_bytes for task in self.tasks)
        done_bytes = sum(task.entry.size_bytes for task in finished)
        done_bytes += sum(task.done_bytes for task in self.tasks if task.state in IN_WORK)
        return "fetch", len(self.tasks), len(finished), size_bytes, done_bytes, rows
