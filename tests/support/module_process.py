"""Runs a module of library/ as a node does: a process of its own, JSON arguments on stdin, a JSON result on stdout."""

import json
import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

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
