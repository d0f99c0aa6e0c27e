"""Waits until a server answers /health with 200 and has generated one token, and watches its service meanwhile."""

from __future__ import annotations

import queue
import threading
import time
from urllib.parse import urlsplit

from ansible.module_utils.completions_client import CompletionsClient, NotReady, WrongServer
from ansible.module_utils.provision_error import ProvisionError
from ansible.module_utils.service_log import last_lines
from ansible.module_utils.service_watch import ServiceDead, ServiceWatch

# In check mode nothing is waited for: one look, and no longer than this.
_CHECK_MODE_TIMEOUT_S = 10


class _TimedOut(Exception):
    pass


def wait_until_ready(params: dict, check_mode: bool) -> dict:
    """Result of serving_health: ready, model, seconds, health_s, first_token_s.

    Raises ProvisionError when the server does not become ready, except in check mode.
    """
    url = params["url"].rstrip("/")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ProvisionError(f"url: {params['url']!r} is not an address such as http://127.0.0.1:8000")
    wait = _Wait(CompletionsClient(url, params["api_key"]), params, check_mode)
    try:
        return {"changed": False, "ready": True, **wait.run()}
    except (ServiceDead, WrongServer, _TimedOut, NotReady) as error:
        message = wait.explain(error)
    if check_mode:
        return {"changed": False, "ready": False, "msg": f"not ready now; the check does not wait: {message}"}
    log = last_lines(params["log_lines"], params["unit"], params["log_file"])
    text = message + ("; last lines of its log:\n" + "\n".join(log) if log else "")
    raise ProvisionError(text, ready=False, reason=message, log=log, seconds=wait.elapsed_s())


class _Wait:
    def __init__(self, client: CompletionsClient, params: dict, check_mode: bool):
        self.client = client
        self.params = params
        self.check_mode = check_mode
        self.watch = ServiceWatch(params["unit"], params["supervisor"], params["max_restarts"])
        self.begin = time.monotonic()
        self.timeout_s = min(params["timeout_s"], _CHECK_MODE_TIMEOUT_S) if check_mode else params["timeout_s"]
        self.health_s = None
        self.last_reason = "nothing was asked yet"

    def elapsed_s(self) -> float:
        return round(time.monotonic() - self.begin, 3)

    def run(self) -> dict:
        self.watch.check()
        self._until(self.client.check_health)
        self.health_s = self.elapsed_s()
        models = self._until(self.client.models)
        model = self.params["model"] or models[0]
        if model not in models:
            raise WrongServer(
                f"{self.client.url} serves {', '.join(models)}, not {model}: "
                "correct `model`, or stop the other server or use another port"
            )
        asked = time.monotonic()
        self._until(lambda timeout_s: self.client.generate_token(model, self.params["prompt"], timeout_s))
        first_token_s = round(time.monotonic() - asked, 3)
        # Whoever answered, it was not a service that is dead by now.
        self.watch.check()
        return {"model": model, "health_s": self.health_s, "first_token_s": first_token_s, "seconds": self.elapsed_s()}

    def explain(self, error: Exception) -> str:
        """One sentence: what is wrong, and how far it had come."""
        if isinstance(error, ServiceDead):
            seen = f"{self.client.url}: {self.last_reason}"
            return f"the service died before it was ready: {error} (after {self.elapsed_s()} s; {seen})"
        if isinstance(error, _TimedOut) and self.health_s is not None:
            return (
                f"no token within {self.timeout_s} s, though /health answers 200 since {self.health_s} s: "
                f"{self.last_reason}; see its log, and restart it"
            )
        if isinstance(error, _TimedOut):
            return (
                f"not healthy within {self.timeout_s} s: {self.last_reason}; "
                "see its log, or raise timeout_s if it is still loading"
            )
        return str(error)

    def _until(self, question):
        """Asks until there is an answer. Looks at the service whenever there is none, and while a question hangs."""
        while True:
            try:
                return self._ask(question)
            except NotReady as error:
                self.last_reason = str(error)
                if self.check_mode:
                    raise
            self.watch.check()
            pause_s = min(self.params["interval_s"], self._remaining_s())
            time.sleep(pause_s)

    def _ask(self, question):
        """The question runs in a thread: a server that hangs must not keep us from seeing that its process is gone."""
        timeout_s = min(self.params["request_timeout_s"], self._remaining_s())
        answers = queue.SimpleQueue()

        def ask():
            try:
                answers.put((question(timeout_s), None))
            except Exception as error:
                answers.put((None, error))

        # A daemon: a request that never ends does not keep the module from ending.
        threading.Thread(target=ask, daemon=True).start()
        while True:
            try:
                answer, error = answers.get(timeout=min(self.params["interval_s"], self._remaining_s()))
            except queue.Empty:
                self.watch.check()
                continue
            if error is not None:
                raise error
            return answer

    def _remaining_s(self) -> float:
        remaining_s = self.begin + self.timeout_s - time.monotonic()
        if remaining_s <= 0:
            raise _TimedOut
        return remaining_s
