#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds every collective of toroid-bench against MPI's own, and `automatic` against each fixed algorithm, between two
processes of this machine; writes docs/measured/DATE-collectives.{md,csv} with a picture.

    cmake --preset release && cmake --build --preset release --target toroid-bench toroid-bench-mpich toroid-bench-openmpi
    bench/peers/collectives.py             # leave the machine alone meanwhile
    bench/peers/collectives.py --quick     # a minute or two, few sizes, to see whether it works

Against MPI, both are timed in turn by one program (`--vs mpi`), so that a ratio is always drawn within one run. All
runs take their turns, round after round. What is not installed is left out, and the report says so. Every number in
the report comes from these runs.
"""
import argparse
import csv
import dataclasses
import datetime
import math
import os
import pathlib
import re
import shlex
import shutil
import statistics
import sys
import time

sys.dont_write_bytecode = True  # importing leaves nothing in the source tree
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import plot  # noqa: E402
import report  # noqa: E402
from compare import OVER_UCX, PROGRAMS, UNTIL, cores, facts_of, run_bounded  # noqa: E402
from report import KIB, MIB, PLACES, ROOT, microseconds, table  # noqa: E402

RANKS = 2
LEVEL = 0.05  # a difference below this is none
MEAN_LIMITS = {"private": 1.3, "shared": 2.0, "": 1.3}  # times faster than the fastest setting, in the geometric mean
AUTOMATIC_LIMIT = 1.10  # of automatic's time to the best algorithm's
COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter", "all_to_all", "barrier")
ALGORITHMS = ("automatic", "direct", "ring", "halving_doubling", "tree", "torus_2d")
NOT_OFFERED = "is not done by"  # what toroid-bench says of an algorithm that a collective does not have


@dataclasses.dataclass(frozen=True)
class Setting:
    """One MPI library with one choice of settings."""
    name: str
    suffix: str  # of the program
    launcher: tuple
    only: tuple = ()  # collectives that it makes a difference to; empty: all


LAUNCHERS = {p.name: p.launcher for p in PROGRAMS if p.family == "MPI"}


def open_mpi(name, *words, like="Open MPI", only=()):
    return Setting(name, "openmpi", (*LAUNCHERS[like], *words), only)


IN_SHARED_MEMORY = ("all_reduce", "broadcast", "reduce", "barrier")
PIPELINE = ("--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_bcast_algorithm", "3",
            "--mca", "coll_tuned_bcast_algorithm_segmentsize", str(128 * KIB))
SETTINGS = (
    Setting("MPICH", "mpich", LAUNCHERS["MPICH"]),
    open_mpi("Open MPI"),
    open_mpi("Open MPI, coll/sm", "--mca", "coll_sm_priority", "100", only=IN_SHARED_MEMORY),
    open_mpi("Open MPI, UCX", like="Open MPI, UCX"),
    open_mpi("Open MPI, segmented ring", like="Open MPI, segmented ring", only=("all_reduce",)),
    open_mpi("Open MPI, UCX, segmented ring", like="Open MPI, UCX, segmented ring", only=("all_reduce",)),
    open_mpi("Open MPI, pipeline", *PIPELINE, only=("broadcast",)),
    open_mpi("Open MPI, UCX, pipeline", *OVER_UCX, *PIPELINE, only=("broadcast",)),
)
DEFAULTS = ("MPICH", "Open MPI")


# Measuring


@dataclasses.dataclass(frozen=True)
class Line:
    round: int
    against: str  # a setting of MPI; empty: toroid alone
    collective: str
    memory: str  # empty: has none
    algorithm: str
    place: str
    size: int
    time: float
    vs_time: float  # of MPI; 0 without it
    barrier_ns: float
    placement: str

    @property
    def ratio(self):
        return self.vs_time / self.time


@dataclasses.dataclass(frozen=True)
class Part:
    """Runs that are measured together: one collective in one memory, against one setting or by one algorithm."""
    collective: str
    memory: str
    setting: Setting | None  # None: toroid alone
    algorithm: str = "automatic"

    @property
    def against(self):
        return self.setting.name if self.setting else ""

    @property
    def text(self):
        memory = f", {self.memory} memory" if self.memory else ""
        return f"{self.collective}{memory}, " + (f"against {self.setting.name}" if self.setting else f"by {self.algorithm}")


class Bench:
    """Runs the programs and keeps what they say."""

    def __init__(self, build, chosen, sizes):
        self.build, self.sizes = build, sizes
        self.lines = []
        self.commands = {}  # by part
        self.versions = {}  # of libraries, as compare.facts_of wants them
        self.left_out = {}  # by name of a setting, or of a collective: why
        plain = self.tool("")
        if not os.access(plain, os.X_OK):
            sys.exit(f"collectives.py: {plain} is not there; build it first (cmake --build --preset release)")
        self.collectives = []
        known = re.findall(r"^  ([a-z_]+)", run_bounded([str(plain), "--help"], UNTIL)[1], re.M)
        for name in chosen:
            if name in known:
                self.collectives.append(name)
            else:
                self.left_out[name] = "toroid-bench does not know it"
        for setting in SETTINGS:
            missing = [x for x in (str(self.tool(setting.suffix)), setting.launcher[0]) if shutil.which(x) is None]
            if missing:
                self.left_out[setting.name] = f"{pathlib.Path(missing[0]).name} is not there"
        if all(setting.name in self.left_out for setting in SETTINGS):
            sys.exit("collectives.py: no MPI to compare with: " + "; ".join(self.left_out.values()))
        self.parts = list(self.all_parts())

    def tool(self, library):
        return self.build / "bench" / ("toroid-bench" + (f"-{library}" if library else ""))

    def all_parts(self):
        for collective in self.collectives:
            for memory in ("private", "shared") if collective != "barrier" else ("",):
                for setting in SETTINGS:
                    if setting.name not in self.left_out and (not setting.only or collective in setting.only):
                        yield Part(collective, memory, setting)
                if memory:
                    for algorithm in ALGORITHMS:
                        yield Part(collective, memory, None, algorithm)

    def command(self, part):
        words = [part.collective]
        if part.memory:
            low, high, factor = self.sizes
            words += ["--memory", part.memory, "--algorithm", part.algorithm, "--min-bytes", str(low), "--max-bytes", str(high),
                      "--factor", str(factor)]
        words += ["--repeat", "1", "--format", "csv"]
        if part.setting is None:
            return [str(self.tool("")), *words, "--launch", "processes", "--ranks", str(RANKS)]
        return [*part.setting.launcher, "-n", str(RANKS), str(self.tool(part.setting.suffix)), *words, "--launch", "mpi", "--vs",
                "mpi"]

    def run(self, number, part):
        command = self.command(part)
        status, output, complaint = run_bounded(command, UNTIL)
        if status == 2 and NOT_OFFERED in complaint:
            self.parts.remove(part)
            return
        self.commands.setdefault(part, command)
        rows = list(csv.DictReader(output.splitlines()))
        if any(int(row["wrong"]) != 0 for row in rows):
            sys.exit(f"collectives.py: wrong results from {shlex.join(command)}")
        if status != 0:
            why = f"{shlex.join(command)}\nended with {status}: {complaint.strip()}"
            if part.setting is None:
                sys.exit(f"collectives.py: {why}")
            wrong = sum(int(row["vs_wrong"]) for row in rows)
            print(f"collectives.py: {why}\ncollectives.py: goes on without {part.text}", file=sys.stderr)
            self.left_out[part.text] = f"{wrong} wrong elements of MPI" if wrong else f"failed (status {status}) in round {number}"
            self.parts.remove(part)
            self.lines = [x for x in self.lines if not self.is_of(x, part)]
            return
        for row in rows:
            if part.setting:
                self.versions[row["vs"]] = row["vs_version"]
            self.lines.append(
                Line(number, part.against, part.collective, part.memory, part.algorithm, row["place"], int(row["bytes"]),
                     float(row["time_us"]), float(row.get("vs_time_us") or 0), float(row["barrier_ns"]), row["placement"]))

    @staticmethod
    def is_of(line, part):
        return (line.against, line.collective, line.memory, line.algorithm) == (part.against, part.collective, part.memory,
                                                                               part.algorithm)

    def lacks_near(self, part):
        """Whether a line of this part has not yet found its cores near."""
        own = [x for x in self.lines if self.is_of(x, part)]
        near = {(x.place, x.size) for x in own if x.placement == "near"}
        return bool({(x.place, x.size) for x in own} - near)


# Judging


@dataclasses.dataclass(frozen=True)
class Verdict:
    """One collective in one memory, place and size, over the rounds that found the cores near."""
    collective: str
    memory: str
    place: str
    size: int
    time: float  # toroid's, 0 where no round is near
    ratios: dict  # by setting: how many times faster toroid was, the median over its rounds
    rounds: int  # the fewest behind a ratio
    complete: bool  # whether each setting that runs has one

    @property
    def fastest(self):
        """The setting to beat."""
        return min(self.ratios, key=self.ratios.get)

    @property
    def ratio(self):
        return min(self.ratios.values())

    @property
    def outcome(self):
        if not self.complete:
            return "not judged"
        return "faster" if self.ratio >= 1 + LEVEL else "level" if self.ratio >= 1 - LEVEL else "slower"


def verdicts_of(bench):
    found = []
    keys = dict.fromkeys((x.collective, x.memory, x.place, x.size) for x in bench.lines if x.against)
    for collective, memory, place, size in keys:
        of_line = [x for x in bench.lines if (x.collective, x.memory, x.place, x.size) == (collective, memory, place, size) and x.against]
        near = {}
        for x in of_line:
            if x.placement == "near":
                near.setdefault(x.against, []).append(x)
        ratios = {name: statistics.median(x.ratio for x in lines) for name, lines in near.items()}
        wanted = {part.against for part in bench.parts if part.setting and (part.collective, part.memory) == (collective, memory)}
        times = [x.time for lines in near.values() for x in lines]
        found.append(Verdict(collective, memory, place, size, statistics.median(times) if times else 0, ratios,
                             min((len(lines) for lines in near.values()), default=0), wanted == set(ratios)))
    return found


@dataclasses.dataclass(frozen=True)
class Choice:
    """Automatic beside the best fixed algorithm on one line, both near."""
    collective: str
    memory: str
    place: str
    size: int
    time: float
    best: str
    best_time: float

    @property
    def ratio(self):
        return self.time / self.best_time

    @property
    def passes(self):
        return self.ratio <= AUTOMATIC_LIMIT * (1 + LEVEL)


def choices_of(bench):
    """Returns the choices, and how many lines lack a near round of some algorithm."""
    found, unknown = [], 0
    for collective, memory, place, size in dict.fromkeys((x.collective, x.memory, x.place, x.size) for x in bench.lines if not x.against):
        times = {}
        for x in bench.lines:
            if (x.against, x.collective, x.memory, x.place, x.size) == ("", collective, memory, place, size) and x.placement == "near":
                times.setdefault(x.algorithm, []).append(x.time)
        medians = {name: statistics.median(of_name) for name, of_name in times.items()}
        wanted = {p.algorithm for p in bench.parts if p.setting is None and (p.collective, p.memory) == (collective, memory)}
        if wanted != set(medians) or "automatic" not in medians or len(medians) < 2:
            unknown += 1
            continue
        automatic = medians.pop("automatic")
        best = min(medians, key=medians.get)
        found.append(Choice(collective, memory, place, size, automatic, best, medians[best]))
    return found, unknown


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values)) if values else 0.0


# Writing


def memory_text(memory):
    return f"{memory} memory" if memory else "no memory"


def size_text(size):
    return plot.size_text(size) if size else "-"


def summary_rows(verdicts):
    rows = []
    groups = list(dict.fromkeys((v.collective, v.memory) for v in verdicts))
    groups += [("all", memory) for memory in ("private", "shared") if any(v.memory == memory for v in verdicts)]
    for collective, memory in groups:
        own = [v for v in verdicts if v.memory == memory and collective in (v.collective, "all")]
        judged = [v for v in own if v.outcome != "not judged"]
        count = {word: sum(v.outcome == word for v in own) for word in ("faster", "level", "slower", "not judged")}
        mean, limit = geometric_mean([v.ratio for v in judged]), MEAN_LIMITS[memory]
        if not judged:
            outcome = "not judged"
        elif count["slower"] == 0 and mean >= limit * (1 - LEVEL):
            outcome = "passes" if mean >= limit else "level with the limit"
        else:
            outcome = " and ".join((["**slower lines**"] if count["slower"] else [])
                                   + ([f"**mean short by {(1 - mean / limit) * 100:.0f} %**"] if mean < limit * (1 - LEVEL) else []))
        defaults = [f"{geometric_mean([v.ratios[name] for v in judged if name in v.ratios]):.2f}" for name in DEFAULTS]
        rows.append([f"{collective}, {memory_text(memory)}", *(str(n) for n in count.values()), *defaults, f"{mean:.2f}", f"{limit:g}",
                     outcome])
    return rows


def ratio_table(verdicts):
    names = [s.name for s in SETTINGS if any(s.name in v.ratios for v in verdicts)]
    rows = [[size_text(v.size), microseconds(v.time), *(f"{v.ratios[name]:.2f}" if name in v.ratios else "" for name in names),
             f"{v.ratio:.2f}", str(v.rounds), "**slower**" if v.outcome == "slower" else v.outcome] for v in verdicts if v.ratios]
    return table(["size", "toroid, µs", *names, "fastest", "rounds", "verdict"], rows) if rows else ""


def write_markdown(path, bench, arguments, loads, seconds, interrupted):
    verdicts, (choices, unknown) = verdicts_of(bench), choices_of(bench)
    out = []
    write = out.append
    write(f"# Every collective between two processes, against MPI, {arguments.date}\n")
    write(f"Written by `bench/peers/collectives.py{' --quick' if arguments.quick else ''}` in {seconds:.0f} s; "
          f"rounds: {max((x.round for x in bench.lines), default=0)}; raw lines in `{path.stem}.csv`. No number below was typed in.\n")
    if interrupted:
        write("**It was interrupted: the last round is not complete.**\n")
    write(table(["machine", ""], [[name, text] for name, text in facts_of(bench, loads)]).replace("---:", "---"))

    write("## Rule\n")
    write("`float`, sum, two processes pinned to cores in turn, `--check calls`. One program times toroid and then MPI's own collective, "
          "on the same buffers, size by size: before each call every rank rewrites its buffer and passes two barriers of the "
          "benchmark's own; a call takes from the latest start to the latest end over the ranks; a run's figure is the median over its "
          "calls. A ratio says how many times faster toroid was in one run; the tables give its median over the rounds in which a flag "
          "barrier, timed beside each line, took less than 150 ns (*near*). Every element of every result of both was checked. Sizes are "
          "those of the whole buffer. *Private* is ordinary memory, *shared* is memory that peers can reach.\n")

    write("## Against MPI\n")
    write("Asked for: on no line slower than the fastest setting of both libraries, beyond the noise of "
          f"{LEVEL * 100:.0f} %; in the geometric mean over the lines {MEAN_LIMITS['private']:g} times faster in private memory, and "
          f"{MEAN_LIMITS['shared']:g} times in shared memory, than the setting that is the fastest on each line.\n")
    write(table(["", "faster", "level", "slower", "not judged", *(f"mean against {name}, default" for name in DEFAULTS),
                 "mean against the fastest", "limit", "verdict"], summary_rows(verdicts)))
    write("*Not judged*: a setting has no round in which the cores were near.\n")
    slower = [v for v in verdicts if v.outcome == "slower"]
    if slower:
        write(table(["slower", "memory", "place", "size", "toroid, µs", "times faster", "than"],
                    [[v.collective, v.memory, PLACES[v.place], size_text(v.size), microseconds(v.time), f"{v.ratio:.2f}", v.fastest]
                     for v in sorted(slower, key=lambda v: v.ratio)]))
    write(f"![How many times faster than the fastest setting of MPI]({path.stem}.png)\n")

    write("## Automatic against each fixed algorithm\n")
    beyond = [c for c in choices if not c.passes]
    write(f"Asked for: on no line more than {(AUTOMATIC_LIMIT - 1) * 100:.0f} % slower than the best, beyond the noise of "
          f"{LEVEL * 100:.0f} %. Medians over near rounds; the clock steps by about 10 ns.\n")
    rows = []
    for collective, memory in dict.fromkeys((c.collective, c.memory) for c in choices):
        own = [c for c in choices if (c.collective, c.memory) == (collective, memory)]
        rows.append([f"{collective}, {memory_text(memory)}", str(len(own)), str(sum(not c.passes for c in own)),
                     f"{geometric_mean([c.ratio for c in own]):.2f}", f"{max(c.ratio for c in own):.2f}"])
    if rows:
        write(table(["", "lines", "beyond the limit", "mean of time to the best's", "greatest"], rows))
    write(f"{unknown} more lines are not judged: an algorithm has no near round.\n")
    if beyond:
        write(table(["beyond the limit", "memory", "place", "size", "automatic, µs", "best, µs", "which", "ratio"],
                    [[c.collective, c.memory, PLACES[c.place], size_text(c.size), microseconds(c.time), microseconds(c.best_time), c.best,
                      f"{c.ratio:.2f}"] for c in sorted(beyond, key=lambda c: -c.ratio)]))

    write("## All lines against MPI\n")
    write("How many times faster toroid was than each setting.\n")
    for collective, memory, place in dict.fromkeys((v.collective, v.memory, v.place) for v in verdicts):
        text = ratio_table([v for v in verdicts if (v.collective, v.memory, v.place) == (collective, memory, place)])
        if text:
            write(f"### {collective}, " + (f"{memory_text(memory)}, {PLACES[place]}" if memory else "no memory") + "\n")
            write(text)

    write("## Commands\n")
    write("One for each setting and algorithm; the collective and `--memory` differ in the others.\n")
    commands = {}
    for part, command in bench.commands.items():
        commands.setdefault((part.against, part.algorithm), command)
    write("```\n" + "\n".join(shlex.join(command).replace(str(ROOT) + "/", "") for command in commands.values()) + "\n```\n")

    write("## What was not run\n")
    for name, why in bench.left_out.items():
        write(f"* {name}: {why}.")
    for setting in SETTINGS:
        if setting.only and setting.name not in bench.left_out:
            write(f"* {setting.name}: only {', '.join(x for x in setting.only if x in bench.collectives) or 'nothing that was asked for'}.")
    write("* Only `float` with sum, only two ranks on one host; lines on which the cores were far apart are in the raw file only.")
    write("* In every run toroid came before MPI.")
    write("* Other settings of MPI than these.")
    if arguments.quick:
        write("* Most sizes: this is the short form.")
    unseen = {}
    for v in verdicts:
        if v.outcome == "not judged":
            unseen.setdefault((v.collective, v.memory, v.place), []).append(size_text(v.size))
    for (collective, memory, place), sizes in unseen.items():
        write(f"* {collective}, {memory_text(memory)}, {PLACES[place]}, near: not judged at {', '.join(sizes)}.")
    path.write_text(re.sub(r"\n{3,}", "\n\n", "\n".join(out)) + "\n", encoding="utf-8")
    return verdicts, choices


def write_csv(path, bench):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in dataclasses.fields(Line)])
        for x in bench.lines:
            writer.writerow(dataclasses.astuple(x))


def draw(out, verdicts, title):
    """One drawing a collective: how many times faster than the fastest setting of MPI, against size."""
    drawn = list(dict.fromkeys(v.collective for v in verdicts if v.memory and v.ratios))
    if not drawn:
        return
    pyplot = plot.pyplot
    pyplot.rcParams.update({"font.size": 9, "svg.hashsalt": "toroid", "axes.spines.top": False, "axes.spines.right": False})
    columns = min(4, len(drawn))
    rows = -(-len(drawn) // columns)
    figure, axes_of = pyplot.subplots(rows, columns, figsize=(3.4 * columns + 0.6, 3.1 * rows + 1.0), squeeze=False, sharey=True)
    styles = {"private": ("#d55e00", "o"), "shared": ("#0072b2", "s")}
    handles = {}
    for i, axes in enumerate(axes_of.flat):
        if i >= len(drawn):
            axes.set_visible(False)
            continue
        sizes = set()
        for memory, (colour, marker) in styles.items():
            for place, place_name in PLACES.items():
                points = sorted((v.size, v.ratio) for v in verdicts if (v.collective, v.memory, v.place) == (drawn[i], memory, place) and v.ratios)
                if not points:
                    continue
                sizes.update(size for size, _ in points)
                line, = axes.plot(*zip(*points), color=colour, marker=marker, markersize=3.5, linewidth=1.3,
                                  linestyle="-" if place == "in" else "--")
                handles.setdefault(f"{memory} memory, {place_name}", line)
        axes.axhline(1, color="#444444", linewidth=1)
        for memory, (colour, _) in styles.items():
            axes.axhline(MEAN_LIMITS[memory], color=colour, linewidth=0.8, linestyle=":")
        axes.set_title(drawn[i])
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.grid(True, color="#dddddd")
        axes.set_axisbelow(True)
        powers = [2**k for k in range(0, 60) if min(sizes) <= 2**k <= max(sizes)] or sorted(sizes)
        axes.xaxis.set_major_locator(plot.FixedLocator(powers[::max(1, -(-len(powers) // 6))]))
        axes.xaxis.set_major_formatter(plot.FuncFormatter(lambda size, _: plot.size_text(size)))
        axes.xaxis.set_minor_formatter(plot.NullFormatter())
        axes.tick_params(axis="x", rotation=35)
        ratios = [v.ratio for v in verdicts if v.memory and v.ratios]
        ticks = [t for t in (0.25, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100) if min(ratios) / 1.5 <= t <= max(ratios) * 1.5]
        axes.yaxis.set_major_locator(plot.FixedLocator(ticks))
        axes.yaxis.set_major_formatter(plot.FuncFormatter(lambda ratio, _: f"{ratio:g}"))
        axes.yaxis.set_minor_formatter(plot.NullFormatter())
        if i % columns == 0:
            axes.set_ylabel("times faster")
    figure.suptitle(title, fontsize=11)
    height = 0.45 / figure.get_figheight()
    figure.tight_layout(rect=(0, height, 1, 0.98))
    figure.legend(handles.values(), [*handles], loc="lower center", ncol=4 if columns > 1 else 2, frameon=False)
    figure.savefig(f"{out}.png", dpi=130)
    figure.savefig(f"{out}.svg", metadata={"Date": None})
    pyplot.close(figure)


def measure(bench, arguments, begin):
    """Returns whether it was interrupted."""
    try:
        for number in range(1, arguments.rounds + arguments.extra_rounds + 1):
            extra = number > arguments.rounds
            if extra and time.monotonic() - begin > arguments.minutes * 60:
                break
            parts = [part for part in bench.parts if not extra or bench.lacks_near(part)]
            for i, part in enumerate(parts):
                print(f"{time.monotonic() - begin:4.0f} s: round {number}, {i + 1} of {len(parts)}: {part.text}", file=sys.stderr, flush=True)
                bench.run(number, part)
    except KeyboardInterrupt:
        print("collectives.py: interrupted; writes what there is", file=sys.stderr)
        return True
    return False


def main():
    parser = argparse.ArgumentParser(description="Measures every collective against MPI's and writes the report.")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help="build folder with bench/")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "measured", help="folder of the report")
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="first part of the file names")
    parser.add_argument("--collectives", nargs="+", choices=COLLECTIVES, default=COLLECTIVES, metavar="NAME", help="by default all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--extra-rounds", type=int, default=5, help="at most so many more, of what has lines that were never near")
    parser.add_argument("--minutes", type=float, default=60, help="no extra round begins after this time")
    parser.add_argument("--quick", action="store_true", help="few sizes and one round")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("at least one round")
    if cores() < RANKS:
        parser.error(f"{RANKS} usable cores are needed, so that each rank has one")
    sizes = (4, 64 * MIB, 4)
    if arguments.quick:
        arguments.rounds, arguments.extra_rounds, sizes = 1, 0, (4, 4 * MIB, 32)
    arguments.build = arguments.build.resolve()

    begin, loads = time.monotonic(), [os.getloadavg()[0], 0.0]
    bench = Bench(arguments.build, arguments.collectives, sizes)
    interrupted = measure(bench, arguments, begin)
    loads[1] = os.getloadavg()[0]
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / f"{arguments.date}-collectives.md"
    write_csv(path.with_suffix(".csv"), bench)
    verdicts, choices = write_markdown(path, bench, arguments, loads, time.monotonic() - begin, interrupted)
    draw(path.with_suffix(""), verdicts, f"toroid against the fastest setting of MPI, two processes, near ({arguments.date})")
    count = {word: sum(v.outcome == word for v in verdicts) for word in ("faster", "level", "slower", "not judged")}
    print(f"{path}: against MPI " + ", ".join(f"{n} {word}" for word, n in count.items())
          + f"; automatic beyond its limit on {sum(not c.passes for c in choices)} of {len(choices)} lines", file=sys.stderr)


if __name__ == "__main__":
    main()
