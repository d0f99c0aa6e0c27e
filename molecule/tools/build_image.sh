#!/usr/bin/env bash
# Builds the image of a fresh node: Debian by debootstrap, with systemd as its init, and nothing that the roles must install.
#
# Needs no container registry. The image carries a digest of its recipe and is rebuilt only when that changes; the
# unpacked system lies as a tar archive in the cache folder, so that an image that was pruned is back in seconds.
# What belongs to one machine (mirrors, proxies, certificates) is not baked in: shared/prepare_node.yml brings it.
# Prints `built`, `imported` or `unchanged` on its last line.
set -euo pipefail

suite=bookworm
tag=localhost/ddtree-node:bookworm
cache=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/.cache/node-image
mirror=
# A node as a provider hands it over: init, a shell's basics, Python for Ansible.
packages=systemd,systemd-sysv,dbus,python3,python3-apt,sudo,ca-certificates,iproute2,procps

usage="usage: build_image.sh [--tag NAME] [--suite SUITE] [--cache FOLDER] [--mirror URL of a Debian mirror; debootstrap's own default otherwise]"
while [[ $# -gt 0 ]]; do
  case $1 in
    --tag | --suite | --cache | --mirror)
      [[ $# -ge 2 ]] || { echo "build_image.sh: $1 needs a value; $usage" >&2; exit 2; }
      declare "${1#--}=$2"
      shift 2
      ;;
    *)
      echo "build_image.sh: unknown option $1; $usage" >&2
      exit 2
      ;;
  esac
done

# Last touches on the unpacked system in folder $1. Its text is part of the recipe's digest.
finish() {
  rm -rf "$1"/var/cache/apt/archives/*.deb "$1"/var/lib/apt/lists/*
  : >"$1/etc/machine-id"
  # The node shares the machine's kernel: booting it must not set the machine's kernel parameters or trim its disks.
  # apt's timers would take apt's lock at a moment of their own.
  local unit
  for unit in systemd-sysctl.service systemd-modules-load.service apt-daily.timer apt-daily-upgrade.timer fstrim.timer; do
    ln -sf /dev/null "$1/etc/systemd/system/$unit"
  done
}

recipe=$( (echo "$suite $packages $(dpkg --print-architecture)"; declare -f finish) | sha256sum | cut -c1-16)

[[ $(id -u) -eq 0 ]] || { echo "build_image.sh: debootstrap needs root; run it as root" >&2; exit 1; }
command -v podman >/dev/null || { echo "build_image.sh: podman is not installed; apt-get install podman" >&2; exit 1; }

mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9

if [[ $(podman image inspect --format '{{ index .Labels "ddtree.recipe" }}' "$tag" 2>/dev/null) == "$recipe" ]]; then
  echo unchanged
  exit 0
fi

archive=$cache/$suite-$recipe.tar.gz
result=imported
if [[ ! -e $archive ]]; then
  command -v debootstrap >/dev/null || { echo "build_image.sh: debootstrap is not installed; apt-get install debootstrap" >&2; exit 1; }
  work=$(mktemp --directory "$cache/work.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  [[ -e $keyring ]] || { echo "build_image.sh: $keyring is missing, packages could not be verified; apt-get install debian-archive-keyring" >&2; exit 1; }
  debootstrap --variant=minbase --keyring="$keyring" --include="$packages" "$suite" "$work/root" ${mirror:+"$mirror"} >"$cache/debootstrap.log" 2>&1 || {
    echo "build_image.sh: debootstrap failed; the end of $cache/debootstrap.log:" >&2
    tail -n 20 "$cache/debootstrap.log" >&2
    exit 1
  }
  finish "$work/root"
  tar --directory "$work/root" --create --numeric-owner . | gzip -1 >"$work/archive"
  mv "$work/archive" "$archive"
  find "$cache" -maxdepth 1 -name "$suite-*.tar.gz" ! -path "$archive" -delete
  result=built
fi

podman import --change 'CMD ["/sbin/init"]' --change 'STOPSIGNAL SIGRTMIN+3' --change "LABEL ddtree.recipe=$recipe" "$archive" "$tag" >/dev/null
echo "$result"
