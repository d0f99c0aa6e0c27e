"""What bad requests get: a status, OpenAI's error object, a message with the thing, the value, the way out."""

import json

import pytest

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
USER = [{"role": "user", "content": "hi"}]


def check(response, status, param, words):
    error = response.json()["error"]
    assert response.status_code == status, error
    assert set(error) == {"message", "type", "param", "code"}
    assert error["param"] == param
    for word in words:
        assert word in error["message"], error["message"]
    return error


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"flavour": 1}, "flavour", ["Unknown parameter", "flavour"]),
        ({"n": 2}, "n", ["2", "one choice"]),
        ({"n": True}, "n", ["one choice"]),
        ({"logprobs": True}, "logprobs", ["log-probabilities"]),
        ({"logprobs": 0}, "logprobs", ["log-probabilities"]),
        ({"top_logprobs": 3}, "top_logprobs", ["log-probabilities"]),
        ({"logit_bias": {"5": 1}}, "logit_bias", ["bias"]),
        ({"frequency_penalty": 0.5}, "frequency_penalty", ["0.5", "penalties"]),
        ({"presence_penalty": -1}, "presence_penalty", ["-1", "penalties"]),
        ({"temperature": 3}, "temperature", ["less than or equal to 2", "3"]),
        ({"temperature": "1"}, "temperature", ["valid number", "'1'"]),
        ({"temperature": -0.1}, "temperature", ["greater than or equal to 0"]),
        ({"top_p": 0}, "top_p", ["greater than 0"]),
        ({"top_p": 1.1}, "top_p", ["less than or equal to 1"]),
        ({"top_k": -1}, "top_k", ["greater than or equal to 0"]),
        ({"min_p": 2}, "min_p", ["less than or equal to 1"]),
        ({"seed": 2**63}, "seed", ["less than"]),
        ({"seed": 1.5}, "seed", ["integer"]),
        ({"max_tokens": 0}, "max_tokens", ["greater than or equal to 1"]),
        ({"max_tokens": "5"}, "max_tokens", ["integer"]),
        ({"max_tokens": 1_000_000}, "max_tokens", ["1000000", "100000", "ask for at most"]),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop", ["5 strings", "at most 4"]),
        ({"stop": ""}, "stop", ["empty string"]),
        ({"stop": [1]}, "stop", ["list of strings"]),
        ({"stream": "yes"}, "stream", ["boolean"]),
        ({"stream_options": {"include_usage": True}}, "stream_options", ["'stream': true"]),
        ({"stream": True, "stream_options": {"x": 1}}, "stream_options.x", ["Unknown parameter"]),
        ({"ddtree": {"mode": "fast"}}, "ddtree.mode", ["'ar'", "'tree'", "'fast'"]),
        ({"ddtree": {"budget": 3}}, "ddtree.budget", ["Unknown parameter"]),
        ({"ddtree": "tree"}, "ddtree", ["'tree'"]),
        ({"model": 5}, "model", ["string"]),
    ],
)
@pytest.mark.parametrize("path", [CHAT, COMPLETION])
def test_parameters_of_both_endpoints(served, path, fields, param, words):
    body = {"model": "stub", **({"messages": USER} if path == CHAT else {"prompt": "hi"}), **fields}
    error = check(served.http.post(path, json=body), 400, param, words)
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools", ["does not call tools"]),
        ({"tool_choice": "auto"}, "tool_choice", ["does not call tools"]),
        ({"functions": [{"name": "f"}]}, "functions", ["does not call functions"]),
        ({"response_format": {"type": "json_object"}}, "response_format", ["does not constrain"]),
        ({"modalities": ["text", "audio"]}, "modalities", ["text only"]),
        ({"max_tokens": 3, "max_completion_tokens": 4}, "max_completion_tokens", ["3", "4", "contradict"]),
        ({"max_completion_tokens": 10**6}, "max_completion_tokens", ["1000000", "100000"]),
        ({"messages": []}, "messages", ["at least 1"]),
        ({"messages": "hi"}, "messages", ["list", "'hi'"]),
        ({"messages": ["hi"]}, "messages[0]", ["'hi'"]),
        ({"messages": [{"role": "user"}]}, "messages[0].content", ["Missing"]),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content", ["string"]),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role", ["'system'", "'tool'"]),
        ({"messages": [{"role": "user", "content": "x", "name": "Bo"}]}, "messages[0].name", ["Unknown"]),
        ({"messages": [*USER, {"role": "user", "content": []}]}, "messages[1].content", ["non-empty"]),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages[0].content",
            ["image_url", "'text' only"],
        ),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content", ["text part"]),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages", ["chat template", "cannot begin"]),
        ({"prompt": "hi"}, "prompt", ["Unknown parameter"]),
    ],
)
def test_parameters_of_chats(served, fields, param, words):
    check(served.http.post(CHAT, json={"model": "stub", "messages": USER, **fields}), 400, param, words)


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"echo": True}, "echo", ["generated text only"]),
        ({"suffix": "x"}, "suffix", ["fill in the middle"]),
        ({"best_of": 2}, "best_of", ["one choice"]),
        ({"prompt": ["a", "b"]}, "prompt", ["2 prompts", "one prompt"]),
        ({"prompt": []}, "prompt", ["non-empty"]),
        ({"prompt": ""}, "prompt", ["empty"]),
        ({"prompt": 5}, "prompt", ["string"]),
        ({"prompt": [1, "a"]}, "prompt", ["token ids"]),
        ({"prompt": [-1]}, "prompt", ["token ids"]),
        ({"prompt": [1, 10**6]}, "prompt", ["prompt[1]", "1000000", "vocabulary"]),
        ({"prompt": [1.0]}, "prompt", ["token ids"]),
        ({"max_completion_tokens": 3}, "max_completion_tokens", ["Unknown"]),
    ],
)
def test_parameters_of_completions(served, fields, param, words):
    check(served.http.post(COMPLETION, json={"model": "stub", "prompt": "hi", **fields}), 400, param, words)


@pytest.mark.parametrize("path", [CHAT, COMPLETION])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", ["not valid JSON"]),
        (b"{", ["not valid JSON"]),
        (b"[]", ["JSON object", "list"]),
        (b'{"model": "stub", "temperature": NaN}', ["not valid JSON"]),
        (b'{"model": "\\ud800"}', ["not valid JSON"]),
        (b"\xff\xfe", ["not valid JSON"]),
    ],
)
def test_bodies_that_are_no_json_object(served, path, body, words):
    check(served.http.post(path, content=body), 400, None, words)


def test_missing_fields_are_named(served):
    check(served.http.post(COMPLETION, json={"prompt": "x"}), 400, "model", ["Missing required parameter: 'model'"])
    check(served.http.post(COMPLETION, json={"model": "stub"}), 400, "prompt", ["Missing"])
    check(served.http.post(CHAT, json={"model": "stub"}), 400, "messages", ["Missing"])


@pytest.mark.parametrize("path", [CHAT, COMPLETION])
def test_another_model(served, path):
    body = {"model": "gpt-9", **({"messages": USER} if path == CHAT else {"prompt": "hi"})}
    error = check(served.http.post(path, json=body), 404, "model", ["gpt-9", "'stub'"])
    assert error["code"] == "model_not_found"
    check(served.http.get("/v1/models/gpt-9"), 404, "model", ["gpt-9", "'stub'"])


def test_unknown_paths_and_methods(served):
    check(served.http.get("/v1/embeddings"), 404, None, ["Not Found", "GET /v1/embeddings"])
    response = served.http.get(CHAT)
    check(response, 405, None, ["Method Not Allowed"])
    assert response.headers["allow"] == "POST"


def test_a_body_beyond_the_limit(served):
    body = json.dumps({"model": "stub", "prompt": "x" * (16 * 1024 * 1024)})
    check(served.http.post(COMPLETION, content=body), 413, None, ["larger than 16777216 bytes"])


def test_a_prompt_beyond_the_context(run_server):
    from serving_stub import StubEngine

    with run_server(engine=StubEngine(max_context=20)) as running:
        response = running.http.post(COMPLETION, json={"model": "stub", "prompt": "%" * 21})
        error = check(response, 400, "prompt", ["21 tokens", "context is 20"])
        assert error["code"] == "context_length_exceeded"
        messages = [{"role": "user", "content": "%" * 21}]
        check(running.http.post(CHAT, json={"model": "stub", "messages": messages}), 400, "messages", ["context is 20"])
        # A prompt that just fits leaves room for one token.
        fits = running.http.post(COMPLETION, json={"model": "stub", "prompt": "%" * 19})
        assert fits.json()["usage"]["completion_tokens"] == 1


def test_a_mode_that_needs_a_drafter(run_server):
    with run_server(modes=("ar",), default_mode="ar") as running:
        body = {"model": "stub", "prompt": "hi", "ddtree": {"mode": "tree"}}
        check(running.http.post(COMPLETION, json=body), 400, "ddtree.mode", ["'tree'", "drafter", "valid: ar"])


def test_a_model_without_a_chat_template(run_server):
    from serving_stub import StubEngine

    engine = StubEngine()
    engine.tokenizer = type(engine.tokenizer)(
        tokenizer_object=engine.tokenizer.backend_tokenizer, eos_token="<|im_end|>"
    )
    with run_server(engine=engine) as running:
        response = running.http.post(CHAT, json={"model": "stub", "messages": USER})
        check(response, 400, "messages", ["no chat template", "/v1/completions"])


def test_what_the_engine_refuses_is_the_clients_error_and_leaves_the_engine_healthy(served):
    response = served.http.post(COMPLETION, json={"model": "stub", "prompt": "refuse this"})
    check(response, 400, None, ["this engine does not do that"])
    assert served.http.get("/health").status_code == 200
