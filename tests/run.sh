#!/usr/bin/env bash
# The test command: linters, unit tests, the deployment on a fresh node. `tests/run.sh [lint|unit|molecule …]` runs parts of it.
# As root it installs the system packages that the parts need; otherwise it says what it leaves out and why.
# shellcheck disable=SC2317  # the parts are called through run_part
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(lint unit molecule)
left_out=()
summary=()

have() { command -v "$1" >/dev/null 2>&1; }

# install_packages COMMAND=PACKAGE… : by apt where that is possible, else the reason goes to the summary.
install_packages() {
  local pair packages=()
  for pair in "$@"; do
    have "${pair%%=*}" || packages+=("${pair#*=}")
  done
  [ ${#packages[@]} -gt 0 ] || return 0
  if [ "$(id -u)" = 0 ] && have apt-get; then
    echo "Installing ${packages[*]} …"
    DEBIAN_FRONTEND=noninteractive apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "${packages[@]}" >/dev/null
  else
    echo "Not installed, and not root on apt: ${packages[*]}"
    return 1
  fi
}

run_part() { # NAME: runs the function of that name
  local name=$1 started=$SECONDS status
  echo
  echo "── $name"
  "$name"
  status=$?
  summary+=("$name: $([ $status = 0 ] && echo passed || echo "FAILED (exit $status)") in $((SECONDS - started)) s")
  return $status
}

lint() {
  .venv/bin/ruff check . && .venv/bin/ruff format --check . &&
    .venv/bin/yamllint --strict . &&
    .venv/bin/ansible-lint --offline --profile production &&
    if have shellcheck; then git ls-files '*.sh' .ci/run | xargs shellcheck; else echo 'shellcheck is not installed: shell scripts are not checked'; fi
}

unit() {
  # One thread a process: timings do not matter here, and tests run beside servers on few cores.
  OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" .venv/bin/python -m pytest -q tests
}

molecule() { molecule/run.sh; }

make --silent .venv/.dev-installed || exit 1
failed=0
for part in "${parts[@]}"; do
  case $part in
    lint)
      install_packages shellcheck=shellcheck || true
      run_part lint || failed=1
      ;;
    unit)
      if install_packages aria2c=aria2; then run_part unit || failed=1; else left_out+=("unit tests: they drive the real aria2c; install aria2"); fi
      ;;
    molecule)
      if [ "$(id -u)" != 0 ]; then
        left_out+=("molecule: making a node (debootstrap, privileged podman) needs root")
      elif install_packages podman=podman debootstrap=debootstrap crun=crun aria2c=aria2; then
        run_part molecule || failed=1
      else
        left_out+=("molecule: podman and debootstrap are missing")
      fi
      ;;
    *)
      echo "tests/run.sh: no part is called '$part'; there are lint, unit and molecule" >&2
      exit 2
      ;;
  esac
done

echo
printf '%s\n' "${summary[@]+"${summary[@]}"}"
printf 'Left out: %s\n' "${left_out[@]+"${left_out[@]}"}" | grep -v ': $' || true
exit $failed
