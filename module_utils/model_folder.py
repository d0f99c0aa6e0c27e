"""Where things lie in a model folder, and which file names a hub may put there.

<dest>/…                          the repository's files
<dest>/.ddtree/manifest.json      what the folder should hold (hub_manifest_file.py)
<dest>/.ddtree/receipt.json       what was verified, and when (receipt_file.py)
<dest>/.ddtree/lock               held by the one run that writes here (folder_lock.py)
<dest>/.ddtree/progress.json      a running fetch, rewritten every second
<dest>/.ddtree/incoming/          partial files, each with aria2's control file; same filesystem as their final names
<dest>/.ddtree/quarantine/        files with a wrong content, until their replacement is in place
"""

from __future__ import annotations

import os

from ansible.module_utils.provision_error import ProvisionError

STATE_FOLDER = ".ddtree"
# Linux allows 255 bytes a name; the partial file and aria2's temporary control file append up to 40.
NAME_LIMIT_BYTES = 215
MODE_FILE = 0o644
MODE_FOLDER = 0o755


class ModelFolder:
    """The paths of one model folder."""

    def __init__(self, dest):
        self.dest = os.path.abspath(dest)
        self.state = os.path.join(self.dest, STATE_FOLDER)
        self.manifest = os.path.join(self.state, "manifest.json")
        self.receipt = os.path.join(self.state, "receipt.json")
        self.lock = os.path.join(self.state, "lock")
        self.progress = os.path.join(self.state, "progress.json")
        self.incoming = os.path.join(self.state, "incoming")
        self.quarantine = os.path.join(self.state, "quarantine")

    def create(self):
        """Makes the folder and its state folder."""
        try:
            make_folder(self.state)
        except OSError as error:
            raise ProvisionError(
                f"model folder {self.dest}: cannot be made ({error.strerror}); "
                "choose another dest or give the user that runs the play the right to write there"
            ) from error

    def final_path(self, name):
        """Where the repository's file `name` lies. Refuses a folder that is a link to somewhere outside `dest`."""
        path = os.path.join(self.dest, name)
        parent = os.path.realpath(os.path.dirname(path))
        root = os.path.realpath(self.dest)
        if parent != root and not parent.startswith(root + os.sep):
            raise ProvisionError(
                f"file {name}: its folder is a link to {parent}, outside the model folder {self.dest}; remove the link"
            )
        return path

    def extra_files(self, names):
        """Files in the folder that are not among `names`, sorted; the state folder does not count."""
        found = []
        for root, folders, files in os.walk(self.dest):
            if root == self.dest and STATE_FOLDER in folders:
                folders.remove(STATE_FOLDER)
            found += [os.path.relpath(os.path.join(root, file), self.dest) for file in files]
        return sorted(set(found) - set(names))


def make_folder(path):
    """Makes a folder and those missing above it, mode 0755 whatever the umask: a service's user reads there."""
    if os.path.isdir(path):
        return
    make_folder(os.path.dirname(path))
    os.mkdir(path)
    os.chmod(path, MODE_FOLDER)


def name_problem(name):
    """Why the file name `name` may not be used inside a model folder, or None where it may."""
    if not isinstance(name, str) or not name:
        return "is empty"
    if any(ord(character) < 32 or ord(character) == 127 for character in name):
        return "holds a control character"
    if "\\" in name:
        return "holds a backslash"
    parts = name.split("/")
    if name.startswith("/"):
        return "is absolute"
    if ".." in parts or "." in parts or "" in parts:
        return "holds an empty, '.' or '..' part"
    if parts[0].lower() == STATE_FOLDER:
        return f"lies in {STATE_FOLDER}/, which holds the state of this folder"
    try:
        longest = max(len(part.encode()) for part in parts)
    except UnicodeEncodeError:
        return "is not valid Unicode"
    if longest > NAME_LIMIT_BYTES:
        return f"has a part of {longest} bytes (at most {NAME_LIMIT_BYTES})"
    return None


def names_problem(names):
    """Why these names cannot lie in one folder together (one twice, one a folder of another), or None."""
    seen = set()
    for name in names:
        if name in seen:
            return f"{name!r} is listed twice"
        seen.add(name)
    for name in names:
        parts = name.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            if folder in seen:
                return f"{folder!r} is a file and also the folder of {name!r}"
    return None
