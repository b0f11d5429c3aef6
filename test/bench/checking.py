# SPDX-License-Identifier: Apache-2.0
"""What the tests of the benchmarks share: to run a program, to read what it prints, to keep count of failures."""
import csv
import io
import json
import math
import subprocess

SIZES = ["--min-bytes", "4", "--max-bytes", "64K", "--factor", "128", "--repeat", "1", "--iterations", "3"]
COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier"]
FORMATS = ["nccl", "osu", "csv", "json"]
IN_BLOCKS = {"all_gather"}  # of which the OSU micro-benchmarks count the block of one rank

failures = []


def check(ok, text):
    print(("ok      " if ok else "FAILED  ") + text, flush=True)
    if not ok:
        failures.append(text)


def run(*command, seconds=120):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=seconds)


def rows_of(done):
    return list(csv.DictReader(io.StringIO(done.stdout)))


def data_lines(done):
    """The words of each line that holds figures."""
    return [line.split() for line in done.stdout.splitlines() if line.strip() and not line.startswith("#")]


def document_of(done):
    # NaN and Infinity are no JSON, though Python reads them.
    return json.loads(done.stdout, parse_constant=lambda word: math.nan)


def numbers(words):
    try:
        return [float(word) for word in words]
    except ValueError:
        return []


def sizes_for(collective, ranks=2):
    """Few and short messages; of blocks whole ones, as --format osu wants them."""
    if collective == "barrier":
        return ["--iterations", "3", "--repeat", "1"]
    return ["--min-bytes", str(8 * ranks), *SIZES[2:]]


def check_format(name, collective, form, ranks, done):
    """What one format must look like, whatever was measured: its lines, and a time above zero in each."""
    check(done.returncode == 0, f"{name} ends with {done.returncode} {done.stderr.strip()}")
    if form == "nccl":
        lines = data_lines(done)
        check(bool(lines) and all(len(line) >= 21 for line in lines), f"{name}: {len(lines)} lines of the table")
        check("# Out of bounds values : 0 OK" in done.stdout, f"{name}: says that nothing was wrong")
    elif form == "osu":
        lines = [numbers(line) for line in data_lines(done)]
        wanted = 1 if collective == "barrier" else 2
        check(bool(lines) and all(len(line) == wanted and line[-1] > 0 for line in lines), f"{name}: {wanted} columns of numbers")
        if collective != "barrier":
            first = 8 if collective in IN_BLOCKS else 8 * ranks
            check([line[0] for line in lines][:1] == [first], f"{name}: the first size is {first}")
    elif form == "csv":
        rows = rows_of(done)
        check(bool(rows) and all(float(row["time_us"]) > 0 and row["wrong"] == "0" for row in rows), f"{name}: {len(rows)} lines")
    else:
        document = document_of(done)
        check(document["wrong"] == 0 and document["error"] is None and bool(document["lines"]), f"{name}: a document")
