"""The module hub_manifest, run as a node runs it, and once through ansible itself."""

import json

import pytest
from misbehaving_hub import TOKEN
from weights_fixtures import REPO, sample_files


@pytest.fixture
def arguments(repository, dest):
    return {"repo_id": REPO, "endpoint": repository.endpoint, "dest": str(dest)}


def test_first_run_second_run_and_refresh(run_module, repository, dest, arguments):
    first = run_module("hub_manifest", arguments)
    assert (first["changed"], first["commit"], first["file_count"]) == (True, repository.commit, 5)
    assert json.loads((dest / ".ddtree" / "manifest.json").read_text()) == first["manifest"]
    assert first["manifest_path"] == str(dest / ".ddtree" / "manifest.json")
    repository.forget()
    assert run_module("hub_manifest", arguments)["changed"] is False
    assert repository.requests == []
    moved = repository.add(REPO, sample_files(seed=2))
    refreshed = run_module("hub_manifest", {**arguments, "refresh": True}, diff=True)
    assert (refreshed["changed"], refreshed["commit"]) == (True, moved)
    assert repository.commit in refreshed["diff"]["before"]


def test_check_mode_writes_nothing(run_module, dest, arguments):
    result = run_module("hub_manifest", arguments, check=True)
    assert result["changed"]
    assert result["manifest"]["files"]
    assert not dest.exists()


def test_the_token_is_in_no_output_and_no_file(run_module, repository, dest, arguments):
    repository.faults.needs_token = True
    result = run_module("hub_manifest", {**arguments, "token": TOKEN})
    assert result["changed"]
    assert result["invocation"]["module_args"]["token"] == "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
    assert TOKEN not in json.dumps(result)
    assert not any(TOKEN in path.read_text() for path in dest.rglob("*") if path.is_file())


def test_a_refusal_is_a_failure_with_a_reason(run_module, repository, dest, arguments):
    repository.faults.needs_token = True
    result = run_module("hub_manifest", {**arguments, "token": "hf_wrong_token"})
    assert result["failed"]
    assert "HTTP 401" in result["msg"]
    assert "hf_wrong_token" not in json.dumps(result)
    assert not dest.exists()


def test_a_hub_that_cannot_be_reached(run_module, arguments, silent_endpoint):
    result = run_module("hub_manifest", {**arguments, "endpoint": silent_endpoint})
    assert result["failed"]
    assert silent_endpoint in result["msg"]
    assert "set endpoint to a mirror" in result["msg"]


def test_a_missing_library_is_named(run_module, arguments, tmp_path):
    (tmp_path / "huggingface_hub.py").write_text("raise ImportError('not on this node')")
    result = run_module("hub_manifest", arguments, env={"PYTHONPATH": str(tmp_path)})
    assert result["failed"]
    assert "Failed to import the required Python library (huggingface_hub)" in result["msg"]


@pytest.mark.parametrize(
    ("change", "said"),
    [({"repo_id": None}, "repo_id"), ({"unknown": 1}, "unknown"), ({"refresh": "perhaps"}, "refresh")],
)
def test_wrong_arguments(run_module, arguments, change, said):
    given = {name: value for name, value in {**arguments, **change}.items() if value is not None}
    result = run_module("hub_manifest", given)
    assert result["failed"]
    assert said in result["msg"]


def test_through_ansible(run_ansible, repository, dest, arguments):
    planned = run_ansible("hub_manifest", arguments, check=True, diff=True)
    assert planned["changed"]
    assert f"+{REPO} revision main commit {repository.commit}" in planned["_stdout"]
    assert not dest.exists()
    assert run_ansible("hub_manifest", arguments)["changed"]
    assert run_ansible("hub_manifest", arguments)["changed"] is False
