"""Brings a partial file to its final name, once its bytes are proven; moves wrong files out of the way before that."""

from __future__ import annotations

import os

from ansible.module_utils.durable_json import sync_folder
from ansible.module_utils.file_hash import hash_file
from ansible.module_utils.model_folder import MODE_FILE, make_folder
from ansible.module_utils.part_file import remove_file
from ansible.module_utils.provision_error import ProvisionError


def content_problem(part, on_bytes, cancelled):
    """None where the partial file is byte for byte what the manifest names; else what it is instead."""
    entry = part.entry
    size_bytes = os.stat(part.path).st_size
    if size_bytes != entry.size_bytes:
        return f"{size_bytes:,} bytes instead of {entry.size_bytes:,}"
    found = hash_file(part.path, entry.hash_kind, on_bytes, cancelled)
    return None if found == entry.hash else f"{entry.hash_kind} {found} instead of {entry.hash}"


def install(folder, part):
    """Flushes the proven partial file, renames it to its final name, and returns that file's os.stat result."""
    final = folder.final_path(part.entry.path)
    descriptor = os.open(part.path, os.O_RDONLY)
    try:
        os.fchmod(descriptor, MODE_FILE)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    make_folder(os.path.dirname(final))
    os.replace(part.path, final)
    sync_folder(os.path.dirname(final))
    part.delete()
    remove_file(_quarantined(folder, part.entry.path))
    return os.stat(final)


def set_aside(folder, name, superseded):
    """Takes the wrong file `name` away from its final name, so that it is not found there while the right one comes.

    An earlier version (`superseded`) is deleted: a hub has it, and the disk may need its space. Anything else is kept
    in the quarantine folder until its replacement is in place.
    """
    path = folder.final_path(name)
    if os.path.isdir(path) and not os.path.islink(path):
        raise ProvisionError(f"file {name}: {path} is a folder; move it away and rerun")
    if superseded:
        remove_file(path)
        return
    target = _quarantined(folder, name)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.replace(path, target)


def remove_quarantine(folder):
    """Deletes the folders of the quarantine that have become empty."""
    for root, _folders, _files in os.walk(folder.quarantine, topdown=False):
        if not os.listdir(root):
            os.rmdir(root)


def _quarantined(folder, name):
    return os.path.join(folder.quarantine, name)
