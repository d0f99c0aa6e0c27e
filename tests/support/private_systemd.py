"""A real systemd for a test: process 1 of namespaces of its own, whatever the machine itself runs.

Everything of the machine is read-only for it, and /tmp, /run, /dev and /etc/systemd are empty ones of its own; only the
folder given to it is shared and writable. It knows no unit of the machine: an ordinary boot would empty /tmp, for one.
Needs root, util-linux and systemd; PrivateSystemd.why_not() says what is missing.
"""

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path

# $1: the shared folder. $2: name of the cgroup. $3: systemd.
_SETUP = r"""
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir /run/shared
mount --bind "$1" /run/shared

mount -t tmpfs tmpfs /sys/fs/cgroup
umount /sys/fs/cgroup
umount -R /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir "/sys/fs/cgroup/$2"
echo 0 > "/sys/fs/cgroup/$2/cgroup.procs"

mkdir /run/dev
mount -t tmpfs -o mode=755 tmpfs /run/dev
for node in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 "/run/dev/${node%:*}" c 1 "${node#*:}"; done
mkdir /run/dev/shm /run/dev/pts
ln -s /proc/self/fd /run/dev/fd
mount --move /run/dev /dev

awk '{print $5}' /proc/self/mountinfo | while read -r path; do
  case "$path" in /proc*|/sys*|/dev*|/run*) ;; *) mount -o remount,bind,ro "$path" 2>/dev/null || true ;; esac
done
mount -o remount,bind,ro /
for path in /proc/sys /sys; do mount --bind "$path" "$path"; mount -o remount,bind,ro "$path"; done
# The bind of /sys hides the cgroups mounted below it.
mount -t cgroup2 cgroup2 /sys/fs/cgroup
for path in /tmp /var/tmp /var/log /etc/systemd /usr/lib/systemd/system /usr/lib/systemd/system-generators \
  /lib/systemd/system /lib/systemd/system-generators /usr/local/lib/systemd /usr/lib/tmpfiles.d; do
  [ ! -d "$path" ] || mount -t tmpfs tmpfs "$path"
done
mkdir -p "$1" /etc/systemd/system /run/systemd/system /run/lock /run/log/journal 2>/dev/null || true
mount --move /run/shared "$1"
printf '[Journal]\nStorage=volatile\nAudit=no\nReadKMsg=no\n' > /etc/systemd/journald.conf
mount --bind "$1/units" /etc/systemd/system
echo 0123456789abcdef0123456789abcdef > /run/machine-id
[ ! -f /etc/machine-id ] || mount --bind /run/machine-id /etc/machine-id
if touch /etc/.probe 2>/dev/null || [ "$(stat -f -c %T /tmp)" != tmpfs ]; then
  echo "the machine's files are writable"
  exit 1
fi
exec unshare --cgroup sh -ec '
umount /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
export container=ddtree-test
exec "$1" --system --unit=test.target --log-target=null --show-status=no
' sh "$3"
"""
_UNSHARE = ("unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--mount-proc", "--kill-child")
_MANAGERS = ("/usr/lib/systemd/systemd", "/lib/systemd/systemd")
# What units expect to find: targets that do nothing, and a journal in memory.
_TARGETS = (
    "test",
    "sysinit",
    "basic",
    "shutdown",
    "multi-user",
    "network",
    "network-online",
    "sockets",
    "timers",
    "paths",
)
_JOURNALD = """[Unit]
DefaultDependencies=no
Requires=systemd-journald.socket
After=systemd-journald.socket
[Service]
Type=notify
ExecStart={folder}/systemd-journald
StandardOutput=null
Restart=always
Sockets=systemd-journald.socket
"""
_JOURNALD_SOCKET = """[Unit]
DefaultDependencies=no
[Socket]
ListenStream=/run/systemd/journal/stdout
ListenDatagram=/run/systemd/journal/socket
SocketMode=0666
PassCredentials=yes
PassSecurity=yes
Timestamping=us
"""


class PrivateSystemd:
    """A running systemd, as a context manager.

    `folder` is shared with it under its own name; `units` is its /etc/systemd/system.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.units = folder / "units"
        self.pid = None
        self._cgroup = f"ddtree-test-{os.getpid()}-{time.monotonic_ns()}"

    @staticmethod
    def why_not() -> str | None:
        """What this machine lacks, or None."""
        if os.geteuid() != 0:
            return "needs root"
        missing = [name for name in ("unshare", "nsenter", "systemctl", "journalctl") if shutil.which(name) is None]
        if missing or not any(map(os.path.exists, _MANAGERS)):
            return f"needs systemd and util-linux (missing: {', '.join(missing) or 'systemd'})"
        probe = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "sh", "-c", "mount -t cgroup2 none /mnt"],
            capture_output=True,
            text=True,
        )
        return None if probe.returncode == 0 else f"needs namespaces and cgroup2: {probe.stderr.strip()}"

    def __enter__(self):
        self.units.mkdir(parents=True)
        for target in _TARGETS:
            (self.units / f"{target}.target").write_text("[Unit]\nDefaultDependencies=no\n")
        manager = next(filter(os.path.exists, _MANAGERS))
        (self.units / "systemd-journald.service").write_text(_JOURNALD.format(folder=os.path.dirname(manager)))
        (self.units / "systemd-journald.socket").write_text(_JOURNALD_SOCKET)
        with (self.folder / "systemd.log").open("w") as log:
            self._outer = subprocess.Popen(
                [*_UNSHARE, "sh", "-c", _SETUP, "sh", str(self.folder), self._cgroup, manager],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self._outer.poll() is None:
            if self.pid is None:
                self.pid = self._child_pid()
            elif self.run("systemctl", "start", "systemd-journald.service", "test.target", check=False).returncode == 0:
                return self
            time.sleep(0.05)
        self.__exit__()
        raise RuntimeError(f"the private systemd did not start:\n{(self.folder / 'systemd.log').read_text()}")

    def __exit__(self, *_):
        self._outer.kill()  # --kill-child takes process 1 along, and with it everything below it
        self._outer.wait()
        self._remove_cgroups()

    def enter(self, *command: str) -> list[str]:
        """The argv that runs a command inside."""
        return ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--uts", "--ipc", "--", *command]

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess:
        """Runs a command inside; its output stands in the error when it fails."""
        done = subprocess.run(self.enter(*command), capture_output=True, text=True, timeout=120)
        assert not check or done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def properties(self, unit: str, *names: str) -> dict[str, str]:
        """Properties of a unit as systemd reports them."""
        output = self.run("systemctl", "show", unit, *(f"--property={name}" for name in names)).stdout
        return dict(line.split("=", 1) for line in output.splitlines())

    def python(self, python: str) -> str:
        """A program that runs the given Python inside, for callers that want the path of an interpreter."""
        wrapper = self.folder / "python"
        wrapper.write_text(f'#!/bin/sh\nexec {shlex.join(self.enter(python))} "$@"\n')
        wrapper.chmod(0o755)
        return str(wrapper)

    def _child_pid(self) -> int | None:
        """Process 1 as the outer namespace numbers it, once it is systemd and no longer the shell of the set-up."""
        children = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children")
        try:
            pids = [int(pid) for pid in children.read_text().split()]
            return next((pid for pid in pids if Path(f"/proc/{pid}/comm").read_text().strip() == "systemd"), None)
        except FileNotFoundError:
            return None

    def _remove_cgroups(self):
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        for tree in [Path(mount[1]) / self._cgroup for mount in mounts if mount[2] == "cgroup2"]:
            folders = [Path(folder) for folder, _, _ in os.walk(tree, topdown=False)]
            deadline = time.monotonic() + 10
            while folders and time.monotonic() < deadline:
                try:
                    folders[0].rmdir()
                    folders.pop(0)
                except OSError:  # its last process is still being reaped
                    time.sleep(0.05)
