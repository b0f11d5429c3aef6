#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds toroid-bench's all-reduce against the yardstick, and writes docs/measured/DATE-all-reduce.{md,csv,*.png,*.svg}.

    cmake --preset release && cmake --build --preset release
    bench/report.py                 # about ten minutes; leave the machine alone meanwhile
    bench/report.py --quick         # a minute, few sizes, to see whether it works

Both programs run alternately, round after round, by one timing rule. Every number in the report comes from these runs.
"""
import argparse
import csv
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import re
import shlex
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # importing plot.py leaves nothing in the source tree
import plot  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
KIB, MIB = 1 << 10, 1 << 20
RESNET_50 = 102_228_128  # bytes of ResNet-50's gradient in float
PLACES = {"in": "in place", "out": "out of place"}

# What is asked of the library: the ratio to the yardstick.
SHORT_UP_TO, SHORT_LIMIT, LONG_LIMIT = 64 * KIB, 1.5, 1.15
CROWDED_FROM, CROWDED_LIMIT = 256 * KIB, 1.3


@dataclasses.dataclass(frozen=True)
class Program:
    """One of the measured programs; `words` choose what it does."""
    name: str
    words: tuple
    is_yardstick: bool = False


@dataclasses.dataclass(frozen=True)
class Contest:
    program: Program
    yardstick: Program
    has_limit: bool


@dataclasses.dataclass(frozen=True)
class Group:
    ranks: int
    parts: tuple  # runs of sizes measured together: (least, greatest, further sizes)
    contests: tuple


def toroid(name, *words):
    return Program(name, words)


DIRECT = Program("yardstick direct", ("direct",), True)
RING = Program("yardstick ring", ("ring",), True)
THREADS = toroid("toroid, threads", "--launch", "threads", "--memory", "private", "--algorithm", "automatic")
SHARED = toroid("toroid, processes, shared memory", "--launch", "processes", "--memory", "shared", "--algorithm",
                "automatic")
PRIVATE = toroid("toroid, processes, private memory", "--launch", "processes", "--memory", "private", "--algorithm",
                 "automatic")
THREADS_RING = toroid("toroid ring, threads", "--launch", "threads", "--memory", "private", "--algorithm", "ring")


def groups(quick):
    if quick:
        two, four = ((4, 16 * KIB, ()), (256 * KIB, 4 * MIB, ())), ((16 * KIB, 4 * MIB, ()),)
    else:
        two = ((4, 64 * KIB, ()), (256 * KIB, 16 * MIB, ()), (64 * MIB, 256 * MIB, (RESNET_50,)))
        four = ((4, 16 * MIB, ()), (64 * MIB, 256 * MIB, (RESNET_50,)))
    return (
        Group(2, two, (Contest(THREADS, DIRECT, True), Contest(SHARED, DIRECT, True),
                       Contest(THREADS_RING, RING, True), Contest(PRIVATE, DIRECT, False))),
        Group(4, four, (Contest(THREADS, DIRECT, True), Contest(SHARED, DIRECT, True))),
    )


def limit_of(group, contest, size, crowded):
    """The greatest ratio allowed, or None where none was set."""
    if not contest.has_limit:
        return None
    if crowded:
        return CROWDED_LIMIT if size >= CROWDED_FROM else None
    if group.ranks == 2:
        return SHORT_LIMIT if size <= SHORT_UP_TO else LONG_LIMIT
    return None


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
    barrier_ns: float
    placement: str
    bound: float  # microseconds that memory alone takes, as the yardstick finds it; else 0


class Bench:
    """Runs the programs and keeps what they say."""

    def __init__(self, build, factor):
        self.tools = {name: build / "bench" / name for name in ("toroid-bench", "yardstick")}
        for path in self.tools.values():
            if not os.access(path, os.X_OK):
                sys.exit(f"report.py: {path} is not there; build it first (cmake --build --preset release)")
        self.factor = factor
        self.lines = []

    def command(self, program, ranks, place, part):
        low, high, also = part
        extra = [word for size in also for word in ("--also", str(size))]
        if program.is_yardstick:
            return [str(self.tools["yardstick"]), str(ranks), str(low), str(high), str(self.factor),
                    "inplace" if place == "in" else "outofplace", *program.words, "--repeat", "1", *extra]
        return [str(self.tools["toroid-bench"]), "all_reduce", *program.words, "--ranks", str(ranks), "--type", "float",
                "--op", "sum", "--min-bytes", str(low), "--max-bytes", str(high), "--factor", str(self.factor),
                "--repeat", "1", "--format", "csv", "--in-place" if place == "in" else "--out-of-place", *extra]

    def run(self, number, program, ranks, place, part):
        command = self.command(program, ranks, place, part)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"report.py: {shlex.join(command)}\nended with {done.returncode}: {done.stderr.strip()}")
        for row in csv.DictReader(done.stdout.splitlines()):
            if not program.is_yardstick and int(row["wrong"]) != 0:
                sys.exit(f"report.py: wrong results from {shlex.join(command)}")
            self.lines.append(
                Line(number, program.name, ranks, place, int(row["bytes"]),
                     float(row["median_us" if program.is_yardstick else "time_us"]), float(row["min_us"]),
                     float(row["barrier_ns"]), row["placement"], float(row.get("bound_us") or 0)))

    def run_round(self, number, group, part):
        programs = []  # each yardstick before what is held against it, and each program once
        for contest in group.contests:
            programs += [p for p in (contest.yardstick, contest.program) if p not in programs]
        for place in PLACES:
            for program in programs:
                self.run(number, program, group.ranks, place, part)

    def sizes(self, group, part=None):
        low, high = (part[0], max(part[1], *part[2], 0)) if part else (0, sys.maxsize)
        return sorted({x.size for x in self.lines if x.ranks == group.ranks and low <= x.size <= high})


# Judging


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The rounds in which both sides found one placement, put together."""
    reference: float
    time: float
    ratio: float
    least_ratio: float
    greatest_ratio: float
    rounds: int
    bound: float
    limit: float | None

    @property
    def passes(self):
        return self.limit is None or self.ratio <= self.limit


def judge(lines, group, contest, place, size, placement):
    """A Verdict, or None without a round in which both sides found this placement."""

    def found(program):
        return {x.round: x for x in lines
                if (x.program, x.ranks, x.place, x.size, x.placement) == (program.name, group.ranks, place, size, placement)}

    references, times = found(contest.yardstick), found(contest.program)
    rounds = sorted(references.keys() & times.keys())
    if not rounds:
        return None
    ratios = [times[r].time / references[r].time for r in rounds]
    limit = None if placement == "far" else limit_of(group, contest, size, placement == "crowded")
    return Verdict(statistics.median(references[r].time for r in rounds), statistics.median(times[r].time for r in rounds),
                   statistics.median(ratios), min(ratios), max(ratios), len(rounds),
                   statistics.median(references[r].bound for r in rounds), limit)


def lacks_near(bench, group, part, wanted):
    """Whether a limit for near cores still has fewer rounds behind it than wanted."""

    def rounds(contest, place, size):
        verdict = judge(bench.lines, group, contest, place, size, "near")
        return verdict.rounds if verdict else 0

    return any(
        limit_of(group, contest, size, False) and rounds(contest, place, size) < wanted
        for contest in group.contests for place in PLACES for size in bench.sizes(group, part)
        if not any(x.placement == "crowded" for x in bench.lines if x.ranks == group.ranks))


# Writing


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT,
                              env={**os.environ, "LC_ALL": "C"}).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine(build):
    """What the figures depend on: pairs of a name and a text."""
    cpu = {key.strip(): value.strip() for key, _, value in (x.partition(":") for x in output_of("lscpu").splitlines())}
    memory = re.search(r"MemTotal:\s+(\d+) kB", pathlib.Path("/proc/meminfo").read_text(encoding="ascii"))
    pages = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    cache = dict(re.findall(r"^([A-Za-z_]+):[A-Z]+=(.*)$", (build / "CMakeCache.txt").read_text(encoding="utf-8"), re.M))
    compiler = cache.get("CMAKE_CXX_COMPILER", "")
    distribution = re.search(r'^PRETTY_NAME="?(.*?)"?$', pathlib.Path("/etc/os-release").read_text(encoding="utf-8"), re.M)

    def flags(source):
        for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
            if entry["file"].endswith(source):
                return " ".join(w for w in shlex.split(entry["command"]) if re.match(r"-(O|m|f|std|D|pthread)", w))
        return ""

    commit = output_of("git", "rev-parse", "--short", "HEAD")
    if commit and output_of("git", "status", "--porcelain", "--", "include", "bench"):
        commit += ", with changes that are not committed"
    return [
        ("processor", f"{cpu.get('Model name', '?')} (family {cpu.get('CPU family', '?')}, model {cpu.get('Model', '?')})"
         + (f", virtual ({cpu['Hypervisor vendor']})" if "Hypervisor vendor" in cpu else "")),
        ("cores", f"{cpu.get('CPU(s)', '?')}, {len(os.sched_getaffinity(0))} of them usable, "
         f"{cpu.get('Thread(s) per core', '?')} thread(s) per core"),
        ("caches", ", ".join(f"{name} {cpu[name + ' cache']}" for name in ("L1d", "L2", "L3") if name + " cache" in cpu)),
        ("memory", f"{int(memory[1]) / MIB:.1f} GiB" if memory else "?"),
        ("huge pages", pages.read_text(encoding="ascii").strip() if pages.exists() else "?"),
        ("system", f"{distribution[1] if distribution else '?'}, Linux {platform.release()}"),
        ("compiler", output_of(compiler, "--version").split("\n")[0] if compiler else "?"),
        ("flags of toroid-bench", flags("toroid_bench/measure.cpp")),
        ("flags of yardstick", flags("bench/yardstick.cpp")),
        ("source", commit or "not under version control"),
    ]


def microseconds(value):
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def table(head, rows):
    align = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, align, *rows]) + "\n"


def outcome(verdict):
    if verdict.limit is None:
        return "no limit"
    if verdict.passes:
        return "passes"
    return f"**falls short by {(verdict.ratio / verdict.limit - 1) * 100:.0f} %**"


def contest_table(bench, group, contest, place, placement):
    rows = []
    for size in bench.sizes(group):
        v = judge(bench.lines, group, contest, place, size, placement)
        if v is None:
            continue
        rows.append([plot.size_text(size), microseconds(v.reference), microseconds(v.bound) if v.bound else "",
                     microseconds(v.time), f"{v.ratio:.2f}", f"{v.least_ratio:.2f} to {v.greatest_ratio:.2f}",
                     str(v.rounds), f"{v.limit:g}" if v.limit else "", outcome(v)])
    if not rows:
        return ""
    return table(["size", "yardstick, µs", "memory alone, µs", "toroid, µs", "ratio", "over rounds", "rounds", "limit",
                  "verdict"], rows)


def all_verdicts(bench, chosen):
    """Yields (group, contest, place, size, placement, Verdict or None) wherever there is a limit."""
    for group in chosen:
        crowded = any(x.placement == "crowded" for x in bench.lines if x.ranks == group.ranks)
        placement = "crowded" if crowded else "near"
        for contest in group.contests:
            for place in PLACES:
                for size in bench.sizes(group):
                    if limit_of(group, contest, size, crowded):
                        yield group, contest, place, size, placement, judge(bench.lines, group, contest, place, size, placement)


def write_markdown(path, bench, chosen, arguments, facts, figures, seconds):
    out = []
    write = out.append
    write(f"# All-reduce against the yardstick, {arguments.date}\n")
    write(f"Written by `bench/report.py{' --quick' if arguments.quick else ''}` in {seconds:.0f} s; raw lines in "
          f"`{path.stem}.csv`. No number below was typed in.\n")
    write(table(["machine", ""], [[name, text] for name, text in facts]).replace("---:", "---"))

    write("## Rule\n")
    write("`float`, sum. `yardstick` is an all-reduce written by hand for this one case, over pinned threads of one "
          "process and without the library; `toroid-bench` makes the library's calls. Before each call every rank rewrites "
          "its own buffer. A call takes from the latest start to the latest end over the ranks, a run's figure is the "
          "median over its calls. Each program runs once a round, one after the other; a ratio is drawn between runs of "
          "one round in which both found the cores in the same placement, and the table gives the median over the rounds. "
          "Every element of every result was checked.\n")
    write("Placement: a flag barrier is timed beside each line; *near* when under 150 ns, *far* otherwise, *crowded* when "
          "ranks outnumber cores. Lines during which it changed (*mixed*) are in the raw file only. Limits hold for near "
          f"and crowded lines: for two ranks {SHORT_LIMIT:g} up to {plot.size_text(SHORT_UP_TO)} and {LONG_LIMIT:g} above; "
          f"for crowded ranks {CROWDED_LIMIT:g} from {plot.size_text(CROWDED_FROM)}. "
          "*Memory alone* is 2 S bytes a rank at the streaming rate that the yardstick finds in the same run.\n")

    verdicts = list(all_verdicts(bench, chosen))
    known = [x for x in verdicts if x[5] is not None]
    short = [x for x in known if not x[5].passes]
    unknown = [x for x in verdicts if x[5] is None]
    write("## Result\n")
    write(f"Of {len(verdicts)} lines with a limit, {len(known) - len(short)} pass, {len(short)} fall short, and "
          f"{len(unknown)} have no round in which both sides found the placement that the limit is for.\n")
    thin = sum(x[5].rounds < arguments.rounds for x in known)
    write(f"{thin} of the verdicts rest on fewer than {arguments.rounds} rounds; the tables say on how many each does.\n")
    if short:
        write(table(["falls short", "place", "size", "ratio", "limit", "yardstick, µs", "toroid, µs", "memory alone, µs"], [
            [f"{group.ranks} ranks, {contest.program.name}", PLACES[place], plot.size_text(size), f"{v.ratio:.2f}",
             f"{v.limit:g}", microseconds(v.reference), microseconds(v.time), microseconds(v.bound) if v.bound else ""]
            for group, contest, place, size, _, v in short
        ]))
    if arguments.remarks:
        write("## Remarks\n")
        write(arguments.remarks.read_text(encoding="utf-8"))

    for group in chosen:
        write(f"## {group.ranks} ranks\n")
        for figure, ranks in figures:
            if ranks == group.ranks:
                write(f"![Time and bus bandwidth against size]({figure}.png)\n")
        for contest in group.contests:
            write(f"### {contest.program.name[0].upper() + contest.program.name[1:]}, against {contest.yardstick.name}\n")
            empty = True
            for place, place_name in PLACES.items():
                for placement in ("near", "far", "crowded"):
                    text = contest_table(bench, group, contest, place, placement)
                    if text:
                        empty = False
                        write(f"{place_name[0].upper() + place_name[1:]}, {placement}:\n")
                        write(text)
            if empty:
                write("No round in which both sides found one placement.\n")

    write("## What was not run\n")
    write("* Only all-reduce of `float` with sum: no other collective, element type or operator.")
    write(f"* Only {' and '.join(str(g.ranks) for g in chosen)} ranks on one host, pinned to cores in turn.")
    write("* The ring with more than two ranks, and over processes.")
    write("* No other library beside it: that is what bench/peers/compare.py is for.")
    if arguments.quick:
        write("* Most sizes: this is the short form.")
    unseen = {}
    for group, contest, place, size, placement, _ in unknown:
        unseen.setdefault((group.ranks, contest.program.name, place, placement), []).append(plot.size_text(size))
    for (ranks, name, place, placement), sizes in unseen.items():
        write(f"* {ranks} ranks, {name}, {PLACES[place]}: no {placement} round at {', '.join(sizes)}.")
    path.write_text("\n".join(out).replace("\n\n\n", "\n\n") + "\n", encoding="utf-8")
    return len(known), len(short), len(unknown)


def write_csv(path, bench):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["round", "program", "ranks", "place", "bytes", "time_us", "min_us", "barrier_ns", "placement",
                         "bound_us"])
        for x in bench.lines:
            writer.writerow([x.round, x.program, x.ranks, x.place, x.size, x.time, x.least, x.barrier_ns, x.placement, x.bound])


def draw(directory, stem, bench, chosen, date):
    """Draws each group in and out of place; returns pairs of a file name without suffix and the number of ranks."""
    made = []
    for group in chosen:
        for place, place_name in PLACES.items():
            mine = [x for x in bench.lines if x.ranks == group.ranks and x.place == place]
            placements = [p for p in ("near", "crowded", "far", "mixed") if any(x.placement == p for x in mine)]
            # The most wanted placement that all programs have met at a size; a point never mixes two of them.
            lines = []
            for size in bench.sizes(group):
                at = [x for x in mine if x.size == size]
                programs = {x.program for x in at}
                best = next((p for p in placements if {x.program for x in at if x.placement == p} == programs), None)
                lines += [x for x in at if best is None or x.placement == best]
            series = plot.gather(
                (x.program, x.program.startswith("yardstick"),
                 plot.Point(x.size, x.time, x.size / x.time / 1e3 * plot.bus_factor(group.ranks))) for x in lines)
            name = f"{stem}-{group.ranks}-ranks-{place_name.replace(' ', '-')}"
            plot.draw(series, str(directory / name), f"All-reduce of float, sum, {group.ranks} ranks, {place_name} ({date})")
            made.append((name, group.ranks))
    return made


def main():
    parser = argparse.ArgumentParser(description="Measures all-reduce against the yardstick and writes the report.")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help="build folder with bench/")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "measured", help="folder of the report")
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="first part of the file names")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--extra-rounds", type=int, default=20,
                        help="at most so many more while a limit for near cores has fewer near rounds than --rounds")
    parser.add_argument("--minutes", type=float, default=11, help="no extra round begins after this time")
    parser.add_argument("--remarks", type=pathlib.Path, help="a text to go into the report")
    parser.add_argument("--quick", action="store_true", help="few sizes and two rounds")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.extra_rounds = min(arguments.rounds, 2), 0
    if arguments.remarks and not arguments.remarks.is_file():
        parser.error(f"{arguments.remarks} is not a file")

    begin = time.monotonic()
    bench, chosen = Bench(arguments.build, 4), groups(arguments.quick)

    def run_round(number, group, part):
        print(f"{time.monotonic() - begin:4.0f} s: round {number}, {group.ranks} ranks, "
              f"{plot.size_text(part[0])} to {plot.size_text(part[1])}", file=sys.stderr, flush=True)
        bench.run_round(number, group, part)

    for number in range(1, arguments.rounds + 1):
        for group in chosen:
            for part in group.parts:
                run_round(number, group, part)
    for number in range(arguments.rounds + 1, arguments.rounds + arguments.extra_rounds + 1):
        for group in chosen:
            for part in group.parts:
                if time.monotonic() - begin < arguments.minutes * 60 and lacks_near(bench, group, part, arguments.rounds):
                    run_round(number, group, part)

    arguments.out.mkdir(parents=True, exist_ok=True)
    stem = f"{arguments.date}-all-reduce"
    figures = draw(arguments.out, stem, bench, chosen, arguments.date)
    write_csv(arguments.out / (stem + ".csv"), bench)
    report = arguments.out / (stem + ".md")
    known, short, unknown = write_markdown(report, bench, chosen, arguments, machine(arguments.build), figures,
                                           time.monotonic() - begin)
    print(f"{report}: {known - short} lines pass, {short} fall short, {unknown} without a line to judge", file=sys.stderr)


if __name__ == "__main__":
    main()
