"""The probe reads a real node: interpreters, disk, memory, and what nvidia-smi prints."""

import os
import sys

import pytest
from ansible.module_utils import node_probe_facts


def test_python_facts_of_this_interpreter():
    facts = node_probe_facts.python_facts(sys.executable)
    assert facts["found"]
    assert facts["version"] == list(sys.version_info[:3])


def test_a_missing_interpreter_is_reported_not_raised():
    assert node_probe_facts.python_facts("python9.99") == {"found": False, "executable": "python9.99"}


def test_an_interpreter_that_fails_is_reported_with_its_error(tmp_path):
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    facts = node_probe_facts.python_facts(str(broken))
    assert not facts["found"]
    assert "3" in facts["error"]


def test_disk_is_measured_where_the_folder_will_lie(tmp_path):
    facts = node_probe_facts.disk_facts(str(tmp_path / "not" / "there" / "yet"))
    assert facts["measured_at"] == str(tmp_path)
    assert 0 < facts["free_bytes"] <= os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize


def test_allocated_bytes_counts_blocks_not_holes(tmp_path):
    (tmp_path / "full").write_bytes(os.urandom(1 << 20))
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(1 << 30)
    os.sync()
    assert 1 << 20 <= node_probe_facts.allocated_bytes(str(tmp_path)) < 2 << 20
    assert node_probe_facts.allocated_bytes(str(tmp_path / "missing")) == 0


GPU_LINES = """0, NVIDIA B300 SXM6 AC, 10.3, 275040, 580.95.05
1, NVIDIA B300 SXM6 AC, 10.3, [N/A], 580.95.05
"""


def test_gpu_rows():
    first, second = node_probe_facts.parse_gpu_csv(GPU_LINES)
    assert first == {
        "index": 0,
        "name": "NVIDIA B300 SXM6 AC",
        "compute_capability": "10.3",
        "memory_bytes": 275040 * 2**20,
        "driver_version": "580.95.05",
    }
    assert second["memory_bytes"] is None


@pytest.mark.parametrize(
    ("script", "gpus", "error"),
    [
        (f"cat <<'EOF'\n{GPU_LINES}EOF\n", 2, None),
        (
            "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18\n",
            0,
            "Driver/library version mismatch",
        ),
    ],
)
def test_gpu_facts_from_what_nvidia_smi_says(tmp_path, monkeypatch, script, gpus, error):
    fake = tmp_path / "nvidia-smi"
    fake.write_text(f"#!/bin/sh\n{script}")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    facts = node_probe_facts.gpu_facts()
    assert len(facts["gpus"]) == gpus
    assert (error is None and facts["error"] is None) or error in facts["error"]
