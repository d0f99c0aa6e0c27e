"""Verifies a model folder: the manifest's sizes and hashes, every safetensors header, every index. Changes nothing.

All findings are reported together, one line a file: what is wrong, the values, and what to do.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

from ansible.module_utils.byte_count import readable_bytes
from ansible.module_utils.fetch_plan import hash_threads
from ansible.module_utils.file_hash import hash_file
from ansible.module_utils.hub_manifest_file import load_manifest
from ansible.module_utils.model_folder import ModelFolder
from ansible.module_utils.provision_error import ProvisionError
from ansible.module_utils.receipt_file import load_receipt
from ansible.module_utils.safetensors_header import InvalidSafetensors, read_header
from ansible.module_utils.safetensors_index import check_index, read_weight_map

WEIGHTS = ".safetensors"
INDEX = ".safetensors.index.json"
CONTROL = ".aria2"
FETCH_AGAIN = "rerun the play to fetch it again"


def verify_weights(params, check_mode):
    """The result of the module safetensors_verify for its parameters; ProvisionError lists everything that is wrong."""
    folder = ModelFolder(params["dest"])
    if not os.path.isdir(folder.dest):
        if check_mode:
            return {"changed": False, "msg": f"{folder.dest} is not there yet: nothing to verify"}
        raise ProvisionError(f"model folder {folder.dest}: is not there; run hub_manifest and aria2_fetch first")
    manifest_path = params["manifest_path"] or folder.manifest
    manifest = load_manifest(manifest_path)
    if manifest is None and params["manifest_path"]:
        raise ProvisionError(f"manifest {manifest_path}: is not there; run hub_manifest, or leave manifest_path out")
    return _Verification(folder, manifest, params["hash"]).run()


class _Verification:
    """One pass. `findings` maps a file's path in the folder to lines that say what is wrong with it."""

    def __init__(self, folder, manifest, hash_mode):
        self._folder = folder
        self._manifest = manifest
        self._hash_mode = hash_mode
        self.findings = {}
        self.warnings = []
        self.hashed_bytes = 0

    def run(self):
        started = time.monotonic()
        present = self._folder.extra_files(())
        if self._manifest is not None:
            self._check_sizes()
            self._check_hashes()
        weights = [name for name in present if name.endswith(WEIGHTS)]
        indices = [name for name in present if name.endswith(INDEX)]
        headers = self._check_headers(weights)
        for name in indices:
            self._check_index(name, headers)
        for name in present:
            if name.endswith(CONTROL):
                self._find(name, "is aria2's control file: a download beside it is not complete", "rerun the play")
        if not weights:
            self._find("*" + WEIGHTS, "no such file in the folder", "check dest and the patterns of hub_manifest")
        if self.findings:
            self._fail()
        return {
            "changed": False,
            "files": len(self._manifest.files) if self._manifest else len(present),
            "safetensors_files": len(weights),
            "tensors": sum(map(len, headers.values())),
            "tensor_bytes": sum(tensor.size_bytes for header in headers.values() for tensor in header.values()),
            "hashed_bytes": self.hashed_bytes,
            "digest": self._manifest.digest if self._manifest else None,
            "seconds": round(time.monotonic() - started, 3),
            "warnings": self.warnings,
        }

    def _find(self, name, problem, next_step):
        self.findings.setdefault(name, []).append(f"{name}: {problem}; {next_step}")

    def _fail(self):
        lines = [line for name in sorted(self.findings) for line in self.findings[name]]
        raise ProvisionError(
            f"{self._folder.dest}: {len(lines)} {'finding' if len(lines) == 1 else 'findings'}\n" + "\n".join(lines),
            findings=lines,
            broken_files=sorted(self.findings),
            warnings=self.warnings,
        )

    def _check_sizes(self):
        for entry in self._manifest.files:
            path = self._folder.final_path(entry.path)
            if not os.path.isfile(path):
                self._find(entry.path, "is named by the manifest and is not there", "rerun the play to fetch it")
                continue
            size_bytes = os.stat(path).st_size
            difference = size_bytes - entry.size_bytes
            if difference:
                how = f"{readable_bytes(abs(difference))} {'too long' if difference > 0 else 'short'}"
                problem = f"needs {entry.size_bytes:,} bytes, file has {size_bytes:,} ({how})"
                self._find(entry.path, problem, FETCH_AGAIN)

    def _check_hashes(self):
        receipt = load_receipt(self._folder.receipt)
        doubtful = []
        for entry in self._manifest.files:
            path = self._folder.final_path(entry.path)
            received = receipt.recorded_hash(path, entry.path) == entry.hash
            if entry.path not in self.findings and not (received and self._hash_mode == "receipt"):
                doubtful.append((entry, path, received))
        with ThreadPoolExecutor(hash_threads()) as pool:
            hashes = pool.map(lambda item: hash_file(item[1], item[0].hash_kind), doubtful)
            for (entry, _path, received), found in zip(doubtful, hashes, strict=True):
                self.hashed_bytes += entry.size_bytes
                if found != entry.hash:
                    # Content that has changed under an unchanged size, time and inode: aria2_fetch would trust it.
                    step = f"delete it and {FETCH_AGAIN}" if received else FETCH_AGAIN
                    self._find(entry.path, f"has {entry.hash_kind} {found}, the manifest names {entry.hash}", step)

    def _check_headers(self, weights):
        """{path: header} of all weights; None where one is already known, or now found, to be broken or missing."""
        headers = dict.fromkeys(self.findings)
        for name in weights:
            headers[name] = None
            if name in self.findings:
                continue
            try:
                headers[name] = read_header(os.path.join(self._folder.dest, name))
            except InvalidSafetensors as problem:
                self._find(name, str(problem), self._next_step(name))
        return headers

    def _check_index(self, name, headers):
        if name in self.findings:
            return
        try:
            weight_map, total_size = read_weight_map(os.path.join(self._folder.dest, name))
        except InvalidSafetensors as problem:
            self._find(name, str(problem), self._next_step(name))
            return
        check = check_index(name, weight_map, total_size, headers)
        self.warnings += check.warnings
        for subject, problem in check.problems:
            self._find(subject, problem, self._next_step(subject))

    def _next_step(self, name):
        """What to do about a file that is not what its own header or index says."""
        if self._manifest is None:
            return FETCH_AGAIN
        if name not in self._manifest.by_path:
            return "the manifest does not name this file: move it away"
        # Its hash is right, so fetching it again would bring the same.
        return "the repository has it so: check allow_patterns and deny_patterns, or pin another revision"
