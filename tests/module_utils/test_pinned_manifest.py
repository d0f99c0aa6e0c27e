"""The manifest of a folder: resolved once, kept without the hub, moved only when asked."""

import json
import stat

import pytest
from ansible.module_utils.pinned_manifest import keep_manifest
from ansible.module_utils.provision_error import ProvisionError
from weights_fixtures import REPO, manifest_params, sample_files


def keep(hub, dest, check_mode=False, **changes):
    return keep_manifest(manifest_params(hub, dest, **changes), check_mode)


def on_disk(dest):
    return json.loads((dest / ".ddtree" / "manifest.json").read_text())


def test_the_first_run_writes_and_the_second_asks_nobody(repository, dest):
    first = keep(repository, dest)
    assert first["changed"]
    assert first["manifest"] == on_disk(dest)
    assert first["total_bytes"] == on_disk(dest)["total_bytes"]
    assert (first["file_count"], first["commit"], first["previous_commit"]) == (5, repository.commit, None)
    assert stat.S_IMODE((dest / ".ddtree" / "manifest.json").stat().st_mode) == 0o644
    repository.forget()
    second = keep(repository, dest)
    assert not second["changed"]
    assert second["digest"] == first["digest"]
    assert second["diff"]["before"] == second["diff"]["after"]
    assert repository.requests == []


def test_a_moved_branch_is_taken_only_when_asked(repository, dest):
    keep(repository, dest)
    moved = repository.add(REPO, sample_files(seed=2))
    assert keep(repository, dest)["commit"] == repository.commit
    result = keep(repository, dest, refresh=True)
    assert result["changed"]
    assert (result["previous_commit"], result["commit"]) == (repository.commit, moved)
    assert repository.commit in result["diff"]["before"]
    assert moved in result["diff"]["after"]
    assert on_disk(dest)["commit"] == moved
    assert not keep(repository, dest, refresh=True)["changed"]


def test_check_mode_asks_but_writes_nothing(repository, dest):
    result = keep(repository, dest, check_mode=True)
    assert result["changed"]
    assert result["manifest"]["commit"] == repository.commit
    assert repository.requests
    assert not dest.exists()


def test_check_mode_does_not_replace_either(repository, dest):
    keep(repository, dest)
    repository.add(REPO, sample_files(seed=2))
    before = on_disk(dest)
    assert keep(repository, dest, check_mode=True, refresh=True)["changed"]
    assert on_disk(dest) == before


def test_a_pinned_commit_must_match(repository, dest):
    keep(repository, dest)
    repository.forget()
    assert not keep(repository, dest, revision=repository.commit)["changed"]
    assert repository.requests == []
    other = repository.add(REPO, sample_files(seed=2), branch="v2")
    result = keep(repository, dest, revision=other)
    assert result["changed"]
    assert on_disk(dest)["commit"] == other


@pytest.mark.parametrize("change", [{"allow_patterns": ["*.json"]}, {"deny_patterns": ["*.bin"]}, {"revision": "v2"}])
def test_other_patterns_or_another_revision_ask_again(repository, dest, change):
    keep(repository, dest)
    repository.add(REPO, sample_files(seed=2), branch="v2")
    assert keep(repository, dest, **change)["changed"]
    assert not keep(repository, dest, **change)["changed"]


def test_a_pinned_folder_needs_no_hub(repository, dest):
    keep(repository, dest)
    repository.close()
    assert keep(repository, dest)["commit"] == repository.commit
    with pytest.raises(ProvisionError, match="cannot be asked"):
        keep(repository, dest, refresh=True, timeout_s=2)
    assert on_disk(dest)["commit"] == repository.commit


def test_a_damaged_manifest_is_named_and_left(repository, dest):
    keep(repository, dest)
    path = dest / ".ddtree" / "manifest.json"
    path.write_text(path.read_text()[:-20])
    with pytest.raises(ProvisionError, match=r"manifest\.json: cannot be read.*delete it and rerun"):
        keep(repository, dest)
