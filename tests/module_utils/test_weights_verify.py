"""Verifying a model folder: everything wrong is found at once, each with the file's name and what to do."""

import json
import os

import pytest
from ansible.module_utils.hub_manifest_file import FileEntry, Manifest
from ansible.module_utils.provision_error import ProvisionError
from ansible.module_utils.receipt_file import load_receipt
from ansible.module_utils.weights_verify import verify_weights
from misbehaving_hub import git_sha1, sha256
from weights_files import INDEX, shard_name, sharded_model, write_files
from weights_fixtures import tree

ONE, TWO, THREE = (shard_name(number, 3) for number in (1, 2, 3))


def verify(dest, mode="receipt", manifest_path=None, check_mode=False):
    return verify_weights({"dest": str(dest), "hash": mode, "manifest_path": manifest_path}, check_mode)


def findings(dest, mode="receipt"):
    with pytest.raises(ProvisionError) as caught:
        verify(dest, mode)
    assert caught.value.details["findings"] == str(caught.value).splitlines()[1:]
    return caught.value.details["findings"]


@pytest.fixture
def plain(tmp_path):
    """A model without a manifest."""
    write_files(tmp_path / "m", sharded_model())
    return tmp_path / "m"


def pin(dest):
    """Writes manifest and receipt for what is there now."""
    entries = []
    for path in sorted(dest.rglob("*")):
        content = path.read_bytes()
        kind, digest = ("sha256", sha256(content)) if path.suffix == ".safetensors" else ("git-sha1", git_sha1(content))
        entries.append(FileEntry(str(path.relative_to(dest)), len(content), kind, digest))
    manifest = Manifest("org/name", "main", "c" * 40, "http://hub", tuple(entries))
    (dest / ".ddtree").mkdir()
    (dest / ".ddtree" / "manifest.json").write_text(json.dumps(manifest.to_dict()))
    receipt = load_receipt(dest / ".ddtree" / "receipt.json")
    for entry in entries:
        receipt.record(entry.path, os.stat(dest / entry.path), entry.hash)
    receipt.save(manifest, complete=True)
    return manifest


@pytest.fixture
def pinned(plain):
    pin(plain)
    return plain


def damage_keeping_time(path, position=-1):
    """Flips a bit under an unchanged size, time and inode: what a failing disk does."""
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_right_folder(pinned):
    before = tree(pinned)
    result = verify(pinned)
    assert result["changed"] is False
    assert (result["safetensors_files"], result["tensors"], result["files"]) == (3, 6, 5)
    assert result["tensor_bytes"] == 6 * 64 * 8 * 4
    assert result["hashed_bytes"] == 0
    assert result["warnings"] == []
    full = verify(pinned, "full")
    assert full["hashed_bytes"] == sum(p.stat().st_size for p in pinned.iterdir() if p.is_file())
    assert full["digest"] == json.loads((pinned / ".ddtree" / "receipt.json").read_text())["digest"]
    assert tree(pinned) == before


def test_without_a_manifest_headers_and_index_are_checked(plain):
    assert verify(plain)["digest"] is None
    os.truncate(plain / TWO, 4000)
    needed = len(sharded_model()[TWO])
    (line,) = findings(plain)
    assert line.startswith(f"{TWO}: header needs {needed:,} bytes, file has 4,000 (")
    assert line.endswith("short); rerun the play to fetch it again")


def test_all_findings_come_at_once(pinned):
    os.truncate(pinned / ONE, 100)
    (pinned / TWO).unlink()
    (pinned / "config.json").write_bytes(b"[]")
    (pinned / (THREE + ".aria2")).write_bytes(b"")
    lines = findings(pinned)
    assert [line.split(":")[0] for line in lines] == ["config.json", ONE, TWO, THREE + ".aria2"]
    needed = len(sharded_model()[ONE])
    assert lines[1] == (
        f"{ONE}: needs {needed:,} bytes, file has 100 ({(needed - 100) / 1000:.1f} kB short); "
        "rerun the play to fetch it again"
    )
    assert "is not there; rerun the play to fetch it" in lines[2]
    assert "git-sha1" in lines[0]
    assert "control file" in lines[3]


def test_content_that_decays_under_the_receipt_is_found_by_a_full_hash(pinned):
    damage_keeping_time(pinned / TWO)
    assert verify(pinned)["hashed_bytes"] == 0
    (line,) = findings(pinned, "full")
    assert line.startswith(f"{TWO}: has sha256 ")
    # The fetch would trust the receipt, so the file has to go first.
    assert line.endswith("; delete it and rerun the play to fetch it again")


def test_a_touched_file_is_hashed_even_in_receipt_mode(pinned):
    content = bytearray((pinned / TWO).read_bytes())
    content[-1] ^= 1
    (pinned / TWO).write_bytes(content)
    os.utime(pinned / TWO, ns=(1, 1))
    (line,) = findings(pinned)
    assert line.startswith(f"{TWO}: has sha256 ")
    assert line.endswith("; rerun the play to fetch it again")
    os.utime(pinned / ONE, ns=(1, 1))
    content[-1] ^= 1
    (pinned / TWO).write_bytes(content)
    assert verify(pinned)["hashed_bytes"] == (pinned / ONE).stat().st_size + (pinned / TWO).stat().st_size


def test_an_index_that_names_a_missing_shard(plain):
    (plain / THREE).unlink()
    (line,) = findings(plain)
    assert (
        line == f"{INDEX}: names the shard {THREE} for 2 tensors, which is not there; rerun the play to fetch it again"
    )


def test_a_pattern_that_leaves_a_shard_out(plain):
    """The manifest is satisfied, and still the model cannot be loaded."""
    (plain / THREE).unlink()
    pin(plain)
    (line,) = findings(plain)
    assert f"names the shard {THREE}" in line
    assert "check allow_patterns and deny_patterns" in line


def test_a_repository_that_is_wrong_itself(plain):
    """Its hash is right: to fetch it again would change nothing, and the message does not say so."""
    (plain / ONE).write_bytes(b"\x02" + bytes(7) + b"{}trailing")
    pin(plain)
    lines = findings(plain)
    assert lines[0].startswith(f"{ONE}: header accounts for 10 bytes, file has 18")
    assert "pin another revision" in lines[0]


def test_a_stray_file_with_a_bad_header(pinned):
    (pinned / "stray.safetensors").write_bytes(b"x" * 20)
    (line,) = findings(pinned)
    assert line.endswith("the manifest does not name this file: move it away")


def test_a_stale_total_is_a_warning(plain):
    index = json.loads((plain / INDEX).read_text())
    index["metadata"]["total_size"] += 1
    (plain / INDEX).write_text(json.dumps(index))
    assert "total_size" in verify(plain)["warnings"][0]


def test_an_index_that_leaves_the_folder(plain):
    index = json.loads((plain / INDEX).read_text())
    index["weight_map"]["layer.1.a"] = "../other.safetensors"
    (plain / INDEX).write_text(json.dumps(index))
    (line,) = findings(plain)
    assert "places tensor 'layer.1.a' in file '../other.safetensors', which holds" in line


def test_a_folder_without_weights(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert "no such file in the folder; check dest" in findings(tmp_path)[0]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ProvisionError, match=r"none: is not there; run hub_manifest and aria2_fetch first"):
        verify(tmp_path / "none")
    assert verify(tmp_path / "none", check_mode=True)["changed"] is False


def test_a_manifest_that_is_named_must_be_there(plain):
    with pytest.raises(ProvisionError, match=r"other.json: is not there"):
        verify(plain, manifest_path=str(plain / "other.json"))
