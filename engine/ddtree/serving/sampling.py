"""From a request's fields to the engine's sampling parameters, checked against the context."""

from ddtree.runtime.types import SamplingParams
from ddtree.serving.errors import ApiError
from ddtree.serving.protocol import ChatRequest, GenerationRequest

# OpenAI's defaults: a completion is short, a chat answer may fill the context.
COMPLETION_MAX_TOKENS = 16


def sampling_params(
    request: GenerationRequest, *, prompt_tokens: int, max_context: int, default_temperature: float
) -> SamplingParams:
    """Raises ApiError (400) where prompt and wanted tokens do not fit into max_context tokens."""
    room = max_context - prompt_tokens
    if room < 1:
        raise ApiError(
            400,
            f"the prompt has {prompt_tokens} tokens, this server's context is {max_context} and must hold at least one "
            "more; shorten the prompt",
            param="messages" if isinstance(request, ChatRequest) else "prompt",
            code="context_length_exceeded",
        )
    wanted, name = _wanted_tokens(request)
    if wanted is None:
        wanted = room if isinstance(request, ChatRequest) else min(room, COMPLETION_MAX_TOKENS)
    if wanted > room:
        raise ApiError(
            400,
            f"'{name}' = {wanted} and a prompt of {prompt_tokens} tokens need {wanted + prompt_tokens} tokens, this "
            f"server's context is {max_context}; ask for at most {room}",
            param=name,
            code="context_length_exceeded",
        )
    return SamplingParams(
        max_tokens=wanted,
        temperature=default_temperature if request.temperature is None else request.temperature,
        top_p=request.top_p,
        top_k=request.top_k,
        min_p=request.min_p,
        seed=request.seed,
        ignore_eos=request.ignore_eos,
    )


def _wanted_tokens(request: GenerationRequest) -> tuple[int | None, str]:
    newer = request.max_completion_tokens if isinstance(request, ChatRequest) else None
    if newer is None:
        return request.max_tokens, "max_tokens"
    if request.max_tokens not in (None, newer):
        raise ApiError(
            400,
            f"'max_tokens' = {request.max_tokens} and 'max_completion_tokens' = {newer} contradict each other",
            param="max_completion_tokens",
            code="invalid_value",
        )
    return newer, "max_completion_tokens"
