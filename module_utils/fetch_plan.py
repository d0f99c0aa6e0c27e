"""Compares a model folder with its manifest: what is there and right, what is wrong, what is missing.

A file with a valid receipt costs one stat. One without is hashed, several at a time.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ansible.module_utils.byte_count import readable_bytes
from ansible.module_utils.file_hash import hash_file
from ansible.module_utils.free_space import allocated_bytes
from ansible.module_utils.part_file import RESUMABLE, UNPROVEN, PartFile


@dataclass
class FetchPlan:
    """`right` and `fetch` are manifest entries; `wrong` says for some of `fetch` what lies under their name now."""

    right: list = field(default_factory=list)
    fetch: list = field(default_factory=list)
    wrong: dict = field(default_factory=dict)
    # Wrong only because the manifest moved on: the file is still exactly what an earlier commit had there.
    superseded: set = field(default_factory=set)

    @property
    def fetch_bytes(self):
        return sum(entry.size_bytes for entry in self.fetch)

    def needed_bytes(self, folder):
        """Disk space the fetch will still take: partial files keep what they have, superseded ones give theirs back."""
        needed = 0
        for entry in self.fetch:
            part = PartFile(folder, entry)
            kept = allocated_bytes(part.path) if part.state() in (RESUMABLE, UNPROVEN) else 0
            needed += max(entry.size_bytes - kept, 0)
        freed = sum(allocated_bytes(folder.final_path(name)) for name in self.superseded)
        return max(needed - freed, 0)

    def diff(self):
        """Ansible's before and after: one line a file that would be replaced or fetched."""
        fetched = [f"{e.path} {e.size_bytes} {e.hash_kind}:{e.hash}\n" for e in self.fetch]
        present = [f"{e.path} {self.wrong[e.path]}\n" for e in self.fetch if e.path in self.wrong]
        return {"before": "".join(present), "after": "".join(fetched)}


def make_plan(folder, manifest, receipt, on_hash=None):
    """Looks at every file of the manifest. Records what it proves by hashing in `receipt` (the caller saves it).

    `on_hash(entry, n)` is called with the bytes hashed so far, from several threads.
    """
    plan = FetchPlan()
    unproven = []
    for entry in manifest.files:
        path = folder.final_path(entry.path)
        recorded = receipt.recorded_hash(path, entry.path)
        if recorded == entry.hash:
            plan.right.append(entry)
        elif recorded:
            plan.superseded.add(entry.path)
            plan.wrong[entry.path] = f"is an earlier version ({recorded[:12]}… instead of {entry.hash[:12]}…)"
        elif problem := _wrong_at_a_glance(path, entry):
            plan.wrong[entry.path] = problem
        elif os.path.exists(path):
            unproven.append(entry)
    with ThreadPoolExecutor(max_workers=hash_threads()) as pool:
        proofs = pool.map(lambda entry: _prove(folder, entry, on_hash), unproven)
        for entry, (status, found) in zip(unproven, proofs, strict=True):
            if found == entry.hash:
                receipt.record(entry.path, status, found)
                plan.right.append(entry)
            else:
                plan.wrong[entry.path] = f"has {entry.hash_kind} {found} instead of {entry.hash}"
    settled = {entry.path for entry in plan.right}
    plan.right.sort(key=lambda entry: entry.path)
    plan.fetch = [entry for entry in manifest.files if entry.path not in settled]
    return plan


def hash_threads():
    """hashlib uses one core a thread; the disk is rarely faster than sixteen of them."""
    return max(1, min(16, len(os.sched_getaffinity(0))))


def _wrong_at_a_glance(path, entry):
    if not os.path.lexists(path):
        return None
    if os.path.isdir(path):
        return "is a folder"
    if not os.path.exists(path):
        return "is a dangling link"
    size_bytes = os.stat(path).st_size
    if size_bytes == entry.size_bytes:
        return None
    short = entry.size_bytes - size_bytes
    how = f"{readable_bytes(abs(short))} too {'short' if short > 0 else 'long'}"
    return f"has {size_bytes:,} bytes instead of {entry.size_bytes:,} ({how})"


def _prove(folder, entry, on_hash):
    path = folder.final_path(entry.path)
    before = os.stat(path)
    found = hash_file(path, entry.hash_kind, on_bytes=(lambda n: on_hash(entry, n)) if on_hash else None)
    return before, found
