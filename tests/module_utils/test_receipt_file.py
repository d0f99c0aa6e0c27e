"""What a receipt vouches for, and when it stops doing so."""

import json
import os

import pytest
from ansible.module_utils.hub_manifest_file import FileEntry, Manifest
from ansible.module_utils.receipt_file import load_receipt

ENTRY = FileEntry("a.bin", 4, "sha256", "a" * 64)
MANIFEST = Manifest("org/name", "main", "c" * 40, "http://hub", (ENTRY,))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"1234")
    return path


@pytest.fixture
def receipt_path(tmp_path, file):
    path = tmp_path / "receipt.json"
    receipt = load_receipt(path)
    receipt.record("a.bin", os.stat(file), ENTRY.hash)
    receipt.save(MANIFEST, complete=True)
    return path


def test_it_vouches_for_an_untouched_file(receipt_path, file):
    assert load_receipt(receipt_path).recorded_hash(file, "a.bin") == ENTRY.hash
    data = json.loads(receipt_path.read_text())
    assert (data["schema"], data["commit"], data["digest"]) == (1, MANIFEST.commit, MANIFEST.digest)
    assert data["completed_at"].endswith("Z")
    assert data["files"]["a.bin"]["size_bytes"] == 4
    assert data["files"]["a.bin"]["mtime_ns"] == file.stat().st_mtime_ns


def _touch(file):
    os.utime(file, ns=(1, file.stat().st_mtime_ns + 1))


def _lengthen(file):
    before = file.stat()
    file.write_bytes(b"12345")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def _swap(file):
    before = file.stat()
    other = file.with_name("other")
    other.write_bytes(b"4321")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.rename(file)


@pytest.mark.parametrize("change", [_touch, _lengthen, _swap, os.unlink])
def test_a_touched_file_is_not_trusted(receipt_path, file, change):
    change(file)
    assert load_receipt(receipt_path).recorded_hash(file, "a.bin") is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": 2, "files": {}}', '{"schema": 1, "files": [1]}', '{"schema": 1}']
)
def test_a_damaged_receipt_vouches_for_nothing(receipt_path, file, text):
    receipt_path.write_text(text)
    assert load_receipt(receipt_path).recorded_hash(file, "a.bin") is None


@pytest.mark.parametrize("record", [None, [], "x", {}])
def test_a_damaged_record_vouches_for_nothing(receipt_path, file, record):
    data = json.loads(receipt_path.read_text())
    data["files"]["a.bin"] = record
    receipt_path.write_text(json.dumps(data))
    assert load_receipt(receipt_path).recorded_hash(file, "a.bin") is None


def test_saving_the_same_again_writes_nothing(receipt_path):
    before = receipt_path.stat()
    load_receipt(receipt_path).save(MANIFEST, complete=True)
    assert receipt_path.stat().st_ino == before.st_ino


def test_what_the_manifest_does_not_name_is_dropped(receipt_path, file):
    receipt = load_receipt(receipt_path)
    receipt.record("old.bin", os.stat(file), "0" * 64)
    receipt.save(MANIFEST, complete=False)
    data = json.loads(receipt_path.read_text())
    assert list(data["files"]) == ["a.bin"]
    assert data["completed_at"] is None
