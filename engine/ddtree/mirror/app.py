"""The hub's addresses: repositories, file lists, files. Read-only; an unknown one is answered as a hub answers it."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ddtree.mirror import descriptions
from ddtree.mirror.byte_range import RangeNotSatisfiable, etag_matches, parse_range, range_still_applies
from ddtree.mirror.catalog import Catalog
from ddtree.mirror.file_body import FileBody, FileChanged, open_exactly
from ddtree.mirror.refusals import EntryNotFound, Refusal, RepoBusy, RepoIncomplete, RepoNotFound, RevisionNotFound
from ddtree.mirror.snapshot import ServedFile, Snapshot

# Clients give up on a silent server after 10 s; before that they are told to come again.
_HASHING_WAIT_S = 8.0
_RETRY_AFTER_S = 5
_BODY_LIMIT_BYTES = 4 * 1024 * 1024
_READING_THREADS = 32


def create_app(catalog: Catalog, prepared: Callable[[], bool]) -> Starlette:
    """`prepared` tells /health whether the first look at all repositories is over."""
    hub = _Hub(catalog, prepared)
    model = "/api/models/{org}/{name}"
    return Starlette(
        routes=[
            Route("/health", hub.health),
            Route("/api/whoami-v2", hub.whoami),
            Route(model, hub.info),
            Route(model + "/revision/{revision:path}", hub.info),
            Route(model + "/tree/{revision}", hub.tree),
            Route(model + "/tree/{revision}/{path:path}", hub.tree),
            Route(model + "/paths-info/{revision:path}", hub.paths_info, methods=["POST"]),
            Route("/{org}/{name}/resolve/{revision}/{path:path}", hub.resolve),
        ],
        exception_handlers={Refusal: _refuse, HTTPException: _refuse_address},
    )


class _Hub:
    def __init__(self, catalog: Catalog, prepared: Callable[[], bool]) -> None:
        self._catalog = catalog
        self._prepared = prepared
        self._reading = ThreadPoolExecutor(_READING_THREADS, thread_name_prefix="mirror-read")

    async def health(self, _: Request) -> Response:
        repo_ids = await asyncio.to_thread(self._catalog.repo_ids)
        if self._prepared():
            return JSONResponse({"status": "ok", "repos": repo_ids})
        return JSONResponse({"status": "hashing", "repos": repo_ids}, 503, {"Retry-After": str(_RETRY_AFTER_S)})

    async def whoami(self, _: Request) -> Response:
        return _error(401, "this mirror has no accounts; it ignores tokens")

    async def info(self, request: Request) -> Response:
        snapshot = await self._snapshot(request)
        return JSONResponse(descriptions.model_info(snapshot, blobs=_flag(request.query_params.get("blobs"))))

    async def tree(self, request: Request) -> Response:
        snapshot = await self._snapshot(request)
        folder = request.path_params.get("path", "").strip("/")
        entries = descriptions.tree(snapshot, folder, recursive=_flag(request.query_params.get("recursive")))
        if entries is None:
            raise EntryNotFound(f"{snapshot.repo_id} has no folder {folder}")
        return JSONResponse(entries)

    async def paths_info(self, request: Request) -> Response:
        paths = _requested_paths(request, await _read_body(request))
        return JSONResponse(descriptions.paths_info(await self._snapshot(request), paths))

    async def resolve(self, request: Request) -> Response | FileBody:
        try:
            return await self._resolve(request)
        except FileChanged:  # replaced between the look at the folder and the opening: look again, once
            try:
                return await self._resolve(request)
            except FileChanged:
                raise RepoIncomplete(f"{request.path_params['path']} is being written; ask again") from None

    async def _resolve(self, request: Request) -> Response | FileBody:
        snapshot = await self._snapshot(request)
        file = snapshot.files.get(request.path_params["path"])
        if file is None:
            raise EntryNotFound(f"{snapshot.repo_id} has no file {request.path_params['path']} at {snapshot.commit}")
        headers = _file_headers(snapshot, file)
        asked = request.headers
        if etag_matches(asked.get("if-none-match"), headers["ETag"]):
            return Response(status_code=304, headers=headers)
        headers["Content-Type"] = "application/octet-stream"
        if request.method == "HEAD":
            return Response(headers={**headers, "Content-Length": str(file.size_bytes)})
        status, start, length = 200, 0, file.size_bytes
        if range_still_applies(asked.get("if-range"), headers["ETag"], headers["Last-Modified"]):
            try:
                part = parse_range(asked.get("range"), file.size_bytes)
            except RangeNotSatisfiable:
                return Response(status_code=416, headers={**headers, "Content-Range": f"bytes */{file.size_bytes}"})
            if part is not None:
                status, (start, length) = 206, part
                headers["Content-Range"] = f"bytes {start}-{start + length - 1}/{file.size_bytes}"
        headers["Content-Length"] = str(length)
        fd = await asyncio.to_thread(open_exactly, file.found)
        return FileBody(fd, file.found, start, length, status, headers, self._reading)

    async def _snapshot(self, request: Request) -> Snapshot:
        repo_id = f"{request.path_params['org']}/{request.path_params['name']}"
        revision = request.path_params.get("revision", "main")
        try:
            snapshot = await asyncio.to_thread(self._catalog.snapshot, repo_id)
        except RepoBusy as busy:
            await asyncio.wait([asyncio.wrap_future(busy.done)], timeout=_HASHING_WAIT_S)
            snapshot = await asyncio.to_thread(self._catalog.snapshot, repo_id)
        if revision not in ("main", snapshot.commit):
            raise RevisionNotFound(
                f"{repo_id} has no revision {revision} here; it has main, which is {snapshot.commit}"
            )
        return snapshot


def _file_headers(snapshot: Snapshot, file: ServedFile) -> dict[str, str]:
    etag = f'"{file.hash}"'
    return {
        "ETag": etag,
        "X-Linked-Etag": etag,
        "X-Linked-Size": str(file.size_bytes),
        "X-Repo-Commit": snapshot.commit,
        "Accept-Ranges": "bytes",
        "Last-Modified": formatdate(file.found.mtime_ns // 10**9, usegmt=True),
    }


def _flag(value: str | None) -> bool:
    return (value or "").lower() in ("1", "true")


async def _read_body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _BODY_LIMIT_BYTES:
            raise HTTPException(413, f"the request body is longer than {_BODY_LIMIT_BYTES} bytes")
    return body


def _requested_paths(request: Request, body: bytes) -> list[str]:
    """The paths of a JSON or form body: hub clients send either."""
    try:
        if "json" in request.headers.get("content-type", ""):
            paths: Any = json.loads(body)["paths"]
        else:
            paths = parse_qs(body.decode())["paths"]
    except (ValueError, KeyError, TypeError):
        paths = None
    if isinstance(paths, str):
        paths = [paths]
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise HTTPException(400, 'the body must name "paths", a list of file or folder paths, as JSON or as a form')
    return paths


def _refuse(_: Request, refusal: Exception) -> Response:
    assert isinstance(refusal, Refusal)
    headers = {"X-Error-Code": refusal.error_code}
    if refusal.status == 503:
        headers["Retry-After"] = str(_RETRY_AFTER_S)
    return _error(refusal.status, str(refusal), headers)


def _refuse_address(_: Request, exception: Exception) -> Response:
    assert isinstance(exception, HTTPException)
    headers = dict(exception.headers or {})
    if exception.status_code == 404:
        headers["X-Error-Code"] = RepoNotFound.error_code
        return _error(404, "nothing is served at this address; models are at /api/models/<org>/<name>", headers)
    if exception.status_code == 405:
        return _error(405, "this mirror is read-only", headers)
    return _error(exception.status_code, exception.detail, headers)


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    # The message may repeat what a client sent; a header takes no control characters.
    in_header = "".join(c if c.isprintable() and c <= "\xff" else "?" for c in message)
    return JSONResponse({"error": message}, status, {**(headers or {}), "X-Error-Message": in_header})
