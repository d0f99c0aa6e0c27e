#!/usr/bin/env bash
# with_podman.sh COMMAND [ARGUMENT…]: runs COMMAND where podman can start nodes that boot systemd.
#
# An ordinary machine has cgroups v2 at /sys/fs/cgroup, and the command runs as it is. Where they are v1 or hybrid and
# CAP_SYS_RESOURCE is missing (some sandboxes and CI machines), no OCI runtime starts a container; there the command gets
# a mount namespace of its own in which /sys/fs/cgroup is the kernel's cgroup2 hierarchy. Nodes outlive the command, and a
# later call, in its own namespace, finds them again. Inside such a namespace this script changes nothing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cap_sys_resource_bit=24

if [[ $# -eq 0 ]]; then
  echo "usage: with_podman.sh COMMAND [ARGUMENT…]" >&2
  exit 2
fi

has_cgroup2() {
  [[ $(stat --file-system --format=%T /sys/fs/cgroup 2>/dev/null) == cgroup2fs ]]
}

has_cap_sys_resource() {
  local capabilities
  capabilities=$(awk '$1 == "CapEff:" { print $2 }' /proc/self/status)
  (((16#$capabilities >> cap_sys_resource_bit) & 1))
}

if has_cgroup2 || has_cap_sys_resource; then
  exec "$@"
fi

if [[ $(id -u) -ne 0 ]]; then
  echo "with_podman.sh: /sys/fs/cgroup is not cgroup2 and CAP_SYS_RESOURCE is missing: podman needs a mount namespace here, which root alone can make; run it as root" >&2
  exit 1
fi

# systemd does not manage the private mount, so podman must make its cgroups itself.
export CONTAINERS_CONF=${CONTAINERS_CONF:-$here/containers.conf}
# Mounts of the machine keep arriving (slave); the private one never leaves.
exec unshare --mount --propagation slave -- bash -ec '
  if mountpoint --quiet /sys/fs/cgroup; then umount --recursive /sys/fs/cgroup; fi
  mount -t cgroup2 none /sys/fs/cgroup
  exec "$@"
' with_podman "$@"
