"""Notices at once that a service died while somebody waits for it."""

from __future__ import annotations

from dataclasses import dataclass

from ansible.module_utils.service_state import ServiceState, service_state


class ServiceDead(Exception):
    """The service does not run any more, or was restarted more often than allowed; the message says how it is doing."""


@dataclass
class ServiceWatch:
    """Give it `unit` or `supervisor` ({"ctl": argv, "program": name}); with neither it watches nothing.

    `max_restarts`: automatic restarts that may happen while it watches.
    """

    unit: str | None = None
    supervisor: dict | None = None
    max_restarts: int = 0
    _last: ServiceState | None = None
    _restarts: int = 0

    def check(self) -> None:
        """Looks once; raises ServiceDead."""
        if not (self.unit or self.supervisor):
            return
        state = service_state(self.unit, self.supervisor)
        self._restarts += self._restarts_since(state)
        self._last = state
        # Between two attempts the restart may be counted already or not yet: the counter decides a moment later.
        if state.dead or (state.restarting and self.max_restarts == 0):
            raise ServiceDead(state.description)
        if self._restarts > self.max_restarts:
            raise ServiceDead(f"{state.description}, after {self._restarts} automatic restart(s) since the wait began")

    def _restarts_since(self, state: ServiceState) -> int:
        if self._last is None:
            return 0
        if state.restarts is not None:
            # The counter begins again when somebody starts the unit by hand.
            return max(0, state.restarts - (self._last.restarts or 0))
        # supervisord does not count: another process is another attempt.
        return int(
            state.main_pid is not None and self._last.main_pid is not None and state.main_pid != self._last.main_pid
        )
