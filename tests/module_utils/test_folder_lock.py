"""One writer a model folder; the end of a killed run's aria2c is waited for."""

import fcntl
import os
import subprocess

import pytest
from ansible.module_utils.folder_lock import folder_lock
from ansible.module_utils.model_folder import ModelFolder
from ansible.module_utils.provision_error import ProvisionError


@pytest.fixture
def folder(tmp_path):
    made = ModelFolder(tmp_path)
    made.create()
    return made


def test_a_second_run_is_told_who_holds_it(folder):
    told = pytest.raises(ProvisionError, match=rf"locked by another run, process {os.getpid()} .*then rerun")
    with folder_lock(folder), told, folder_lock(folder):
        pass
    with folder_lock(folder):
        pass


def held_by(process_to_name, sleep_s, lock_path):
    """A child that holds the lock for a while, under the name of another process."""
    with open(lock_path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"{process_to_name}\n")
        lock.flush()
        return subprocess.Popen(["sleep", str(sleep_s)], pass_fds=[lock.fileno()])


def test_a_killed_run_leaves_no_lock(folder):
    holder = held_by(999_999_999, 60, folder.lock)
    holder.kill()
    holder.wait()
    with folder_lock(folder):
        pass


def test_a_child_that_outlives_a_killed_run_is_waited_for(folder):
    """The named process is gone, its child still has the descriptor: aria2c, in its last second."""
    child = held_by(999_999_999, 0.5, folder.lock)
    with folder_lock(folder):
        assert child.wait(0.2) == 0  # whoever comes here has waited for its end


def test_it_is_not_waited_for_ever(folder, monkeypatch):
    monkeypatch.setattr("ansible.module_utils.folder_lock.ORPHAN_WAIT_S", 0.2)
    child = held_by(999_999_999, 60, folder.lock)
    try:
        with pytest.raises(ProvisionError, match="process 999999999 "), folder_lock(folder):
            pass
    finally:
        child.kill()
        child.wait()
