#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs toroid-bench under mpiexec with two ranks: its launch, and MPI's own collectives timed in turn.

usage: mpi_test.py LIBRARY TOROID_BENCH_OF_IT MPIEXEC [ITS_OPTIONS...]
"""
import math
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # importing leaves nothing in the source tree
from checking import (COLLECTIVES, FORMATS, check, check_format, data_lines, document_of, failures, numbers,  # noqa: E402
                      rows_of, run, sizes_for)

PLACES = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 2, "broadcast": 1, "barrier": 1}


def check_rows(name, library, rows, places, sizes):
    """Both sides have a time, their ratio is theirs, and both were checked."""
    check(len(rows) == places * sizes, f"{name}: {len(rows)} lines, {places} a size")
    for row in rows:
        own, other, ratio = (float(row[key]) for key in ("time_us", "vs_time_us", "vs_ratio"))
        fits = own > 0 and other > 0 and math.isclose(ratio, other / own, rel_tol=0.02, abs_tol=0.01)
        if not (fits and row["vs"] == library and str(row["wrong"]) == "0" and str(row["vs_wrong"]) == "0"):
            check(False, f"{name}: {row}")


def main():
    library, bench, *launcher = sys.argv[1:]

    def launched(*words, ranks=2):
        return run(*launcher, "-n", ranks, bench, *words)

    for collective in COLLECTIVES:
        few, sizes = sizes_for(collective), 1 if collective == "barrier" else 2
        for transport in ("shm", "mpi"):
            name = f"{collective} over {transport}"
            done = launched(collective, "--launch", "mpi", "--transport", transport, *few, "--format", "csv")
            check_format(name, collective, "csv", 2, done)
            check(all((row["launch"], row["ranks"], row["transport"]) == ("mpi", "2", transport) for row in rows_of(done)),
                  f"{name}: launched by mpi, 2 ranks")
            check(not any("vs" in row for row in rows_of(done)), f"{name}: nothing of --vs without it")
        done = launched(collective, "--vs", "mpi", *few, "--format", "csv")
        check(done.returncode == 0, f"{collective} --vs mpi ends with {done.returncode} {done.stderr.strip()}")
        check_rows(f"{collective} --vs mpi", library, rows_of(done), PLACES[collective], sizes)

    # The other formats, memory that peers reach, blocks of unequal length, and in place alone.
    done = launched("all_gather", "--vs", "mpi", "--memory", "shared", "--min-bytes", "12", "--max-bytes", "3K", "--factor", "256",
                    "--iterations", "3", "--in-place", "--format", "csv")
    check_rows("all_gather of unequal blocks in shared memory, in place", library, rows_of(done), 1, 2)
    done = launched("reduce_scatter", "--vs", "mpi", "--type", "uint8", "--op", "bit_xor", "--min-bytes", "7", "--max-bytes", "7",
                    "--iterations", "3", "--format", "csv")
    check_rows("reduce_scatter of unequal blocks of bytes", library, rows_of(done), 1, 1)
    for form in FORMATS:
        done = launched("all_reduce", "--vs", "mpi", *sizes_for("all_reduce"), "--format", form)
        if form == "nccl":
            lines = data_lines(done)
            check(all(len(line) == 27 and numbers(line[22:23])[0] > 0 for line in lines), "nccl: a ratio in each line")
            check(re.search(r"ranks 2\b", done.stdout) is not None, "nccl: says how many ranks there are")
            check("# Geometric mean ratio" in done.stdout, "nccl: their mean")
        elif form == "osu":
            head = [line for line in done.stdout.splitlines() if line.startswith("#")][-1]
            check(f"{library} Avg(us)" in head and "Ratio" in head, f"osu: columns for the other, as asked: {head}")
            lines = [numbers(line) for line in data_lines(done)]
            check(bool(lines) and all(len(line) == 4 and min(line) > 0 for line in lines), "osu: both averages and their ratio")
        elif form == "json":
            document = document_of(done)
            check_rows("json", library, document["lines"], 2, 2)
            check(document["vs_wrong"] == 0 and document["settings"]["vs"]["library"] == library, "json: names the library")

    # What contradicts itself or the launcher is refused on all ranks, before anything is printed to stdout.
    for why, words in [("mpiexec has started 2", ["--ranks", "3"]),
                       ("does not go with --transport threads", ["--transport", "threads"]),
                       ("has only none", ["--transport", "mpi", "--check", "calls"]),
                       ("--memory shared", ["--transport", "mpi", "--memory", "shared"]),
                       ("is not there over --transport mpi", ["--transport", "mpi", "--type", "int8"]),
                       ("MPI has no average", ["--vs", "mpi", "--op", "average"]),
                       ("MPI has no sum of float16", ["--vs", "mpi", "--type", "float16"]),
                       ("no-such-option", ["--no-such-option"])]:
        done = launched("all_reduce", "--launch", "mpi", *words)
        own_words = [line for line in done.stderr.splitlines() if why in line]
        check(done.returncode != 0 and len(own_words) == 1 and done.stdout.find("toroid-bench") < 0,
              f"refused, and said once: {' '.join(words)}: {own_words}")
    done = launched("all_reduce", "--launch", "mpi", "--ranks", "1", "--iterations", "3", "--max-bytes", "64", ranks=1)
    check(done.returncode == 0 and "ranks 1," in done.stdout, f"a world of one rank ends with {done.returncode}")
    # More memory than there are addresses: the document says why it ends early, and no rank is left.
    done = launched("all_reduce", "--launch", "mpi", "--min-bytes", "1000000G", "--max-bytes", "1000000G", "--iterations", "1",
                    "--format", "json")
    document = document_of(done)
    check(done.returncode != 0 and document["lines"] == [] and bool(document["error"]),
          f"a run that ends early says why: {document['error']}")
    alone = {key: value for key, value in os.environ.items() if not key.startswith(("PMI", "OMPI_", "SLURM_"))}
    done = subprocess.run([bench, "all_reduce", "--launch", "mpi"], capture_output=True, text=True, timeout=60, env=alone)
    check(done.returncode == 2 and "no mpiexec" in done.stderr, f"without mpiexec: {done.stderr.strip()}")
    # A launcher of another library leaves each process alone, with its own number of ranks only in the environment.
    done = subprocess.run([bench, "all_reduce", "--launch", "mpi"], capture_output=True, text=True, timeout=60,
                          env={**alone, "OMPI_COMM_WORLD_SIZE": "3", "SLURM_PROCID": "0"})
    check(done.returncode == 2 and "has started 3 ranks" in done.stderr, f"another launcher: {done.stderr.strip()}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
