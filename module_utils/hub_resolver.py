"""Finds out where the bytes of a file are, without a token in the answer.

The hub is asked `HEAD /<repo>/resolve/<commit>/<path>` with the token. It redirects to a signed address on another
host, or serves the file itself. A signed address goes to aria2 as it is. One that the hub serves itself goes to aria2
where it also answers without the token; where it does not, aria2 must not have it (aria2 repeats an Authorization
header to every host that it is redirected to), and the file is read by our own client (direct_download.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from ansible.module_utils.file_hash import HEX_DIGITS
from ansible.module_utils.hub_endpoint import file_url, origin
from ansible.module_utils.hub_explain import explain_refusal
from ansible.module_utils.hub_wait import RETRY_STATUS, WaitBudget
from ansible.module_utils.provision_error import ProvisionError

REDIRECTS = frozenset({301, 302, 303, 307, 308})
SAME_HOST_HOPS = 5
TRIES = 6


class ResolveCancelled(Exception):
    """The run is ending; nobody waits for this address any more."""


@dataclass(frozen=True)
class Resolved:
    """`uris` are token-free addresses for aria2; where there are none, `direct` is one that needs the token."""

    uris: tuple
    direct: str | None = None


class HubResolver:
    """Resolves files of one repository at one commit, from one or several endpoints that have it."""

    def __init__(self, session, endpoints, repo_id, commit, rate_limit_wait_s, cancelled):
        self._session = session
        self._endpoints = tuple(endpoints)
        self._repo_id = repo_id
        self._commit = commit
        self._rate_limit_wait_s = rate_limit_wait_s
        self._cancelled = cancelled
        self._unreachable = set()
        self.warnings = []

    def resolve(self, entry, rotate=0):
        """A Resolved for a manifest entry.

        Every endpoint that has the file adds an address; the first that is asked must not be refused for good unless
        another one has it. After wrong bytes `rotate` counts up: then one endpoint at a time is used, each in turn.
        """
        endpoints = self._endpoints
        if rotate:
            endpoints = (endpoints[rotate % len(endpoints)],)
        # One that could not be reached is not waited for again while another one answers.
        endpoints = tuple(e for e in endpoints if e not in self._unreachable) or endpoints
        uris, direct, failures = [], None, []
        for endpoint in endpoints:
            try:
                url, needs_token = self._resolve_at(endpoint, entry)
            except ProvisionError as error:
                failures.append(error)
                continue
            if needs_token:
                direct = direct or url
            else:
                uris.append(url)
        if not uris and direct is None:
            raise failures[0]
        for failure in failures:
            if str(failure) not in self.warnings:
                self.warnings.append(str(failure))
        return Resolved(tuple(uris), direct if not uris else None)

    def _resolve_at(self, endpoint, entry):
        """(address, whether it needs the token) for one endpoint."""
        url = file_url(endpoint, self._repo_id, self._commit, entry.path)
        facts = {}
        for _ in range(SAME_HOST_HOPS):
            answer = self._head(endpoint, entry, url)
            facts = {**_facts(answer), **facts}
            if answer.status_code not in REDIRECTS:
                break
            target = urljoin(url, answer.headers.get("location", ""))
            if urlsplit(target).scheme not in ("http", "https"):
                raise ProvisionError(f"file {entry.path}: {endpoint} redirects to {target!r}; only http(s) is followed")
            if origin(target) != origin(url):
                self._compare(endpoint, entry, facts)
                return target, False
            url = target
        else:
            raise ProvisionError(f"file {entry.path}: {endpoint} redirects in a circle; use another mirror")
        self._compare(endpoint, entry, facts)
        if not self._session.has_token_for(url):
            return url, False
        return url, not self._open_to_all(url)

    def _open_to_all(self, url):
        try:
            return self._session.request("HEAD", url, with_token=False).status_code == 200
        except self._session.failures:
            return False

    def _head(self, endpoint, entry, url):
        """The answer to HEAD: 200 or a redirect. Waits out rate limits and passing faults within bounds."""
        budget = WaitBudget(self._rate_limit_wait_s, TRIES)
        while True:
            try:
                answer = self._session.request("HEAD", url)
            except self._session.failures as error:
                pause_s = budget.next_wait_s()
                if pause_s is None:
                    self._unreachable.add(endpoint)
                    raise ProvisionError(
                        f"file {entry.path}: {endpoint} cannot be reached ({type(error).__name__}: {error}); check the "
                        "network and proxy of this machine, or name a mirror in sources"
                    ) from error
            else:
                if answer.status_code == 200 or answer.status_code in REDIRECTS:
                    return answer
                pause_s = budget.next_wait_s(answer.headers) if answer.status_code in RETRY_STATUS else None
                if pause_s is None:
                    subject = f"file {entry.path} of {self._repo_id} at {self._commit[:12]}"
                    token_given = self._session.has_token_for(url)
                    raise ProvisionError(
                        explain_refusal(subject, endpoint, answer.status_code, answer.headers, token_given)
                    )
            if self._cancelled.wait(pause_s):
                raise ResolveCancelled(entry.path)

    def _compare(self, endpoint, entry, facts):
        """Refuses an endpoint that would serve something else than the manifest names."""
        commit = facts.get("commit")
        if commit and commit != self._commit:
            raise ProvisionError(
                f"file {entry.path}: {endpoint} serves commit {commit} where the manifest pins {self._commit}; "
                "rerun hub_manifest with refresh=true, or use an endpoint that keeps old commits"
            )
        for key, expected, what in (("size", entry.size_bytes, "bytes"), (entry.hash_kind, entry.hash, "")):
            if key in facts and facts[key] != expected:
                raise ProvisionError(
                    f"file {entry.path}: {endpoint} states {key} {facts[key]} {what}".rstrip()
                    + f", the manifest {expected}; rerun hub_manifest with refresh=true, or use another mirror"
                )


def _facts(answer):
    """What an answer says about the file: commit, size, and the hash under the name of its kind."""
    headers = answer.headers
    facts = {}
    if headers.get("x-repo-commit"):
        facts["commit"] = headers["x-repo-commit"]
    # A redirect's own length and tag are those of its empty page; only the linked ones speak of the file.
    final = answer.status_code == 200
    length = headers.get("x-linked-size")
    if length is None and final and "content-encoding" not in headers:
        length = headers.get("content-length")
    if length is not None and length.isdigit():
        facts["size"] = int(length)
    etag = headers.get("x-linked-etag") or (headers.get("etag") if final else None) or ""
    etag = etag.removeprefix("W/").strip('"').lower()
    for kind, digits in HEX_DIGITS.items():
        # An ETag of another form (a web server's own) says nothing; the content's hash decides in the end.
        if len(etag) == digits and all(character in "0123456789abcdef" for character in etag):
            facts[kind] = etag
    return facts
