"""The module safetensors_verify, run as a node runs it, and once through ansible itself."""

import os

import pytest
from weights_files import INDEX, shard_name, sharded_model, write_files
from weights_fixtures import REPO, tree

TWO = shard_name(2, 3)


@pytest.fixture
def fetched(hub, dest, run_module):
    """A sharded model, fetched from a hub."""
    hub.add(REPO, sharded_model())
    run_module("hub_manifest", {"repo_id": REPO, "endpoint": hub.endpoint, "dest": str(dest)})
    assert run_module("aria2_fetch", {"dest": str(dest), "reserve_bytes": 0})["changed"]
    return dest


@pytest.mark.parametrize("mode", ["receipt", "full"])
def test_a_right_model(run_module, fetched, mode):
    before = tree(fetched)
    result = run_module("safetensors_verify", {"dest": str(fetched), "hash": mode})
    assert (result["changed"], result["safetensors_files"], result["tensors"]) == (False, 3, 6)
    assert (result["hashed_bytes"] > 0) == (mode == "full")
    assert tree(fetched) == before


def test_a_cut_shard_is_named_and_the_next_fetch_repairs_it_alone(run_module, fetched):
    whole = (fetched / TWO).read_bytes()
    os.truncate(fetched / TWO, 1000)
    result = run_module("safetensors_verify", {"dest": str(fetched)})
    assert result["failed"]
    assert result["broken_files"] == [TWO]
    assert f"{TWO}: needs {len(whole):,} bytes, file has 1,000 (" in result["msg"]
    assert result["findings"][0].endswith("short); rerun the play to fetch it again")
    repaired = run_module("aria2_fetch", {"dest": str(fetched), "reserve_bytes": 0})
    assert repaired["fetched_files"] == [TWO]
    assert (fetched / TWO).read_bytes() == whole
    assert run_module("safetensors_verify", {"dest": str(fetched)})["changed"] is False


def test_a_missing_shard(run_module, tmp_path):
    files = sharded_model()
    del files[TWO]
    write_files(tmp_path, files)
    result = run_module("safetensors_verify", {"dest": str(tmp_path)})
    assert result["failed"]
    assert f"{INDEX}: names the shard {TWO} for 2 tensors, which is not there" in result["msg"]


def test_check_mode_on_a_bare_node(run_module, tmp_path):
    missing = str(tmp_path / "none")
    assert run_module("safetensors_verify", {"dest": missing}, check=True)["changed"] is False
    assert "run hub_manifest and aria2_fetch first" in run_module("safetensors_verify", {"dest": missing})["msg"]


def test_wrong_arguments(run_module, tmp_path):
    result = run_module("safetensors_verify", {"dest": str(tmp_path), "hash": "md5"})
    assert result["failed"]
    assert "receipt, full" in result["msg"]


def test_it_needs_no_library(run_module, fetched, tmp_path):
    for name in ("safetensors", "huggingface_hub", "requests", "aria2p", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not on this node')")
    assert run_module("safetensors_verify", {"dest": str(fetched)}, env={"PYTHONPATH": str(tmp_path)})["tensors"] == 6


def test_through_ansible(run_ansible, tmp_path):
    write_files(tmp_path, sharded_model())
    assert run_ansible("safetensors_verify", {"dest": str(tmp_path)}, check=True)["tensors"] == 6
    os.truncate(tmp_path / TWO, 7)
    result = run_ansible("safetensors_verify", {"dest": str(tmp_path)})
    assert result["findings"] == [
        f"{TWO}: 7 bytes are too few for a header, which begins with 8; rerun the play to fetch it again"
    ]
