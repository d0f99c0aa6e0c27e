"""`ddtree serve` with the real engine, the demo model and this project's drafter, as a process."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import openai
import pytest

from ddtree.demo.model import REPO_ID, build_demo_model

pytestmark = pytest.mark.model

REPOSITORY = Path(__file__).resolve().parents[3]
DRAFTER = REPOSITORY / "models" / "smollm2-135m-dflash"
MODES = ["ar", "chain", "tree"]
WAIT_S = 120
QUESTION = [{"role": "user", "content": "Write a Python function that adds two numbers."}]


@pytest.fixture(scope="module")
def model_folder():
    return build_demo_model(REPOSITORY / ".cache" / "demo-models" / REPO_ID)


def start(model_folder, *argv):
    path = os.pathsep.join([str(REPOSITORY / "engine"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "ddtree.cli", "serve", "--model", str(model_folder), "--port", "0", *argv]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def url(model_folder):
    """The server of the tests below; when they are done, it must have ended well."""
    process = start(model_folder, "--drafter", str(DRAFTER), "--threads", "1", "--max-context", "1024")
    found = None
    while found is None:
        line = process.stderr.readline()
        assert line, "the server ended before it listened"
        found = re.search(r"listening on (http://\S+);", line)
    log = []
    reader = threading.Thread(target=lambda: log.extend(process.stderr))
    reader.start()
    try:
        assert httpx.get(found[1] + "/health").status_code == 503
        while httpx.get(found[1] + "/health").status_code != 200:
            assert process.poll() is None, log
        yield found[1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
        reader.join(WAIT_S)
        assert not any("Traceback" in line for line in log), log
    finally:
        process.kill()


@pytest.fixture(scope="module")
def client(url):
    with openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=WAIT_S) as client:
        yield client


def chat(client, **options):
    defaults = {"model": "SmolLM2-135M-Instruct", "messages": QUESTION, "temperature": 0, "max_tokens": 24}
    return client.chat.completions.create(**{**defaults, **options})


def test_the_three_modes_answer_alike_and_speculation_needs_fewer_forwards(client):
    replies = {mode: chat(client, extra_body={"ddtree": {"mode": mode}}) for mode in MODES}
    texts = {reply.choices[0].message.content for reply in replies.values()}
    assert len(texts) == 1
    assert "def " in texts.pop()
    assert len({reply.usage.completion_tokens for reply in replies.values()}) == 1
    assert replies["ar"].ddtree["acceptance_length"] == 1.0
    assert replies["ar"].ddtree["target_forwards"] == replies["ar"].usage.completion_tokens
    assert replies["chain"].ddtree["acceptance_length"] > 1.5
    assert replies["tree"].ddtree["target_forwards"] < replies["ar"].ddtree["target_forwards"] / 1.5


@pytest.mark.parametrize("temperature", [0, 1.0])
def test_streamed_text_is_the_whole_text(client, temperature):
    question = [{"role": "user", "content": "Say hello in Japanese, Greek and with three emoji 😀🎉."}]
    options = {"messages": question, "temperature": temperature, "seed": 7, "max_tokens": 12}
    whole = chat(client, **options)
    chunks = list(chat(client, **options, stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage == whole.usage


def test_a_stop_string_cuts_alike_in_all_modes(client):
    whole = chat(client).choices[0].message.content
    for mode in MODES:
        reply = chat(client, stop=["def "], extra_body={"ddtree": {"mode": mode}})
        assert reply.choices[0].message.content == whole.split("def ")[0]
        assert reply.choices[0].finish_reason == "stop"


def test_a_completion_goes_on_from_its_prompt(client):
    reply = client.completions.create(model="SmolLM2-135M-Instruct", prompt="1, 2, 3, 4,", max_tokens=6, temperature=0)
    assert reply.choices[0].text.startswith(" 5")


def test_a_long_conversation_is_refused_with_its_size(client):
    with pytest.raises(openai.BadRequestError, match=r"context is 1024"):
        chat(client, messages=[{"role": "user", "content": "word " * 1100}])


def test_a_client_that_leaves_makes_room_for_the_next(client, url):
    with chat(client, max_tokens=900, stream=True, extra_body={"ignore_eos": True}) as stream:
        next(iter(stream))
    assert chat(client, max_tokens=2).usage.completion_tokens == 2
    assert 'ddtree_requests_total{endpoint="/v1/chat/completions",status="499"} 1.0' in httpx.get(url + "/metrics").text


def test_a_drafter_for_nothing_ends_the_process_with_its_reason(model_folder, tmp_path):
    process = start(model_folder, "--drafter", str(tmp_path))
    _, stderr = process.communicate(timeout=WAIT_S)
    assert process.returncode == 2
    assert stderr.splitlines()[-1].startswith("ddtree: error: ")
    assert str(tmp_path) in stderr.splitlines()[-1]
