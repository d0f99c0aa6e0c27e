"""What aria2 is told about one file, and what its error numbers mean for us."""

from __future__ import annotations

import os
import re

from ansible.module_utils.byte_count import readable_bytes
from ansible.module_utils.free_space import free_bytes
from ansible.module_utils.provision_error import ProvisionError

STATUS_KEYS = ["status", "completedLength", "totalLength", "downloadSpeed", "errorCode", "errorMessage"]
HTTP_STATUS = re.compile(r"status=(\d{3})")

# aria2's exit statuses (its manual, "EXIT STATUS").
NO_RESUME = "8"
DISK_FULL = "9"
FILE_ERRORS = frozenset({"15", "16", "17", "18"})  # open, create, I/O, make a folder
NETWORK_ERRORS = frozenset({"2", "3", "5", "6", "7", "19", "22", "23", "24", "29"})


def daemon_options(settings):
    """Options of the whole aria2c, for the parameters of the module aria2_fetch."""
    return {
        "max-concurrent-downloads": settings["parallel_files"],
        "max-connection-per-server": settings["connections_per_file"],
        "split": settings["connections_per_file"],
        "min-split-size": "4M",
        # aria2's adaptive method: fallocate where the filesystem has it, else zeros.
        "file-allocation": "prealloc",
        "continue": "true",
        "auto-file-renaming": "false",
        "allow-overwrite": "true",
        # After a SIGKILL of aria2c itself this much time is fetched again.
        "auto-save-interval": "1",
        "lowest-speed-limit": settings["lowest_speed_limit_bytes_s"],
        "timeout": settings["timeout_s"],
        "connect-timeout": min(settings["timeout_s"], 60),
        # Dropped connections and 503 are retried inside; all else comes back to us for a new address.
        "max-tries": "5",
        "retry-wait": "2",
        "remote-time": "false",
        "user-agent": "ddtree-infra",
        # A repository's file is data, whatever it is called.
        "follow-torrent": "false",
        "follow-metalink": "false",
        "enable-dht": "false",
        "enable-dht6": "false",
    }


def file_options(part, single_stream):
    """Options of one download into the PartFile `part`; `single_stream` for a server that knows no ranges."""
    options = {"dir": os.path.dirname(part.path), "out": os.path.basename(part.path)}
    if single_stream:
        options |= {"split": "1", "max-connection-per-server": "1"}
    return options


def http_status(message):
    """The HTTP status in aria2's error message, or None."""
    match = HTTP_STATUS.search(message)
    return int(match.group(1)) if match else None


def raise_if_final(entry, folder, code, message):
    """Raises ProvisionError for aria2 errors that another attempt does not heal."""
    if code == DISK_FULL:
        raise ProvisionError(
            f"file {entry.path}: the disk of {folder.dest} is full ({readable_bytes(free_bytes(folder.dest))} free, "
            f"the file has {readable_bytes(entry.size_bytes)}); free space there and rerun to resume"
        )
    if code in FILE_ERRORS:
        raise ProvisionError(
            f"file {entry.path}: aria2c cannot write below {folder.incoming} ({message}, aria2 error {code}); "
            "check its owner, mode and filesystem, then rerun"
        )
