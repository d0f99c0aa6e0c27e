"""`ddtree doctor` names what is wrong with an environment, a model folder, or a pair, before anything is started."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from ddtree.cli import main
from ddtree.doctor import check_device, check_drafter
from ddtree.errors import UserError

DRAFTER = Path(__file__).resolve().parents[2] / "models" / "smollm2-135m-dflash"
FITTING = {"hidden_size": 576, "vocab_size": 49152, "num_hidden_layers": 30}


@pytest.fixture
def make_target(tmp_path):
    def make(config: dict) -> Path:
        (tmp_path / "config.json").write_text(json.dumps(config))
        save_file({"weight": torch.zeros(2)}, tmp_path / "model.safetensors")
        return tmp_path

    return make


def test_a_pair_that_fits(make_target, capsys):
    assert main(["doctor", "--model", str(make_target(FITTING)), "--drafter", str(DRAFTER)]) == 0
    out = capsys.readouterr().out
    assert "whole, 1 shards" in out
    assert "fits, block 16" in out
    assert "device" not in out


def test_dimensions_of_a_multimodal_model_are_those_of_its_language_model(make_target):
    assert "fits" in check_drafter(DRAFTER, make_target({"text_config": FITTING, "hidden_size": 1}))


@pytest.mark.parametrize(("key", "value"), [("hidden_size", 577), ("vocab_size", 49151), ("num_hidden_layers", 31)])
def test_a_drafter_of_another_target_is_refused_with_both_values(make_target, capsys, key, value):
    target = make_target({**FITTING, key: value})
    assert main(["doctor", "--model", str(target), "--drafter", str(DRAFTER)]) == 2
    message = capsys.readouterr().err
    assert str(FITTING[key]) in message
    assert str(value) in message


def test_a_target_without_dimensions_is_named(make_target):
    with pytest.raises(UserError, match="vocab_size"):
        check_drafter(DRAFTER, make_target({"hidden_size": 576}))


def test_the_cpu_computes_and_an_absent_device_is_named():
    assert "product exact" in check_device("cpu")
    with pytest.raises(UserError, match="device nosuch"):
        check_device("nosuch")


def test_a_drafter_alone_is_refused(capsys):
    assert main(["doctor", "--drafter", str(DRAFTER)]) == 2
    assert "--model" in capsys.readouterr().err
