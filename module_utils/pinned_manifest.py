"""Keeps the manifest of a model folder: re-uses a pinned one, or asks the hub and writes what it says."""

from __future__ import annotations

from ansible.module_utils.durable_json import write_json
from ansible.module_utils.folder_lock import folder_lock
from ansible.module_utils.hub_client import read_repository
from ansible.module_utils.hub_endpoint import checked_endpoint
from ansible.module_utils.hub_manifest_file import COMMIT, load_manifest
from ansible.module_utils.model_folder import ModelFolder


def keep_manifest(params, check_mode):
    """The result of the module hub_manifest for its parameters; writes nothing in check mode."""
    folder = ModelFolder(params["dest"])
    endpoint = checked_endpoint(params["endpoint"])
    allow, deny = tuple(params["allow_patterns"] or ()), tuple(params["deny_patterns"] or ())
    existing = load_manifest(folder.manifest)

    reusable = existing is not None and _answers(existing, params["repo_id"], params["revision"], allow, deny)
    if reusable and not params["refresh"]:
        manifest = existing
    else:
        manifest = read_repository(
            params["repo_id"],
            params["revision"],
            endpoint,
            token=params["token"],
            allow=allow,
            deny=deny,
            timeout_s=params["timeout_s"],
            rate_limit_wait_s=params["rate_limit_wait_s"],
        )
    changed = existing is None or manifest.to_dict() != existing.to_dict()
    if changed and not check_mode:
        folder.create()
        with folder_lock(folder):
            write_json(folder.manifest, manifest.to_dict())
    return {
        "changed": changed,
        "manifest_path": folder.manifest,
        "manifest": manifest.to_dict(),
        "commit": manifest.commit,
        "previous_commit": existing.commit if existing else None,
        "digest": manifest.digest,
        "total_bytes": manifest.total_bytes,
        "file_count": len(manifest.files),
        "diff": _diff(folder.manifest, existing, manifest),
    }


def _answers(existing, repo_id, revision, allow, deny):
    """Whether a manifest on disk already says what was asked for, so that the hub need not be asked."""
    if (existing.repo_id, existing.allow_patterns, existing.deny_patterns) != (repo_id, allow, deny):
        return False
    if COMMIT.fullmatch(revision):
        return existing.commit == revision
    return existing.revision == revision


def _diff(path, before, after):
    return {
        "before_header": path,
        "after_header": path,
        "before": _text(before) if before else "",
        "after": _text(after),
    }


def _text(manifest):
    lines = [f"{manifest.repo_id} revision {manifest.revision} commit {manifest.commit}"]
    lines += [f"{entry.path} {entry.size_bytes} {entry.hash_kind}:{entry.hash}" for entry in manifest.files]
    return "\n".join(lines) + "\n"
