"""The API key: demanded everywhere but for /health and /metrics, compared whole, read from a file."""

import openai
import pytest

from ddtree.errors import UserError
from ddtree.serving.authentication import read_api_key


@pytest.fixture(scope="module")
def locked(run_server):
    with run_server(api_key="s3cret") as running:
        yield running


def test_the_right_key_opens(locked):
    assert [model.id for model in locked.openai.models.list()] == ["stub"]


@pytest.mark.parametrize(
    "header", [None, "Bearer", "Bearer s3cre", "Bearer s3cret1", "s3cret", "Basic s3cret", "Bearer ü"]
)
@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/stub", "/v1/chat/completions", "/nowhere"])
def test_any_other_key_does_not(locked, header, path):
    headers = {} if header is None else {"Authorization": header.encode()}
    response = locked.http.get(path, headers=headers)
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "invalid_api_key"
    assert response.headers["www-authenticate"] == "Bearer"
    assert "s3cret" not in response.text


def test_the_client_raises_its_own_exception(locked):
    client = openai.OpenAI(base_url=locked.url + "/v1", api_key="wrong", max_retries=0)
    with client, pytest.raises(openai.AuthenticationError, match="Incorrect API key"):
        client.models.list()


def test_health_and_metrics_are_open(locked):
    assert locked.http.get("/health").status_code == 200
    metrics = locked.http.get("/metrics")
    assert metrics.status_code == 200
    assert "s3cret" not in metrics.text


def test_refused_requests_are_counted(locked):
    before = locked.metric('ddtree_requests_total{endpoint="/v1/completions",status="401"}')
    locked.http.post("/v1/completions", json={})
    assert locked.metric('ddtree_requests_total{endpoint="/v1/completions",status="401"}') == before + 1


def test_the_file_holds_one_key(tmp_path):
    path = tmp_path / "key"
    path.write_text("abc-123\n")
    assert read_api_key(path) == "abc-123"


@pytest.mark.parametrize("content", [b"", b"\n", b"two words", b"a\nb\n", "schlüssel".encode(), b"\xff"])
def test_files_that_hold_none(tmp_path, content):
    path = tmp_path / "key"
    path.write_bytes(content)
    with pytest.raises(UserError, match="--api-key-file"):
        read_api_key(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        read_api_key(tmp_path / "none")
