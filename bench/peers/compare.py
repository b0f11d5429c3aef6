#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds toroid-bench's all-reduce between processes against MPI and Gloo, and writes
docs/measured/DATE-shared-memory.{md,csv} with pictures.

    cmake --preset release && cmake --build --preset release --target toroid-bench toroid-peers
    bench/peers/compare.py             # leave the machine alone meanwhile
    bench/peers/compare.py --quick     # a minute or two, few sizes, to see whether it works

All programs run in turn, round after round, by one timing rule. What is not installed is left out, and the report says
so. Every number in the report comes from these runs.
"""
import argparse
import csv
import dataclasses
import datetime
import os
import pathlib
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # importing leaves nothing in the source tree
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import plot  # noqa: E402
import report  # noqa: E402
from report import KIB, MIB, PLACES, RESNET_50, microseconds, output_of, table  # noqa: E402

ROOT = report.ROOT
LEVEL = 0.05  # a difference below this is none
UNTIL = 300  # seconds that one program may take for one part
CROWDED_CALLS = 25  # of a library that spins while ranks outnumber cores, below LARGE: each takes milliseconds
LARGE = 64 * MIB
PLACEMENTS = ("near", "far", "crowded")


# What is run


@dataclasses.dataclass(frozen=True)
class Program:
    """One measured program with one choice of settings."""
    name: str
    family: str  # toroid, MPI or Gloo
    tool: str  # below the folder of the build
    words: tuple = ()  # for the program
    launcher: tuple = ()  # what starts the ranks, without their number
    spins: bool = False  # even while ranks outnumber cores
    crowded_large: bool = True  # also run above LARGE with more ranks than cores


def toroid(name, memory):
    return Program(name, "toroid", "bench/toroid-bench",
                   ("all_reduce", "--launch", "processes", "--memory", memory, "--algorithm", "automatic", "--check", "calls",
                    "--type", "float", "--op", "sum", "--format", "csv"))


def open_mpi(name, label, *settings):
    root = ("--allow-run-as-root",) if os.geteuid() == 0 else ()
    return Program(name, "MPI", "bench/peers/mpi-all-reduce-openmpi", ("--label", label),
                   ("mpiexec.openmpi", *root, "--oversubscribe", "--bind-to", "none", *settings))


def gloo(name, algorithm):
    return Program(name, "Gloo", "bench/peers/gloo-all-reduce", ("--algorithm", algorithm), crowded_large=False)


# Open MPI takes UCX for itself only where it finds a network card, unless told that any transport will do.
OVER_UCX = ("--mca", "pml", "ucx", "--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any",
            "-x", "UCX_TLS=posix,cma,self")
SEGMENTED_RING = ("--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", "5",
                  "--mca", "coll_tuned_allreduce_algorithm_segmentsize", str(128 * KIB))

PRIVATE = toroid("toroid, private memory", "private")
SHARED = toroid("toroid, shared memory", "shared")
PROGRAMS = (
    PRIVATE,
    SHARED,
    Program("MPICH", "MPI", "bench/peers/mpi-all-reduce-mpich", (), ("mpiexec.mpich",), spins=True),
    open_mpi("Open MPI", "default"),
    open_mpi("Open MPI, UCX", "ucx", *OVER_UCX),
    open_mpi("Open MPI, segmented ring", "segmented_ring", *SEGMENTED_RING),
    open_mpi("Open MPI, UCX, segmented ring", "ucx_segmented_ring", *OVER_UCX, *SEGMENTED_RING),
    gloo("Gloo, halving-doubling", "halving_doubling"),
    gloo("Gloo, ring", "ring"),
    gloo("Gloo, bcube", "bcube"),
)


# What is asked of the library


@dataclasses.dataclass(frozen=True)
class Limit:
    """How much faster than the fastest setting of a family the library has to be."""
    name: str
    program: Program
    family: str
    ranks: int
    placement: str
    low: int  # sizes from here
    high: int  # to here, in bytes
    factor: float
    is_goal: bool = False  # wished for, not asked

    def is_for(self, program, family, ranks, placement, size):
        return ((self.program, self.family, self.ranks, self.placement) == (program, family, ranks, placement)
                and self.low <= size <= self.high)


ANY = sys.maxsize
LIMITS = (
    Limit("2 near ranks, private memory, against MPI up to 64 B", PRIVATE, "MPI", 2, "near", 1, 64, 2),
    Limit("2 near ranks, private memory, against MPI up to 1 KiB", PRIVATE, "MPI", 2, "near", 65, KIB, 1.5),
    Limit("2 near ranks, private memory, against MPI above", PRIVATE, "MPI", 2, "near", KIB + 1, ANY, 1.3),
    Limit("2 near ranks, private memory, against Gloo up to 4 MiB", PRIVATE, "Gloo", 2, "near", 1, 4 * MIB, 4),
    Limit("2 near ranks, private memory, against Gloo above", PRIVATE, "Gloo", 2, "near", 4 * MIB + 1, ANY, 3),
    Limit("2 far ranks, private memory, never slower than MPI", PRIVATE, "MPI", 2, "far", 1, ANY, 1),
    Limit("2 far ranks, shared memory, never slower than MPI", SHARED, "MPI", 2, "far", 1, ANY, 1),
    Limit("4 ranks on fewer cores, shared memory, faster than MPI", SHARED, "MPI", 4, "crowded", 1, ANY, 1),
    Limit("4 ranks on fewer cores, private memory, level with MPI", PRIVATE, "MPI", 4, "crowded", 1, ANY, 1, is_goal=True),
)
CONTESTS = ((PRIVATE, "MPI"), (PRIVATE, "Gloo"), (SHARED, "MPI"))


def parts_of(ranks, quick):
    """Runs of sizes that are measured together: (least, greatest, further sizes)."""
    if quick:
        return ((4, 16 * KIB, ()), (256 * KIB, 4 * MIB, ()))
    if ranks == 2:
        return ((4, 64 * KIB, ()), (256 * KIB, 16 * MIB, ()), (LARGE, 256 * MIB, (RESNET_50,)))
    return ((4, 16 * MIB, ()), (LARGE, 256 * MIB, (RESNET_50,)))


# Measuring


@dataclasses.dataclass(frozen=True)
class Line:
    round: int
    program: str
    ranks: int
    place: str
    size: int
    time: float
    least: float
    p99: float
    barrier_ns: float
    placement: str
    iterations: int


def run_bounded(command, seconds):
    """Runs a command, and leaves nothing of it behind whatever happens. Returns (status, output, complaint)."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as job:
        try:
            output, complaint = job.communicate(timeout=seconds)
            return job.returncode, output, complaint
        except subprocess.TimeoutExpired:
            return 124, "", f"did not end within {seconds} s"
        finally:
            if job.poll() is None:
                job.terminate()  # an mpiexec then ends its ranks, which are not all of its process group
                try:
                    job.communicate(timeout=15)
                except subprocess.TimeoutExpired:
                    os.killpg(job.pid, signal.SIGKILL)


class Bench:
    """Runs the programs and keeps what they say."""

    def __init__(self, build):
        self.build = build
        self.lines = []
        self.commands = {}  # by program and ranks, the first of each
        self.versions = {}  # of libraries
        self.left_out = {}  # by program: why
        for program in PROGRAMS:
            missing = [program.tool] if not os.access(build / program.tool, os.X_OK) else []
            missing += [x for x in program.launcher[:1] if shutil.which(x) is None]
            if missing and program.family == "toroid":
                sys.exit(f"compare.py: {build / missing[0]} is not there; build it first (cmake --build --preset release)")
            if missing:
                self.left_out[program.name] = f"{missing[0]} is not there"

    def programs(self):
        return [p for p in PROGRAMS if p.name not in self.left_out]

    def command(self, program, ranks, part):
        low, high, also = part
        launch = [*program.launcher, "-n", str(ranks)] if program.launcher else []
        count = [] if program.launcher else ["--ranks", str(ranks)]
        calls = ["--iterations", str(CROWDED_CALLS)] if program.spins and ranks > cores() and low < LARGE else []
        extra = [word for size in also for word in ("--also", str(size))]
        return [*launch, str(self.build / program.tool), *program.words, *count, "--min-bytes", str(low),
                "--max-bytes", str(high), "--factor", "4", *extra, "--repeat", "1", *calls]

    def run(self, number, program, ranks, part):
        if ranks > cores() and part[0] >= LARGE and not program.crowded_large:
            return
        command = self.command(program, ranks, part)
        self.commands.setdefault((program.name, ranks), command)
        status, output, complaint = run_bounded(command, UNTIL)
        rows = list(csv.DictReader(output.splitlines()))
        if any(int(row["wrong"]) != 0 for row in rows):
            sys.exit(f"compare.py: wrong results from {shlex.join(command)}")
        if status != 0:
            why = f"{shlex.join(command)}\nended with {status}: {complaint.strip()}"
            if program.family == "toroid":
                sys.exit(f"compare.py: {why}")
            print(f"compare.py: {why}\ncompare.py: goes on without {program.name}", file=sys.stderr)
            self.left_out[program.name] = f"failed in round {number} with {ranks} ranks (status {status})"
            self.lines = [x for x in self.lines if x.program != program.name]
            return
        for row in rows:
            if row.get("version"):
                self.versions[row["transport"]] = row["version"]
            self.lines.append(
                Line(number, program.name, ranks, row["place"], int(row["bytes"]), float(row["time_us"]), float(row["min_us"]),
                     float(row["p99_us"]), float(row["barrier_ns"]), row["placement"], int(row["iterations"])))

    def run_round(self, number, ranks, part):
        # Another one first in every round: what comes after a busy neighbour is not always the same.
        programs = self.programs()
        for i in range(len(programs)):
            self.run(number, programs[(i + number) % len(programs)], ranks, part)

    def sizes(self, ranks, part=None):
        low, high = (part[0], max(part[1], *part[2], 0)) if part else (0, sys.maxsize)
        return sorted({x.size for x in self.lines if x.ranks == ranks and low <= x.size <= high})

    def times(self, program, ranks, place, size, placement):
        """Of one line, by round."""
        return {x.round: x.time for x in self.lines
                if (x.program, x.ranks, x.place, x.size, x.placement) == (program.name, ranks, place, size, placement)}


def cores():
    return len(os.sched_getaffinity(0))


# Judging


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The rounds that found one placement, put together."""
    rival: str  # the fastest setting of the family
    reference: float  # its time
    time: float
    ratio: float  # how many times faster
    least_ratio: float  # over the rounds in which both found the placement; 0 where there is none
    greatest_ratio: float
    rounds: int
    complete: bool  # whether every setting of the family that runs has met this placement
    limit: Limit | None

    @property
    def outcome(self):
        if self.limit is None:
            return "no limit"
        if not self.complete:
            return "incomplete"
        if self.ratio >= self.limit.factor * (1 + LEVEL):
            return "passes"
        if self.ratio > self.limit.factor * (1 - LEVEL):
            return "level"
        return "falls short"


def judge(bench, program, family, ranks, place, size, placement):
    """A Verdict, or None without a line of each side."""
    mine = bench.times(program, ranks, place, size, placement)
    rivals = {p.name: bench.times(p, ranks, place, size, placement) for p in PROGRAMS if p.family == family}
    medians = {name: statistics.median(times.values()) for name, times in rivals.items() if times}
    if not mine or not medians:
        return None
    rival = min(medians, key=medians.get)
    time_of = statistics.median(mine.values())
    ratios = []
    for number in mine:
        fastest = min((times[number] for times in rivals.values() if number in times), default=None)
        if fastest is not None:
            ratios.append(fastest / mine[number])
    limit = next((x for x in LIMITS if x.is_for(program, family, ranks, placement, size)), None)
    complete = all(rivals[p.name] for p in bench.programs() if p.family == family)
    return Verdict(rival, medians[rival], time_of, medians[rival] / time_of, min(ratios, default=0), max(ratios, default=0),
                   len(ratios), complete, limit)


def limited_lines(bench, chosen):
    """Yields (limit, place, size, Verdict or None) wherever there is a limit."""
    for limit in LIMITS:
        if limit.ranks not in chosen:
            continue
        for place in PLACES:
            for size in bench.sizes(limit.ranks):
                if limit.is_for(limit.program, limit.family, limit.ranks, limit.placement, size):
                    yield limit, place, size, judge(bench, limit.program, limit.family, limit.ranks, place, size, limit.placement)


def missing_near(bench, ranks, part):
    """Whether a limit for near cores is still without a line of each side."""
    if ranks > cores():
        return False
    for limit in LIMITS:
        if limit.ranks != ranks or limit.placement != "near":
            continue
        programs = [p for p in bench.programs() if p is limit.program or p.family == limit.family]
        for size in bench.sizes(ranks, part):
            if limit.low <= size <= limit.high:
                for place in PLACES:
                    if not all(bench.times(p, ranks, place, size, "near") for p in programs):
                        return True
    return False


# Writing


def facts_of(bench, loads):
    facts = [fact for fact in report.machine(bench.build) if fact[0] != "flags of yardstick"]
    for name in ("mpich", "openmpi", "gloo"):
        if name in bench.versions:
            facts.append((f"version of {name}", bench.versions[name]))
    ucx = output_of("dpkg-query", "-W", "-f", "${Version}", "libucx0")
    if ucx:
        facts.append(("version of UCX", f"{ucx} (package)"))
    facts.append(("load average", f"{loads[0]:.1f} before the first round, {loads[1]:.1f} after the last; "
                                  "two ranks alone make about 2"))
    return facts


def times_table(bench, ranks, place, placement):
    programs = [p for p in PROGRAMS if any(x.program == p.name and x.ranks == ranks for x in bench.lines)]
    rows = []
    for size in bench.sizes(ranks):
        found = {p.name: bench.times(p, ranks, place, size, placement) for p in programs}
        if not any(found.values()):
            continue
        rows.append([plot.size_text(size)] + [
            microseconds(statistics.median(times.values())) if times else "" for times in found.values()])
    return table(["µs"] + [p.name for p in programs], rows) if rows else ""


def outcome_text(verdict):
    if verdict.limit is None:
        return ""
    if verdict.outcome == "incomplete":
        return "not judged: not all settings met this placement"
    if verdict.outcome == "falls short":
        short = f"{(1 - verdict.ratio / verdict.limit.factor) * 100:.0f} %"
        return f"misses the goal by {short}" if verdict.limit.is_goal else f"**falls short by {short}**"
    return {"passes": "passes", "level": "level with the limit"}[verdict.outcome]


def contest_table(bench, program, family, ranks, place, placement):
    rows = []
    for size in bench.sizes(ranks):
        v = judge(bench, program, family, ranks, place, size, placement)
        if v is None:
            continue
        span = f"{v.least_ratio:.2f} to {v.greatest_ratio:.2f} ({v.rounds})" if v.rounds else ""
        rows.append([plot.size_text(size), v.rival, microseconds(v.reference), microseconds(v.time), f"{v.ratio:.2f}", span,
                     f"{v.limit.factor:g}" if v.limit else "", outcome_text(v)])
    if not rows:
        return ""
    return table(["size", f"fastest of {family}", "its time, µs", "toroid, µs", "times faster", "by round (rounds)", "limit",
                  "verdict"], rows)


def write_markdown(path, bench, chosen, arguments, facts, figures, seconds):
    out = []
    write = out.append
    write(f"# All-reduce between processes, against MPI and Gloo, {arguments.date}\n")
    write(f"Written by `bench/peers/compare.py{' --quick' if arguments.quick else ''}` in {seconds:.0f} s and "
          f"{max((x.round for x in bench.lines), default=0)} rounds; raw lines in `{path.stem}.csv`. No number below was typed in.\n")
    write(table(["machine", ""], [[name, text] for name, text in facts]).replace("---:", "---"))

    write("## Rule\n")
    write("`float`, sum, ranks that are processes pinned to cores in turn. Before each call every rank rewrites its own buffer "
          "and passes two barriers of the benchmark's own. A call takes from the latest start to the latest end over the ranks; a "
          "run's figure is the median over its calls, a line's the median over the rounds. All programs run once a round, one "
          "after the other. Every element of every result was checked. toroid checks its calls (`--check calls`, the default); "
          "*private* is ordinary memory, *shared* is memory that peers can reach.\n")
    write("Placement: a flag barrier is timed beside each line; *near* when under 150 ns, *far* otherwise, *crowded* when ranks "
          "outnumber cores. Lines during which it changed (*mixed*) are in the raw file only. A ratio is drawn between medians of "
          "one placement; the fastest setting of a family is chosen for each line anew. "
          f"Differences under {LEVEL * 100:.0f} % count as level.\n")

    write("## Result\n")
    verdicts = list(limited_lines(bench, chosen))
    rows = []
    for limit in dict.fromkeys(x[0] for x in verdicts):
        of_limit = [v for known, _, _, v in verdicts if known is limit]
        count = {word: sum(v is not None and v.outcome == word for v in of_limit) for word in ("passes", "level", "falls short")}
        rows.append([limit.name + (" (goal)" if limit.is_goal else ""), f"{limit.factor:g}", str(len(of_limit)), str(count["passes"]),
                     str(count["level"]), str(count["falls short"]), str(len(of_limit) - sum(count.values()))])
    write(table(["limit", "times faster", "lines", "pass", "level with it", "fall short", "not judged"], rows))
    write("*Not judged*: in no round did toroid and every setting of the other side meet the placement that the limit is for.\n")
    short = [x for x in verdicts if x[3] is not None and x[3].outcome == "falls short"]
    if short:
        write(table(["falls short", "place", "size", "times faster", "limit", "toroid, µs", "fastest, µs", "which"], [
            [limit.name, PLACES[place], plot.size_text(size), f"{v.ratio:.2f}", f"{limit.factor:g}", microseconds(v.time),
             microseconds(v.reference), v.rival] for limit, place, size, v in short]))
    if arguments.remarks:
        write("## Remarks\n")
        write(arguments.remarks.read_text(encoding="utf-8"))

    for ranks in chosen:
        write(f"## {ranks} ranks\n")
        for figure, of_ranks in figures:
            if of_ranks == ranks:
                write(f"![Time and bus bandwidth against size]({figure}.png)\n")
        for placement in PLACEMENTS:
            for place, place_name in PLACES.items():
                times = times_table(bench, ranks, place, placement)
                if not times:
                    continue
                write(f"### {place_name[0].upper() + place_name[1:]}, {placement}\n")
                write(times)
                for program, family in CONTESTS:
                    text = contest_table(bench, program, family, ranks, place, placement)
                    if text:
                        write(f"{program.name[0].upper() + program.name[1:]}, against {family}:\n")
                        write(text)

    write("## Commands\n")
    write("Of the first part of each; `--min-bytes` and `--max-bytes` differ in the others.\n")
    write("```\n" + "\n".join(shlex.join(command).replace(str(ROOT) + "/", "") for command in bench.commands.values()) + "\n```\n")

    write("## What was not run\n")
    for name, why in bench.left_out.items():
        write(f"* {name}: {why}.")
    write("* Only all-reduce of `float` with sum: no other collective, element type or operator.")
    write(f"* Only {' and '.join(str(r) for r in chosen)} ranks on one host; no network.")
    if any(r > cores() for r in chosen):
        write(f"* With more ranks than cores: Gloo from {plot.size_text(LARGE)}. MPICH, which spins, makes {CROWDED_CALLS} calls a run "
              "below that.")
    write("* Other settings of MPI than these, and Gloo's polling mode.")
    if arguments.quick:
        write("* Most sizes: this is the short form.")
    unseen = {}
    for limit, place, size, v in verdicts:
        if v is None or v.outcome == "incomplete":
            unseen.setdefault((limit.name, place), []).append(plot.size_text(size))
    for (name, place), sizes in unseen.items():
        write(f"* {name}, {PLACES[place]}: not judged at {', '.join(sizes)}.")
    path.write_text(re.sub(r"\n{3,}", "\n\n", "\n".join(out)) + "\n", encoding="utf-8")
    return verdicts


def write_csv(path, bench):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["round", "program", "ranks", "place", "bytes", "time_us", "min_us", "p99_us", "barrier_ns", "placement",
                         "iterations"])
        for x in bench.lines:
            writer.writerow([x.round, x.program, x.ranks, x.place, x.size, x.time, x.least, x.p99, x.barrier_ns, x.placement,
                             x.iterations])


def draw(directory, stem, bench, chosen, date):
    """Draws each number of ranks in and out of place; returns pairs of a file name without suffix and the ranks."""
    made = []
    order = {p.name: i for i, p in enumerate(PROGRAMS)}
    family = {p.name: p.family for p in PROGRAMS}
    for ranks in chosen:
        for place, place_name in PLACES.items():
            points = []
            for size in bench.sizes(ranks):
                at = [x for x in bench.lines if (x.ranks, x.place, x.size) == (ranks, place, size)]
                # A point never mixes placements: the one that most programs have met, of these the nearest.
                placement = max((*PLACEMENTS, "mixed"), key=lambda p: len({x.program for x in at if x.placement == p}))
                medians = {name: statistics.median(x.time for x in at if (x.program, x.placement) == (name, placement))
                           for name in {x.program for x in at if x.placement == placement}}
                fastest_gloo = min((t for name, t in medians.items() if family[name] == "Gloo"), default=None)
                shown = {name: t for name, t in medians.items() if family[name] != "Gloo"}
                if fastest_gloo is not None:
                    shown["Gloo, the fastest"] = fastest_gloo
                points += [(name, size, t) for name, t in shown.items()]
            points.sort(key=lambda x: (order.get(x[0], len(order)), x[1]))
            series = plot.gather((name, name.startswith("Gloo"),
                                  plot.Point(size, t, size / t / 1e3 * plot.bus_factor(ranks))) for name, size, t in points)
            name = f"{stem}-{ranks}-ranks-{place_name.replace(' ', '-')}"
            plot.draw(series, str(directory / name), f"All-reduce of float, sum, {ranks} processes, {place_name} ({date})")
            made.append((name, ranks))
    return made


def main():
    parser = argparse.ArgumentParser(description="Measures all-reduce against MPI and Gloo and writes the report.")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help="build folder with bench/")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "measured", help="folder of the report")
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="first part of the file names")
    parser.add_argument("--ranks", type=int, nargs="+", choices=(2, 4), default=[2, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--extra-rounds", type=int, default=5,
                        help="at most so many more while a limit for near cores is without a near line")
    parser.add_argument("--minutes", type=float, default=45, help="no extra round begins after this time")
    parser.add_argument("--remarks", type=pathlib.Path, help="a text to go into the report")
    parser.add_argument("--quick", action="store_true", help="few sizes and two rounds")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.extra_rounds = min(arguments.rounds, 2), 0
    if arguments.rounds < 1:
        parser.error("at least one round")
    if arguments.remarks and not arguments.remarks.is_file():
        parser.error(f"{arguments.remarks} is not a file")
    arguments.build = arguments.build.resolve()

    begin, loads = time.monotonic(), [os.getloadavg()[0], 0.0]
    bench, chosen = Bench(arguments.build), sorted(set(arguments.ranks))

    def run_round(number, ranks, part):
        print(f"{time.monotonic() - begin:4.0f} s: round {number}, {ranks} ranks, "
              f"{plot.size_text(part[0])} to {plot.size_text(part[1])}", file=sys.stderr, flush=True)
        bench.run_round(number, ranks, part)

    for number in range(1, arguments.rounds + 1):
        for ranks in chosen:
            for part in parts_of(ranks, arguments.quick):
                run_round(number, ranks, part)
    for number in range(arguments.rounds + 1, arguments.rounds + arguments.extra_rounds + 1):
        for ranks in chosen:
            for part in parts_of(ranks, arguments.quick):
                if time.monotonic() - begin < arguments.minutes * 60 and missing_near(bench, ranks, part):
                    run_round(number, ranks, part)
    loads[1] = os.getloadavg()[0]

    arguments.out.mkdir(parents=True, exist_ok=True)
    stem = f"{arguments.date}-shared-memory"
    figures = draw(arguments.out, stem, bench, chosen, arguments.date)
    write_csv(arguments.out / (stem + ".csv"), bench)
    path = arguments.out / (stem + ".md")
    verdicts = write_markdown(path, bench, chosen, arguments, facts_of(bench, loads), figures, time.monotonic() - begin)
    known = [v.outcome for limit, _, _, v in verdicts if v is not None and not limit.is_goal]
    judged = [known.count(word) for word in ("passes", "level", "falls short")]
    print(f"{path}: {judged[0]} lines pass, {judged[1]} are level with their limit, {judged[2]} fall short, "
          f"{sum(not limit.is_goal for limit, *_ in verdicts) - sum(judged)} not judged", file=sys.stderr)


if __name__ == "__main__":
    main()
