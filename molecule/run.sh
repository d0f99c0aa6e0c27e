#!/usr/bin/env bash
# run.sh [ARGUMENT…]: molecule with what its nodes need; `run.sh` alone is `run.sh test`, others are `run.sh converge`, `run.sh login` …
#
# As root it installs podman and debootstrap by apt where they are missing. Without root it says so and ends with status
# 77, which callers may read as "left out".
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
repository=$PWD

if [[ $(id -u) -ne 0 ]]; then
  echo "molecule: left out, it needs root: nodes are containers that boot systemd, made by debootstrap" >&2
  exit 77
fi
if [[ ! -x .venv/bin/molecule ]]; then
  echo "molecule: $repository/.venv/bin/molecule is missing; make the environment of the tests first (make test does)" >&2
  exit 1
fi

declare -A package_of=([podman]=podman [debootstrap]=debootstrap [crun]=crun [netavark]=netavark)
missing=()
for program in "${!package_of[@]}"; do
  # netavark is no command of the PATH: podman keeps it with its helpers.
  command -v "$program" >/dev/null || compgen -G "/usr/lib*/podman/$program" >/dev/null || missing+=("${package_of[$program]}")
done
[[ -e /usr/share/keyrings/debian-archive-keyring.gpg ]] || missing+=(debian-archive-keyring)
if [[ ${#missing[@]} -gt 0 ]]; then
  command -v apt-get >/dev/null || { echo "molecule: ${missing[*]} missing, and there is no apt to install them; install them by hand" >&2; exit 1; }
  echo "molecule: installing ${missing[*]}" >&2
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null
fi

# molecule calls ansible-playbook by name.
export PATH=$repository/.venv/bin:$PATH
# Molecule keeps its state below this folder, by the name of the clone's folder alone: two clones would share it.
export ANSIBLE_HOME=$repository/.ansible
# Frames wrap lines, and colours are noise in a log.
export MOLECULE_COMMAND_BORDERS=false
[[ -t 1 ]] || export NO_COLOR=1

[[ $# -gt 0 ]] || set -- test
exec molecule/tools/with_podman.sh molecule "$@"
