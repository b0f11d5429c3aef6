#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what the checking of calls costs, and what bfloat16 costs beside float, and writes
docs/measured/DATE-costs.{md,csv}.

    cmake --preset release && cmake --build --preset release --target toroid-bench kernel-alone
    bench/costs.py             # about five minutes; leave the machine alone meanwhile
    bench/costs.py --quick     # half a minute, to see whether it works

All-reduce with sum, in place, two processes. The sides of each comparison run in turn, round after round, by one timing
rule, and only rounds of one placement of the cores are put together. Every number comes from these runs.
"""
import argparse
import csv
import dataclasses
import datetime
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # importing leaves nothing in the source tree
import plot  # noqa: E402
import report  # noqa: E402
from report import KIB, MIB, ROOT, microseconds, table  # noqa: E402

LEVEL = 0.05  # a difference below this is none
PLACEMENTS = ("near", "far", "mixed", "crowded")


@dataclasses.dataclass(frozen=True)
class Side:
    name: str
    tool: str  # below the folder of the build
    words: tuple


def all_reduce(name, memory, checking, element):
    return Side(name, "bench/toroid-bench",
                ("all_reduce", "--launch", "processes", "--ranks", "2", "--in-place", "--format", "csv", "--memory", memory,
                 "--check", checking, "--type", element))


@dataclasses.dataclass(frozen=True)
class Comparison:
    """How many times as long as `base` may `side` take?"""
    title: str
    side: Side
    base: Side
    low: int
    high: int
    limits: tuple  # (from size, to size, ratio)

    def limit(self, size):
        return next((ratio for low, high, ratio in self.limits if low <= size <= high), None)


KERNEL = Side("reduction loop alone, bfloat16", "bench/micro/kernel-alone", ("--bfloat16",))
COMPARISONS = (
    Comparison("Checking of calls, memory that peers can read", all_reduce("check::calls", "shared", "calls", "float"),
               all_reduce("check::none", "shared", "none", "float"), 4, 16 * KIB, ((4, 4, 1.1),)),
    Comparison("Checking of calls, ordinary memory", all_reduce("check::calls", "private", "calls", "float"),
               all_reduce("check::none", "private", "none", "float"), 4, 16 * KIB, ((4, 4, 1.1),)),
    Comparison("bfloat16 beside the same bytes of float", all_reduce("bfloat16", "shared", "calls", "bfloat16"),
               all_reduce("float", "shared", "calls", "float"), KIB, 64 * MIB, ((16 * MIB, sys.maxsize, 1.3),)),
    Comparison("bfloat16 beside its reduction loop alone", all_reduce("bfloat16", "shared", "calls", "bfloat16"), KERNEL,
               KIB, 64 * MIB, ((256 * KIB, 16 * MIB - 1, 1.2),)),
)


@dataclasses.dataclass(frozen=True)
class Line:
    comparison: str
    round: int
    side: str
    size: int
    time: float
    placement: str


def measure(build, side, low, high):
    command = [str(build / side.tool), *side.words, "--min-bytes", str(low), "--max-bytes", str(high), "--factor", "4",
               "--repeat", "3"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    rows = list(csv.DictReader(done.stdout.splitlines()))
    if done.returncode != 0 or any(int(row["wrong"]) for row in rows):
        sys.exit(f"costs.py: {shlex.join(command)} failed with {done.returncode}")
    return [(int(row["bytes"]), float(row["time_us"]), row["placement"]) for row in rows]


def rows_of(comparison, lines, placement):
    """Yields (size, time of side, of base, ratio, least, greatest, rounds)."""
    own = [x for x in lines if x.comparison == comparison.title and x.placement == placement]
    for size in sorted({x.size for x in own}):
        times = {s.name: {x.round: x.time for x in own if x.side == s.name and x.size == size}
                 for s in (comparison.side, comparison.base)}
        side, base = times[comparison.side.name], times[comparison.base.name]
        ratios = [side[n] / base[n] for n in side if n in base]
        if ratios:
            both = [n for n in side if n in base]
            yield (size, statistics.median(side[n] for n in both), statistics.median(base[n] for n in both),
                   statistics.median(ratios), min(ratios), max(ratios), len(ratios))


def verdict(ratio, limit):
    if limit is None:
        return "no limit"
    return "passes" if ratio <= limit else "level" if ratio <= limit * (1 + LEVEL) else "falls short"


def write(path, lines, facts, commands, rounds):
    out = [f"# What checking and bfloat16 cost ({path.name[:10]})\n",
           "All-reduce with sum, in place, two processes; medians over rounds in which both sides met the same placement of "
           f"the cores, {rounds} rounds in all. `bench/costs.py` made this page.\n",
           table(["what", "value"], [[k, v] for k, v in facts])]
    judged = []
    for c in COMPARISONS:
        out.append(f"## {c.title}\n")
        for placement in PLACEMENTS:
            rows = list(rows_of(c, lines, placement))
            if not rows:
                continue
            shown = []
            for size, side, base, ratio, least, greatest, count in rows:
                limit = c.limit(size) if placement in ("near", "crowded") else None
                judged += [(c, size, verdict(ratio, limit))] if limit else []
                shown.append([plot.size_text(size), microseconds(base), microseconds(side), f"{ratio:.2f}",
                              f"{least:.2f} to {greatest:.2f}", str(count), f"{limit:g}" if limit else "",
                              verdict(ratio, limit)])
            out.append(f"Cores {placement}:\n")
            out.append(table(["size", f"{c.base.name}, µs", f"{c.side.name}, µs", "ratio", "over rounds", "rounds", "limit",
                              "verdict"], shown))
    out.append("## Commands\n\n```\n" + "\n".join(sorted(commands)) + "\n```\n")
    out.append("## What was not run\n\n* Other operators and types, more than two ranks, out of place.\n"
               "* The clock gives steps of 10 ns here and there: at 4 B one step is a tenth of the time.\n")
    path.write_text("\n".join(out), encoding="utf-8")
    return judged


def main():
    parser = argparse.ArgumentParser(description="Measures what checking and bfloat16 cost.")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help="build folder with bench/")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "measured", help="folder of the report")
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="first part of the file names")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="two rounds, sizes up to 1 MiB")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds = min(arguments.rounds, 2)
    if arguments.rounds < 1:
        parser.error("at least one round")
    build = arguments.build.resolve()
    for tool in {s.tool for c in COMPARISONS for s in (c.side, c.base)}:
        if not os.access(build / tool, os.X_OK):
            sys.exit(f"costs.py: {build / tool} is not there; build it first (cmake --build --preset release)")
    begin, before, lines, commands = time.monotonic(), os.getloadavg()[0], [], set()
    for number in range(1, arguments.rounds + 1):
        for c in COMPARISONS:
            print(f"{time.monotonic() - begin:4.0f} s: round {number}, {c.title}", file=sys.stderr, flush=True)
            high = min(c.high, MIB) if arguments.quick else c.high
            sides = (c.side, c.base) if number % 2 else (c.base, c.side)
            for side in sides:
                commands.add(shlex.join([side.tool, *side.words, "--min-bytes", str(c.low), "--max-bytes", str(high)]))
                lines += [Line(c.title, number, side.name, *found) for found in measure(build, side, c.low, high)]
    facts = [f for f in report.machine(build) if f[0] != "flags of yardstick"]
    facts.append(("load average", f"{before:.1f} before the first round, {os.getloadavg()[0]:.1f} after the last"))
    arguments.out.mkdir(parents=True, exist_ok=True)
    stem = arguments.out / f"{arguments.date}-costs"
    with open(f"{stem}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in dataclasses.fields(Line)])
        writer.writerows(dataclasses.astuple(x) for x in lines)
    judged = write(pathlib.Path(f"{stem}.md"), lines, facts, commands, arguments.rounds)
    words = [outcome for _, _, outcome in judged]
    print(f"{stem}.md: {words.count('passes')} pass, {words.count('level')} level, {words.count('falls short')} fall short",
          file=sys.stderr)


if __name__ == "__main__":
    main()
