#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs toroid-bench, yardstick and plot.py on small sizes, and checks what they print, draw and refuse.

usage: programs_test.py TOROID_BENCH YARDSTICK PLOT
"""
import json
import math
import os
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True  # importing leaves nothing in the source tree
from checking import (COLLECTIVES, FORMATS, SIZES, check, check_format, data_lines, document_of, failures,  # noqa: E402
                      numbers, rows_of, run, sizes_for)

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
            document = document_of(done)
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


def check_osu(bench):
    """The columns that scripts for the OSU micro-benchmarks read."""
    done = run(bench, "all_reduce", *SIZES, "--format", "osu")
    head = [line for line in done.stdout.splitlines() if line.startswith("#")][-1]
    check(head == "# Size       Avg Latency(us)", f"osu: headed by '{head}'")
    sizes = [line[0] for line in data_lines(done)]
    check(sizes == ["4", "512", "65536"], f"osu: sizes {sizes} of the whole buffer")

    done = run(bench, "all_gather", "--ranks", "4", "--max-bytes", "4K", "--iterations", "3", "--repeat", "2", "--format", "osu",
               "--full")
    head = [line for line in done.stdout.splitlines() if line.startswith("#")][-1]
    check(re.split(r"\s{2,}", head) == ["# Size", "Avg Latency(us)", "Min Latency(us)", "Max Latency(us)", "Iterations"],
          f"osu: headed by '{head}'")
    lines = [numbers(line) for line in data_lines(done)]
    check([line[0] for line in lines] == [4, 16, 64, 256, 1024], "osu: sizes of one rank's block, from one element on")
    check(all(len(line) == 5 and 0 < line[2] <= line[1] <= line[3] and line[4] == 6 for line in lines),
          "osu: least <= average <= greatest, and the calls of all runs")

    head, *lines = run(bench, "barrier", "--iterations", "3", "--format", "osu").stdout.splitlines()[-2:]
    check(head.split() == ["#", "Avg", "Latency(us)"] and len(lines[0].split()) == 1, "osu: a barrier has no sizes")


def check_refusals(bench):
    """What does not apply is refused, not ignored."""
    refused = [
        ("all_reduce", "--launch threads --transport shm", "does not go with"),
        ("all_reduce", "--launch mpi --transport threads", "no MPI in it"),
        ("all_reduce", "--ranks 0", "--ranks"),
        ("all_reduce", "--type float --op bit_and", "is for integers"),
        ("all_reduce", "--algorithm ring --type int32 --op average", "not exact"),
        ("all_reduce", "--no-such-option", "no-such-option"),
        ("all_reduce", "--format xml", "xml"),
        ("all_reduce", "--root 1", "root"),
        ("all_reduce", "--rows 1", "for --algorithm torus_2d"),
        ("all_reduce", "--algorithm torus_2d --rows 2 --columns 2 --ranks 3", "do not fit 3 ranks"),
        ("all_reduce", "--segment-bytes 4K", "automatic chooses its own"),
        ("all_reduce", "--full", "--format osu"),
        ("all_reduce", "--format osu --in-place --out-of-place", "excludes"),
        ("all_reduce", "--launch threads --vs mpi", "--vs mpi needs --launch mpi"),
        ("all_reduce", "--vs gloo", "gloo"),
        ("reduce_scatter", "--in-place", "in-place"),
        ("reduce_scatter", "--algorithm tree", "not done by"),
        ("all_gather", "--op sum", "op"),
        ("all_gather", "--algorithm torus_2d --rows 1", "rows"),
        ("all_gather", "--ranks 3 --min-bytes 16 --format osu", "not a whole number"),
        ("broadcast", "--root 2 --ranks 2", "not one of 2 ranks"),
        ("broadcast", "--out-of-place", "out-of-place"),
        ("barrier", "--memory shared", "memory"),
        ("barrier", "--algorithm ring", "algorithm"),
        ("barrier", "--max-bytes 4", "max-bytes"),
    ]
    for collective, options, why in refused:
        done = run(bench, collective, *options.split())
        words = done.stderr.strip()
        check(done.returncode == 2 and why in words and done.stdout == "", f"refused: {collective} {options}: {words}")
    words = run(bench, "all_reduce", "--launch", "mpi").stderr
    check("no MPI in it" in words and "\n" not in words.strip(), f"says which program has MPI: {words.strip()}")


def main():
    bench, yardstick, plot = sys.argv[1:]
    check_json(bench)
    check_osu(bench)
    check_refusals(bench)
    for collective in COLLECTIVES:
        for form in FORMATS:
            done = run(bench, collective, *sizes_for(collective, 3), "--ranks", "3", "--format", form)
            check_format(f"{collective} --format {form}", collective, form, 3, done)
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
