#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages the build and the tests need. Does nothing, and needs no network, when all are there.
set -euo pipefail

packages=(
  build-essential g++ cmake ninja-build pkg-config git python3 python3-pip python3-venv ccache
  clang clang-format clang-tidy libclang-rt-dev                       # second compiler, lint, libFuzzer
  libsimdjson-dev libfmt-dev libcli11-dev nlohmann-json3-dev libisal-dev libdnnl-dev libxxhash-dev
  ocl-icd-opencl-dev                                                  # libdnnl's CMake package asks for it
  libgtest-dev libgmock-dev libbenchmark-dev
)

# `setup.sh browser`: what only the tests of the pages need, which are skipped without.
if [[ ${1:-} == browser ]]; then
  packages=(chromium-headless-shell)
fi

if ! command -v dpkg-query >/dev/null; then
  echo "setup: not a Debian system, nothing installed; the build needs the equivalents of: ${packages[*]}"
  exit 0
fi

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null |
  sed -n 's/^installed //p' || true)
missing=()
for package in "${packages[@]}"; do
  grep -qxF -- "$package" <<<"$installed" || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "setup: missing packages; as root, run: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# An update that fails is no reason to stop: the package lists may be good enough.
"${as_root[@]}" apt-get update >"$log" 2>&1 || true
if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "setup: apt-get could not install: ${missing[*]}" >&2
  exit 1
fi
