"""Where a supervisord of one service keeps its files, and the path of its socket, which has to be short."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass

from ansible.module_utils.provision_error import ProvisionError

# sun_path of unix(7) holds 107 bytes, and supervisord first binds to "<socket>.<pid>" (up to 8 more).
SOCKET_BYTES = 99


@dataclass(frozen=True)
class SupervisorLayout:
    """Paths below `folder`, all absolute; `socket` lies elsewhere when the folder's own path is too long for one."""

    folder: str
    name: str

    @property
    def config(self) -> str:
        return os.path.join(self.folder, "supervisord.conf")

    @property
    def log(self) -> str:
        return os.path.join(self.folder, "supervisord.log")

    @property
    def pidfile(self) -> str:
        return os.path.join(self.folder, "supervisord.pid")

    @property
    def program_log(self) -> str:
        return os.path.join(self.folder, f"{self.name}.log")

    @property
    def socket(self) -> str:
        inside = os.path.join(self.folder, "supervisor.sock")
        if len(os.fsencode(inside)) <= SOCKET_BYTES:
            return inside
        digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]
        return f"/tmp/ddtree-{os.geteuid()}-{digest}/supervisor.sock"

    def make_folders(self) -> None:
        """Creates the folder, and the socket's where that is another; that one lies in /tmp and must be ours."""
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            raise ProvisionError(
                f"cannot create {self.folder}: {error.strerror}; set dir to a folder this user owns"
            ) from error
        outside = os.path.dirname(self.socket)
        if outside == self.folder:
            return
        try:
            os.mkdir(outside, 0o700)
        except FileExistsError:
            info = os.lstat(outside)
            if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
                raise ProvisionError(
                    f"{outside} is not a folder of this user alone; remove it, or shorten dir ({self.folder})"
                ) from None

    def files(self) -> list[str]:
        """Everything supervisord and this module made, rotated logs included."""
        made = [self.config, self.pidfile, self.socket]
        for log in (self.log, self.program_log):
            made += [log, *self._rotated(log)]
        return [path for path in made if os.path.lexists(path)]

    def _rotated(self, log: str) -> list[str]:
        prefix = os.path.basename(log) + "."
        names = os.listdir(self.folder) if os.path.isdir(self.folder) else []
        return [
            os.path.join(self.folder, name)
            for name in sorted(names)
            if name.startswith(prefix) and name[len(prefix) :].isdecimal()
        ]
