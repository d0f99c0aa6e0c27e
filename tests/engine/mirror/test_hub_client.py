"""The hub's own client, as a library and as the command `hf`, takes the mirror for a hub."""

import hashlib
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import (
    HfHubHTTPError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.file_download import http_get

REPO_ID = "acme/tiny-model"
SHARD = "model-00001-of-00002.safetensors"


def contents(folder: Path) -> dict[str, bytes]:
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if not name.startswith(".cache/")}


@pytest.fixture
def api(served) -> HfApi:
    return HfApi(endpoint=served.url, token=False)


def test_snapshot_download_gets_every_byte(served, served_files: dict[str, bytes], tmp_path: Path) -> None:
    arguments = {"endpoint": served.url, "cache_dir": tmp_path, "token": False}
    folder = Path(snapshot_download(REPO_ID, **arguments))
    assert contents(folder) == served_files
    commit = served.http.get(f"/api/models/{REPO_ID}").json()["sha"]
    assert folder.name == commit
    assert snapshot_download(REPO_ID, revision=commit, **arguments) == str(folder)


def test_model_info_names_sizes_and_hashes(api: HfApi, served_files: dict[str, bytes]) -> None:
    info = api.model_info(REPO_ID, files_metadata=True)
    assert {sibling.rfilename: sibling.size for sibling in info.siblings} == {
        p: len(c) for p, c in served_files.items()
    }
    for sibling in info.siblings:
        content = served_files[sibling.rfilename]
        blob = content
        if sibling.rfilename.endswith(".safetensors"):
            sha256 = hashlib.sha256(content).hexdigest()
            blob = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {len(content)}\n".encode()
            assert (sibling.lfs.sha256, sibling.lfs.size, sibling.lfs.pointer_size) == (sha256, len(content), len(blob))
        else:
            assert sibling.lfs is None
        assert sibling.blob_id == hashlib.sha1(b"blob %d\0" % len(blob) + blob).hexdigest()
    assert api.model_info(REPO_ID, revision=info.sha).sha == info.sha


def test_trees_and_paths(api: HfApi, served_files: dict[str, bytes]) -> None:
    tree = list(api.list_repo_tree(REPO_ID, recursive=True))
    files = {entry.path: entry.size for entry in tree if hasattr(entry, "size")}
    assert files == {path: len(content) for path, content in served_files.items()}
    assert {entry.path for entry in api.list_repo_tree(REPO_ID, "sub")} == {"sub/deep"}
    assert sorted(api.list_repo_files(REPO_ID)) == sorted(served_files)
    [shard] = api.get_paths_info(REPO_ID, [SHARD])
    assert shard.lfs.sha256 == hashlib.sha256(served_files[SHARD]).hexdigest()
    assert api.file_exists(REPO_ID, "config.json")
    assert not api.file_exists(REPO_ID, "none.json")
    assert not api.repo_exists("acme/none")


def test_errors_are_the_hubs_own(served, api: HfApi, tmp_path: Path) -> None:
    arguments = {"endpoint": served.url, "cache_dir": tmp_path, "token": False}
    with pytest.raises(RepositoryNotFoundError):
        api.model_info("acme/none")
    with pytest.raises(RevisionNotFoundError):
        api.model_info(REPO_ID, revision="v2")
    with pytest.raises(RemoteEntryNotFoundError):
        hf_hub_download(REPO_ID, "none.json", **arguments)


def test_a_broken_off_download_is_resumed(served, served_files: dict[str, bytes]) -> None:
    content = served_files[SHARD]
    file = io.BytesIO()
    file.write(content[:123_456])
    http_get(served.file_url(SHARD), file, resume_size=123_456, expected_size=len(content))
    assert file.getvalue() == content


def test_an_incomplete_repository_is_told_to_the_client(root: Path, folder: Path, run_mirror: Callable) -> None:
    os.truncate(folder / SHARD, 1000)
    with run_mirror(root) as running, pytest.raises(HfHubHTTPError, match=f"{SHARD} has 1,000 bytes"):
        HfApi(endpoint=running.url, token=False).model_info(REPO_ID)


def test_hf_download_works_with_its_own_defaults(served, served_files: dict[str, bytes], tmp_path: Path) -> None:
    # hf-xet stays as it is installed: the mirror offers no Xet hash, so the client must fetch over plain HTTP.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment |= {"HF_ENDPOINT": served.url, "HF_HOME": str(tmp_path / "home"), "NO_PROXY": "127.0.0.1"}
    command = [Path(sys.executable).with_name("hf"), "download", REPO_ID, "--local-dir", str(tmp_path / "model")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "model") == served_files
