"""The Prometheus text says what the replies say."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ddtree import __version__

TEXT = "the quick brown fox jumps over the lazy dog"


@pytest.fixture(scope="module")
def counted(run_server):
    """Metrics before and after one reply in each mode, and the replies."""
    with run_server() as running:
        before = samples(running)
        replies = {
            mode: running.openai.completions.create(
                model="stub", prompt=TEXT, max_tokens=100, extra_body={"ddtree": {"mode": mode}}
            )
            for mode in ("ar", "chain", "tree")
        }
        running.http.post("/v1/chat/completions", json={})
        running.http.get("/v1/models/stub")
        running.http.get("/some/where")
        yield before, samples(running), replies


def samples(running):
    text = running.http.get("/metrics")
    assert text.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.text)
        for sample in family.samples
    }


@pytest.mark.parametrize("mode", ["ar", "chain", "tree"])
def test_counters_agree_with_the_reply(counted, mode):
    before, after, replies = counted

    def grown(name):
        return after[(name, ("mode", mode))] - before.get((name, ("mode", mode)), 0)

    reply = replies[mode]
    assert grown("ddtree_generated_tokens_total") == reply.usage.completion_tokens
    assert grown("ddtree_target_forwards_total") == reply.ddtree["target_forwards"]
    assert grown("ddtree_decode_rounds_total") == reply.ddtree["decode_rounds"]
    assert grown("ddtree_acceptance_length_count") == reply.ddtree["decode_rounds"]
    assert grown("ddtree_acceptance_length_sum") == reply.usage.completion_tokens - 1


def test_the_acceptance_histogram_has_a_bucket_for_each_length(counted):
    before, after, replies = counted

    def buckets(samples):
        return {
            dict(labels)["le"]: value
            for (name, *labels), value in samples.items()
            if name == "ddtree_acceptance_length_bucket" and ("mode", "tree") in labels
        }

    assert set(buckets(after)) == {*(f"{length}.0" for length in range(1, 18)), "+Inf"}
    # Rounds that committed at most so many tokens, that is, accepted fewer drafted ones than that.
    histogram = replies["tree"].ddtree["accepted_histogram"]
    assert len(histogram) > 1
    for length in range(1, 18):
        grown = buckets(after)[f"{length}.0"] - buckets(before).get(f"{length}.0", 0)
        assert grown == sum(histogram[:length])


def test_requests_are_counted_by_endpoint_and_status(counted):
    _, after, replies = counted

    def requests(endpoint, status):
        return after[("ddtree_requests_total", ("endpoint", endpoint), ("status", status))]

    assert requests("/v1/completions", "200") == len(replies)
    assert requests("/v1/chat/completions", "400") == 1
    assert requests("/v1/models/{id}", "200") == 1
    assert requests("other", "404") == 1
    assert requests("/health", "200") >= 1


def test_times_prompt_tokens_and_gauges(counted):
    before, after, replies = counted
    assert after[("ddtree_time_to_first_token_seconds_count",)] == len(replies)
    assert after[("ddtree_request_seconds_count",)] == len(replies)
    grown = after[("ddtree_prompt_tokens_total",)] - before[("ddtree_prompt_tokens_total",)]
    assert grown == sum(reply.usage.prompt_tokens for reply in replies.values())
    assert after[("ddtree_requests_queued",)] == 0


def test_build_info(counted):
    _, after, _ = counted
    labels = (("budget", "16"), ("model", "stub"), ("version", __version__))
    assert after[("ddtree_build_info", *labels)] == 1
