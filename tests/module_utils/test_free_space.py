"""Free space is tested for what is still to come, and the message has every figure."""

import os

import pytest
from ansible.module_utils.byte_count import readable_bytes
from ansible.module_utils.free_space import allocated_bytes, free_bytes, require_free_space
from ansible.module_utils.provision_error import ProvisionError


def test_enough_is_silent_and_too_little_is_not(tmp_path):
    free = free_bytes(tmp_path)
    require_free_space(tmp_path, free // 4, free // 4)
    with pytest.raises(
        ProvisionError, match=r"must stay free \(reserve_bytes\).*too few.*lower reserve_bytes"
    ) as caught:
        require_free_space(tmp_path, 1000, 10**18)
    assert str(tmp_path) in str(caught.value)
    assert "1.0 kB are still to be fetched" in str(caught.value)
    assert caught.value.details["needed_bytes"] == 1000


def test_a_folder_that_is_not_there_yet(tmp_path):
    assert free_bytes(tmp_path / "not" / "yet") > 0


def test_holes_do_not_count_as_allocated(tmp_path):
    path = tmp_path / "sparse"
    with open(path, "wb") as file:
        file.truncate(10_000_000)
    assert allocated_bytes(path) < 1_000_000
    path.write_bytes(os.urandom(100_000))
    assert allocated_bytes(path) >= 100_000
    assert allocated_bytes(tmp_path / "none") == 0


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_960, "1.0 MB"),
        (590_400_000_000, "590.4 GB"),
        (10**18, "1000.0 PB"),
    ],
)
def test_readable_bytes(size_bytes, text):
    assert readable_bytes(size_bytes) == text
