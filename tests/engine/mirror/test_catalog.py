"""What a catalog makes of folders on disk: which hashes it believes, which it computes, what it refuses."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ddtree.errors import UserError
from ddtree.mirror.catalog import STATE_FOLDER, Catalog
from ddtree.mirror.refusals import RepoBusy, RepoIncomplete, RepoNotFound

REPO_ID = "acme/tiny-model"
SHARD = "model-00001-of-00002.safetensors"


def flip_a_byte(path: Path) -> None:
    """Changes the content and the time, not the size."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    before = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))


def test_without_a_manifest_the_commit_stands_for_the_content(root: Path, folder: Path, tmp_path: Path) -> None:
    commit = Catalog(root).snapshot(REPO_ID).commit
    copy = tmp_path / "elsewhere" / "copy"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(STATE_FOLDER))
    assert Catalog(copy).snapshot(REPO_ID).commit == commit

    catalog = Catalog(root)
    flip_a_byte(folder / "config.json")
    changed = catalog.snapshot(REPO_ID).commit
    (folder / "config.json").rename(folder / "konfig.json")
    assert len({commit, changed, catalog.snapshot(REPO_ID).commit}) == 3


def test_the_manifest_gives_commit_and_hashes_unread(
    root: Path, folder: Path, served_files: dict, write_manifest: Callable
) -> None:
    # A hash that the content does not have: were the file read, this would come to light.
    write_manifest(folder, served_files, commit="d" * 40, **{SHARD: {"hash": "0" * 64}})
    snapshot = Catalog(root).snapshot(REPO_ID)
    assert snapshot.commit == "d" * 40
    assert snapshot.files[SHARD].hash == "0" * 64
    assert snapshot.files.keys() == served_files.keys()


def test_a_file_changed_after_it_was_believed_is_hashed_and_refused(
    root: Path, folder: Path, served_files: dict, write_manifest: Callable
) -> None:
    write_manifest(folder, served_files)
    catalog = Catalog(root)
    catalog.snapshot(REPO_ID)
    flip_a_byte(folder / SHARD)
    with pytest.raises(RepoIncomplete, match=rf"{SHARD} has sha256 .*, the manifest says"):
        catalog.snapshot(REPO_ID)
    with pytest.raises(RepoIncomplete):
        Catalog(root).snapshot(REPO_ID)  # nor does a new process believe it
    (folder / SHARD).write_bytes(served_files[SHARD])
    assert catalog.snapshot(REPO_ID).commit == "c" * 40


def test_a_receipt_is_believed_for_the_state_it_describes_and_no_other(
    root: Path, folder: Path, served_files: dict, write_manifest: Callable, write_receipt: Callable
) -> None:
    wrong = write_manifest(folder, served_files, **{SHARD: {"hash": "0" * 64}})
    write_receipt(folder, wrong)
    assert Catalog(root).snapshot(REPO_ID).files[SHARD].hash == "0" * 64
    shutil.rmtree(root / STATE_FOLDER)
    os.utime(folder / SHARD)
    with pytest.raises(RepoIncomplete, match=SHARD):
        Catalog(root).snapshot(REPO_ID)


@pytest.mark.parametrize("cut_bytes", [1, 300_000])
def test_a_truncated_file_of_the_manifest_refuses_the_repository(
    root: Path,
    folder: Path,
    served_files: dict,
    write_manifest: Callable,
    cut_bytes: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    write_manifest(folder, served_files)
    os.truncate(folder / SHARD, len(served_files[SHARD]) - cut_bytes)
    with pytest.raises(RepoIncomplete, match=rf"{SHARD} has [\d,]+ bytes, the manifest says [\d,]+"):
        Catalog(root).snapshot(REPO_ID)
    assert SHARD in caplog.text


def test_a_missing_file_of_the_manifest_refuses_until_it_is_there(
    root: Path, folder: Path, served_files: dict, write_manifest: Callable
) -> None:
    write_manifest(folder, served_files)
    (folder / "config.json").rename(folder / "config.json.part")
    catalog = Catalog(root)
    with pytest.raises(RepoIncomplete, match=r"config\.json is missing"):
        catalog.snapshot(REPO_ID)
    (folder / "config.json.part").rename(folder / "config.json")
    assert "config.json" in catalog.snapshot(REPO_ID).files


def test_files_that_the_manifest_does_not_name_do_not_belong_to_the_commit(
    root: Path, folder: Path, served_files: dict, write_manifest: Callable, write_files: Callable
) -> None:
    write_manifest(folder, {**served_files, ".gitattributes": b"hidden, and not on disk"})
    write_files(folder, {"extra.json": b"{}"})
    assert Catalog(root).snapshot(REPO_ID).files.keys() == served_files.keys()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"schema": 2}',
        '{"schema": 1, "commit": "main", "files": []}',
        '{"schema": 1, "commit": 3, "files": []}',
    ],
)
def test_a_damaged_manifest_is_an_error_and_no_reason_to_guess(
    root: Path, folder: Path, write_files: Callable, text: str
) -> None:
    write_files(folder, {".ddtree/manifest.json": text.encode()})
    with pytest.raises(RepoIncomplete, match=r"manifest\.json"):
        Catalog(root).snapshot(REPO_ID)


def test_without_a_manifest_a_cut_or_missing_shard_is_noticed(root: Path, folder: Path, served_files: dict) -> None:
    os.truncate(folder / SHARD, len(served_files[SHARD]) - 1)
    catalog = Catalog(root)
    with pytest.raises(RepoIncomplete, match=rf"{SHARD} has [\d,]+ bytes, its header says"):
        catalog.snapshot(REPO_ID)
    os.truncate(folder / SHARD, 20)
    with pytest.raises(RepoIncomplete, match=rf"{SHARD} has 20 bytes and no whole"):
        catalog.snapshot(REPO_ID)
    (folder / SHARD).unlink()
    with pytest.raises(RepoIncomplete, match=f"{SHARD} is missing; model.safetensors.index.json names it"):
        catalog.snapshot(REPO_ID)


def test_hashes_are_kept_outside_the_repository_for_one_state(root: Path, folder: Path, tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    real = Catalog(root, state_dir).snapshot(REPO_ID).files[SHARD].hash
    [kept] = state_dir.rglob("*.json")
    kept.write_text(kept.read_text().replace(real, "0" * 64))
    # The planted hash shows that the next process takes it from there instead of reading the file …
    assert Catalog(root, state_dir).snapshot(REPO_ID).files[SHARD].hash == "0" * 64
    os.utime(folder / SHARD)
    assert Catalog(root, state_dir).snapshot(REPO_ID).files[SHARD].hash == real  # … and only while it is unchanged
    assert not (root / STATE_FOLDER).exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1, "folder": "/other", "files": {}}'])
def test_damaged_kept_hashes_cost_hashing_and_nothing_else(root: Path, text: str) -> None:
    snapshot = Catalog(root).snapshot(REPO_ID)
    [kept] = (root / STATE_FOLDER).rglob("*.json")
    kept.write_text(text)
    assert Catalog(root).snapshot(REPO_ID) == snapshot
    assert json.loads(kept.read_text())["files"].keys() == snapshot.files.keys()


def test_much_hashing_is_done_in_the_background(root: Path) -> None:
    expected = Catalog(root).snapshot(REPO_ID)
    shutil.rmtree(root / STATE_FOLDER)
    catalog = Catalog(root, inline_bytes=1000)
    with pytest.raises(RepoBusy) as busy:
        catalog.snapshot(REPO_ID)
    assert busy.value.done.result(timeout=20) is None
    assert catalog.snapshot(REPO_ID) == expected


def test_prepare_hashes_everything_and_close_ends_it(root: Path) -> None:
    catalog = Catalog(root, inline_bytes=0)
    catalog.prepare()
    assert catalog.snapshot(REPO_ID).files
    shutil.rmtree(root / STATE_FOLDER)
    closed = Catalog(root, inline_bytes=0)
    closed.close()
    closed.prepare()  # returns
    with pytest.raises((RepoBusy, RepoIncomplete)):
        closed.snapshot(REPO_ID)


def test_only_folders_with_hub_names_inside_the_root_are_repositories(
    root: Path, tmp_path: Path, write_files: Callable
) -> None:
    write_files(tmp_path, {"other/org/name/f": b"x"})
    write_files(root, {".wheels/x/f": b"x", "acme/.hidden/f": b"x", "acme/file": b"x", "with space/x/f": b"x"})
    (root / "acme" / "inside").symlink_to(root / REPO_ID)
    (root / "acme" / "outside").symlink_to(tmp_path / "other" / "org" / "name")
    (root / "acme" / "state").symlink_to(root / ".wheels" / "x")
    catalog = Catalog(root)
    assert catalog.repo_ids() == ["acme/inside", REPO_ID]
    assert catalog.snapshot("acme/inside").commit == catalog.snapshot(REPO_ID).commit
    for name in (
        "acme/outside",
        "acme/state",
        "acme/..",
        "../other",
        ".wheels/x",
        "acme/none",
        "acme",
        "",
        "a/b/c",
        "//",
    ):
        with pytest.raises(RepoNotFound):
            catalog.snapshot(name)


def test_a_folder_may_come_and_go(root: Path, write_files: Callable) -> None:
    catalog = Catalog(root)
    write_files(root, {"acme/late/config.json": b"{}"})
    assert catalog.snapshot("acme/late").files.keys() == {"config.json"}
    shutil.rmtree(root / "acme" / "late")
    with pytest.raises(RepoNotFound):
        catalog.snapshot("acme/late")
    (root / "acme" / "empty").mkdir()
    with pytest.raises(RepoNotFound, match="no file"):
        catalog.snapshot("acme/empty")


def test_a_root_or_state_dir_that_cannot_be_used_is_named(tmp_path: Path, root: Path) -> None:
    with pytest.raises(UserError, match="nowhere"):
        Catalog(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="--state-dir"):
        Catalog(root, tmp_path / "file" / "state")
