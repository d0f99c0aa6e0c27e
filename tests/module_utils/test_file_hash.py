"""Both kinds of hash, against hashlib and against git itself."""

import hashlib
import shutil
import subprocess
import threading

import pytest
from ansible.module_utils.file_hash import CHUNK_BYTES, HashCancelled, hash_bytes, hash_file

SIZES = [0, 1, 1000, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1]


@pytest.mark.parametrize("size_bytes", SIZES)
def test_both_hashes(tmp_path, size_bytes):
    content = bytes(i % 251 for i in range(size_bytes))
    path = tmp_path / "file"
    path.write_bytes(content)
    seen = []
    assert hash_file(path, "sha256", seen.append) == hashlib.sha256(content).hexdigest()
    assert sum(seen) == size_bytes
    blob = b"blob %d\0" % size_bytes + content
    assert hash_file(path, "git-sha1") == hashlib.sha1(blob).hexdigest() == hash_bytes(content, "git-sha1")


@pytest.mark.skipif(not shutil.which("git"), reason="git is the reference")
def test_git_agrees(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one\r\ntwo\n")
    git = subprocess.run(["git", "hash-object", "--no-filters", path], capture_output=True, text=True, check=True)
    assert hash_file(path, "git-sha1") == git.stdout.strip()


def test_a_set_event_stops_in_the_middle(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(3 * CHUNK_BYTES))
    stop, seen = threading.Event(), []

    def on_bytes(count):
        seen.append(count)
        stop.set()

    with pytest.raises(HashCancelled):
        hash_file(path, "sha256", on_bytes, stop)
    assert seen == [CHUNK_BYTES]


def test_an_unknown_kind_is_an_error():
    with pytest.raises(ValueError, match=r"'md5': known are sha256, git-sha1"):
        hash_bytes(b"", "md5")
