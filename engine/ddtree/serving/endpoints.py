"""The two generation endpoints: check, encode, queue, and hand the reply over whole or as a stream."""

from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from ddtree.runtime.types import Mode
from ddtree.serving.accounting import note_status
from ddtree.serving.connection import on_disconnect, read_body
from ddtree.serving.errors import ApiError
from ddtree.serving.formats import ChatFormat, CompletionFormat, sse
from ddtree.serving.job import Delta, Event, Failed, Job
from ddtree.serving.prompts import PromptEncoder
from ddtree.serving.protocol import ChatRequest, CompletionRequest, GenerationRequest, parse_request
from ddtree.serving.sampling import sampling_params
from ddtree.serving.settings import ServingSettings
from ddtree.serving.worker import Worker

CLIENT_CLOSED = 499  # as nginx logs it; never sent, only counted


def generation_routes(settings: ServingSettings, worker: Worker) -> APIRouter:
    """POST /v1/completions and POST /v1/chat/completions."""
    router = APIRouter()
    encoder_of = lru_cache(maxsize=1)(PromptEncoder)  # one engine in a process, known once it is loaded

    async def generate(
        request: Request, kind: type[GenerationRequest], format_kind: type[CompletionFormat]
    ) -> Response:
        wanted = parse_request(kind, await read_body(request))
        check_model(settings, wanted.model)
        mode = _mode(settings, wanted)
        engine = worker.engine()
        prompt_ids = await run_in_threadpool(lambda: encoder_of(engine.tokenizer).encode(wanted))
        params = sampling_params(
            wanted,
            prompt_tokens=len(prompt_ids),
            max_context=engine.max_context,
            default_temperature=settings.default_temperature,
        )
        reply = format_kind(settings.model_name, wanted.include_usage)
        job = Job(reply.id, prompt_ids, params, wanted.stop, mode)
        worker.submit(job)
        events = _events(request, worker, job)
        # Until the first event nothing is sent: a failure can still be a proper HTTP error.
        first = await anext(events)
        if isinstance(first, Failed):
            raise first.error
        if wanted.stream:
            chunks = _stream(request, first, events, job, reply)
            return StreamingResponse(chunks, media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        return JSONResponse(await _whole(first, events, job, reply))

    @router.post("/v1/completions")
    async def completions(request: Request) -> Response:
        return await generate(request, CompletionRequest, CompletionFormat)

    @router.post("/v1/chat/completions")
    async def chat_completions(request: Request) -> Response:
        return await generate(request, ChatRequest, ChatFormat)

    return router


def check_model(settings: ServingSettings, name: str) -> None:
    """Raises ApiError (404) unless this server serves the model of that name."""
    if name != settings.model_name:
        message = f"The model '{name}' does not exist here; this server serves '{settings.model_name}'"
        raise ApiError(404, message, param="model", code="model_not_found")


def _mode(settings: ServingSettings, wanted: GenerationRequest) -> Mode:
    mode = wanted.ddtree.mode or settings.default_mode
    if mode not in settings.modes:
        valid = ", ".join(settings.modes)
        message = f"'ddtree.mode' = '{mode}' needs a drafter, and this server was started without one; valid: {valid}"
        raise ApiError(400, message, param="ddtree.mode", code="unsupported_value")
    return mode


async def _events(request: Request, worker: Worker, job: Job) -> AsyncIterator[Event]:
    """The job's events up to its last one. A client that leaves ends the job, streamed or not, queued or running."""
    complete = False

    def leave() -> None:
        worker.cancel(job)
        note_status(request, CLIENT_CLOSED)
        job.emit(Failed(ApiError(CLIENT_CLOSED, "the client closed the connection")))

    try:
        async with on_disconnect(request, leave):
            while isinstance(event := await job.next_event(), Delta):
                yield event
            complete = True
    finally:
        if not complete:
            leave()
    yield event


async def _whole(first: Event, events: AsyncIterator[Event], job: Job, reply: CompletionFormat) -> dict[str, Any]:
    texts, event = [], first
    while isinstance(event, Delta):
        texts.append(event.text)
        event = await anext(events)
    if isinstance(event, Failed):
        raise event.error
    return reply.whole("".join(texts), event.reason, job.record)


async def _stream(
    request: Request, first: Event, events: AsyncIterator[Event], job: Job, reply: CompletionFormat
) -> AsyncIterator[str]:
    for chunk in reply.opening():
        yield sse(chunk)
    event = first
    while isinstance(event, Delta):
        yield sse(reply.piece(event.text))
        event = await anext(events)
    if isinstance(event, Failed):
        # The status line is long gone. Clients raise on an `error`, and nobody takes the text for complete.
        note_status(request, event.error.status)
        yield sse(event.error.body())
        return
    for chunk in reply.closing(event.reason, job.record):
        yield sse(chunk)
    yield sse("[DONE]")
