"""A drafter for another target is refused, with both values and what to do."""

from dataclasses import replace
from pathlib import Path

import pytest

from ddtree.drafter.config import read_drafter_config
from ddtree.drafter.pairing import check_pairing, require_drafter
from ddtree.errors import UserError

TARGET = {"hidden_size": 576, "vocab_size": 49152, "num_layers": 30}


@pytest.fixture
def config(drafter_folder):
    return read_drafter_config(drafter_folder)


def check(config, **target):
    check_pairing(config, **{**TARGET, **target}, drafter_path=Path("the-drafter"), target_path=Path("the-target"))


def test_the_shipped_pair_fits(config):
    check(config)


@pytest.mark.parametrize(
    ("change", "values"),
    [
        ({"hidden_size": 2048}, ("hidden_size", "576", "2048")),
        ({"vocab_size": 32000}, ("vocab_size", "49152", "32000")),
        ({"num_layers": 24}, ("num_target_layers", "30", "24")),
    ],
)
def test_another_target_is_refused(config, change, values):
    with pytest.raises(UserError) as error:
        check(config, **change)
    for text in (*values, "the-drafter", "the-target", "mode ar"):
        assert text in str(error.value)


def test_a_tap_behind_the_final_norm_is_refused(config):
    with pytest.raises(UserError, match="taps layer 29"):
        check(replace(config, target_layer_ids=(1, 29)))


def test_speculative_modes_need_a_drafter():
    require_drafter("ar", None)
    require_drafter("tree", Path("somewhere"))
    for mode in ("chain", "tree"):
        with pytest.raises(UserError, match=f"mode {mode} needs a drafter"):
            require_drafter(mode, None)
