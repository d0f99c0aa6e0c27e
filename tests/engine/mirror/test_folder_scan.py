"""Which files of a folder are seen at all."""

import os
from collections.abc import Callable
from pathlib import Path

from ddtree.mirror.folder_scan import scan_folder


def test_hidden_and_unfinished_files_are_not_seen(tmp_path: Path, write_files: Callable) -> None:
    names = {"a.txt", "sub/b.txt", "partial.txt"}
    unfinished = {"c.part", "d.incomplete", "e.aria2", "f", "f.aria2", "sub/g.tmp"}
    hidden = {".gitattributes", ".ddtree/manifest.json", "sub/.h/i.txt"}
    write_files(tmp_path, dict.fromkeys(names | unfinished | hidden, b"x"))
    assert scan_folder(tmp_path, tmp_path).keys() == names


def test_names_that_cannot_be_an_address_are_not_seen(tmp_path: Path) -> None:
    for name in (b"line\nbreak", b"not-utf8-\xff", b"plain"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(b"x")
    assert scan_folder(tmp_path, tmp_path).keys() == {"plain"}


def test_links_count_if_they_stay_inside(tmp_path: Path, write_files: Callable) -> None:
    root = tmp_path / "root"
    write_files(tmp_path, {"root/repo/a.txt": b"a", "root/blobs/b": b"bb", "root/.h/c": b"c", "secret": b"s"})
    repo = root / "repo"
    (repo / "inside.txt").symlink_to("../blobs/b")
    (repo / "outside.txt").symlink_to("../../secret")
    (repo / "to-hidden.txt").symlink_to("../.h/c")
    (repo / "dangling").symlink_to("nothing")
    (repo / "circle").symlink_to("circle")
    (repo / "folder").symlink_to("../blobs")
    (repo / "up").symlink_to("..")
    os.mkfifo(repo / "pipe")
    found = scan_folder(repo, root)
    assert found.keys() == {"a.txt", "inside.txt"}
    assert found["inside.txt"].size_bytes == 2
