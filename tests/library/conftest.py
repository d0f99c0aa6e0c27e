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

# What AnsiballZ does on a node: ansible.module_utils with this repository's files in it, the module as __main__,
# and its arguments from standard input (they may hold a token, so never in argv).
RUNNER = """
import runpy, sys
import ansible.module_utils
ansible.module_utils.__path__.append(sys.argv.pop(1))
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def module_process(name, args, check=False, diff=False, python=sys.executable, env=None):
    """Starts library/<name>.py with its arguments delivered; returns the Popen with both outputs piped as text."""
    module = REPOSITORY / "library" / f"{name}.py"
    arguments = {**args, "_ansible_check_mode": check, "_ansible_diff": diff}
    process = subprocess.Popen(
        [python, "-c", RUNNER, str(REPOSITORY / "module_utils"), str(module)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )
    process.stdin.write(json.dumps({"ANSIBLE_MODULE_ARGS": arguments}, default=str))
    process.stdin.close()
    process.stdin = None  # so that communicate() does not flush a closed pipe
    return process


def module_result(process, timeout_s=120):
    """The JSON result of a module process; the process's whole output stands in the error where there is none."""
    output, errors = process.communicate(timeout=timeout_s)
    try:
        result = json.loads(output)
    except ValueError:
        raise AssertionError(f"no JSON from the module (exit {process.returncode}):\n{output}\n{errors}") from None
    assert process.returncode == (1 if result.get("failed") else 0), errors
    # Ansible's loader turns an uncaught exception into a failure; here it would have shown up as "no JSON" above.
    return result


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
