"""Incomplete and damaged model folders are refused before anything is loaded."""

import json

import pytest
from engine_kit import write_tiny_target

from ddtree.errors import UserError
from ddtree.runtime.model_folder import INDEX_NAME, check_model_folder


@pytest.fixture
def folder(tmp_path):
    return write_tiny_target(tmp_path / "model", "llama")


def shard_names(folder):
    return sorted(set(json.loads((folder / INDEX_NAME).read_text())["weight_map"].values()))


def test_whole_folder(folder):
    assert [path.name for path in check_model_folder(folder)] == shard_names(folder)
    assert len(shard_names(folder)) > 1, "the fixture must have several shards"


def test_missing_shard_is_named(folder):
    name = shard_names(folder)[1]
    (folder / name).unlink()
    with pytest.raises(UserError, match=f"shard {name} is missing"):
        check_model_folder(folder)


@pytest.mark.parametrize("cut_bytes", [1, 1000])
def test_short_shard_is_named_with_both_sizes(folder, cut_bytes):
    shard = folder / shard_names(folder)[0]
    size_bytes = shard.stat().st_size
    with shard.open("r+b") as file:
        file.truncate(size_bytes - cut_bytes)
    with pytest.raises(UserError) as error:
        check_model_folder(folder)
    for text in (shard.name, f"{size_bytes:,}", f"{size_bytes - cut_bytes:,}"):
        assert text in str(error.value)


@pytest.mark.parametrize(
    "content", [b"", b"abc", b"\xff" * 64, (10**6).to_bytes(8, "little"), b"\x02" + b"\0" * 7 + b"[]"]
)
def test_shard_without_a_header(folder, content):
    shard = folder / shard_names(folder)[0]
    shard.write_bytes(content)
    with pytest.raises(UserError, match=shard.name):
        check_model_folder(folder)


def test_tensor_that_is_not_where_the_index_says(folder):
    index = json.loads((folder / INDEX_NAME).read_text())
    index["weight_map"]["model.extra.weight"] = shard_names(folder)[0]
    (folder / INDEX_NAME).write_text(json.dumps(index))
    with pytest.raises(UserError, match=r"model\.extra\.weight"):
        check_model_folder(folder)


@pytest.mark.parametrize("content", ["{}", '{"weight_map": {}}', "not JSON", "[]"])
def test_damaged_index(folder, content):
    (folder / INDEX_NAME).write_text(content)
    with pytest.raises(UserError, match=INDEX_NAME):
        check_model_folder(folder)


def test_missing_files(folder, tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        check_model_folder(tmp_path / "nowhere")
    (folder / INDEX_NAME).unlink()
    with pytest.raises(UserError, match="holds neither"):
        check_model_folder(folder)
    (folder / "config.json").unlink()
    with pytest.raises(UserError, match=r"config\.json is missing"):
        check_model_folder(folder)
