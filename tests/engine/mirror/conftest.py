"""Small synthetic repositories on disk, and a real mirror on a free loopback port to serve them."""

import contextlib
import hashlib
import json
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from ddtree.mirror.catalog import Catalog
from ddtree.mirror.server import MirrorServer
from ddtree.serving.listener import open_port

WAIT_S = 20  # far more than anything here takes: only a broken server meets it
REPO_ID = "acme/tiny-model"


@dataclass
class Running:
    url: str
    root: Path
    http: httpx.Client

    def file_url(self, path: str, repo_id: str = REPO_ID, revision: str = "main") -> str:
        return f"{self.url}/{repo_id}/resolve/{revision}/{path}"


def random_bytes(size_bytes: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size_bytes)


def safetensors_bytes(size_bytes: int, seed: int = 0) -> bytes:
    """A valid safetensors file with one tensor of `size_bytes` random bytes."""
    header = json.dumps({"w": {"dtype": "U8", "shape": [size_bytes], "data_offsets": [0, size_bytes]}}).encode()
    return len(header).to_bytes(8, "little") + header + random_bytes(size_bytes, seed)


def tiny_model() -> dict[str, bytes]:
    """Files of a repository: two shards with an index, small files, one in a folder, one empty."""
    shards = {f"model-0000{i}-of-00002.safetensors": safetensors_bytes(300_000 + i, seed=i) for i in (1, 2)}
    index = {"metadata": {}, "weight_map": {f"w{i}": name for i, name in enumerate(shards)}}
    return {
        **shards,
        "model.safetensors.index.json": json.dumps(index).encode(),
        "config.json": b'{"model_type": "tiny"}\n',
        "sub/deep/notes ü+%20.txt": b"a name that must be quoted\n",
        "empty.txt": b"",
    }


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def write_manifest(folder: Path, files: dict[str, bytes], commit: str = "c" * 40, **changes: dict) -> dict:
    """Writes the manifest of `files`; `changes` maps a path to fields that shall differ."""
    entries = []
    for path, content in sorted(files.items()):
        large = path.endswith(".safetensors")
        value = hashlib.sha256(content).hexdigest() if large else git_sha1(content)
        entry = {
            "path": path,
            "size_bytes": len(content),
            "hash_kind": "sha256" if large else "git-sha1",
            "hash": value,
        }
        entries.append(entry | changes.get(path, {}))
    manifest = {
        "schema": 1,
        "repo_id": REPO_ID,
        "revision": "main",
        "commit": commit,
        "endpoint": "http://hub.example",
        "files": entries,
        "total_bytes": sum(entry["size_bytes"] for entry in entries),
    }
    write_files(folder, {".ddtree/manifest.json": json.dumps(manifest).encode()})
    return manifest


def write_receipt(folder: Path, manifest: dict) -> None:
    """Notes every file of the manifest as verified in the state that it has now."""
    files = {}
    for entry in manifest["files"]:
        status = (folder / entry["path"]).stat()
        state = {"size_bytes": status.st_size, "mtime_ns": status.st_mtime_ns, "inode": status.st_ino}
        files[entry["path"]] = {**state, "hash": entry["hash"]}
    receipt = {"schema": 1, "commit": manifest["commit"], "digest": "", "completed_at": None, "files": files}
    write_files(folder, {".ddtree/receipt.json": json.dumps(receipt).encode()})


@contextlib.contextmanager
def run_mirror(root: Path, **options) -> Iterator[Running]:
    """Serves `root` from a thread until the block ends. options: of Catalog."""
    catalog = Catalog(root, **options)
    server = MirrorServer(catalog, open_port("127.0.0.1", 0))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        with httpx.Client(base_url=server.url, timeout=WAIT_S, trust_env=False) as http:
            yield Running(server.url, root, http)
    finally:
        server.stop()
        thread.join(WAIT_S)
    assert not thread.is_alive()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of one repository, REPO_ID, below a root of its own."""
    return write_files(tmp_path / "root" / REPO_ID, tiny_model())


@pytest.fixture
def root(folder: Path) -> Path:
    return folder.parent.parent


@pytest.fixture(scope="session")
def served_files() -> dict[str, bytes]:
    return tiny_model()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, served_files: dict[str, bytes]) -> Iterator[Running]:
    """One mirror for the tests that leave it as they found it; beside the repository lie files it must not show."""
    base = tmp_path_factory.mktemp("mirror")
    folder = write_files(base / "root" / REPO_ID, served_files)
    hidden = {".ddtree/receipt.json": b"{}", ".hidden": b"x", "sub/.hidden": b"x", "half.safetensors.part": b"x"}
    write_files(folder, {**hidden, "going.bin": b"x", "going.bin.aria2": b"x"})
    write_files(base, {"outside.txt": b"secret", "root/top.txt": b"secret", "root/.wheels/x/file": b"secret"})
    (folder / "link.txt").symlink_to(base / "outside.txt")
    with run_mirror(base / "root") as running:
        yield running


@pytest.fixture(scope="session", name="run_mirror")
def run_mirror_fixture() -> Callable:
    return run_mirror


@pytest.fixture(scope="session", name="write_files")
def write_files_fixture() -> Callable:
    return write_files


@pytest.fixture(scope="session", name="write_manifest")
def write_manifest_fixture() -> Callable:
    return write_manifest


@pytest.fixture(scope="session", name="write_receipt")
def write_receipt_fixture() -> Callable:
    return write_receipt


@pytest.fixture(scope="session", name="safetensors_bytes")
def safetensors_bytes_fixture() -> Callable:
    return safetensors_bytes
