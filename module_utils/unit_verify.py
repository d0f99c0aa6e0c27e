"""Asks systemd-analyze about a unit before it is installed. Any output is a fault: it exits 0 on most of them."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile

from ansible.module_utils.provision_error import ProvisionError

_MISSING_PROGRAM = re.compile(r"Command .* is not executable: No such file or directory")
# "/lib/systemd/system/other.service:3: …" and "other.service: …"
_SUBJECT = re.compile(
    r"(?P<subject>/[^:]+|[^\s:]+\.(?:service|socket|target|mount|automount|swap|timer|path|slice|scope|device)):"
)
_TIMEOUT_S = 60


def unit_faults(name: str, text: str) -> tuple[list[str], list[str]]:
    """(faults, programs not there yet) of a candidate for the unit `name`, its installed drop-ins included.

    What systemd-analyze says about other units (dependencies are loaded too) is no fault of this one and is left out.
    """
    with tempfile.TemporaryDirectory(prefix="ddtree-unit-") as folder:
        candidate = os.path.join(folder, name)
        with open(candidate, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", candidate]
        # A clean environment: SYSTEMD_LOG_LEVEL=debug or a log target would change what is printed, and where.
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, env=environment
            )
        except FileNotFoundError as error:
            raise ProvisionError(
                f"{name} cannot be verified: systemd-analyze is missing on this host; "
                "install the package systemd or set verify: false"
            ) from error
        except subprocess.TimeoutExpired as error:
            raise ProvisionError(
                f"systemd-analyze verify of {name} took more than {_TIMEOUT_S} s; set verify: false"
            ) from error
        output = (done.stdout + done.stderr).replace(folder + "/", "")
    return classify(name, output, done.returncode)


def classify(name: str, output: str, returncode: int) -> tuple[list[str], list[str]]:
    """Sorts the lines that systemd-analyze printed; see unit_faults."""
    faults, missing, foreign = [], [], []
    for line in filter(None, map(str.strip, output.splitlines())):
        match = _SUBJECT.match(line)
        if match and not _is_ours(name, match["subject"]):
            foreign.append(line)
        elif _MISSING_PROGRAM.search(line):
            missing.append(line)
        else:
            faults.append(line)
    if returncode != 0 and not (faults or missing):
        # A silent refusal, or one that only names another unit: better shown than swallowed.
        faults = foreign or [f"systemd-analyze exits {returncode} without a word"]
    return faults, missing


def _is_ours(name: str, subject: str) -> bool:
    parts = subject.split("/")
    prefix, _, suffix = name.partition("@.")
    ours = parts[-1] == name or bool(suffix and parts[-1].startswith(f"{prefix}@") and parts[-1].endswith(f".{suffix}"))
    return ours or (len(parts) > 1 and parts[-2] == f"{name}.d")
