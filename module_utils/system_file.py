"""Small text files of the system, replaced in one step: read what is there, compare, write beside it, rename."""

from __future__ import annotations

import grp
import os
import pwd
import stat
import tempfile
from dataclasses import dataclass

from ansible.module_utils.provision_error import ProvisionError


@dataclass(frozen=True)
class FileState:
    """What a path holds; text and the others are None where there is no file."""

    text: str | None = None
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None


def read_state(path: str) -> FileState:
    """Text (UTF-8; other bytes survive as surrogates) and attributes of a file.

    A symbolic link reads as "no file": it is replaced. Errors: ProvisionError for what is no file or may not be read.
    """
    try:
        info = os.lstat(path)
        if stat.S_ISLNK(info.st_mode):
            return FileState()
        if not stat.S_ISREG(info.st_mode):
            raise ProvisionError(f"{path} is not a regular file; move it away")
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return FileState(file.read(), stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid)
    except FileNotFoundError:
        return FileState()
    except (PermissionError, NotADirectoryError) as error:
        raise ProvisionError(
            f"cannot read {path}: {error.strerror}; run the task as its owner or as root (become: true)"
        ) from error


def owner_ids(owner: str | None, group: str | None) -> tuple[int, int]:
    """uid and gid of names or numbers; None means the user and the group that run the module."""
    try:
        uid = os.geteuid() if owner is None else int(owner) if owner.isdecimal() else pwd.getpwnam(owner).pw_uid
        gid = os.getegid() if group is None else int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid
    except KeyError as error:
        raise ProvisionError(f"owner {owner}, group {group}: {error.args[0]}; create it first") from error
    return uid, gid


def write_atomically(path: str, wanted: FileState) -> None:
    """Readers see the old file or the whole new one, whatever happens in between."""
    folder = os.path.dirname(path)
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=folder)
        try:
            with open(descriptor, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
                file.write(wanted.text)
                file.flush()
                # Rights come before the name: nobody can read a secret in the moment between the two.
                os.fchown(file.fileno(), wanted.uid, wanted.gid)
                os.fchmod(file.fileno(), wanted.mode)
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise ProvisionError(
            f"cannot write {path}: {error.strerror}; run the task as its owner or as root (become: true)"
        ) from error


def remove(path: str) -> bool:
    """True when there was something to remove."""
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise ProvisionError(
            f"cannot remove {path}: {error.strerror}; run the task as its owner or as root (become: true)"
        ) from error
    return True


def describe_change(path: str, before: FileState, after: FileState) -> dict:
    """The `diff` entry of an Ansible result: text, and the attributes in the headers where only they differ."""

    def header(state):
        return path if state.text is None else f"{path} (mode {state.mode:04o}, uid {state.uid}, gid {state.gid})"

    return {
        "before": before.text or "",
        "after": after.text or "",
        "before_header": header(before),
        "after_header": header(after),
    }
