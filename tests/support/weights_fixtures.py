"""Fixtures for tests of the weights modules: a hub with one repository, an empty model folder, parameters, checks.

A conftest.py imports the fixtures by name. The files are small, but large enough for LFS and for several connections.
"""

import random
import socket

import pytest
from misbehaving_hub import Hub

REPO = "org/name"
SHARD = "model-00001-of-00002.safetensors"


def sample_files(seed=1):
    """path -> bytes: two large files (one in a subfolder), small ones, and an empty one."""
    source = random.Random(seed)
    return {
        "config.json": b'{"hidden_size": 8}',
        "empty.txt": b"",
        "tokenizer.json": source.randbytes(3_000),
        SHARD: source.randbytes(6_000_000),
        "sub/dir/extra weights.bin": source.randbytes(900_001),
    }


@pytest.fixture
def hub():
    server = Hub()
    yield server
    server.close()


@pytest.fixture
def files():
    return sample_files()


@pytest.fixture
def repository(hub, files):
    """The hub, with `files` in the repository org/name; its commit is `hub.commit`."""
    hub.commit = hub.add(REPO, files)
    return hub


@pytest.fixture
def dest(tmp_path):
    return tmp_path / "models" / "org" / "name"


def manifest_params(hub, dest, **changes):
    """All parameters of hub_manifest, as its argument spec would fill them."""
    params = {
        "repo_id": REPO,
        "revision": "main",
        "endpoint": hub.endpoint,
        "token": None,
        "dest": str(dest),
        "allow_patterns": [],
        "deny_patterns": [],
        "refresh": False,
        "timeout_s": 10,
        "rate_limit_wait_s": 20,
    }
    return params | changes


def fetch_params(dest, **changes):
    """All parameters of aria2_fetch, as its argument spec would fill them."""
    params = {
        "dest": str(dest),
        "manifest": None,
        "sources": [],
        "token": None,
        "connections_per_file": 8,
        "parallel_files": 4,
        "reserve_bytes": 0,
        "lowest_speed_limit_bytes_s": 0,
        "timeout_s": 10,
        "rate_limit_wait_s": 20,
        "aria2c": "aria2c",
    }
    return params | changes


def wrong_files(dest, files):
    """Names under which `dest` holds something else than `files` says. A missing file is not wrong."""
    return [name for name, content in files.items() if (dest / name).exists() and (dest / name).read_bytes() != content]


def missing_files(dest, files):
    return [name for name in files if not (dest / name).exists()]


def tree(folder):
    """Every file below a folder with its content and times, to show that nothing was touched."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def silent_endpoint():
    """An endpoint on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"
