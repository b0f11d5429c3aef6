#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs toroid-bench, yardstick and plot.py on small sizes, and checks what they print, draw and refuse.

usage: programs_test.py TOROID_BENCH YARDSTICK PLOT
"""
import csv
import io
import pathlib
import re
import subprocess
import sys
import tempfile

SIZES = ["--min-bytes", "4", "--max-bytes", "64K", "--factor", "128", "--repeat", "1", "--iterations", "3"]
COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier"]

failures = []


def check(ok, text):
    print(("ok      " if ok else "FAILED  ") + text, flush=True)
    if not ok:
        failures.append(text)


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)


def rows_of(done):
    return list(csv.DictReader(io.StringIO(done.stdout)))


def main():
    bench, yardstick, plot = sys.argv[1:]
    for collective in COLLECTIVES:
        for place in [["threads"], ["processes", "--memory", "shared"], ["processes", "--memory", "private"]]:
            if collective == "barrier":  # has no data, hence neither sizes nor memory
                place, sizes = place[:1], []
            else:
                sizes = SIZES
            done = run(bench, collective, "--launch", *place, "--ranks", "3", *sizes, "--format", "csv")
            what = f"{collective} {' '.join(place)}"
            check(done.returncode == 0, f"{what} ends with {done.returncode} {done.stderr.strip()}")
            rows = rows_of(done)
            check(bool(rows) and all(row["wrong"] == "0" for row in rows), f"{what}: {len(rows)} lines, nothing wrong")
            check(all(float(row["time_us"]) > 0 for row in rows), f"{what}: every line has a time")

    done = run(bench, "all_reduce", "--ranks", "2", *SIZES, "--format", "nccl")
    lines = [line.split() for line in done.stdout.split("\n") if re.match(r"\s*\d", line)]
    check(done.returncode == 0 and bool(lines), f"the table of nccl-tests has {len(lines)} lines")
    columns_agree = all(line[0] == str(int(line[1]) * 4) and line[2:4] == ["float", "sum"] for line in lines)
    check(columns_agree, "size, count, type and operator of the table")

    for contradiction in [
        ["--launch", "threads", "--transport", "shm"],
        ["--ranks", "0"],
        ["--type", "float", "--op", "bit_and"],
        ["--algorithm", "ring", "--type", "int32", "--op", "average"],
        ["--no-such-option"],
    ]:
        done = run(bench, "all_reduce", *contradiction)
        words = done.stderr.strip()
        check(done.returncode != 0 and words != "", f"refused: {' '.join(contradiction)}: {words}")

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        ours = run(bench, "all_reduce", "--ranks", "2", *SIZES, "--format", "csv")
        (folder / "ours.csv").write_text(ours.stdout)
        theirs = run(yardstick, 2, 4, 65536, 128, "inplace", "--repeat", 1)
        check(theirs.returncode == 0 and bool(rows_of(theirs)), f"yardstick prints {len(rows_of(theirs))} lines")
        (folder / "yardstick.csv").write_text(theirs.stdout)
        data = [folder / "ours.csv", folder / "yardstick.csv"]
        drawn = run(sys.executable, "-B", plot, *data, "--out", folder / "picture")
        if drawn.returncode != 0 and "matplotlib is missing" in drawn.stderr:
            print("skipped: plot.py, since matplotlib is not here")
        else:
            check(drawn.returncode == 0, f"plot.py ends with {drawn.returncode} {drawn.stderr.strip()}")
            for name, start in [("picture.png", b"\x89PNG\r\n"), ("picture.svg", b"<?xml")]:
                path = folder / name
                check(path.exists() and path.read_bytes().startswith(start), f"plot.py draws {name}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
