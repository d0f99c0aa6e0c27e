"""The shell scripts around podman, as far as no container is needed."""

import os
import subprocess

import pytest

HAS_CGROUP2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
needs_podman_host = pytest.mark.skipif(
    not HAS_CGROUP2 and os.geteuid() != 0, reason="no cgroups v2 here, and root alone can mount them"
)


def run(*command) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


@needs_podman_host
def test_with_podman_hands_over_arguments_and_status(tools):
    script = tools / "with_podman.sh"
    done = run(script, script, "sh", "-c", 'printf "<%s>" "$@"; exit 7', "sh", "two words", "", "$HOME")
    assert done.stdout == "<two words><><$HOME>"
    assert done.returncode == 7


@needs_podman_host
def test_with_podman_offers_a_unified_hierarchy_where_it_makes_a_namespace(tools):
    outside = run("stat", "--file-system", "--format=%T", "/sys/fs/cgroup").stdout
    inside = run(tools / "with_podman.sh", "stat", "--file-system", "--format=%T", "/sys/fs/cgroup").stdout
    changed = inside != outside
    assert inside == ("cgroup2fs\n" if changed else outside)
    assert run("stat", "--file-system", "--format=%T", "/sys/fs/cgroup").stdout == outside


def test_build_image_names_a_wrong_option(tools):
    wrong, incomplete = run(tools / "build_image.sh", "--suit", "sid"), run(tools / "build_image.sh", "--suite")
    assert (wrong.returncode, incomplete.returncode) == (2, 2)
    assert "unknown option --suit" in wrong.stderr
    assert "--suite needs a value" in incomplete.stderr
