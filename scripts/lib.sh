# SPDX-License-Identifier: Apache-2.0
# What the commands of this project share. To be sourced by bash, with `set -euo pipefail` in force.

say() { printf '\n== %s\n' "$*"; }
fail() {
  printf '\ntoroid: %s\n' "$*" >&2
  exit 1
}

# need_packages PACKAGE...: install the Debian packages of these that are missing; do nothing where all are there.
need_packages() {
  local missing=() package
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    fail "cannot install packages: apt-get is not here. Install what these Debian packages hold by other means, then" \
      "pass --no-install: $*"
  fi
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    say "Packages: all that is needed is installed"
    return
  fi
  local root=() reason="cannot install ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "$reason: not root, and there is no sudo. Run apt-get install as root first."
    root=(sudo)
    # Without a terminal nobody can type a password.
    [ -t 0 ] || root+=(--non-interactive)
  fi
  say "Packages: installing ${missing[*]}${root[0]:+ (with sudo)}"
  root+=(env DEBIAN_FRONTEND=noninteractive)
  "${root[@]}" apt-get update --quiet=2 </dev/null || say "apt-get update failed; going on with the lists that are here"
  "${root[@]}" apt-get install --yes --quiet=2 --no-install-recommends "${missing[@]}" </dev/null ||
    fail "$reason: apt-get install failed"
}

# need_commands COMMAND...: stop with a clear message where one is missing (for --no-install).
need_commands() {
  local command
  for command in "$@"; do
    command -v "$command" >/dev/null || fail "the command '$command' is not here: install it, or leave out --no-install"
  done
}

# build PRESET [TARGET...]: configure and build below build/PRESET.
build() {
  local preset=$1
  shift
  say "Configuring the preset $preset"
  cmake --preset "$preset"
  say "Building the preset $preset${1:+: $*}"
  cmake --build --preset "$preset" ${1:+--target "$@"}
}

# run_tests PRESET [ARGUMENTS OF ctest...]: run tests, then count what was skipped inside tests that passed, with the
# reasons, and repeat ctest's closing lines, so that they come last.
run_tests() {
  local preset=$1 output status=0
  shift
  output=$(mktemp)
  ctest --preset "$preset" "$@" 2>&1 | tee "$output" || status=${PIPESTATUS[0]}
  local skips
  skips=$(grep -h '^ *skipped' "build/$preset/Testing/Temporary/LastTest.log" 2>/dev/null | sed 's/^ *//' || true)
  if [ -z "$skips" ]; then
    say "Skipped within tests: 0"
  else
    say "Skipped within tests: $(wc -l <<<"$skips")"
    sort <<<"$skips" | uniq -c
  fi
  echo
  sed -n '/tests passed, .* failed out of/,$p' "$output"
  rm -f "$output"
  return "$status"
}
