"""One writer a model folder; the end of a killed run's aria2c is waited for."""

import os
import subprocess
import sys
import time

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
    with folder_lock(folder), pytest.raises(ProvisionError, match=rf"locked by another run, process {os.getpid()} "):
        with folder_lock(folder):
            pass
    with folder_lock(folder):
        pass


def test_a_killed_run_leaves_no_lock(folder):
    code = "import fcntl, os, sys, time; fcntl.flock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), 2); print(flush=True); time.sleep(60)"
    holder = subprocess.Popen([sys.executable, "-c", code, folder.lock], stdout=subprocess.PIPE)
    holder.stdout.readline()
    holder.kill()
    holder.wait()
    with folder_lock(folder):
        pass


def test_a_child_that_outlives_a_killed_run_is_waited_for(folder):
    """The holder's process is gone, its child still has the descriptor for half a second."""
    with open(folder.lock, "w") as lock:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("999999999\n")
        lock.flush()
        child = subprocess.Popen(["sleep", "0.5"], pass_fds=[lock.fileno()])
    started = time.monotonic()
    with folder_lock(folder):
        assert child.poll() is not None or time.monotonic() - started > 0.4
    child.wait()
