"""The API through the real openai client: models, completions, chat, whole and streamed."""

import json

import pytest

TEXTS = ["hello world", "Grüße, 世界 😀 👩‍👩‍👧‍👦", "  leading and trailing  ", "\n\ttabs\n", "x"]
MODES = ["ar", "chain", "tree"]


def in_mode(mode):
    return {"ddtree": {"mode": mode}}


def test_models(served):
    assert [model.id for model in served.openai.models.list()] == ["stub"]
    assert served.openai.models.retrieve("stub").object == "model"


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("mode", MODES)
def test_streamed_text_is_the_whole_text(served, text, mode):
    options = {"model": "stub", "prompt": text, "max_tokens": 200, "extra_body": in_mode(mode)}
    whole = served.openai.completions.create(**options)
    chunks = list(served.openai.completions.create(**options, stream=True))
    assert whole.choices[0].text == text
    assert "".join(chunk.choices[0].text for chunk in chunks) == text
    assert not any("\ufffd" in chunk.choices[0].text for chunk in chunks)
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert len({chunk.id for chunk in chunks}) == 1


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("mode", MODES)
def test_streamed_chat_is_the_whole_chat(served, text, mode):
    messages = [{"role": "system", "content": "Repeat."}, {"role": "user", "content": text}]
    options = {"model": "stub", "messages": messages, "extra_body": in_mode(mode)}
    whole = served.openai.chat.completions.create(**options)
    chunks = list(served.openai.chat.completions.create(**options, stream=True))
    assert (whole.choices[0].message.role, whole.choices[0].message.content) == ("assistant", text)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason == "stop"


def test_a_conversation_goes_on_with_the_clients_own_message_objects(served):
    first = served.openai.chat.completions.create(model="stub", messages=[{"role": "user", "content": "one"}])
    messages = [{"role": "user", "content": "one"}, first.choices[0].message, {"role": "user", "content": "two"}]
    second = served.openai.chat.completions.create(model="stub", messages=messages)
    assert second.choices[0].message.content == "two"


def test_text_parts_are_joined_by_line_ends(served):
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    reply = served.openai.chat.completions.create(model="stub", messages=[{"role": "user", "content": parts}])
    assert reply.choices[0].message.content == "one\ntwo"


@pytest.mark.parametrize("wrap", [lambda ids: ids, lambda ids: [ids]])
def test_a_prompt_of_token_ids(served, tokenizer, wrap):
    token_ids = tokenizer.encode("hello world")
    reply = served.openai.completions.create(model="stub", prompt=wrap(token_ids), max_tokens=50)
    assert reply.choices[0].text == "hello world"
    assert reply.usage.prompt_tokens == len(token_ids)


def test_a_list_of_one_prompt(served):
    assert served.openai.completions.create(model="stub", prompt=["hello"], max_tokens=50).choices[0].text == "hello"


@pytest.mark.parametrize("mode", MODES)
def test_usage_and_report(served, tokenizer, mode):
    text = "the quick brown fox jumps over the lazy dog"
    reply = served.openai.completions.create(model="stub", prompt=text, max_tokens=200, extra_body=in_mode(mode))
    num_tokens = len(tokenizer.encode(text)) + 1  # the end token is generated too
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (num_tokens - 1, num_tokens)
    assert reply.usage.total_tokens == 2 * num_tokens - 1
    report = reply.ddtree
    assert report["mode"] == mode
    assert report["target_forwards"] == report["decode_rounds"] + 1
    assert sum(report["accepted_histogram"]) == report["decode_rounds"]
    committed = sum((k + 1) * count for k, count in enumerate(report["accepted_histogram"]))
    assert committed == num_tokens - 1
    assert report["acceptance_length"] == pytest.approx(committed / report["decode_rounds"])


def test_usage_and_report_in_a_stream(served):
    options = {"model": "stub", "messages": [{"role": "user", "content": "hello world"}]}
    whole = served.openai.chat.completions.create(**options)
    *chunks, last = served.openai.chat.completions.create(
        **options, stream=True, stream_options={"include_usage": True}
    )
    assert last.choices == []
    assert last.usage == whole.usage
    assert last.ddtree["accepted_histogram"] == whole.ddtree["accepted_histogram"]
    assert all(chunk.usage is None for chunk in chunks)
    *_, last = served.openai.chat.completions.create(**options, stream=True)
    assert last.choices[0].finish_reason == "stop"
    assert last.ddtree["target_forwards"] == whole.ddtree["target_forwards"]
    assert last.usage is None


@pytest.mark.parametrize("stop", ["brown", ["zzz", "n f", "jumps"], " "])
def test_stop_strings(served, stop):
    text = "the quick brown fox jumps over the lazy dog"
    options = {"model": "stub", "prompt": text, "max_tokens": 200, "stop": stop}
    whole = served.openai.completions.create(**options)
    streamed = served.openai.completions.create(**options, stream=True)
    expected = min((text.split(one)[0] for one in ([stop] if isinstance(stop, str) else stop)), key=len)
    assert whole.choices[0].text == expected
    assert "".join(chunk.choices[0].text for chunk in streamed) == expected
    assert whole.choices[0].finish_reason == "stop"


def test_a_stop_string_ends_an_endless_generation_and_counts_alike_in_all_modes(served):
    usages = set()
    for mode in MODES:
        reply = served.openai.completions.create(
            model="stub", prompt="forever hello world", max_tokens=5000, stop="wor", extra_body=in_mode(mode)
        )
        assert reply.choices[0].text == "forever hello "
        usages.add(reply.usage.completion_tokens)
    assert len(usages) == 1


def test_a_stop_string_that_waited_for_an_earlier_one_decides_at_the_end(served):
    options = {"model": "stub", "prompt": "xabc", "max_tokens": 50, "stop": ["abcd<", "bc"]}
    whole = served.openai.completions.create(**options)
    chunks = list(served.openai.completions.create(**options, stream=True))
    assert (whole.choices[0].text, whole.choices[0].finish_reason) == ("xa", "stop")
    assert "".join(chunk.choices[0].text for chunk in chunks) == "xa"
    assert chunks[-1].choices[0].finish_reason == "stop"


@pytest.mark.parametrize("stop", ["&'", ["&'", "%&'("]])
def test_a_stop_string_met_by_the_last_token_is_a_stop_and_no_length(served, tokenizer, stop):
    prompt = tokenizer.encode("%&'")  # a token each
    reply = served.openai.completions.create(model="stub", prompt=prompt, max_tokens=3, stop=stop)
    assert (reply.choices[0].text, reply.choices[0].finish_reason) == ("%", "stop")


def test_a_stream_is_server_sent_events_up_to_done(served):
    body = {"model": "stub", "prompt": "世界 😀", "max_tokens": 50, "stream": True}
    response = served.http.post("/v1/completions", json=body)
    assert response.headers["content-type"].startswith("text/event-stream")
    *events, last, rest = response.text.split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    chunks = [json.loads(event.removeprefix("data: ")) for event in events]
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == "世界 😀"


def test_max_tokens_ends_with_length(served, tokenizer):
    text = "the quick brown fox"
    reply = served.openai.completions.create(model="stub", prompt=text, max_tokens=2)
    assert reply.choices[0].text == tokenizer.decode(tokenizer.encode(text)[:2])
    assert (reply.choices[0].finish_reason, reply.usage.completion_tokens) == ("length", 2)


def test_a_completion_is_short_and_a_chat_fills_the_context_by_default(served):
    served.openai.completions.create(model="stub", prompt="hi")
    assert served.engine.calls[-1][1].max_tokens == 16
    served.openai.chat.completions.create(model="stub", messages=[{"role": "user", "content": "hi"}])
    prompt_ids, params, _ = served.engine.calls[-1]
    assert params.max_tokens == served.engine.max_context - len(prompt_ids)


def test_sampling_parameters_reach_the_engine(served):
    served.openai.chat.completions.create(
        model="stub",
        messages=[{"role": "user", "content": "hi"}],
        max_completion_tokens=7,
        temperature=0.5,
        top_p=0.9,
        seed=-3,
        extra_body={"top_k": 40, "min_p": 0.05, "ignore_eos": True, **in_mode("chain")},
    )
    _, params, mode = served.engine.calls[-1]
    assert mode == "chain"
    assert (params.max_tokens, params.temperature, params.top_p, params.seed) == (7, 0.5, 0.9, -3)
    assert (params.top_k, params.min_p, params.ignore_eos) == (40, 0.05, True)


def test_defaults_are_openais(served):
    served.openai.completions.create(model="stub", prompt="hi")
    _, params, mode = served.engine.calls[-1]
    assert mode == "tree"
    assert (params.temperature, params.top_p, params.top_k, params.min_p, params.seed) == (1.0, 1.0, 0, 0.0, None)


def test_harmless_parameters_are_accepted_at_their_neutral_values(served):
    reply = served.openai.chat.completions.create(
        model="stub",
        messages=[{"role": "user", "content": "hi"}],
        n=1,
        frequency_penalty=0,
        presence_penalty=0.0,
        logprobs=False,
        logit_bias={},
        tools=[],
        tool_choice="none",
        response_format={"type": "text"},
        store=False,
        user="someone",
        metadata={"a": "b"},
        stop=None,
        seed=None,
    )
    assert reply.choices[0].message.content == "hi"


def test_the_prompt_is_what_the_chat_template_makes_of_the_messages(served, tokenizer):
    messages = [{"role": "user", "content": "hi"}]
    served.openai.chat.completions.create(model="stub", messages=messages)
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert served.engine.calls[-1][0] == tokenizer.encode(text, add_special_tokens=False)
