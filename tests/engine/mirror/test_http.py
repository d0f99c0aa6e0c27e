"""The mirror over plain HTTP: headers, ranges, conditions, refusals, and files that change under it."""

import hashlib
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import pytest

REPO_ID = "acme/tiny-model"
SHARD = "model-00001-of-00002.safetensors"


def raw_status(url: str, target: str) -> int:
    """Sends `target` exactly as it is: clients of a library would tidy it up first."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert b"secret" not in answer
    return int(answer.split(b" ", 2)[1])


def test_a_file_has_the_hubs_headers(served, served_files: dict[str, bytes]) -> None:
    commit = served.http.get(f"/api/models/{REPO_ID}").json()["sha"]
    for path, content in served_files.items():
        url = served.file_url(quote(path))
        got, head = served.http.get(url), served.http.head(url)
        assert (got.status_code, got.content) == (200, content)
        assert (head.status_code, head.content) == (200, b"")
        large = path.endswith(".safetensors")
        git = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        etag = f'"{hashlib.sha256(content).hexdigest() if large else git}"'
        for answer in (got, head):
            assert answer.headers["etag"] == answer.headers["x-linked-etag"] == etag
            assert answer.headers["content-length"] == answer.headers["x-linked-size"] == str(len(content))
            assert answer.headers["x-repo-commit"] == commit
            assert answer.headers["accept-ranges"] == "bytes"


def test_the_full_commit_is_a_revision_and_nothing_else_is(served) -> None:
    commit = served.http.get(f"/api/models/{REPO_ID}").json()["sha"]
    assert served.http.get(served.file_url("config.json", revision=commit)).status_code == 200
    assert served.http.get(f"/api/models/{REPO_ID}/revision/{commit}").json()["sha"] == commit
    for revision in (commit[:12], commit.upper(), "master", "refs%2Fpr%2F1", "v1.0"):
        answer = served.http.get(f"/api/models/{REPO_ID}/revision/{revision}")
        assert (answer.status_code, answer.headers["x-error-code"]) == (404, "RevisionNotFound")
        answer = served.http.get(served.file_url("config.json", revision=revision))
        assert (answer.status_code, answer.headers["x-error-code"]) == (404, "RevisionNotFound")


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("/api/models/acme/none", "RepoNotFound"),
        ("/acme/none/resolve/main/config.json", "RepoNotFound"),
        (f"/{REPO_ID}/resolve/main/none.json", "EntryNotFound"),
        (f"/{REPO_ID}/resolve/main/sub", "EntryNotFound"),
        (f"/api/models/{REPO_ID}/tree/main/none", "EntryNotFound"),
        ("/api/datasets/acme/tiny-model", "RepoNotFound"),
    ],
)
def test_what_is_not_there_is_named_as_the_hub_names_it(served, address: str, code: str) -> None:
    answer = served.http.get(address)
    assert (answer.status_code, answer.headers["x-error-code"]) == (404, code)
    assert answer.json()["error"] == answer.headers["x-error-message"]


@pytest.mark.parametrize("asked", ["bytes=0-0", "bytes=100-199999", "bytes=299999-", "bytes=-7", "bytes=5-99999999"])
def test_a_range_is_answered_with_that_part(served, served_files: dict[str, bytes], asked: str) -> None:
    content = served_files[SHARD]
    answer = served.http.get(served.file_url(SHARD), headers={"Range": asked})
    first, last = asked.removeprefix("bytes=").split("-")
    part = content[int(first) : int(last or len(content)) + 1] if first else content[-int(last) :]
    assert (answer.status_code, answer.content) == (206, part)
    start = content.index(part) if not first else int(first)
    assert answer.headers["content-range"] == f"bytes {start}-{start + len(part) - 1}/{len(content)}"
    assert answer.headers["content-length"] == str(len(part))


def test_a_range_behind_the_end_is_416_with_the_size(served, served_files: dict[str, bytes]) -> None:
    size_bytes = len(served_files[SHARD])
    answer = served.http.get(served.file_url(SHARD), headers={"Range": f"bytes={size_bytes}-"})
    assert (answer.status_code, answer.headers["content-range"]) == (416, f"bytes */{size_bytes}")
    assert served.http.get(served.file_url("empty.txt"), headers={"Range": "bytes=0-"}).status_code == 416


def test_several_ranges_are_answered_with_the_whole(served, served_files: dict[str, bytes]) -> None:
    answer = served.http.get(served.file_url(SHARD), headers={"Range": "bytes=0-1,5-6"})
    assert (answer.status_code, answer.content) == (200, served_files[SHARD])


def test_conditions(served, served_files: dict[str, bytes]) -> None:
    url, content = served.file_url(SHARD), served_files[SHARD]
    etag = served.http.head(url).headers["etag"]
    unchanged = served.http.get(url, headers={"If-None-Match": etag})
    assert (unchanged.status_code, unchanged.content, unchanged.headers["etag"]) == (304, b"", etag)
    assert served.http.head(url, headers={"If-None-Match": etag}).status_code == 304
    assert served.http.get(url, headers={"If-None-Match": '"other"'}).content == content
    rest = {"Range": "bytes=9-"}
    assert served.http.get(url, headers=rest | {"If-Range": etag}).content == content[9:]
    whole = served.http.get(url, headers=rest | {"If-Range": '"other"'})
    assert (whole.status_code, whole.content) == (200, content)


@pytest.mark.parametrize(
    "path",
    [
        ".hidden",
        "sub/.hidden",
        ".ddtree/receipt.json",
        "half.safetensors.part",
        "going.bin",
        "going.bin.aria2",
        "link.txt",
        "../../top.txt",
        "..%2f..%2ftop.txt",
        "%2e%2e/%2e%2e/top.txt",
        "sub/../../../top.txt",
        "sub%2f..%2f..%2f..%2ftop.txt",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "..%5c..%5ctop.txt",
        "config.json%00.txt",
        "config.json/",
        "./config.json",
        "sub//deep",
    ],
)
def test_nothing_but_the_listed_files_can_be_reached(served, path: str) -> None:
    assert raw_status(served.url, f"/{REPO_ID}/resolve/main/{path}") == 404


@pytest.mark.parametrize(
    "target",
    [
        "/acme/../resolve/main/top.txt",
        "/acme/%2e%2e/resolve/main/top.txt",
        "/../root/acme/resolve/main/top.txt",
        "/.wheels/x/resolve/main/file",
        "/acme/tiny-model%2f..%2f../resolve/main/top.txt",
        "/api/models/../../top.txt",
        f"/api/models/{REPO_ID}/tree/main/../..",
        f"/api/models/{REPO_ID}/tree/main/.ddtree",
        "/top.txt",
        "//",
    ],
)
def test_nor_anything_beside_the_repositories(served, target: str) -> None:
    assert raw_status(served.url, target) == 404


def test_the_listings_show_the_same_files_and_no_other(served, served_files: dict[str, bytes]) -> None:
    info = served.http.get(f"/api/models/{REPO_ID}").json()
    tree = served.http.get(f"/api/models/{REPO_ID}/tree/main?recursive=true&expand=false&limit=1000").json()
    assert [sibling["rfilename"] for sibling in info["siblings"]] == sorted(served_files)
    assert [entry["path"] for entry in tree if entry["type"] == "file"] == sorted(served_files)
    assert [entry["path"] for entry in tree if entry["type"] == "directory"] == ["sub", "sub/deep"]
    top = served.http.get(f"/api/models/{REPO_ID}/tree/main").json()
    assert {entry["path"] for entry in top} == {p for p in served_files if "/" not in p} | {"sub"}
    below = served.http.get(f"/api/models/{REPO_ID}/tree/main/sub/deep").json()
    assert [entry["path"] for entry in below] == ["sub/deep/notes ü+%20.txt"]


@pytest.mark.parametrize("form", ["json", "data"])
def test_paths_info_takes_json_and_forms(served, form: str) -> None:
    paths = ["config.json", "sub", "none", "sub/deep/notes ü+%20.txt"]
    answer = served.http.post(f"/api/models/{REPO_ID}/paths-info/main", **{form: {"paths": paths, "expand": False}})
    assert [(entry["path"], entry["type"]) for entry in answer.json()] == [
        ("config.json", "file"),
        ("sub", "directory"),
        ("sub/deep/notes ü+%20.txt", "file"),
    ]
    assert served.http.post(f"/api/models/{REPO_ID}/paths-info/main", content=b"{").status_code == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_it_is_read_only(served, method: str) -> None:
    for address in (served.file_url("config.json"), f"/api/models/{REPO_ID}", "/health"):
        assert served.http.request(method, address).status_code == 405


def test_health_and_whoami(served) -> None:
    assert served.http.get("/health").json() == {"status": "ok", "repos": [REPO_ID]}
    assert served.http.get("/api/whoami-v2", headers={"Authorization": "Bearer x"}).status_code == 401


def test_a_file_replaced_while_it_is_sent_goes_on_as_it_was(
    tmp_path: Path, write_files: Callable, run_mirror: Callable
) -> None:
    old, new = os.urandom(24_000_000), os.urandom(24_000_000)  # more than the sockets' buffers hold
    folder = write_files(tmp_path / REPO_ID, {"weights.bin": old})
    with run_mirror(tmp_path) as running:
        url = running.file_url("weights.bin")
        with running.http.stream("GET", url) as answer:
            parts = answer.iter_raw(65536)
            received = next(parts)
            write_files(folder, {"new.part": new})
            (folder / "new.part").replace(folder / "weights.bin")
            received += b"".join(parts)
        assert received == old
        assert answer.headers["etag"] == f'"{hashlib.sha256(old).hexdigest()}"'
        again = running.http.get(url)
        assert again.content == new
        assert again.headers["x-repo-commit"] != answer.headers["x-repo-commit"]


@pytest.mark.parametrize("harm", ["cut", "overwrite"])
def test_a_file_harmed_while_it_is_sent_ends_the_connection_short(
    tmp_path: Path, write_files: Callable, run_mirror: Callable, harm: str
) -> None:
    folder = write_files(tmp_path / REPO_ID, {"weights.bin": os.urandom(24_000_000)})
    with run_mirror(tmp_path) as running, running.http.stream("GET", running.file_url("weights.bin")) as answer:
        parts = answer.iter_raw(65536)
        next(parts)
        if harm == "cut":
            os.truncate(folder / "weights.bin", 23_000_000)
        else:
            with (folder / "weights.bin").open("r+b") as file:
                file.write(b"other")
        with pytest.raises(httpx.RemoteProtocolError):
            b"".join(parts)


def test_an_incomplete_repository_is_refused_whole_with_the_files_name(
    folder: Path, root: Path, served_files: dict, write_manifest: Callable, run_mirror: Callable
) -> None:
    write_manifest(folder, served_files)
    os.truncate(folder / SHARD, 1000)
    with run_mirror(root) as running:
        for address in (f"/api/models/{REPO_ID}", running.file_url("config.json"), running.file_url(SHARD)):
            answer = running.http.get(address)
            assert answer.status_code == 503
            assert f"{SHARD} has 1,000 bytes" in answer.json()["error"]
            assert int(answer.headers["retry-after"]) > 0
        (folder / SHARD).write_bytes(served_files[SHARD])
        assert running.http.get(running.file_url(SHARD)).content == served_files[SHARD]


def test_a_client_that_leaves_early_costs_nothing(tmp_path: Path, write_files: Callable, run_mirror: Callable) -> None:
    write_files(tmp_path / REPO_ID, {"weights.bin": os.urandom(24_000_000)})
    with run_mirror(tmp_path) as running:

        def open_files() -> int:
            return sum(
                os.path.realpath(f"/proc/self/fd/{fd}").endswith("weights.bin") for fd in os.listdir("/proc/self/fd")
            )

        for _ in range(20):
            with running.http.stream("GET", running.file_url("weights.bin")) as answer:
                next(answer.iter_raw(1000))
        deadline = time.monotonic() + 20
        while open_files():
            assert time.monotonic() < deadline, "the file stays open after its client has gone"
            time.sleep(0.01)
