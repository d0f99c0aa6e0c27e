"""The comparison of `ddtree compare`, asked of a running `ddtree serve`: the server itself measures."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from ddtree.errors import UserError
from ddtree.runtime.comparison import Run
from ddtree.runtime.types import MODES, Mode


def compare_endpoint(
    base_url: str,
    model: str | None,
    prompts: Mapping[str, str],
    max_tokens: int,
    progress: Callable[[str], None] = lambda _text: None,
) -> list[Run]:
    """Decodes each prompt (name → text) greedily in every mode. base_url ends in /v1; model None takes the served one.

    Raises UserError if the server cannot be reached, refuses, or is not `ddtree serve`.
    """
    model = model or _request(f"{base_url}/models")["data"][0]["id"]
    first = next(iter(prompts.values()))
    for mode in MODES:  # none of them is to pay for the first use
        progress(f"warming up, {mode}")
        _chat(base_url, model, first, 3, mode)
    runs: list[Run] = []
    for name, text in prompts.items():
        plain_text, plain_speed = None, 0.0
        for mode in MODES:
            progress(f"{name}, {mode}: up to {max_tokens} tokens")
            answer = _chat(base_url, model, text, max_tokens, mode)
            report, reply = answer["ddtree"], answer["choices"][0]
            content, speed = reply["message"]["content"], report["decode_tokens_per_s"]
            if plain_text is None:
                plain_text, plain_speed = content, speed
            runs.append(
                Run(
                    prompt=name,
                    mode=mode,
                    tokens=report["generated_tokens"],
                    tokens_per_s=speed,
                    acceptance_length=report["acceptance_length"] or 0.0,  # none without a decode round
                    target_forwards=report["target_forwards"],
                    prefill_s=report["prefill_s"],
                    decode_s=report["decode_s"],
                    speedup=speed / plain_speed if plain_speed else 0.0,
                    identical=content == plain_text,
                    finish_reason=reply["finish_reason"],
                    token_ids=(),
                )
            )
    return runs


def _chat(base_url: str, model: str, text: str, max_tokens: int, mode: Mode) -> dict[str, Any]:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "ddtree": {"mode": mode},
    }
    answer = _request(f"{base_url}/chat/completions", body)
    if "ddtree" not in answer:
        raise UserError(
            f"{base_url} reports no decoding figures: it is not a `ddtree serve`; measure it with a load generator"
        )
    return answer


def _request(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    # The server is the user's own: a proxy meant for the internet must not see the request.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=600) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        detail = error.read(2000).decode("utf-8", "replace")
        raise UserError(f"{url} answered {error.code}: {detail}") from error
    except (OSError, ValueError) as error:
        raise UserError(f"{url} cannot be asked: {error}; is the server running there?") from error
