"""Parameters of OpenAI's API that this server does not implement: accepted only at the value that changes nothing.

Ignoring `n=3` or `tools=[…]` silently would hand back an answer to another question.
"""

from typing import Any

from ddtree.serving.errors import ApiError

# parameter → values that ask for nothing (null always does), and what to say to any other.
_NEUTRAL: dict[str, tuple[tuple[Any, ...], str]] = {
    "n": ((1,), "this server generates one choice a request; send the request n times, with different seeds"),
    "best_of": ((1,), "this server generates one choice a request"),
    "echo": ((False,), "this server returns the generated text only; put the prompt before it yourself"),
    "suffix": (("",), "this server does not fill in the middle"),
    "logprobs": ((False,), "this server does not return log-probabilities"),
    "top_logprobs": ((0,), "this server does not return log-probabilities"),
    "logit_bias": (({},), "this server does not bias logits"),
    "frequency_penalty": ((0,), "this server has no penalties; use temperature, top_p, top_k or min_p"),
    "presence_penalty": ((0,), "this server has no penalties; use temperature, top_p, top_k or min_p"),
    "repetition_penalty": ((1,), "this server has no penalties; use temperature, top_p, top_k or min_p"),
    "tools": (([],), "this server does not call tools"),
    "tool_choice": (("none",), "this server does not call tools"),
    "functions": (([],), "this server does not call functions"),
    "function_call": (("none",), "this server does not call functions"),
    "response_format": (({"type": "text"},), "this server does not constrain the output to a grammar or schema"),
    "modalities": ((["text"],), "this server generates text only"),
    "audio": ((), "this server generates text only"),
    "prediction": ((), "this server does not take predicted outputs"),
    "reasoning_effort": (("none",), "this server does not steer reasoning"),
    "verbosity": ((), "this server does not steer verbosity"),
    "web_search_options": ((), "this server does not search the web"),
    "moderation": ((), "this server does not moderate"),
    "service_tier": (("auto", "default"), "this server has one service tier"),
    "store": ((False,), "this server stores nothing"),
}

# Labels for the provider's bookkeeping: no value of theirs changes an answer.
_LABELS = frozenset(
    {
        "user",
        "metadata",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "parallel_tool_calls",
    }
)


def without_neutral(fields: dict[str, Any]) -> dict[str, Any]:
    """The request's fields without nulls and without parameters that ask for nothing.

    Raises ApiError (400) naming the first parameter that asks for something this server does not do.
    """
    rest = {}
    for name, value in fields.items():
        if value is None or name in _LABELS:
            continue
        if name not in _NEUTRAL:
            rest[name] = value
            continue
        neutral, why = _NEUTRAL[name]
        if not any(_same(value, allowed) for allowed in neutral):
            raise ApiError(400, f"'{name}' = {_short(value)}: {why}", param=name, code="unsupported_value")
    return rest


def _same(value: Any, allowed: Any) -> bool:
    # JSON's true is not 1, but 0 and 0.0 are one number.
    return value == allowed and isinstance(value, bool) == isinstance(allowed, bool)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
