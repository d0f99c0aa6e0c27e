"""What the two generation endpoints accept: OpenAI's request bodies, strictly checked.

Null means absent, as in OpenAI's API. Field types are strict: "5" is no integer. Anything unknown is an error.
"""

from typing import Annotated, Any, Literal, TypeVar

import pydantic_core
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ddtree.runtime.types import Mode
from ddtree.serving.errors import ApiError
from ddtree.serving.neutral import without_neutral

MAX_STOPS = 4


def _stop_list(value: Any) -> list[str]:
    stops = [value] if isinstance(value, str) else value
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise ValueError("must be a string or a list of strings")
    if len(stops) > MAX_STOPS:
        raise ValueError(f"holds {len(stops)} strings; at most {MAX_STOPS} are allowed")
    if "" in stops:
        raise ValueError("holds an empty string, which would stop before the first character")
    return stops


def _one_prompt(value: Any) -> str | list[int]:
    if isinstance(value, list) and value and isinstance(value[0], str | list):
        if len(value) > 1:
            raise ValueError(f"holds {len(value)} prompts; this server takes one prompt a request")
        value = value[0]
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(type(token) is int and token >= 0 for token in value):
        return value
    raise ValueError("must be a string, or a non-empty list of token ids")


def _text(value: Any) -> str:
    """The text of a message: a string, or text parts, which are joined by line ends."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise ValueError("must be a string or a non-empty list of text parts")
    texts = []
    for part in value:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind != "text":
            raise ValueError(f"holds a part of type {kind!r}; this model reads parts of type 'text' only")
        if not isinstance(part.get("text"), str) or set(part) != {"type", "text"}:
            raise ValueError("holds a text part that is not {'type': 'text', 'text': string}")
        texts.append(part["text"])
    return "\n".join(texts)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class StreamOptions(_Strict):
    include_usage: bool | None = False
    include_obfuscation: Literal[False] = False  # pads chunks against traffic analysis; not done here


class DdtreeOptions(_Strict):
    """This server's own extension: which decoding answers the request."""

    mode: Mode | None = None


class GenerationRequest(_Strict):
    """What both endpoints share. top_k, min_p, ignore_eos and ddtree are extensions (`extra_body` in the client)."""

    model: str
    max_tokens: int | None = Field(None, ge=1)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float = Field(1.0, gt=0, le=1)
    top_k: int = Field(0, ge=0)  # 0: off
    min_p: float = Field(0.0, ge=0, le=1)
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    stop: Annotated[list[str], BeforeValidator(_stop_list)] = Field(default_factory=list)
    ignore_eos: bool = False
    stream: bool = False
    stream_options: StreamOptions | None = None
    ddtree: DdtreeOptions = Field(default_factory=DdtreeOptions)

    @property
    def include_usage(self) -> bool:
        return self.stream_options is not None and bool(self.stream_options.include_usage)


class CompletionRequest(GenerationRequest):
    prompt: Annotated[str | list[int], BeforeValidator(_one_prompt)]


class Message(_Strict):
    role: Literal["system", "user", "assistant"]
    content: Annotated[str, BeforeValidator(_text)]


class ChatRequest(GenerationRequest):
    messages: list[Message] = Field(min_length=1)
    max_completion_tokens: int | None = Field(None, ge=1)


Request = TypeVar("Request", bound=GenerationRequest)


def parse_request(kind: type[Request], body: bytes) -> Request:
    """Reads a JSON body. Raises ApiError (400) that names the first wrong field and its value."""
    try:
        fields = pydantic_core.from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise ApiError(400, f"the request body is not valid JSON: {error}", code="invalid_json") from None
    if not isinstance(fields, dict):
        raise ApiError(400, f"the request body must be a JSON object, not {type(fields).__name__}", code="invalid_json")
    fields = without_neutral(fields)
    if isinstance(fields.get("messages"), list):
        # Clients send an answer's message back as it came, with its empty refusal, tool_calls and the like.
        fields["messages"] = [_without_empty(message) for message in fields["messages"]]
    try:
        request = kind.model_validate(fields)
    except ValidationError as error:
        raise _as_api_error(error) from None
    if request.stream_options is not None and not request.stream:
        raise ApiError(400, "'stream_options' is only allowed with 'stream': true", param="stream_options")
    return request


def _without_empty(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    return {name: value for name, value in message.items() if name == "content" or (value is not None and value != [])}


def _as_api_error(error: ValidationError) -> ApiError:
    first = error.errors(include_url=False, include_context=False)[0]
    param = ""
    for part in first["loc"]:
        param += f"[{part}]" if isinstance(part, int) else f".{part}" if param else str(part)
    if first["type"] == "extra_forbidden":
        return ApiError(400, f"Unknown parameter: '{param}'", param=param, code="unknown_parameter")
    if first["type"] == "missing":
        message = f"Missing required parameter: '{param}'"
        return ApiError(400, message, param=param, code="missing_required_parameter")
    value = repr(first["input"])
    shown = value if len(value) <= 60 else value[:57] + "…"
    problem = first["msg"].removeprefix("Value error, ")
    return ApiError(400, f"'{param}': {problem} (got {shown})", param=param, code="invalid_value")
