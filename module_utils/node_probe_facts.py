"""What a node has, read with the standard library alone: Python, commands, memory, disk, GPUs."""

import csv
import io
import json
import os
import shutil
import subprocess

# Asked of the interpreter that will own the venv, not of the one that runs the module.
_PYTHON_QUESTION = """
import importlib.util, json, os, sys, sysconfig
print(json.dumps({
    "version": list(sys.version_info[:3]),
    "ensurepip": importlib.util.find_spec("ensurepip") is not None,
    "headers": os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")),
}))
"""
_GPU_FIELDS = ("index", "name", "compute_cap", "memory.total", "driver_version")


def python_facts(executable: str) -> dict:
    """Version [major, minor, micro], ensurepip and Python.h of an interpreter; {"found": False} if it cannot be run."""
    path = shutil.which(executable)
    if path is None:
        return {"found": False, "executable": executable}
    try:
        # -I: an inherited PYTHONPATH or PYTHONHOME must not answer for the interpreter.
        answer = subprocess.run(
            [path, "-I", "-c", _PYTHON_QUESTION], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return {"found": False, "executable": path, "error": str(error)}
    return {"found": True, "executable": path, **json.loads(answer.stdout)}


def nearest_existing(path: str) -> str:
    """The path itself or its closest ancestor that exists: where a folder that is to be made will lie."""
    path = os.path.abspath(path)
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def disk_facts(path: str) -> dict:
    """Free bytes for an ordinary user on the file system that holds (or will hold) the path."""
    existing = nearest_existing(path)
    stat = os.statvfs(existing)
    return {"path": path, "measured_at": existing, "free_bytes": stat.f_bavail * stat.f_frsize}


def allocated_bytes(path: str) -> int:
    """Bytes that the files below a folder occupy on disk, counted by blocks; 0 where it is missing."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total


def memory_bytes() -> int:
    """Physical memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def parse_gpu_csv(text: str) -> list[dict]:
    """Rows of nvidia-smi for the fields above, as `--format=csv,noheader,nounits` prints them."""
    gpus = []
    for row in csv.reader(io.StringIO(text), skipinitialspace=True):
        if len(row) != len(_GPU_FIELDS):
            continue
        index, name, compute_capability, memory_mib, driver = (cell.strip() for cell in row)
        gpus.append(
            {
                "index": int(index),
                "name": name,
                "compute_capability": compute_capability,
                "memory_bytes": int(float(memory_mib)) * 2**20 if memory_mib.replace(".", "", 1).isdigit() else None,
                "driver_version": driver,
            }
        )
    return gpus


def gpu_facts() -> dict:
    """GPUs as nvidia-smi lists them. `error` holds what it said when it failed (a driver mismatch, for instance)."""
    path = shutil.which("nvidia-smi")
    if path is None:
        return {"gpus": [], "nvidia_smi": None, "error": None}
    command = [path, f"--query-gpu={','.join(_GPU_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return {"gpus": [], "nvidia_smi": path, "error": str(error)}
    if answer.returncode != 0:
        return {"gpus": [], "nvidia_smi": path, "error": (answer.stdout + answer.stderr).strip()}
    return {"gpus": parse_gpu_csv(answer.stdout), "nvidia_smi": path, "error": None}


def probe(python: str, commands: list[str], path: str, models_path: str) -> dict:
    """Everything at once; see the module's RETURN for the keys."""
    return {
        "python": python_facts(python),
        "commands": {name: shutil.which(name) for name in commands},
        "is_root": os.geteuid() == 0,
        "systemd": os.path.isdir("/run/systemd/system"),
        "memory_bytes": memory_bytes(),
        "disk": disk_facts(path),
        "models_disk": disk_facts(models_path),
        "models_bytes": allocated_bytes(models_path),
        **gpu_facts(),
    }
