"""Brings a model folder to the state that its manifest names; what the module aria2_fetch does."""

from __future__ import annotations

import threading
import time

from ansible.module_utils.aria2_daemon import Aria2Daemon
from ansible.module_utils.aria2_download import daemon_options
from ansible.module_utils.fetch_plan import make_plan
from ansible.module_utils.fetch_progress import MIB, ProgressFile, progress_row
from ansible.module_utils.fetch_run import FetchRun
from ansible.module_utils.file_install import remove_quarantine
from ansible.module_utils.folder_lock import folder_lock
from ansible.module_utils.free_space import require_free_space
from ansible.module_utils.hub_endpoint import checked_endpoint
from ansible.module_utils.hub_manifest_file import load_manifest, parse_manifest
from ansible.module_utils.hub_resolver import HubResolver
from ansible.module_utils.hub_session import HubSession
from ansible.module_utils.model_folder import ModelFolder
from ansible.module_utils.part_file import PartFile, sweep_incoming
from ansible.module_utils.provision_error import ProvisionError
from ansible.module_utils.receipt_file import load_receipt

EXTRA_NAMES_SHOWN = 10


def fetch_weights(params, check_mode):
    """The result of the module aria2_fetch for its parameters; writes nothing in check mode."""
    folder = ModelFolder(params["dest"])
    if check_mode:
        return _planned(folder, params)
    manifest = load_manifest(folder.manifest)
    if manifest is None:
        raise ProvisionError(f"manifest {folder.manifest}: is not there; run hub_manifest for {folder.dest} first")
    with folder_lock(folder) as lock, ProgressFile(folder.progress) as progress:
        return _fetched(folder, manifest, params, lock, progress)


def _planned(folder, params):
    """Check mode: what would be fetched. On a bare node hub_manifest wrote no file, so its result is passed in."""
    if params["manifest"]:
        manifest = parse_manifest(params["manifest"], "option manifest")
    else:
        manifest = load_manifest(folder.manifest)
    if manifest is None:
        return {"changed": True, "msg": f"manifest {folder.manifest} is not there yet: what to fetch is not known"}
    plan = make_plan(folder, manifest, load_receipt(folder.receipt))
    if plan.fetch:
        require_free_space(folder.dest, plan.needed_bytes(folder), params["reserve_bytes"])
    download_bytes = plan.fetch_bytes - sum(PartFile(folder, entry).resumed_bytes() for entry in plan.fetch)
    return _result(folder, manifest, plan, plan.fetch, download_bytes)


def _fetched(folder, manifest, params, lock, progress):
    receipt = load_receipt(folder.receipt)
    plan = make_plan(folder, manifest, receipt, _CheckProgress(manifest, progress).on_hash)
    receipt.save(manifest, complete=not plan.fetch)
    sweep_incoming(folder, [PartFile(folder, entry) for entry in plan.fetch])
    if not plan.fetch:
        return _result(folder, manifest, plan, [])

    require_free_space(folder.dest, plan.needed_bytes(folder), params["reserve_bytes"])
    settings = {**params, "sources": [checked_endpoint(s) for s in params["sources"] or [manifest.endpoint]]}
    cancelled = threading.Event()
    session = HubSession(params["token"], manifest.endpoint, params["timeout_s"])
    resolver = HubResolver(
        session, settings["sources"], manifest.repo_id, manifest.commit, params["rate_limit_wait_s"], cancelled
    )
    started = time.monotonic()
    with Aria2Daemon(daemon_options(settings), params["aria2c"], inherit=[lock]) as daemon:
        run = FetchRun(folder, manifest, plan, receipt, resolver, session, daemon, progress, settings, cancelled)
        try:
            run.run()
        except ProvisionError as error:
            receipt.save(manifest, complete=False)
            error.details.update(_result(folder, manifest, plan, run.finished(), run.received_bytes()))
            raise
        seconds = time.monotonic() - started
    receipt.save(manifest, complete=True)
    sweep_incoming(folder, [])
    remove_quarantine(folder)
    return _result(folder, manifest, plan, plan.fetch, run.received_bytes(), seconds, resolver.warnings)


def _result(folder, manifest, plan, fetched, downloaded_bytes=0, seconds=0.0, warnings=()):
    """Keys of the module's result; `fetched` are the manifest entries that are (or would be) new in the folder."""
    extra = folder.extra_files(manifest.by_path)
    warnings = list(warnings)
    if extra:
        shown = ", ".join(extra[:EXTRA_NAMES_SHOWN]) + (", …" if len(extra) > EXTRA_NAMES_SHOWN else "")
        warnings.append(f"{folder.dest}: {len(extra)} files are not in the manifest and were left alone: {shown}")
    return {
        "changed": bool(fetched),
        "commit": manifest.commit,
        "digest": manifest.digest,
        "fetched_files": sorted(entry.path for entry in fetched),
        "fetched_bytes": sum(entry.size_bytes for entry in fetched),
        "downloaded_bytes": downloaded_bytes,
        "seconds": round(seconds, 3),
        "mib_per_s": round(downloaded_bytes / MIB / seconds, 1) if seconds else 0.0,
        "skipped_files": len(plan.right),
        "replaced": {entry.path: plan.wrong[entry.path] for entry in fetched if entry.path in plan.wrong},
        "extra_files": extra,
        "diff": plan.diff(),
        "warnings": warnings,
    }


class _CheckProgress:
    """Feeds the progress file while files that have no receipt are hashed."""

    def __init__(self, manifest, progress):
        self._manifest = manifest
        self._progress = progress
        self._hashed = {}
        self._started = time.monotonic()

    def on_hash(self, entry, count):
        self._hashed[entry.path] = self._hashed.get(entry.path, 0) + count
        self._progress.tick(self._describe)

    def _describe(self):
        elapsed_s = time.monotonic() - self._started
        rows = []
        for name, done_bytes in list(self._hashed.items()):
            size_bytes = self._manifest.by_path[name].size_bytes
            if done_bytes < size_bytes:
                rate = done_bytes / MIB / elapsed_s
                rows.append({"path": name, "state": "verifying", **progress_row(size_bytes, done_bytes, rate)})
        done_bytes = sum(self._hashed.values())
        finished = len(self._hashed) - len(rows)
        return "check", len(self._manifest.files), finished, self._manifest.total_bytes, done_bytes, rows
