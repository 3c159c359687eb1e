#!/usr/bin/env bash
# Installs what the build and the tests need and this machine lacks: Debian packages by apt when that is allowed,
# otherwise it prints the one command to run. Optional suites (see the lists) are installed in CI (CI=true) or with
# HK_OPTIONAL=1; a machine that cannot have them still passes, and the suites say that they were skipped.
set -eu
cd "$(dirname "$0")/.."

# The plugin needs lv2-dev; its tests need lilv (the host) and sordi (lv2_validate), a few hundred kB each.
required=(gcc g++ cmake ninja-build pkg-config libjansson-dev libsndfile1-dev lv2-dev liblilv-dev sordi python3 python3-numpy python3-pytest
  python3-hypothesis)
optional=(python3-venv python3-pip libonnx-testdata python3-onnx python3-torch shellcheck clang-format clang-tidy
  gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user chromium jackd2 mkdocs)
stamp=build/.setup
want_optional=${HK_OPTIONAL:-}
[ "${CI:-}" = true ] && want_optional=1

# A stamp newer than the lists, made for the same wish, means that there is nothing to do.
if [ -f $stamp ] && [ ! scripts/setup.sh -nt $stamp ] && [ ! tests/python/requirements.txt -nt $stamp ] && [ "$(cat $stamp)" = "optional=$want_optional" ]; then exit 0; fi

missing() { # prints those of "$@" that are not installed
  local p
  for p in "$@"; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || echo "$p"
  done
}

have_required_programs() { # on a system without dpkg, or with tools that apt did not install
  local p
  for p in cc cmake ninja python3; do command -v "$p" >/dev/null || return 1; done
}

run_as_root=()
may_install() {
  command -v apt-get >/dev/null || return 1
  [ "$(id -u)" = 0 ] && return 0
  run_as_root=(sudo -n)
  sudo -n true 2>/dev/null
}

apt_install() {
  "${run_as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
    "${run_as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

if command -v dpkg-query >/dev/null; then
  mapfile -t lack < <(missing "${required[@]}")
  if [ ${#lack[@]} -gt 0 ]; then
    if may_install && echo "setup: installing ${lack[*]}" && apt_install "${lack[@]}"; then
      :
    elif have_required_programs; then
      echo "setup: could not be installed, going on without: ${lack[*]}" >&2
    else
      echo "setup: these packages are missing and could not be installed from here. Run:" >&2
      echo "  sudo apt-get install -y ${lack[*]}" >&2
      exit 1
    fi
  fi
elif ! have_required_programs; then
  echo "setup: needs a C compiler, cmake >= 3.22, ninja and python3 (on Debian: ${required[*]})" >&2
  exit 1
fi

mkdir -p build
if [ -n "$want_optional" ]; then
  if command -v dpkg-query >/dev/null; then
    mapfile -t lack < <(missing "${optional[@]}")
    for p in "${lack[@]}"; do
      { may_install && apt_install "$p"; } || echo "setup: optional package $p could not be installed; its suite is skipped"
    done
  fi
  # What Debian 12 does not have, pinned in tests/python/requirements.txt. The venv sees Debian's numpy and torch.
  if [ -f tests/python/requirements.txt ]; then
    [ -x build/venv/bin/python3 ] || /usr/bin/python3 -m venv --system-site-packages build/venv || rm -rf build/venv
    { [ -x build/venv/bin/python3 ] &&
      timeout 600 build/venv/bin/python3 -m pip install -q --disable-pip-version-check -r tests/python/requirements.txt; } ||
      echo "setup: tests/python/requirements.txt could not be installed; the suites that need it are skipped"
  fi
fi
echo "optional=$want_optional" > $stamp
