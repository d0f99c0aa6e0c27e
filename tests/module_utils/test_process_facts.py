"""What /proc says about real processes."""

import datetime
import os
import subprocess
import sys

import pytest
from ansible.module_utils.process_facts import ancestry, command_of, environment_of, started_at, unit_of


@pytest.fixture
def child():
    environment = {"DDTREE_RELEASE": "a=b c", "SECRET": "s", "PATH": os.environ["PATH"]}
    script = "print(flush=True); import time; time.sleep(1000)"
    process = subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE)
    process.stdout.readline()  # exec is over
    yield process
    process.kill()
    process.communicate()


def test_only_the_variables_asked_for(child):
    assert environment_of(child.pid, ["DDTREE_RELEASE", "ABSENT"]) == {"DDTREE_RELEASE": "a=b c", "ABSENT": None}


def test_the_command_is_one_line(child):
    assert command_of(child.pid) == f"{sys.executable} -c print(flush=True); import time; time.sleep(1000)"


def test_it_began_between_this_test_s_beginning_and_now(child):
    began = datetime.datetime.fromisoformat(started_at(child.pid))
    own = datetime.datetime.fromisoformat(started_at(os.getpid()))
    assert own <= began <= datetime.datetime.now(datetime.UTC)


def test_its_ancestors(child):
    assert ancestry(child.pid)[:2] == [child.pid, os.getpid()]
    assert 1 not in ancestry(child.pid)


def test_a_process_that_is_gone(child):
    child.kill()
    child.wait()
    assert command_of(child.pid) == ""
    assert started_at(child.pid) is None
    assert environment_of(child.pid, ["A"]) == {"A": None}
    assert unit_of(child.pid) is None
