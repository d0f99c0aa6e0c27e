#!/usr/bin/env python3
"""Uses an endpoint as its clients do, through the openai package, and reads its metrics. Ends with 1 on a fault.

Greedy answers, streamed and not, must be the same text. The acceptance length (tokens committed a decode round, the
bonus token included) is computed from the difference of /metrics over these requests alone.
"""

import argparse
import sys
import urllib.request

import openai
from prometheus_client.parser import text_string_to_metric_families

ACCEPTANCE_SUM = "ddtree_acceptance_length_sum"
ACCEPTANCE_ROUNDS = "ddtree_acceptance_length_count"
PROMPTS = (
    "What is the capital of France, and what is it known for?",
    "Write a Python function that returns the n-th Fibonacci number.",
)
MAX_TOKENS = 64


def fetch(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.read().decode()
    except OSError as error:
        sys.exit(f"{url}: {error}")


def metric(text: str, name: str) -> float:
    """Sum of a sample over all its labels."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return sum(sample.value for sample in samples if sample.name == name)


def chat(client: openai.OpenAI, model: str, prompt: str) -> tuple[str, str]:
    """The same question, answered at once and streamed. Returns both texts."""
    question = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
    }
    whole = client.chat.completions.create(**question)
    if not whole.usage or not 0 < whole.usage.completion_tokens <= MAX_TOKENS:
        sys.exit(f"usage {whole.usage} of an answer of at most {MAX_TOKENS} tokens")
    if whole.choices[0].finish_reason not in ("stop", "length"):
        sys.exit(f"finish_reason {whole.choices[0].finish_reason!r}")
    deltas = [chunk.choices[0].delta.content or "" for chunk in client.chat.completions.create(**question, stream=True)]
    if len([delta for delta in deltas if delta]) < 2:
        sys.exit(f"streamed in one piece: {deltas}")
    return whole.choices[0].message.content or "", "".join(deltas)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True, help="base URL of the server, without /v1")
    parser.add_argument("--model", required=True, help="name it serves the model under")
    parser.add_argument("--min-acceptance", type=float, required=True, help="acceptance length that must be exceeded")
    args = parser.parse_args()

    fetch(f"{args.url}/health")
    client = openai.OpenAI(base_url=f"{args.url}/v1", api_key="none", max_retries=0, timeout=300)
    served = [model.id for model in client.models.list()]
    if args.model not in served:
        sys.exit(f"{args.model} is not served; /v1/models names {served}")

    before = fetch(f"{args.url}/metrics")
    for prompt in PROMPTS:
        whole, streamed = chat(client, args.model, prompt)
        if not whole.strip():
            sys.exit(f"empty answer to {prompt!r}")
        if whole != streamed:
            sys.exit(f"greedy answers differ.\nat once:  {whole!r}\nstreamed: {streamed!r}")
        print(f"{prompt}\n  {whole!r}")
    after = fetch(f"{args.url}/metrics")

    rounds = metric(after, ACCEPTANCE_ROUNDS) - metric(before, ACCEPTANCE_ROUNDS)
    tokens = metric(after, ACCEPTANCE_SUM) - metric(before, ACCEPTANCE_SUM)
    if rounds == 0:
        sys.exit(f"no decode round was counted ({ACCEPTANCE_ROUNDS} of {args.url}/metrics did not move)")
    print(f"acceptance length {tokens / rounds:.2f} ({tokens:.0f} tokens in {rounds:.0f} decode rounds)")
    if tokens / rounds <= args.min_acceptance:
        sys.exit(f"acceptance length {tokens / rounds:.2f}, more than {args.min_acceptance:g} is expected")


if __name__ == "__main__":
    main()
