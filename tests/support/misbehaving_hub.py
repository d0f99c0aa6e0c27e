"""A model hub on loopback that behaves like a real one, until a switch tells it not to.

Two servers, so that they are two hosts to a client: the hub (API and resolve addresses) and the CDN (signed addresses
of LFS files). Both record every request with its headers: a token at the CDN is a leak, and a test can see it.
"""

import contextlib
import hashlib
import json
import re
import socket
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_example_token_0123456789"
LFS_FROM_BYTES = 1024
CHUNK_BYTES = 64 * 1024


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def git_sha1(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Faults:
    """Everything that can be wrong. Counters are used up by the requests they spoil."""

    needs_token: bool = False
    gated: bool = False
    serves_itself: bool = False  # no redirect: the hub sends LFS bytes too
    without_sizes: bool = False  # the model's API answer leaves sizes and hashes out
    rate_limited: int = 0  # HEAD requests that get 429
    rate_limit_headers: dict = field(default_factory=lambda: {"RateLimit": '"resolvers";r=0;t=1'})
    cdn_rate_limited: int = 0
    server_errors: int = 0
    cdn_server_errors: int = 0
    uses_per_url: int | None = None  # a signed address answers this often, then 403
    dropped_bodies: int = 0  # CDN answers that end halfway, under the full Content-Length
    no_ranges: bool = False
    bytes_per_s: int | None = None  # per connection
    replaced: dict = field(default_factory=dict)  # path -> bytes served in its place
    linked_size: dict = field(default_factory=dict)  # path -> X-Linked-Size
    linked_etag: dict = field(default_factory=dict)
    redirects: dict = field(default_factory=dict)  # path -> Location in place of the answer
    served_commit: str | None = None  # X-Repo-Commit


@dataclass(frozen=True)
class Seen:
    """One request."""

    server: str
    method: str
    path: str
    headers: dict


class Hub:
    """`repos[repo_id]["commits"][commit][path]` are the files, `["branches"][name]` a commit."""

    def __init__(self):
        self.repos = {}
        self.faults = Faults()
        self.requests = []
        self.sent_bytes = 0
        self._signed = {}
        self._lock = threading.Lock()
        self._hub = self._serve("hub")
        self._cdn = self._serve("cdn")
        self.endpoint = f"http://127.0.0.1:{self._hub.server_port}"
        self.cdn = f"http://127.0.0.1:{self._cdn.server_port}"

    def add(self, repo_id, files, branch="main"):
        """Commits `files` (path -> bytes) on a branch; returns the commit."""
        repo = self.repos.setdefault(repo_id, {"commits": {}, "branches": {}})
        described = sorted((path, sha256(content)) for path, content in files.items())
        commit = hashlib.sha1(repr((branch, described)).encode()).hexdigest()
        repo["commits"][commit] = dict(files)
        repo["branches"][branch] = commit
        return commit

    def seen(self, server=None, method=None):
        return [r for r in self.requests if server in (None, r.server) and method in (None, r.method)]

    def forget(self):
        """Starts the record anew."""
        with self._lock:
            self.requests.clear()
            self.sent_bytes = 0

    def take(self, name):
        """Uses up one of a fault's counter; False when none is left."""
        with self._lock:
            left = getattr(self.faults, name)
            setattr(self.faults, name, max(left - 1, 0))
            return left > 0

    def sign(self, repo_id, commit, path):
        with self._lock:
            key = f"{len(self._signed):08d}"
            self._signed[key] = [repo_id, commit, path, self.faults.uses_per_url]
        return f"{self.cdn}/blob/{key}?signature={key}"

    def redeem(self, key):
        """The file a signature stands for, or None once it has expired."""
        with self._lock:
            entry = self._signed[key]
            if entry[3] is not None:
                if entry[3] <= 0:
                    return None
                entry[3] -= 1
            return self.repos[entry[0]]["commits"][entry[1]][entry[2]], entry[2]

    def note(self, server, handler):
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self._lock:
            self.requests.append(Seen(server, handler.command, handler.path, headers))

    def count(self, size):
        with self._lock:
            self.sent_bytes += size

    def close(self):
        """From now on nobody can reach it."""
        for server in (self._hub, self._cdn):
            server.shutdown()
            server.server_close()
            server.hang_up()

    def _serve(self, name):
        handler = type(f"{name.title()}Handler", (_Handler,), {"hub": self, "server_name": name})
        server = _Server(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return server


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.connections = []

    def process_request(self, request, client_address):
        self.connections.append(request)
        super().process_request(request, client_address)

    def hang_up(self):
        """Ends the connections that clients keep open."""
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request, client_address):
        """Clients of these tests are killed and cancel; that is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    hub: Hub
    server_name: str

    def log_message(self, *_arguments):
        pass

    def do_HEAD(self):
        self._route()

    def do_GET(self):
        self._route()

    def _route(self):
        self.hub.note(self.server_name, self)
        url = urlsplit(self.path)
        path = unquote(url.path)
        if self.server_name == "cdn":
            self._blob(parse_qs(url.query).get("signature", [""])[0])
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/(revision|tree)/([^/]+)", path):
            self._api(*match.groups(), "blobs" in url.query)
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._resolve(*match.groups())
        else:
            self._refuse(404, "RepoNotFound", "no such address")

    # --- the hub -----------------------------------------------------------------------------------------------------

    def _commit(self, repo_id, revision):
        """The commit and its files, or None after an answer that says why not."""
        faults = self.hub.faults
        token = self.headers.get("authorization", "").removeprefix("Bearer ")
        if faults.needs_token and token != TOKEN:
            return self._refuse(401, "RepoNotFound", "Repository not found")
        if faults.gated:
            return self._refuse(403, "GatedRepo", f"Access to model {repo_id} is restricted")
        repo = self.hub.repos.get(repo_id)
        if repo is None:
            return self._refuse(404, "RepoNotFound", "Repository not found")
        commit = repo["branches"].get(revision, revision)
        if commit not in repo["commits"]:
            return self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return commit, repo["commits"][commit]

    def _api(self, repo_id, kind, revision, with_blobs):
        if self.hub.take("server_errors"):
            return self._refuse(500, "", "internal")
        if (found := self._commit(repo_id, revision)) is None:
            return None
        commit, files = found
        if kind == "tree":
            rows = [{"type": "file", "path": path, **_tree_facts(content)} for path, content in files.items()]
            return self._json(rows)
        with_blobs = with_blobs and not self.hub.faults.without_sizes
        siblings = [{"rfilename": path, **(_blob_facts(files[path]) if with_blobs else {})} for path in files]
        return self._json({"id": repo_id, "modelId": repo_id, "sha": commit, "siblings": siblings})

    def _resolve(self, repo_id, revision, path):
        faults = self.hub.faults
        if self.command == "HEAD" and self.hub.take("rate_limited"):
            return self._refuse(429, "", "too many requests", faults.rate_limit_headers)
        if self.command == "HEAD" and self.hub.take("server_errors"):
            return self._refuse(500, "", "internal")
        if (found := self._commit(repo_id, revision)) is None:
            return None
        commit, files = found
        if path in faults.redirects:
            return self._answer(307, b"", {"Location": faults.redirects[path]})
        if path not in files:
            return self._refuse(404, "EntryNotFound", f"{path} does not exist")
        content = files[path]
        lfs = len(content) >= LFS_FROM_BYTES
        etag = sha256(content) if lfs else git_sha1(content)
        headers = {
            "X-Repo-Commit": faults.served_commit or commit,
            "X-Linked-Size": str(faults.linked_size.get(path, len(content))),
            "X-Linked-Etag": f'"{faults.linked_etag.get(path, etag)}"',
            "ETag": f'"{etag}"',
        }
        if lfs and not faults.serves_itself:
            headers["Location"] = self.hub.sign(repo_id, commit, path)
            return self._answer(302, b"Found. Redirecting", headers)
        return self._content(faults.replaced.get(path, content), headers)

    # --- the CDN -----------------------------------------------------------------------------------------------------

    def _blob(self, key):
        if self.hub.take("cdn_rate_limited"):
            return self._refuse(429, "", "slow down", {"Retry-After": "1"})
        if self.hub.take("cdn_server_errors"):
            return self._refuse(500, "", "internal")
        redeemed = self.hub.redeem(key)
        if redeemed is None:
            return self._refuse(403, "", "the signature has expired")
        content, path = redeemed
        return self._content(self.hub.faults.replaced.get(path, content), {})

    # --- both --------------------------------------------------------------------------------------------------------

    def _content(self, content, headers):
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range", ""))
        start, end, status = 0, len(content), 200
        headers = dict(headers)
        if not self.hub.faults.no_ranges:
            headers["Accept-Ranges"] = "bytes"
            if wanted:
                start = int(wanted.group(1))
                end = min(int(wanted.group(2)) + 1, end) if wanted.group(2) else end
                status = 206
                headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(end - start)}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            dropped = self.hub.take("dropped_bodies")
            self._send(content, start, start + (end - start) // 2 if dropped else end)
            self.close_connection = self.close_connection or dropped

    def _send(self, content, start, end):
        rate = self.hub.faults.bytes_per_s
        step = CHUNK_BYTES if rate is None else max(rate // 20, 1)
        for position in range(start, end, step):
            piece = content[position : min(position + step, end)]
            self.wfile.write(piece)
            self.hub.count(len(piece))
            if rate is not None:
                time.sleep(len(piece) / rate)

    def _refuse(self, status, code, message, headers=None):
        self._answer(status, message.encode(), {"X-Error-Code": code, "X-Error-Message": message, **(headers or {})})

    def _json(self, value):
        self._answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _answer(self, status, body, headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _blob_facts(content):
    facts = {"size": len(content), "blobId": git_sha1(content)}
    if len(content) >= LFS_FROM_BYTES:
        facts["lfs"] = {"sha256": sha256(content), "size": len(content), "pointerSize": 135}
    return facts


def _tree_facts(content):
    facts = {"size": len(content), "oid": git_sha1(content)}
    if len(content) >= LFS_FROM_BYTES:
        facts["lfs"] = {"oid": sha256(content), "size": len(content), "pointerSize": 135}
    return facts
