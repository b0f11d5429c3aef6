#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints an all-reduce's times from 4 B to 64 MiB over processes of this machine: toroid's, with memory that peers can
# reach and with ordinary memory, beside those of an MPI library at its defaults. Says so where no MPI is here.
#
#   bench/peers/quick_table.sh [BUILD_FOLDER [RANKS]]      by default build/release and 2
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
build=${1:-$here/../../build/release}
ranks=${2:-2}
peers=$build/bench/peers

if [ ! -x "$build/bench/toroid-bench" ]; then
  echo "quick_table.sh: $build/bench/toroid-bench is not there; build it first" >&2
  exit 1
fi

# Which of the libraries has both its launcher and its program here; none is no error.
mpi='' name='MPI'
if [ -x "$peers/mpi-all-reduce-openmpi" ] && command -v mpiexec.openmpi >/dev/null; then
  mpi=openmpi name='Open MPI'
elif [ -x "$peers/mpi-all-reduce-mpich" ] && command -v mpiexec.mpich >/dev/null; then
  mpi=mpich name='MPICH'
fi

sizes=(--min-bytes 4 --max-bytes 67108864 --factor 8 --in-place --repeat 3)
# A library that spins while others need the core takes milliseconds a call.
[ "$ranks" -le "$(nproc)" ] || sizes+=(--iterations 25)

toroid() {
  "$build/bench/toroid-bench" all_reduce --launch processes --memory "$1" --ranks "$ranks" --format csv "${sizes[@]}"
}
mpi() {
  case $mpi in
    openmpi)
      local root=()
      [ "$(id -u)" -ne 0 ] || root=(--allow-run-as-root)
      timeout 300 mpiexec.openmpi ${root[@]+"${root[@]}"} --oversubscribe --bind-to none -n "$ranks" \
        "$peers/mpi-all-reduce-openmpi" "${sizes[@]}"
      ;;
    mpich) timeout 300 mpiexec.mpich -n "$ranks" "$peers/mpi-all-reduce-mpich" "${sizes[@]}" ;;
  esac
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
toroid shared >"$folder/shared"
toroid private >"$folder/private"
: >"$folder/mpi"
why="No MPI to compare with: install Debian's openmpi-bin and libopenmpi-dev, and build toroid-peers."
if [ -n "$mpi" ] && ! mpi >"$folder/mpi"; then
  why="$name is here, but did not run; see above."
  mpi=''
  : >"$folder/mpi"
fi

printf 'All-reduce of float, sum, in place, %s processes; µs a call\n\n' "$ranks"
awk -F, -v mpi="$mpi" -v name="$name" '
  function size_text(bytes, unit) {
    split("B KiB MiB GiB", units, " ")
    for (unit = 1; bytes >= 1024 && unit < 4; ++unit) bytes /= 1024
    return bytes " " units[unit]
  }
  function microseconds(value) { return value == "" ? "-" : sprintf(value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value) }
  FNR == 1 { which = FILENAME; sub(".*/", "", which); for (i = 1; i <= NF; ++i) column[$i] = i; next }
  {
    bytes = $column["bytes"]
    if (!(bytes in seen)) { seen[bytes]; order[++lines] = bytes }
    time[which, bytes] = $column["time_us"]
    placement[bytes] = placement[bytes] (placement[bytes] ~ $column["placement"] ? "" : " " $column["placement"])
  }
  END {
    # printf counts bytes, so that no name may hold more than ASCII.
    printf "%10s %16s %17s", "size", "toroid, shared", "toroid, private"
    if (mpi != "") printf " %12s %18s %19s", name, "shared is faster", "private is faster"
    printf "   %s\n", "cores are"
    for (i = 1; i <= lines; ++i) {
      bytes = order[i]
      printf "%10s %16s %17s", size_text(bytes), microseconds(time["shared", bytes]), microseconds(time["private", bytes])
      if (mpi != "")
        printf " %12s %17.1fx %18.1fx", microseconds(time["mpi", bytes]), time["mpi", bytes] / time["shared", bytes],
          time["mpi", bytes] / time["private", bytes]
      printf "  %s\n", placement[bytes]
    }
  }' "$folder/shared" "$folder/private" "$folder/mpi"
cat <<END

shared: memory from toroid::allocate, which peers can reach; private: ordinary memory. Where a line says both near and
far, the cores changed between the programs, and the comparison means little.
END
[ -n "$mpi" ] || echo "$why"
