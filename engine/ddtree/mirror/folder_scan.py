"""Which files of a folder may be served: regular, finished, not hidden, and inside the root."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

# What download tools call a file that is not finished. aria2 leaves `name.aria2` beside an unfinished `name`.
UNFINISHED_SUFFIXES = (".part", ".partial", ".incomplete", ".aria2", ".download", ".crdownload", ".tmp")


@dataclass(frozen=True)
class FoundFile:
    """A file as it was when looked at; a change of its content changes size, time or inode."""

    real_path: Path
    size_bytes: int
    mtime_ns: int
    inode: int

    def is_still(self, status: os.stat_result) -> bool:
        return (self.size_bytes, self.mtime_ns, self.inode) == (status.st_size, status.st_mtime_ns, status.st_ino)


def found_file(real_path: Path, status: os.stat_result) -> FoundFile:
    return FoundFile(real_path, status.st_size, status.st_mtime_ns, status.st_ino)


def is_hidden(path: str) -> bool:
    """True if any part of a /-separated path is a dot-file or would lead upwards."""
    return any(part.startswith(".") or not part for part in path.split("/"))


def scan_folder(folder: Path, root: Path) -> dict[str, FoundFile]:
    """The servable files below `folder` by their /-separated path, sorted. `root` is a real path.

    A link to a file counts if its target lies inside `root` and is not hidden there; links to folders are not followed.
    """
    files: dict[str, FoundFile] = {}
    _scan(folder, "", root, files)
    return dict(sorted(files.items()))


def _scan(folder: Path, prefix: str, root: Path, files: dict[str, FoundFile]) -> None:
    with os.scandir(folder) as listing:
        entries = {entry.name: entry for entry in listing}
    for name, entry in entries.items():
        if name.startswith(".") or not name.isprintable():  # not printable: control characters, bytes outside UTF-8
            continue
        if entry.is_dir(follow_symlinks=False):
            _scan(folder / name, f"{prefix}{name}/", root, files)
        elif not name.endswith(UNFINISHED_SUFFIXES) and f"{name}.aria2" not in entries:
            found = _servable(entry, root)
            if found is not None:
                files[prefix + name] = found


def _servable(entry: "os.DirEntry[str]", root: Path) -> FoundFile | None:
    try:
        real_path = Path(entry.path)
        if entry.is_symlink():
            real_path = real_path.resolve(strict=True)
            if not real_path.is_relative_to(root) or is_hidden(real_path.relative_to(root).as_posix()):
                return None
        status = os.stat(real_path, follow_symlinks=False)
    except (OSError, RuntimeError):  # gone meanwhile, a dangling link, a circle of links
        return None
    return found_file(real_path, status) if stat.S_ISREG(status.st_mode) else None
