#!/usr/bin/env bash
# Renews requirements/NAME.lock from NAME.in: installs it in a new virtual environment and writes down what came.
# Usage: requirements/lock.sh [NAME…]   (all of them without a name; PYTHON names the interpreter)
set -euo pipefail
cd "$(dirname "$0")"
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(controller cpu dev tools)
for name in "${names[@]}"; do
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  echo "locking $name …" >&2
  "${PYTHON:-python3}" -m venv "$scratch/venv"
  "$scratch/venv/bin/python" -m pip install --quiet --requirement "$name.in"
  {
    echo "# Written by requirements/lock.sh from $name.in; change that file and run the script."
    # A local version (torch's +cpu) names one build of a release: the lock names the release.
    "$scratch/venv/bin/python" -m pip freeze | sed 's/+[a-z0-9.]*$//'
  } >"$name.lock.new"
  mv "$name.lock.new" "$name.lock"
  rm -rf "$scratch"
done
