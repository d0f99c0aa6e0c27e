"""Asks a hub, through huggingface_hub, which files a repository has at a revision."""

from __future__ import annotations

import time

from ansible.module_utils.hub_explain import explain_refusal
from ansible.module_utils.hub_manifest_file import COMMIT, FileEntry, Manifest
from ansible.module_utils.hub_wait import RETRY_STATUS, WaitBudget
from ansible.module_utils.provision_error import ProvisionError, require_library

TRIES = 5


def read_repository(repo_id, revision, endpoint, token=None, allow=(), deny=(), timeout_s=30, rate_limit_wait_s=900):
    """The Manifest of `repo_id` at `revision` (branch, tag or commit), filtered by the patterns.

    The token goes to `endpoint` alone; without one, no token that happens to lie on the machine is used.
    Raises ProvisionError for everything that the hub, the network or the names can do wrong.
    """
    hub = require_library("huggingface_hub", "to read a repository's file list")
    filter_names = require_library("huggingface_hub.utils", "to filter file names").filter_repo_objects
    api = hub.HfApi(endpoint=endpoint, token=token or False)
    subject = f"repository {repo_id} at revision {revision}"
    question = _Question(subject, endpoint, bool(token), rate_limit_wait_s)

    info = question.ask(lambda: api.model_info(repo_id, revision=revision, files_metadata=True, timeout=timeout_s))
    commit = info.sha or ""
    if not COMMIT.fullmatch(commit):
        raise ProvisionError(f"{subject}: {endpoint} named no commit (sha {commit!r}); check that it is a hub")
    if COMMIT.fullmatch(revision) and commit != revision:
        raise ProvisionError(f"{subject}: {endpoint} answered with commit {commit}; it does not serve pinned commits")

    entries = [_entry(s.rfilename, s.size, s.blob_id, s.lfs) for s in info.siblings or []]
    if None in entries:
        # A mirror may leave sizes and hashes out of this answer; the tree at the same commit states them.
        tree = question.ask(lambda: list(api.list_repo_tree(repo_id, recursive=True, revision=commit)))
        entries = [_entry(f.path, f.size, f.blob_id, f.lfs) for f in tree if hasattr(f, "blob_id")]
        if None in entries:
            raise ProvisionError(f"{subject}: {endpoint} states no size or hash for some files; use another mirror")

    patterns = {"allow_patterns": list(allow) or None, "ignore_patterns": list(deny) or None}
    kept = list(filter_names(entries, **patterns, key=_path))
    if not kept:
        raise ProvisionError(
            f"{subject}: none of its {len(entries)} files passes allow_patterns {list(allow)} and "
            f"deny_patterns {list(deny)}; patterns are shell globs over whole paths, like *.safetensors"
        )
    return Manifest(repo_id, revision, commit, endpoint, tuple(kept), tuple(allow), tuple(deny))


def _path(entry):
    return entry.path


def _entry(path, size_bytes, blob_id, lfs):
    """A FileEntry, or None where size or hash is missing. LFS and Xet files have a sha-256, small ones git's sha-1."""
    if lfs is not None and lfs.get("sha256"):
        return FileEntry(path, int(lfs["size"]), "sha256", lfs["sha256"].lower())
    if size_bytes is None or not blob_id:
        return None
    return FileEntry(path, int(size_bytes), "git-sha1", blob_id.lower())


class _Question:
    """One question to the hub, asked again while the answer is a rate limit or a passing fault."""

    def __init__(self, subject, endpoint, token_given, rate_limit_wait_s):
        self.subject = subject
        self.endpoint = endpoint
        self.token_given = token_given
        self.budget = WaitBudget(rate_limit_wait_s, TRIES)
        self.errors = require_library("huggingface_hub.errors", "to read a repository's file list")

    def ask(self, call):
        while True:
            try:
                return call()
            except self.errors.HfHubHTTPError as error:
                pause_s = None
                if error.response.status_code in RETRY_STATUS:
                    pause_s = self.budget.next_wait_s(error.response.headers)
                if pause_s is None:
                    raise self._refusal(error) from error
                time.sleep(pause_s)
            except self.errors.HFValidationError as error:
                raise ProvisionError(f"{self.subject}: {error}; repo_id is written org/name") from error
            # The HTTP library's own errors share a base class with the hub's (it differs between releases).
            except (self.errors.HfHubHTTPError.__bases__[0], OSError, ValueError, TypeError, KeyError) as error:
                raise ProvisionError(
                    f"{self.subject}: {self.endpoint} cannot be asked ({type(error).__name__}: {error}); check the "
                    "network and proxy of this machine, or set endpoint to a mirror that it can reach"
                ) from error

    def _refusal(self, error):
        return ProvisionError(
            explain_refusal(
                self.subject, self.endpoint, error.response.status_code, error.response.headers, self.token_given
            )
        )
