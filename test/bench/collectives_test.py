#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges made-up lines with peers/collectives.py, runs its short form on two collectives, and looks at what it writes.

usage: collectives_test.py PEERS_FOLDER BUILD_FOLDER
"""
import importlib.util
import os
import pathlib
import sys
import tempfile
import types

sys.dont_write_bytecode = True  # importing leaves nothing in the source tree
from checking import check, failures, run  # noqa: E402


def judged(report, lines, parts):
    """Verdicts and choices over made-up lines."""
    bench = types.SimpleNamespace(lines=lines, parts=parts)
    choices, unknown = report.choices_of(bench)
    return report.verdicts_of(bench), choices, unknown


def check_judging(report):
    one, other = report.SETTINGS[:2]

    def line(number, against, time, vs_time, placement="near", algorithm="automatic", size=64):
        return report.Line(number, against, "broadcast", "private", algorithm, "in", size, time, vs_time, 30, placement)

    parts = [report.Part("broadcast", "private", one), report.Part("broadcast", "private", other)]
    lines = [line(1, one.name, 2, 6), line(2, one.name, 2, 4), line(3, one.name, 2, 8), line(1, other.name, 2, 5)]
    verdict = judged(report, lines, parts)[0][0]
    check(verdict.ratios == {one.name: 3, other.name: 2.5}, f"medians over the rounds: {verdict.ratios}")
    check((verdict.fastest, verdict.ratio, verdict.outcome) == (other.name, 2.5, "faster"), "the fastest setting is the one to beat")
    for vs_time, outcome in [(1.02, "level"), (0.96, "level"), (0.94, "slower"), (1.06, "faster")]:
        verdict = judged(report, [line(1, one.name, 1, 9), line(1, other.name, 1, vs_time)], parts)[0][0]
        check(verdict.outcome == outcome, f"{vs_time} times faster is {outcome}: {verdict.outcome}")
    far = judged(report, [line(1, one.name, 1, 9), line(1, other.name, 1, 9, "far")], parts)[0][0]
    check(far.outcome == "not judged", "a setting that was never near leaves a line without a verdict")

    def summary(*ratios):
        lines = [line(1, s.name, 1, ratio, size=4**i) for i, ratio in enumerate(ratios, 1) for s in (one, other)]
        return report.summary_rows(judged(report, lines, parts)[0])[0]

    check(summary(1.2, 1.5)[-1] == "passes", f"a mean of 1.34 passes: {summary(1.2, 1.5)}")
    check("slower lines" in summary(0.9, 9)[-1], "a high mean does not excuse a slower line")
    check("mean short" in summary(1.1, 1.1)[-1], "nor faster lines a low mean")

    def choice(automatic, *fixed):
        parts = [report.Part("broadcast", "private", None, name) for name in report.ALGORITHMS[:len(fixed) + 1]]
        lines = [line(1, "", time, 0, algorithm=name) for name, time in zip(report.ALGORITHMS, (automatic, *fixed))]
        return judged(report, lines, parts)[1][0]

    check(choice(1.15, 2, 1).passes and choice(1.15, 2, 1).best == "ring", "15 % above the best is within the limit and the noise")
    check(not choice(1.16, 2, 1).passes, "16 % is not")
    names = ("automatic", "direct", "ring")
    found = [line(1, "", 1, 0, placement, name) for name, placement in zip(names, ("near", "far", "near"))]
    near, unknown = judged(report, found, [report.Part("broadcast", "private", None, name) for name in names])[1:]
    check(near == [] and unknown == 1, "an algorithm that was never near leaves the choice without a verdict")


def main():
    peers, build = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    script = peers / "collectives.py"
    sys.path.insert(0, str(peers))
    spec = importlib.util.spec_from_file_location("report_of_collectives", script)
    report = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = report  # dataclasses look their module up
    try:
        spec.loader.exec_module(report)
    except SystemExit as reason:  # without matplotlib
        print(f"skipped: {reason}")
        return 77
    check_judging(report)
    if len(os.sched_getaffinity(0)) < 2:
        print("skipped: the runs of collectives.py, which need two cores")
        return 1 if failures else 0
    with tempfile.TemporaryDirectory() as folder:
        done = run(sys.executable, "-B", script, "--quick", "--build", build, "--out", folder, "--date", "test", "--collectives",
                   "broadcast", "barrier", seconds=500)
        check(done.returncode == 0, f"collectives.py --quick ends with {done.returncode} {done.stderr.strip()[-300:]}")
        text = (pathlib.Path(folder) / "test-collectives.md").read_text(encoding="utf-8")
        for words in ["## Against MPI", "| broadcast, private memory |", "| broadcast, shared memory |", "| barrier, no memory |",
                      "## Automatic against each fixed algorithm", "## Commands", "## What was not run", "this is the short form"]:
            check(words in text, f"the report has '{words}'")
        rows = (pathlib.Path(folder) / "test-collectives.csv").read_text(encoding="utf-8").splitlines()
        check(rows[0].startswith("round,against,collective,memory") and len(rows) > 20, f"{len(rows)} raw lines")
        check("goes on without" not in done.stderr, "no setting failed")
        picture = pathlib.Path(folder) / "test-collectives.png"
        drawn = picture.exists() and picture.read_bytes().startswith(b"\x89PNG\r\n")
        check(drawn or ", near: not judged at" in text, "and a picture, if the cores were near at all")
        done = run(sys.executable, "-B", script, "--build", folder, "--out", folder)
        check(done.returncode != 0 and "build it first" in done.stderr, "without programs it says what to build")
        done = run(sys.executable, "-B", script, "--collectives", "sum", "--out", folder)
        check(done.returncode == 2, "an unknown collective is refused")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
