"""A partial file and aria2's control file: when they may be resumed, and when this file starts again.

aria2 itself, given `continue`, takes a partial file without its control file for a finished prefix, and one of another
revision for its own: the result is corrupt and the exit status 0. So a partial file's name carries the hash that it
is to have, and without a sound control file it is either complete (and proves it by its hash) or deleted.
"""

from __future__ import annotations

import contextlib
import os

from ansible.module_utils.aria2_control_file import read_control_file

EMPTY, RESUMABLE, UNPROVEN = "empty", "resumable", "unproven"


class PartFile:
    """`<incoming>/<path>.<hash, 12 digits>.part` and `….part.aria2` of one manifest entry."""

    def __init__(self, folder, entry):
        self.entry = entry
        self.path = os.path.join(folder.incoming, f"{entry.path}.{entry.hash[:12]}.part")
        self.control = self.path + ".aria2"

    def state(self):
        """EMPTY: nothing usable. RESUMABLE: data and control file. UNPROVEN: full size, no control file: hash it."""
        if self._control() is not None:
            return RESUMABLE
        if not os.path.exists(self.control) and _size(self.path) == self.entry.size_bytes:
            return UNPROVEN
        return EMPTY

    def resumed_bytes(self):
        """Bytes that need not be fetched again."""
        state = self.state()
        if state == RESUMABLE:
            return self._control().completed_bytes
        return self.entry.size_bytes if state == UNPROVEN else 0

    def _control(self):
        """The control file, where it is sound and belongs to this file."""
        control = read_control_file(self.control)
        if control is None or control.total_bytes != self.entry.size_bytes or not os.path.exists(self.path):
            return None
        return control

    def prepare(self):
        """Makes the folder, and deletes what must not be resumed."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        if self.state() == EMPTY:
            self.delete()

    def delete(self):
        for path in (self.path, self.control, self.control + "__temp"):
            remove_file(path)


def sweep_incoming(folder, wanted):
    """Deletes partial files that none of the PartFiles in `wanted` owns (another revision's), and empty folders."""
    owned = {path for part in wanted for path in (part.path, part.control)}
    for root, _folders, files in os.walk(folder.incoming, topdown=False):
        for file in files:
            path = os.path.join(root, file)
            if path not in owned:
                remove_file(path)
        if not os.listdir(root):
            os.rmdir(root)


def remove_file(path):
    """Deletes a file that may not be there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _size(path):
    try:
        return os.stat(path).st_size
    except OSError:
        return -1
