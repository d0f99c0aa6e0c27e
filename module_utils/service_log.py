"""The last lines that a service wrote: from its log file or from the journal."""

from __future__ import annotations

import os
import shutil
import subprocess

# Enough for the last lines of any log; a line longer than this is cut at its beginning.
_TAIL_BYTES = 64 << 10


def last_lines(count: int, unit: str | None = None, log_file: str | None = None) -> list[str]:
    """At most `count` lines. A log that cannot be read yields a line that says so, and no failure."""
    if log_file:
        return _of_file(log_file, count)
    if unit:
        return _of_journal(unit, count)
    return []


def _of_file(path: str, count: int) -> list[str]:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace").splitlines()[-count:]
    except OSError as error:
        return [f"(cannot read {path}: {error.strerror})"]


def _of_journal(unit: str, count: int) -> list[str]:
    if shutil.which("journalctl") is None:
        return ["(journalctl is missing on this host)"]
    command = ["journalctl", "--unit", unit, "--lines", str(count), "--output", "cat", "--no-pager", "--quiet"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"(the journal of {unit} cannot be read: {error})"]
    lines = (done.stdout if done.returncode == 0 else done.stderr).splitlines()
    return lines[-count:] or [f"(the journal of {unit} holds nothing this user may read)"]
