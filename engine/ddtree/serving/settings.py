"""What the server was started with, apart from the engine's own configuration."""

from dataclasses import dataclass

from ddtree.runtime.types import MODES, Mode


@dataclass(frozen=True)
class ServingSettings:
    """Read-only for the life of the process; the command line fills it, its defaults are the command line's."""

    model_name: str  # what requests must name
    modes: tuple[Mode, ...] = MODES  # what a request may ask for; without a drafter only "ar"
    default_mode: Mode = "tree"
    default_temperature: float = 1.0  # where a request names none; OpenAI's default
    max_queue: int = 32  # requests that may wait behind the running one
    drain_s: float = 5.0  # how long the running request may go on after SIGTERM
    stall_s: float = 300.0  # a running request without any progress for this long makes /health answer 503
    api_key: str | None = None
    access_log: bool = False
