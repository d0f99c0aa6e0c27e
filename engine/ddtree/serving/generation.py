"""One job on the engine: steps in, text events out, ended by the engine, a stop string or the client's leaving."""

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from ddtree.runtime.types import SamplingParams, Step
from ddtree.serving.job import Delta, Finished, Job
from ddtree.serving.text_stream import TextStream

if TYPE_CHECKING:
    from ddtree.runtime.engine import Engine

CANCELLED = "cancelled"
# The prefill and at least one decode round, so that drafter, verification and cache have all run.
SELF_CHECK_TOKENS = 4


def generate_reply(engine: "Engine", job: Job, on_step: Callable[[Step], None]) -> str:
    """Emits the job's text and its Finished event. Returns the finish reason, or CANCELLED (then no Finished).

    on_step is called after each forward of the target. The engine's errors pass.
    """
    record = job.record
    if job.cancelled.is_set():
        return CANCELLED
    record.start()
    text = TextStream(engine.tokenizer, job.stops)
    piece, reason = "", None
    with closing(engine.generate(job.prompt_ids, job.params, job.mode)) as steps:
        for step in steps:
            record.add_step(step)
            on_step(step)
            piece = text.push(step.token_ids)
            record.completion_tokens = text.num_tokens
            reason = "stop" if text.stopped else step.finish_reason
            if job.cancelled.is_set():
                return CANCELLED
            if reason is not None:
                break
            if piece:
                job.emit(Delta(piece))
    if reason is None:
        raise RuntimeError(f"generation ended after {record.engine.tokens} tokens without a finish reason")
    piece += text.finish()
    reason = "stop" if text.stopped else reason
    if piece:
        job.emit(Delta(piece))
    job.emit(Finished(reason))
    return reason


def self_check(engine: "Engine") -> None:
    """Raises when the engine cannot generate a few tokens in its default mode."""
    prompt_ids = engine.tokenizer.encode("Hello")
    wanted = min(SELF_CHECK_TOKENS, engine.max_context - len(prompt_ids))
    params = SamplingParams(max_tokens=wanted, ignore_eos=True)
    tokens = [token for step in engine.generate(prompt_ids, params) for token in step.token_ids]
    if len(tokens) != wanted:
        raise RuntimeError(f"the self-check generated {len(tokens)} tokens instead of {wanted}")
