"""Runs the modules of library/ the way a node runs them: a process of their own, JSON arguments on stdin, JSON out.

Fixtures
    run_module(name, args, check=False, diff=False, python=…, env=…) -> dict      the module's result, `failed` included
    start_module(name, args, …) -> subprocess.Popen                               still running; killed after the test
    run_ansible(name, args, check=False, diff=False) -> dict                      through the real `ansible` command
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY / "tests" / "support"))

from module_process import module_process, module_result  # noqa: E402
from weights_fixtures import dest, files, hub, repository, silent_endpoint  # noqa: E402, F401


@pytest.fixture
def run_module():
    def run(name, args, check=False, diff=False, timeout_s=120, **options):
        return module_result(module_process(name, args, check, diff, **options), timeout_s)

    return run


@pytest.fixture
def start_module():
    started = []

    def start(name, args, check=False, diff=False, **options):
        started.append(module_process(name, args, check, diff, **options))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def run_ansible(tmp_path):
    """Through the controller: ansible-core packs the module, runs it on localhost, and reports as in a play."""

    def run(name, args, check=False, diff=False):
        command = [str(Path(sys.executable).parent / "ansible"), "localhost", "-i", "localhost,", "-c", "local"]
        command += ["-e", f"ansible_python_interpreter={sys.executable}"]
        command += ["-m", name, "-a", json.dumps(args, default=str)]
        command += ["--check"] if check else []
        command += ["--diff"] if diff else []
        output_dir = tmp_path / "ansible-tree"
        done = subprocess.run(
            [*command, "--tree", str(output_dir)],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), "ANSIBLE_LOCALHOST_WARNING": "false"},
        )
        result_file = output_dir / "localhost"
        assert result_file.exists(), done.stdout + done.stderr
        result = json.loads(result_file.read_text())
        result["_stdout"] = done.stdout
        return result

    return run
