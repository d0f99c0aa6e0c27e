"""Asking a hub for its file list, through the real huggingface_hub, against a real server with every kind of answer."""

import pytest
from ansible.module_utils.hub_client import read_repository
from ansible.module_utils.provision_error import ProvisionError
from misbehaving_hub import TOKEN, git_sha1, sha256
from weights_fixtures import REPO, SHARD


def read(hub, revision="main", repo_id=REPO, **options):
    return read_repository(repo_id, revision, hub.endpoint, **options)


def test_every_file_has_its_size_and_hash(repository, files):
    manifest = read(repository)
    assert manifest.commit == repository.commit
    assert {entry.path: entry.size_bytes for entry in manifest.files} == {name: len(c) for name, c in files.items()}
    for entry in manifest.files:
        lfs = entry.size_bytes >= 1024
        assert entry.hash_kind == ("sha256" if lfs else "git-sha1")
        assert entry.hash == (sha256 if lfs else git_sha1)(files[entry.path])


def test_a_mirror_that_leaves_sizes_out_is_asked_for_the_tree(repository):
    complete = read(repository)
    repository.faults.without_sizes = True
    assert read(repository) == complete
    assert any(f"/tree/{repository.commit}" in request.path for request in repository.seen())


@pytest.mark.parametrize(
    ("allow", "deny", "expected"),
    [
        (["*.json"], [], ["config.json", "tokenizer.json"]),
        ([], ["*.bin", SHARD, "*.txt"], ["config.json", "tokenizer.json"]),
        (["*.json", "sub/*"], ["token*"], ["config.json", "sub/dir/extra weights.bin"]),
    ],
)
def test_patterns(repository, allow, deny, expected):
    manifest = read(repository, allow=allow, deny=deny)
    assert [entry.path for entry in manifest.files] == expected
    assert (list(manifest.allow_patterns), list(manifest.deny_patterns)) == (allow, deny)


def test_patterns_that_leave_nothing(repository):
    with pytest.raises(ProvisionError, match=r"none of its 5 files passes allow_patterns \['\*\.gguf'\]"):
        read(repository, allow=["*.gguf"])


def test_a_commit_as_revision(repository):
    assert read(repository, repository.commit).commit == repository.commit


def test_the_token_is_sent_where_it_is_needed(repository):
    repository.faults.needs_token = True
    assert read(repository, token=TOKEN).commit == repository.commit
    assert {request.headers["authorization"] for request in repository.seen()} == {f"Bearer {TOKEN}"}


def test_no_token_is_picked_up_on_the_way(repository, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_from_the_environment")
    read(repository)
    assert all("authorization" not in request.headers for request in repository.seen())


@pytest.mark.parametrize(
    ("faults", "asked", "said"),
    [
        ({"needs_token": True}, {}, r"HTTP 401.*private or gated: check repo_id, or set token"),
        ({"needs_token": True}, {"token": "hf_wrong"}, r"HTTP 401.*the token is not valid there"),
        ({"gated": True}, {"token": TOKEN}, r"HTTP 403 GatedRepo.*accept its terms"),
        ({}, {"repo_id": "org/other"}, r"org/other.*HTTP 404 RepoNotFound.*check repo_id"),
        ({}, {"revision": "v9"}, r"revision v9.*HTTP 404 RevisionNotFound.*check the revision"),
        ({}, {"repo_id": "not a name"}, r"repo_id is written org/name"),
    ],
)
def test_a_refusal_says_why_and_what_to_do(repository, faults, asked, said):
    for name, value in faults.items():
        setattr(repository.faults, name, value)
    with pytest.raises(ProvisionError, match=said) as caught:
        read(repository, **asked)
    assert "hf_wrong" not in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_passing_fault_is_waited_out(repository):
    repository.faults.server_errors = 2
    assert read(repository).commit == repository.commit


def test_a_lasting_fault_is_not(repository):
    repository.faults.server_errors = 100
    with pytest.raises(ProvisionError, match=r"HTTP 500.*mirror"):
        read(repository, rate_limit_wait_s=1)
    assert len(repository.requests) < 5


def test_a_hub_that_cannot_be_reached(silent_endpoint):
    with pytest.raises(ProvisionError, match=rf"{silent_endpoint} cannot be asked.*set endpoint to a mirror"):
        read_repository(REPO, "main", silent_endpoint, timeout_s=5)


def test_names_that_leave_the_folder_are_refused(hub):
    hub.add(REPO, {"ok.json": b"{}", "../evil": b"x"})
    with pytest.raises(ProvisionError, match=r"'\.\./evil' holds an empty.*exclude it by deny_patterns"):
        read(hub)
    assert [entry.path for entry in read(hub, deny=["*evil"]).files] == ["ok.json"]
