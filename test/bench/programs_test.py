#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs toroid-bench, yardstick and plot.py on small sizes, and checks what they print, draw and refuse.

usage: programs_test.py TOROID_BENCH YARDSTICK PLOT
"""
import csv
import io
import json
import math
import os
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


def is_finite_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def check_json(bench):
    """The JSON document says what the comma-separated values say."""
    texts = {"collective", "launch", "transport", "memory", "algorithm", "type", "redop", "place", "placement"}
    measured = {"time_us", "min_us", "p50_us", "p99_us", "skew_us", "algbw_gbs", "busbw_gbs", "barrier_ns", "placement"}
    for what in [["all_reduce", "--launch", "processes", *SIZES],
                 ["all_reduce", "--algorithm", "ring", "--segment-bytes", "4K", "--in-place", *SIZES],
                 ["broadcast", "--root", "1", "--type", "int8", *SIZES],
                 ["barrier", "--iterations", "3"]]:
        name = "json: " + " ".join(what[:3])
        done = run(bench, *what, "--format", "json")
        check(done.returncode == 0, f"{name} ends with {done.returncode} {done.stderr.strip()}")
        try:
            # NaN and Infinity are no JSON, though Python reads them.
            document = json.loads(done.stdout, parse_constant=lambda word: math.nan)
        except ValueError as error:
            check(False, f"{name} is no JSON: {error}")
            continue
        rows = rows_of(run(bench, *what, "--format", "csv"))
        lines = document["lines"]
        check(list(document) == ["toroid", "machine", "settings", "lines", "wrong", "error"], f"{name}: its keys")
        check(re.fullmatch(r"\d+\.\d+\.\d+", document["toroid"]) is not None, f"{name}: version {document['toroid']}")
        check(document["wrong"] == 0 and document["error"] is None, f"{name}: nothing wrong, no error")
        check(bool(rows) and len(lines) == len(rows), f"{name}: {len(lines)} lines, as many as of the other format")
        check(all(list(line) == list(rows[0]) for line in lines), f"{name}: keys are the columns, in their order")
        for line, row in zip(lines, rows):
            for key, value in line.items():
                if key in texts:
                    fits = isinstance(value, str)
                elif key == "segment_bytes" and value is None:
                    fits = row[key] == ""
                else:
                    fits = is_finite_number(value)
                if key not in measured:
                    fits = fits and ("" if value is None else str(value)) == row[key]
                if not fits:
                    check(False, f"{name}: {key} is {value!r}, and {row[key]!r} in the other format")
        settings = document["settings"]
        has_data = what[0] != "barrier"
        sizes = sorted({line["bytes"] for line in lines})
        check(settings["sizes"] == sizes, f"{name}: settings and lines have the sizes {sizes}")
        check(settings["iterations"] == 3 and settings["check"] == "calls" and settings["pin"] is True,
              f"{name}: settings say what was asked for and what was not")
        check(not has_data or all(line["time_us"] > 0 and line["busbw_gbs"] > 0 for line in lines[-1:]),
              f"{name}: the last line has a time and a bandwidth")
        machine = document["machine"]
        check(machine["usable_cores"] == sorted(os.sched_getaffinity(0)), f"{name}: cores {machine['usable_cores']}")
        check(machine["kernel"].endswith(os.uname().release), f"{name}: kernel {machine['kernel']}")
        check(machine["memory_bytes"] > 0 and bool(machine["compiler"]), f"{name}: memory and compiler")
        check(list(machine) == ["processor", "architecture", "usable_cores", "memory_bytes", "kernel", "compiler"],
              f"{name}: the machine is described, and not named")

    # A run that ends early: buffers are refused.
    limited = ["bash", "-c", 'ulimit -v 400000; exec "$@"', "limited", bench, "all_reduce", "--launch", "threads",
               "--min-bytes", "1G", "--max-bytes", "1G", "--iterations", "1", "--repeat", "1", "--format", "json"]
    done = run(*limited)
    try:
        document = json.loads(done.stdout)
        check(done.returncode == 1 and document["lines"] == [] and bool(document["error"]),
              f"json: a run that ends early says why: {document['error']}")
    except ValueError as error:
        check(False, f"json: a run that ends early leaves no JSON: {error}: {done.stdout} {done.stderr}")


def main():
    bench, yardstick, plot = sys.argv[1:]
    check_json(bench)
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
