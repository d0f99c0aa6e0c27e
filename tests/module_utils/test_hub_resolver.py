"""Resolving a file's address: where the token goes, what is compared, how refusals read."""

import threading

import pytest
from ansible.module_utils.hub_manifest_file import FileEntry
from ansible.module_utils.hub_resolver import HubResolver, ResolveCancelled
from ansible.module_utils.hub_session import HubSession
from ansible.module_utils.provision_error import ProvisionError
from misbehaving_hub import TOKEN, Hub, git_sha1, sha256
from weights_fixtures import REPO, SHARD


@pytest.fixture
def make(repository):
    def make(token=None, endpoints=None, token_endpoint=None, cancelled=None, rate_limit_wait_s=20):
        session = HubSession(token, token_endpoint or repository.endpoint, timeout_s=5)
        endpoints = endpoints or [repository.endpoint]
        return HubResolver(
            session, endpoints, REPO, repository.commit, rate_limit_wait_s, cancelled or threading.Event()
        )

    return make


def entry(files, name):
    content = files[name]
    lfs = len(content) >= 1024
    return FileEntry(name, len(content), "sha256" if lfs else "git-sha1", (sha256 if lfs else git_sha1)(content))


def test_an_lfs_file_has_a_signed_address_elsewhere(make, repository, files):
    repository.faults.needs_token = True
    resolved = make(TOKEN).resolve(entry(files, SHARD))
    assert resolved.uris[0].startswith(repository.cdn)
    assert TOKEN not in resolved.uris[0]
    assert resolved.direct is None
    (request,) = repository.requests
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.path == f"/{REPO}/resolve/{repository.commit}/{SHARD}"
    assert request.method == "HEAD"


def test_a_public_file_that_the_hub_serves_goes_to_aria2_without_the_token(make, repository, files):
    resolved = make(TOKEN).resolve(entry(files, "config.json"))
    assert resolved.uris == (f"{repository.endpoint}/{REPO}/resolve/{repository.commit}/config.json",)
    assert "authorization" not in repository.requests[-1].headers  # the proof that it is public


def test_a_private_file_that_the_hub_serves_does_not_go_to_aria2(make, repository, files):
    repository.faults.needs_token = True
    resolved = make(TOKEN).resolve(entry(files, "config.json"))
    assert resolved.uris == ()
    assert resolved.direct == f"{repository.endpoint}/{REPO}/resolve/{repository.commit}/config.json"


def test_names_are_quoted_in_the_address(make, repository, files):
    make().resolve(entry(files, "sub/dir/extra weights.bin"))
    assert repository.requests[0].path.endswith("/sub/dir/extra%20weights.bin")


def test_the_token_goes_to_its_own_endpoint_alone(make, repository, files):
    mirror = Hub()
    try:
        mirror.add(REPO, files)
        resolved = make(TOKEN, [repository.endpoint, mirror.endpoint]).resolve(entry(files, SHARD))
        assert [uri.split("/blob")[0] for uri in resolved.uris] == [repository.cdn, mirror.cdn]
        assert all("authorization" not in request.headers for request in mirror.requests)
        assert repository.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
    finally:
        mirror.close()


def test_netrc_is_not_read(make, repository, files, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password geheim\n")
    monkeypatch.setenv("NETRC", str(netrc))
    make().resolve(entry(files, SHARD))
    assert all("authorization" not in request.headers for request in repository.requests)


@pytest.mark.parametrize(
    ("fault", "value", "said"),
    [
        ("linked_size", {SHARD: 135}, r"states size 135 bytes, the manifest 6000000; rerun hub_manifest"),
        ("linked_etag", {SHARD: "0" * 64}, rf"states sha256 {'0' * 64}"),
        ("served_commit", "1" * 40, rf"serves commit {'1' * 40} where the manifest pins"),
    ],
)
def test_another_file_than_the_manifest_names_is_refused(make, repository, files, fault, value, said):
    setattr(repository.faults, fault, value)
    with pytest.raises(ProvisionError, match=said) as caught:
        make().resolve(entry(files, SHARD))
    assert SHARD in str(caught.value)
    assert repository.endpoint in str(caught.value)


def test_a_tag_that_is_no_hash_says_nothing(make, repository, files):
    repository.faults.linked_etag = {SHARD: "5f-abc"}
    assert make().resolve(entry(files, SHARD)).uris


@pytest.mark.parametrize(
    ("faults", "token", "said"),
    [
        ({"needs_token": True}, None, "HTTP 401.*set token"),
        ({"needs_token": True}, "hf_wrong", "HTTP 401.*the token is not valid there"),
        ({"gated": True}, TOKEN, "HTTP 403 GatedRepo.*accept its terms"),
    ],
)
def test_a_refusal_is_explained_and_not_retried(make, repository, files, faults, token, said):
    for name, value in faults.items():
        setattr(repository.faults, name, value)
    with pytest.raises(ProvisionError, match=said) as caught:
        make(token).resolve(entry(files, SHARD))
    assert len(repository.requests) == 1
    assert token is None or token not in str(caught.value)


def test_a_file_that_the_commit_lacks(make):
    with pytest.raises(ProvisionError, match=r"other.bin.*HTTP 404 EntryNotFound.*refresh=true"):
        make().resolve(FileEntry("other.bin", 1, "sha256", "0" * 64))


@pytest.mark.parametrize("headers", [{"RateLimit": '"resolvers";r=0;t=1'}, {"Retry-After": "1"}, {}])
def test_a_rate_limit_is_waited_out(make, repository, files, headers):
    repository.faults.rate_limited = 1
    repository.faults.rate_limit_headers = headers
    assert make().resolve(entry(files, SHARD)).uris
    assert len(repository.requests) == 2


def test_a_rate_limit_beyond_the_bound_is_an_error_at_once(make, repository, files):
    repository.faults.rate_limited = 1
    repository.faults.rate_limit_headers = {"RateLimit": '"resolvers";r=0;t=300'}
    with pytest.raises(ProvisionError, match=r"HTTP 429.*raise rate_limit_wait_s"):
        make(rate_limit_wait_s=20).resolve(entry(files, SHARD))


def test_faults_pass_or_end(make, repository, files):
    repository.faults.server_errors = 2
    assert make().resolve(entry(files, SHARD)).uris
    repository.faults.server_errors = 1000
    with pytest.raises(ProvisionError, match=r"HTTP 500.*name a mirror"):
        make(rate_limit_wait_s=1).resolve(entry(files, SHARD))


def test_a_hub_that_cannot_be_reached(make, files, silent_endpoint):
    with pytest.raises(ProvisionError, match=f"{silent_endpoint} cannot be reached.*name a mirror in sources"):
        make(endpoints=[silent_endpoint], rate_limit_wait_s=1).resolve(entry(files, SHARD))


def test_one_source_that_fails_is_left_out_with_a_warning(make, repository, files, silent_endpoint):
    resolver = make(endpoints=[silent_endpoint, repository.endpoint], rate_limit_wait_s=1)
    for name in (SHARD, "tokenizer.json"):
        assert len(resolver.resolve(entry(files, name)).uris) == 1
    assert len(resolver.warnings) == 1
    assert silent_endpoint in resolver.warnings[0]


def test_after_wrong_bytes_one_source_at_a_time_is_used(make, repository, files):
    mirror = Hub()
    try:
        mirror.add(REPO, files)
        resolver = make(endpoints=[repository.endpoint, mirror.endpoint])
        assert resolver.resolve(entry(files, SHARD), rotate=1).uris[0].startswith(mirror.cdn)
        assert resolver.resolve(entry(files, SHARD), rotate=2).uris[0].startswith(repository.cdn)
    finally:
        mirror.close()


def test_the_end_of_the_run_ends_the_wait(make, repository, files):
    cancelled = threading.Event()
    cancelled.set()
    repository.faults.rate_limited = 1
    with pytest.raises(ResolveCancelled):
        make(cancelled=cancelled).resolve(entry(files, SHARD))


def test_a_redirect_within_the_hub_is_followed_with_the_token(make, repository, files):
    """A renamed repository answers like that."""
    repository.faults.needs_token = True
    repository.repos["org/new"] = repository.repos[REPO]
    repository.faults.redirects = {"old.bin": f"/org/new/resolve/{repository.commit}/{SHARD.replace('.', '%2E')}"}
    old = FileEntry("old.bin", len(files[SHARD]), "sha256", sha256(files[SHARD]))
    assert make(TOKEN).resolve(old).uris[0].startswith(repository.cdn)
    assert [r.headers["authorization"] for r in repository.requests] == [f"Bearer {TOKEN}"] * 2


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("/org/name/resolve/{commit}/config.json", "in a circle"),
        ("file:///etc/passwd", "only http"),
        ("ftp://h/x", "only http"),
    ],
)
def test_a_redirect_to_nowhere_good(make, repository, files, location, said):
    repository.faults.redirects = {"config.json": location.format(commit=repository.commit)}
    with pytest.raises(ProvisionError, match=f"config.json.*{said}"):
        make().resolve(entry(files, "config.json"))
