"""The server's Prometheus metrics, in a registry of their own."""

from collections.abc import Callable
from time import monotonic

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from ddtree import __version__
from ddtree.runtime.types import Step
from ddtree.serving.record import GenerationRecord

CONTENT_TYPE = CONTENT_TYPE_LATEST
# A round commits the accepted tokens and the bonus: 1 to the block size, at most 16, and one to see overflow.
ACCEPTANCE_BUCKETS = tuple(range(1, 18))
FIRST_TOKEN_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
REQUEST_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class ServingMetrics:
    """Token counts are the engine's: they include tokens that a stop string cut off and those of cancelled requests."""

    def __init__(self, build_info: dict[str, str]) -> None:
        """build_info: labels of ddtree_build_info, besides the version."""
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "ddtree_requests_total",
            "HTTP requests answered; 499: the client went away first",
            ["endpoint", "status"],
            registry=registry,
        )
        self._prompt_tokens = Counter("ddtree_prompt_tokens_total", "Prompt tokens prefilled", registry=registry)
        self._generated = Counter(
            "ddtree_generated_tokens_total", "Tokens committed by the engine", ["mode"], registry=registry
        )
        self._forwards = Counter(
            "ddtree_target_forwards_total", "Forwards of the target, prefills included", ["mode"], registry=registry
        )
        self._rounds = Counter(
            "ddtree_decode_rounds_total", "Target forwards after the prefill", ["mode"], registry=registry
        )
        self._acceptance = Histogram(
            "ddtree_acceptance_length",
            "Tokens committed in a decode round, the bonus token included",
            ["mode"],
            buckets=ACCEPTANCE_BUCKETS,
            registry=registry,
        )
        self._first_token = Histogram(
            "ddtree_time_to_first_token_seconds",
            "From a request's arrival in the queue to its first token",
            buckets=FIRST_TOKEN_BUCKETS_S,
            registry=registry,
        )
        self._request_s = Histogram(
            "ddtree_request_seconds",
            "From a request's arrival in the queue to the end of its generation, complete or not",
            buckets=REQUEST_BUCKETS_S,
            registry=registry,
        )
        self._in_flight = Gauge("ddtree_requests_in_flight", "Requests being generated", registry=registry)
        self._queued = Gauge("ddtree_requests_queued", "Requests waiting", registry=registry)
        labels = {"version": __version__, **build_info}
        info = Gauge("ddtree_build_info", "Always 1; the labels say what runs", list(labels), registry=registry)
        info.labels(**labels).set(1)

    def watch(self, *, in_flight: Callable[[], int], queued: Callable[[], int]) -> None:
        """The two gauges are read where they are true, at each scrape."""
        self._in_flight.set_function(in_flight)
        self._queued.set_function(queued)

    def answered(self, endpoint: str, status: int) -> None:
        self._requests.labels(endpoint, str(status)).inc()

    def step(self, record: GenerationRecord, step: Step) -> None:
        """One target forward, already counted in the record."""
        self._forwards.labels(record.mode).inc()
        self._generated.labels(record.mode).inc(len(step.token_ids))
        if record.engine.target_forwards == 1:
            self._prompt_tokens.inc(record.prompt_tokens)
            self._first_token.observe(record.first_token_at - record.submitted_at)
        else:
            self._rounds.labels(record.mode).inc()
            self._acceptance.labels(record.mode).observe(len(step.token_ids))

    def finished(self, record: GenerationRecord) -> None:
        self._request_s.observe(monotonic() - record.submitted_at)

    def render(self) -> bytes:
        """Prometheus text exposition."""
        return generate_latest(self._registry)
