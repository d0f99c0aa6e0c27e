"""The module aria2_fetch as a process: killed, run twice at once, watched from outside; and once through ansible."""

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest
from misbehaving_hub import TOKEN
from module_process import module_result
from weights_fixtures import REPO, SHARD, missing_files, wrong_files

BIG = "big.safetensors"


@pytest.fixture
def pinned(repository, dest, run_module):
    """A folder whose manifest names the small files."""
    run_module("hub_manifest", {"repo_id": REPO, "endpoint": repository.endpoint, "dest": str(dest)})
    repository.forget()
    return repository


@pytest.fixture
def big(hub, dest, run_module):
    """A folder whose manifest names one file of 24 MB that arrives at 8 MB a second; the file's bytes."""
    content = random.Random(9).randbytes(24_000_000)
    hub.add(REPO, {BIG: content})
    run_module("hub_manifest", {"repo_id": REPO, "endpoint": hub.endpoint, "dest": str(dest)})
    hub.forget()
    hub.faults.bytes_per_s = 2_000_000
    return content


def arguments(dest, **more):
    return {"dest": str(dest), "reserve_bytes": 0, "connections_per_file": 4, **more}


def wait_until(condition, what, timeout_s=30):
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"never saw {what}"
        time.sleep(0.02)
    return found


def progress(dest):
    try:
        return json.loads((dest / ".ddtree" / "progress.json").read_text())
    except FileNotFoundError:
        return None


def half_way(hub, dest):
    """Waits until about half of the big file has arrived and its control file speaks of that."""
    wait_until(lambda: hub.sent_bytes > 12_000_000, "half of the file")
    (control,) = wait_until(lambda: list((dest / ".ddtree" / "incoming").glob("*.aria2")), "the control file")
    return control


def children(pid):
    """Process ids of the aria2c that the process `pid` has started."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(folder.name))
        except (OSError, IndexError):
            continue
    return found


def test_fetch_then_nothing_to_do(run_module, pinned, dest, files):
    first = run_module("aria2_fetch", arguments(dest))
    assert (first["changed"], first["fetched_files"]) == (True, sorted(files))
    assert wrong_files(dest, files) == missing_files(dest, files) == []
    pinned.forget()
    second = run_module("aria2_fetch", arguments(dest))
    assert (second["changed"], second["downloaded_bytes"], second["skipped_files"]) == (False, 0, len(files))
    assert pinned.requests == []


def test_the_token_stays_ours(start_module, pinned, dest, files):
    """Seen from outside while it runs: neither process has it in its command line or environment, nor is it on disk."""
    pinned.faults.needs_token = True
    pinned.faults.bytes_per_s = 2_000_000
    process = start_module("aria2_fetch", arguments(dest, token=TOKEN))
    (aria2c,) = wait_until(lambda: children(process.pid), "aria2c")
    wait_until(lambda: pinned.seen("cdn"), "a request at the CDN")
    for pid in (process.pid, aria2c):
        for what in ("cmdline", "environ"):
            assert TOKEN.encode() not in Path(f"/proc/{pid}/{what}").read_bytes()
    binary, option, rest = Path(f"/proc/{aria2c}/cmdline").read_text().split("\0")
    assert Path(binary).name == "aria2c"
    assert option.startswith("--conf-path=")
    assert rest == ""
    result = module_result(process)
    assert result["changed"]
    assert TOKEN not in json.dumps(result)
    assert wrong_files(dest, files) == missing_files(dest, files) == []
    assert all("authorization" not in request.headers for request in pinned.seen("cdn"))
    assert not any(TOKEN.encode() in path.read_bytes() for path in dest.rglob("*") if path.is_file())


def test_progress_can_be_watched(start_module, hub, dest, big):
    process = start_module("aria2_fetch", arguments(dest))
    seen = wait_until(lambda: (p := progress(dest)) and p["total"]["done_bytes"] > 0 and p, "progress")
    assert (seen["pid"], seen["phase"]) == (process.pid, "fetch")
    assert seen["total"]["size_bytes"] == len(big)
    (row,) = seen["files"]
    assert (row["path"], row["state"], row["size_bytes"]) == (BIG, "downloading", len(big))
    later = wait_until(
        lambda: (p := progress(dest)) and p["total"]["done_bytes"] > seen["total"]["done_bytes"] and p, "more progress"
    )
    assert later["total"]["mib_per_s"] > 0
    assert later["total"]["eta_s"] > 0
    hub.faults.bytes_per_s = None
    assert module_result(process)["changed"]
    assert progress(dest) is None


@pytest.mark.parametrize("also_aria2c", [False, True], ids=["module", "module and aria2c"])
def test_a_killed_run_is_resumed_inside_the_file(start_module, run_module, hub, dest, big, also_aria2c):
    process = start_module("aria2_fetch", arguments(dest))
    half_way(hub, dest)
    (aria2c,) = children(process.pid)
    if also_aria2c:
        wait_until(lambda: progress(dest)["total"]["done_bytes"] > 8_000_000, "progress")
        os.kill(aria2c, signal.SIGKILL)
    process.kill()
    process.wait()
    assert not (dest / BIG).exists()
    hub.faults.bytes_per_s = None
    # At once, while an orphaned aria2c may still write: it has to be waited for.
    result = run_module("aria2_fetch", arguments(dest))
    assert result["changed"]
    assert (dest / BIG).read_bytes() == big
    # Without a resume all 24 MB would come again. aria2c, when killed too, loses what it had not noted yet.
    assert result["downloaded_bytes"] < (20_000_000 if also_aria2c else 14_000_000)
    assert not Path(f"/proc/{aria2c}/exe").exists()
    assert progress(dest) is None
    assert run_module("aria2_fetch", arguments(dest))["changed"] is False


def test_the_death_of_aria2c_alone_is_a_clear_failure(start_module, run_module, hub, dest, big):
    process = start_module("aria2_fetch", arguments(dest))
    half_way(hub, dest)
    os.kill(children(process.pid)[0], signal.SIGKILL)
    result = module_result(process)
    assert result["failed"]
    assert "exit status -9" in result["msg"]
    assert "rerun" in result["msg"]
    assert not (dest / BIG).exists()
    hub.faults.bytes_per_s = None
    assert run_module("aria2_fetch", arguments(dest))["changed"]
    assert (dest / BIG).read_bytes() == big


def test_two_runs_at_once(start_module, run_module, hub, dest, big):
    first = start_module("aria2_fetch", arguments(dest))
    wait_until(lambda: progress(dest), "the first run")
    second = run_module("aria2_fetch", arguments(dest))
    assert second["failed"]
    assert f"locked by another run, process {first.pid}" in second["msg"]
    hub.faults.bytes_per_s = None
    assert module_result(first)["changed"]
    assert (dest / BIG).read_bytes() == big


def test_a_failure_reports_what_was_done(run_module, pinned, dest, files):
    pinned.faults.replaced = {SHARD: bytes(len(files[SHARD]))}
    result = run_module("aria2_fetch", arguments(dest))
    assert result["failed"]
    assert SHARD in result["msg"]
    assert result["changed"] is bool(result["fetched_files"])
    assert SHARD not in result["fetched_files"]
    assert wrong_files(dest, files) == []


def test_no_aria2c(run_module, pinned, dest):
    result = run_module("aria2_fetch", arguments(dest, aria2c="aria2c-that-is-not-here"))
    assert result["failed"]
    assert "no executable 'aria2c-that-is-not-here'" in result["msg"]
    assert "apt-get install aria2" in result["msg"]
    assert pinned.requests == []


@pytest.mark.usefixtures("pinned")
@pytest.mark.parametrize("library", ["aria2p", "requests"])
def test_a_missing_library_is_named(run_module, dest, tmp_path, library):
    (tmp_path / f"{library}.py").write_text("raise ImportError('not on this node')")
    result = run_module("aria2_fetch", arguments(dest), env={"PYTHONPATH": str(tmp_path)})
    assert result["failed"]
    assert f"Failed to import the required Python library ({library})" in result["msg"]


def test_a_disk_that_is_too_small(run_module, pinned, dest):
    result = run_module("aria2_fetch", arguments(dest, reserve_bytes=10**15))
    assert result["failed"]
    assert "lower reserve_bytes" in result["msg"]
    assert result["needed_bytes"] > 6_900_000
    assert pinned.requests == []


def test_through_ansible(run_ansible, pinned, dest, files):
    planned = run_ansible("aria2_fetch", arguments(dest), check=True, diff=True)
    assert planned["changed"]
    assert planned["fetched_files"] == sorted(files)
    assert f"+{SHARD} {len(files[SHARD])} sha256:" in planned["_stdout"]
    assert pinned.requests == []
    assert missing_files(dest, files) == list(files)
    assert run_ansible("aria2_fetch", arguments(dest, token=TOKEN))["changed"]
    assert wrong_files(dest, files) == missing_files(dest, files) == []
    again = run_ansible("aria2_fetch", arguments(dest, token=TOKEN), diff=True)
    assert again["changed"] is False
    assert TOKEN not in again["_stdout"]
