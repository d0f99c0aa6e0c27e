"""The manifest file: what it says comes back, its digest is the content's, damage is named."""

import copy
import json

import pytest
from ansible.module_utils.hub_manifest_file import FileEntry, Manifest, load_manifest, parse_manifest
from ansible.module_utils.provision_error import ProvisionError

COMMIT = "c" * 40
ENTRIES = (FileEntry("b.bin", 10, "sha256", "b" * 64), FileEntry("a.json", 3, "git-sha1", "a" * 40))


def manifest(entries=ENTRIES, **changes):
    values = {"repo_id": "org/name", "revision": "main", "commit": COMMIT, "endpoint": "http://hub", "files": entries}
    return Manifest(**{**values, **changes})


def test_it_survives_the_round_trip(tmp_path):
    path = tmp_path / "manifest.json"
    one = manifest(allow_patterns=("*.bin",), deny_patterns=("x",))
    path.write_text(json.dumps(one.to_dict()))
    assert load_manifest(path) == one
    assert [entry.path for entry in one.files] == ["a.json", "b.bin"]
    assert one.to_dict()["total_bytes"] == 13


def test_the_digest_is_that_of_the_content():
    digest = manifest().digest
    assert manifest(tuple(reversed(ENTRIES))).digest == digest
    assert manifest(commit="d" * 40, endpoint="http://mirror", revision="v1", repo_id="other/name").digest == digest
    for changed in (
        FileEntry("c.bin", 10, "sha256", "b" * 64),
        FileEntry("b.bin", 11, "sha256", "b" * 64),
        FileEntry("b.bin", 10, "sha256", "c" * 64),
    ):
        assert manifest((changed, ENTRIES[1])).digest != digest
    assert manifest(ENTRIES[:1]).digest != digest


def test_an_absent_file_is_none(tmp_path):
    assert load_manifest(tmp_path / "none.json") is None


def _without(key):
    return lambda data: data.pop(key)


def _set(key, value):
    return lambda data: data.__setitem__(key, value)


def _set_file(key, value):
    return lambda data: data["files"][0].__setitem__(key, value)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_without("commit"), "'commit' is missing"),
        (_without("files"), "'files' is missing"),
        (_set("schema", 2), "schema is 2"),
        (_set("commit", "main"), "not 40 hex"),
        (_set("total_bytes", 12), "total_bytes 12"),
        (_set("files", None), "delete it"),
        (_set_file("hash_kind", "md5"), "hash_kind 'md5'"),
        (_set_file("hash", "A" * 40), "not a git-sha1"),
        (_set_file("hash", "a" * 64), "not a git-sha1"),
        (_set_file("size_bytes", -3), "size_bytes is -3"),
        (_set_file("size_bytes", "3"), "size_bytes is '3'"),
        (_set_file("path", "../x"), "'../x' holds"),
    ],
)
def test_damage_is_named(damage, said):
    data = copy.deepcopy(manifest().to_dict())
    damage(data)
    with pytest.raises(ProvisionError, match=said.replace("(", r"\(")):
        parse_manifest(data, "here")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"'])
def test_a_file_that_is_no_manifest(tmp_path, text):
    path = tmp_path / "manifest.json"
    path.write_text(text)
    with pytest.raises(ProvisionError, match=r"manifest\.json: .*delete it"):
        load_manifest(path)
