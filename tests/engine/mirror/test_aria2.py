"""The real aria2c fetches from the mirror over several connections, verifies, and resumes."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

REPO_ID = "acme/tiny-model"

pytestmark = pytest.mark.skipif(shutil.which("aria2c") is None, reason="aria2c is not installed")


def fetch(url: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["aria2c", "--no-conf", "--all-proxy=", "--dir", str(folder), "--out", "file", *options, url]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_parallel_ranges_add_up_to_the_file(tmp_path: Path, write_files: Callable, run_mirror: Callable) -> None:
    content = os.urandom(16_000_001)
    write_files(tmp_path / "root" / REPO_ID, {"weights.bin": content})
    checksum = f"--checksum=sha-256={hashlib.sha256(content).hexdigest()}"
    with run_mirror(tmp_path / "root") as running:
        url = running.file_url("weights.bin")
        done = fetch(url, tmp_path / "out", "-x", "4", "-s", "4", "-k", "1M", checksum)
        assert done.returncode == 0, done.stdout
        assert (tmp_path / "out" / "file").read_bytes() == content
        wrong = fetch(url, tmp_path / "other", "-x", "4", "-k", "1M", f"--checksum=sha-256={'0' * 64}")
        assert wrong.returncode == 32  # the check is real


def test_an_interrupted_download_goes_on(tmp_path: Path, write_files: Callable, run_mirror: Callable) -> None:
    content = os.urandom(16_000_000)
    write_files(tmp_path / "root" / REPO_ID, {"weights.bin": content})
    with run_mirror(tmp_path / "root") as running:
        url = running.file_url("weights.bin")
        first = fetch(url, tmp_path, "-x", "4", "-k", "1M", "--max-overall-download-limit=2M", "--stop=1")
        assert first.returncode == 7  # stopped with an unfinished download
        assert (tmp_path / "file.aria2").exists()
        second = fetch(url, tmp_path, "-x", "4", "-k", "1M", "--continue=true")
        assert second.returncode == 0, second.stdout
        assert (tmp_path / "file").read_bytes() == content
