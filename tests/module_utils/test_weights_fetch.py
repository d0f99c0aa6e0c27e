"""Fetching a model folder, against a hub on loopback and the real aria2c: what arrives, what is asked, what is left.

After every fault the folder must hold the right bytes or no file at all under each name.
"""

import json
import os
import random
import stat

import pytest
from ansible.module_utils.pinned_manifest import keep_manifest
from ansible.module_utils.provision_error import ProvisionError
from ansible.module_utils.weights_fetch import fetch_weights
from misbehaving_hub import TOKEN, Hub
from weights_fixtures import (
    REPO,
    SHARD,
    fetch_params,
    manifest_params,
    missing_files,
    sample_files,
    tree,
    wrong_files,
)


@pytest.fixture
def pinned(repository, dest):
    """The hub, its requests forgotten, after hub_manifest has run for `dest`."""
    keep_manifest(manifest_params(repository, dest), check_mode=False)
    repository.forget()
    return repository


def fetch(dest, check_mode=False, **changes):
    return fetch_weights(fetch_params(dest, **changes), check_mode)


def receipt(dest):
    return json.loads((dest / ".ddtree" / "receipt.json").read_text())


def state_files(dest):
    return sorted(str(path.relative_to(dest / ".ddtree")) for path in (dest / ".ddtree").rglob("*"))


def assert_complete(dest, files):
    assert missing_files(dest, files) == []
    assert wrong_files(dest, files) == []
    assert state_files(dest) == ["lock", "manifest.json", "receipt.json"]
    assert receipt(dest)["completed_at"]


# --- the ordinary run ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("pinned")
def test_everything_arrives(dest, files):
    result = fetch(dest)
    assert_complete(dest, files)
    assert result["changed"]
    assert result["fetched_files"] == sorted(files)
    assert result["fetched_bytes"] == result["downloaded_bytes"] == sum(map(len, files.values()))
    assert result["skipped_files"] == 0
    assert result["mib_per_s"] > 0
    assert result["diff"]["before"] == ""
    assert len(result["diff"]["after"].splitlines()) == len(files)
    assert result["warnings"] == []
    for name in files:
        assert stat.S_IMODE((dest / name).stat().st_mode) == 0o644
    recorded = receipt(dest)["files"]
    assert sorted(recorded) == sorted(files)
    assert recorded[SHARD]["mtime_ns"] == (dest / SHARD).stat().st_mtime_ns


def test_a_second_run_asks_nobody_reads_nothing_and_changes_nothing(pinned, dest, monkeypatch):
    fetch(dest)
    pinned.forget()
    before = tree(dest)
    monkeypatch.setattr("ansible.module_utils.fetch_plan.hash_file", None)  # would fail if a byte were hashed
    monkeypatch.setenv("PATH", "")  # nor is aria2c needed
    result = fetch(dest)
    assert not result["changed"]
    assert (result["fetched_files"], result["downloaded_bytes"], result["skipped_files"]) == ([], 0, 5)
    assert pinned.requests == []
    assert {k: v for k, v in tree(dest).items() if k != ".ddtree/lock"} == {
        k: v for k, v in before.items() if k != ".ddtree/lock"
    }


def test_files_that_are_there_without_a_receipt_are_proven_not_fetched(pinned, dest, files):
    fetch(dest)
    (dest / ".ddtree" / "receipt.json").unlink()
    pinned.forget()
    result = fetch(dest)
    assert not result["changed"]
    assert pinned.requests == []
    assert_complete(dest, files)


@pytest.mark.usefixtures("pinned")
def test_extra_files_are_reported_and_left(dest, files):
    (dest / "notes").mkdir()
    (dest / "notes" / "mine.txt").write_text("mine")
    result = fetch(dest)
    assert result["extra_files"] == ["notes/mine.txt"]
    assert "notes/mine.txt" in result["warnings"][0]
    assert (dest / "notes" / "mine.txt").read_text() == "mine"
    assert_complete(dest, files)


def test_check_mode_plans_and_touches_nothing(pinned, dest, files):
    before = tree(dest)
    result = fetch(dest, check_mode=True)
    assert result["changed"]
    assert result["fetched_files"] == sorted(files)
    assert result["fetched_bytes"] == sum(map(len, files.values()))
    assert pinned.requests == []
    assert tree(dest) == before
    fetch(dest)
    before = tree(dest)
    assert not fetch(dest, check_mode=True)["changed"]
    assert tree(dest) == before


def test_check_mode_on_a_bare_node(repository, dest, files):
    planned = keep_manifest(manifest_params(repository, dest), check_mode=True)["manifest"]
    assert fetch(dest, check_mode=True, manifest=planned)["fetched_files"] == sorted(files)
    assert fetch(dest, check_mode=True)["changed"]  # without the plan it cannot know
    assert not dest.exists()


def test_without_a_manifest(dest):
    with pytest.raises(ProvisionError, match=r"manifest\.json: is not there; run hub_manifest"):
        fetch(dest)


@pytest.mark.usefixtures("pinned")
def test_a_service_s_user_can_read_it_whatever_the_umask(dest, files):
    old = os.umask(0o077)
    try:
        fetch(dest)
    finally:
        os.umask(old)
    assert {stat.S_IMODE((dest / name).stat().st_mode) for name in files} == {0o644}
    assert stat.S_IMODE((dest / "sub" / "dir").stat().st_mode) == 0o755


def test_an_empty_file_needs_no_request(pinned, dest):
    fetch(dest)
    assert (dest / "empty.txt").read_bytes() == b""
    assert not any("empty.txt" in request.path for request in pinned.requests)


# --- what lies there already -----------------------------------------------------------------------------------------


def _cut(path):
    os.truncate(path, 1_000_000)


def _zero(path):
    path.write_bytes(bytes(path.stat().st_size))


def _lengthen(path):
    path.write_bytes(path.read_bytes() + b"x")


def _flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [_cut, _zero, _lengthen, _flip, os.unlink])
@pytest.mark.parametrize("with_receipt", [True, False])
def test_only_the_broken_shard_is_fetched_again(pinned, dest, files, damage, with_receipt):
    fetch(dest)
    if not with_receipt:
        (dest / ".ddtree" / "receipt.json").unlink()
    damage(dest / SHARD)
    pinned.forget()
    result = fetch(dest)
    assert result["changed"]
    assert result["fetched_files"] == [SHARD]
    assert result["skipped_files"] == 4
    assert list(result["replaced"]) == ([] if damage is os.unlink else [SHARD])
    assert {request.path for request in pinned.seen("hub")} == {f"/{REPO}/resolve/{pinned.commit}/{SHARD}"}
    assert_complete(dest, files)


@pytest.mark.usefixtures("pinned")
def test_a_full_size_file_of_zeros_at_the_final_name(dest, files):
    (dest / SHARD).write_bytes(bytes(len(files[SHARD])))
    fetch(dest)
    assert_complete(dest, files)


@pytest.mark.usefixtures("pinned")
def test_a_link_at_the_final_name_is_replaced_not_followed(dest, tmp_path, files):
    target = tmp_path / "target"
    target.write_bytes(b"not yours")
    (dest / "config.json").symlink_to(target)
    fetch(dest)
    assert target.read_bytes() == b"not yours"
    assert not (dest / "config.json").is_symlink()
    assert_complete(dest, files)


@pytest.mark.usefixtures("pinned")
def test_a_folder_at_the_final_name(dest):
    (dest / SHARD).mkdir()
    with pytest.raises(ProvisionError, match=f"file {SHARD}: .* is a folder; move it away and rerun"):
        fetch(dest)


@pytest.mark.usefixtures("pinned")
def test_a_wrong_file_stays_until_a_hub_has_answered(dest, silent_endpoint):
    (dest / "config.json").write_text("edited by hand")
    with pytest.raises(ProvisionError, match="cannot be reached"):
        fetch(dest, sources=[silent_endpoint], rate_limit_wait_s=1)
    assert (dest / "config.json").read_text() == "edited by hand"


def test_a_new_commit_replaces_what_changed_and_keeps_the_rest(pinned, dest, files):
    fetch(dest)
    newer = {**sample_files(seed=2), "tokenizer.json": files["tokenizer.json"]}
    del newer["empty.txt"]
    pinned.add(REPO, newer)
    keep_manifest(manifest_params(pinned, dest, refresh=True), check_mode=False)
    pinned.forget()
    result = fetch(dest)
    assert result["fetched_files"] == [SHARD, "sub/dir/extra weights.bin"]
    assert result["extra_files"] == ["empty.txt"]
    assert "an earlier version" in result["replaced"][SHARD]
    assert_complete(dest, newer)


def test_superseded_files_make_room_for_their_successors(pinned, dest, monkeypatch):
    """A disk that holds a model once can be moved to the next commit."""
    fetch(dest)
    pinned.add(REPO, sample_files(seed=2))
    keep_manifest(manifest_params(pinned, dest, refresh=True), check_mode=False)
    monkeypatch.setattr("ansible.module_utils.free_space.free_bytes", lambda _path: 1_000_000)
    assert fetch(dest)["changed"]


# --- partial files ---------------------------------------------------------------------------------------------------


def part_of(dest, name):
    (path,) = [p for p in (dest / ".ddtree" / "incoming").rglob("*.part") if p.name.startswith(name.rsplit("/")[-1])]
    return path


def interrupted(pinned, dest):
    """A run that ends in the middle of the shard because another file is refused; its partial files stay."""
    pinned.faults.bytes_per_s = 1_500_000
    pinned.faults.linked_size = {"config.json": 1}
    with pytest.raises(ProvisionError, match=r"config.json"):
        fetch(dest, parallel_files=2)
    pinned.faults.linked_size, pinned.faults.bytes_per_s = {}, None
    pinned.forget()


@pytest.fixture
def half(pinned, dest):
    """A folder in which aria2 has fetched part of the shard and was ended in an orderly way."""
    interrupted(pinned, dest)
    return part_of(dest, SHARD)


@pytest.mark.usefixtures("pinned")
def test_a_failed_run_is_resumed(dest, files, half):
    control = half.with_name(half.name + ".aria2")
    assert control.stat().st_size > 0
    plan = fetch(dest, check_mode=True)
    result = fetch(dest)
    assert_complete(dest, files)
    assert result["downloaded_bytes"] == plan["downloaded_bytes"] < result["fetched_bytes"]


def _control(part):
    return part.with_name(part.name + ".aria2")


def _lose_control(part):
    _control(part).unlink()


def _empty_control(part):
    _control(part).write_bytes(b"")


def _cut_control(part):
    os.truncate(_control(part), 20)


def _orphan_control(part):
    part.unlink()


def _garbage_control(part):
    _control(part).write_bytes(b"\xff" * 200)


def _stale_content(part):
    """The bitfield says the bytes are there, but a power cut has lost them."""
    part.write_bytes(bytes(part.stat().st_size))


@pytest.mark.usefixtures("pinned")
@pytest.mark.parametrize(
    "damage", [_lose_control, _empty_control, _cut_control, _orphan_control, _garbage_control, _stale_content]
)
def test_a_partial_file_that_cannot_be_trusted(dest, files, half, damage):
    damage(half)
    fetch(dest)
    assert_complete(dest, files)


def test_a_complete_partial_file_is_proven_and_taken(pinned, dest, files):
    """Killed between the last byte and the rename."""
    fetch(dest)
    entry = json.loads((dest / ".ddtree" / "manifest.json").read_text())["files"]
    digest = next(e["hash"] for e in entry if e["path"] == SHARD)
    part = dest / ".ddtree" / "incoming" / f"{SHARD}.{digest[:12]}.part"
    part.parent.mkdir()
    (dest / SHARD).rename(part)
    pinned.forget()
    result = fetch(dest)
    assert result["changed"]
    assert result["downloaded_bytes"] == 0
    assert pinned.requests == []
    assert_complete(dest, files)


def test_partial_files_of_another_commit_are_swept(pinned, dest, half):
    newer = sample_files(seed=2)
    pinned.add(REPO, newer)
    keep_manifest(manifest_params(pinned, dest, refresh=True), check_mode=False)
    fetch(dest)
    assert not half.exists()
    assert_complete(dest, newer)


# --- a hub that misbehaves -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "faults",
    [
        {"rate_limited": 2},
        {"rate_limited": 1, "rate_limit_headers": {"Retry-After": "1"}},
        {"cdn_rate_limited": 1},
        {"server_errors": 2},
        {"cdn_server_errors": 2},
        {"uses_per_url": 1},
        {"uses_per_url": 3},
        {"dropped_bodies": 3},
        {"no_ranges": True},
        {"serves_itself": True},
        {"no_ranges": True, "dropped_bodies": 2},
    ],
    ids=str,
)
def test_it_arrives_all_the_same(pinned, dest, files, faults):
    for name, value in faults.items():
        setattr(pinned.faults, name, value)
    fetch(dest)
    assert_complete(dest, files)


def test_a_server_without_ranges_cannot_resume_but_is_not_believed_either(pinned, dest, files, half):
    """aria2 asks for the rest, and is sent the whole."""
    assert half.exists()
    pinned.faults.no_ranges = True
    fetch(dest)
    assert_complete(dest, files)


@pytest.mark.parametrize(
    ("replacement", "said"),
    [
        (bytes(6_000_000), "served sha256 [0-9a-f]{64} instead of [0-9a-f]{64}, 2 times; .*use another mirror"),
        (b"<html>sorry</html>", "served 18 bytes instead of 6,000,000, 2 times"),
        (b"version https://git-lfs.github.com/spec/v1\n" * 3, "served 129 bytes instead of"),
    ],
)
def test_wrong_bytes_never_get_a_final_name(pinned, dest, files, replacement, said):
    pinned.faults.replaced = {SHARD: replacement}
    with pytest.raises(ProvisionError, match=f"file {SHARD}: .*{said}") as caught:
        fetch(dest)
    assert not (dest / SHARD).exists()
    assert wrong_files(dest, files) == []
    assert pinned.endpoint in str(caught.value)
    assert receipt(dest)["completed_at"] is None
    pinned.faults.replaced = {}
    fetch(dest)
    assert_complete(dest, files)


def test_an_address_that_is_always_expired(pinned, dest, files, monkeypatch):
    monkeypatch.setattr("ansible.module_utils.hub_wait.FIRST_PAUSE_S", 0.05)
    pinned.faults.uses_per_url = 0
    with pytest.raises(ProvisionError, match=r"given up after 6 attempts without a new byte.*status=403"):
        fetch(dest)
    assert wrong_files(dest, files) == []


@pytest.mark.parametrize(
    ("faults", "token", "said"),
    [
        ({"needs_token": True}, None, "HTTP 401.*set token"),
        ({"gated": True}, TOKEN, "HTTP 403 GatedRepo.*accept its terms"),
        ({"linked_size": {SHARD: 135}}, None, "states size 135"),
        ({"served_commit": "1" * 40}, None, "serves commit 1111"),
    ],
)
def test_a_refusal_ends_the_run_with_its_reason(pinned, dest, files, faults, token, said):
    for name, value in faults.items():
        setattr(pinned.faults, name, value)
    with pytest.raises(ProvisionError, match=said):
        fetch(dest, token=token)
    assert not (dest / SHARD).exists()
    assert wrong_files(dest, files) == []
    assert "progress.json" not in state_files(dest)


# --- the token -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("serves_itself", [False, True])
def test_a_private_repository(pinned, dest, files, serves_itself, capfd):
    pinned.faults.needs_token = True
    pinned.faults.serves_itself = serves_itself
    result = fetch(dest, token=TOKEN)
    assert_complete(dest, files)
    assert all("authorization" not in request.headers for request in pinned.seen("cdn"))
    assert bool(pinned.seen("cdn")) is not serves_itself
    assert TOKEN not in json.dumps(result)
    assert TOKEN not in "".join(capfd.readouterr())
    assert not any(TOKEN.encode() in content for content, *_ in tree(dest).values())
    # aria2c never carried it: what it fetched from the hub, if anything, came without.
    agents = {r.headers["user-agent"] for r in pinned.requests if "authorization" in r.headers}
    assert agents == {"ddtree-infra"}
    assert {r.method for r in pinned.seen("hub") if "authorization" not in r.headers} == {"HEAD"}


def test_a_private_file_that_breaks_off_is_read_again(pinned, dest, files):
    """Read by our own client, since aria2 must not have the token."""
    pinned.faults.needs_token = pinned.faults.serves_itself = True
    pinned.faults.dropped_bodies = 2
    fetch(dest, token=TOKEN)
    assert_complete(dest, files)


def test_a_token_is_not_sent_to_another_source(pinned, dest, files):
    mirror = Hub()
    try:
        mirror.add(REPO, files)
        fetch(dest, token=TOKEN, sources=[mirror.endpoint])
        assert_complete(dest, files)
        assert mirror.requests
        assert all("authorization" not in request.headers for request in mirror.requests)
        assert pinned.requests == []
    finally:
        mirror.close()


# --- several sources -------------------------------------------------------------------------------------------------


def test_two_sources_feed_one_file(repository, dest):
    """Large enough for aria2 to split it."""
    mirror = Hub()
    try:
        large = {"large.bin": random.Random(4).randbytes(24_000_000)}
        for source in (repository, mirror):
            source.add(REPO, large)
            source.faults.bytes_per_s = 4_000_000
        keep_manifest(manifest_params(repository, dest), check_mode=False)
        fetch(dest, sources=[repository.endpoint, mirror.endpoint])
        assert_complete(dest, large)
        assert repository.seen("cdn")
        assert mirror.seen("cdn")
    finally:
        mirror.close()


def test_a_source_with_wrong_bytes_does_not_spoil_the_other(pinned, dest, files):
    mirror = Hub()
    try:
        mirror.add(REPO, files)
        mirror.faults.replaced = {SHARD: bytes(len(files[SHARD]))}
        fetch(dest, sources=[mirror.endpoint, pinned.endpoint])
        assert_complete(dest, files)
    finally:
        mirror.close()


# --- the disk --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_disk_that_is_too_small_is_found_before_the_first_byte(pinned, dest, check_mode):
    with pytest.raises(ProvisionError, match=r"6\.9 MB are still to be fetched and 1\.0 PB must stay free.*too few"):
        fetch(dest, check_mode, reserve_bytes=10**15)
    assert pinned.requests == []


@pytest.mark.usefixtures("pinned")
def test_a_folder_that_is_complete_needs_no_space(dest):
    fetch(dest)
    assert not fetch(dest, reserve_bytes=10**15)["changed"]


@pytest.mark.usefixtures("pinned")
def test_space_that_partial_files_have_is_not_asked_for_twice(dest, half, monkeypatch):
    monkeypatch.setattr("ansible.module_utils.free_space.free_bytes", lambda _path: 1_500_000)
    assert half.stat().st_blocks * 512 >= 5_900_000  # allocated as a whole when it began
    assert fetch(dest)["changed"]
