#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Puts what toroid-costs prints into the documentation: tables between marks, and a picture.

    tools/costs.py build/release/tools/toroid-costs --docs docs            # writes algorithms.md and pictures/
    tools/costs.py build/release/tools/toroid-costs --docs docs --check    # writes nothing; 1 if something differs
"""
import argparse
import csv
import hashlib
import io
import pathlib
import re
import subprocess
import sys

PICTURE = "pictures/all-reduce-costs"
TABLE = re.compile(r"(<!-- (?P<name>times on a \w+|fastest) -->\n)(?P<body>.*?)(<!-- end -->\n)", re.S)
SHOWN = {  # schedule: (label, colour, marker)
    "ring": ("ring", "#d55e00", "o"),
    "halving_doubling": ("halving_doubling", "#0072b2", "s"),
    "tree": ("tree (two trees)", "#009e73", "^"),
    "in_order_tree": ("tree, in order", "#56b4e9", "v"),
    "torus_2d": ("torus_2d", "#cc79a7", "D"),
}
WIRES = {"switch": "ranks on a switch, one link each", "torus": "a torus of links, four a rank"}


def printed_by(program, what):
    return subprocess.run([program, what], check=True, capture_output=True, text=True, timeout=300).stdout


def size_text(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.3g} B"


def time_text(microseconds, _position=None):
    for unit, name in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= unit:
            return f"{microseconds / unit:g} {name}"
    return f"{microseconds:g} µs"


def draw(curves_text, changes_text, out):
    """Writes out.png and out.svg: a row of panels a wiring, a column a number of ranks."""
    import matplotlib  # not needed to check

    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    panels, changes = {}, {}
    for row in csv.DictReader(io.StringIO(curves_text)):
        shape = (int(row["rows"]), int(row["columns"]))
        curves = panels.setdefault((row["wiring"], shape), {})
        curves.setdefault(row["schedule"], []).append((int(row["bytes"]), float(row["microseconds"])))
    for row in csv.DictReader(io.StringIO(changes_text)):
        shape = (int(row["rows"]), int(row["columns"]))
        changes.setdefault((row["wiring"], shape), []).append((int(row["bytes"]), row["text"], row["schedule"]))
    shapes = sorted({shape for _, shape in panels})
    pyplot.rcParams.update({"font.size": 10, "svg.hashsalt": "toroid", "axes.grid": True, "grid.color": "#e4e4e4",
                            "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False})
    figure, grid = pyplot.subplots(len(WIRES), len(shapes), figsize=(12.5, 8), sharex=True, sharey=True)
    for line, (wires, wires_text) in zip(grid, WIRES.items()):
        line[0].set_ylabel(f"{wires_text}\n\ntime of an all-reduce")
        for axes, shape in zip(line, shapes):
            curves = panels[wires, shape]
            for name, (label, colour, marker) in SHOWN.items():
                axes.plot(*zip(*curves[name]), label=label, color=colour, marker=marker, markersize=3.5, linewidth=1.3)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            for i, (size, text, name) in enumerate(changes[wires, shape]):
                label, colour, _ = SHOWN[name]
                if size > 0:
                    axes.axvline(size, color="#555555", linewidth=0.9, linestyle=":", zorder=1)
                axes.text(220, 6e5 / 2.4**i, f"from {text} on: {label}" if size > 0 else f"fastest: {label}", color=colour,
                          fontsize=9.5, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})
            if wires == next(iter(WIRES)):
                axes.set_title(f"{shape[0] * shape[1]} ranks ({shape[0]} x {shape[1]})", fontsize=11)
            axes.xaxis.set_major_locator(FixedLocator([2**k for k in range(8, 31, 4)]))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: size_text(size)))
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.yaxis.set_major_formatter(FuncFormatter(time_text))
            axes.yaxis.set_minor_formatter(NullFormatter())
    for axes in grid[-1]:
        axes.set_xlabel("size of the vector")
    figure.suptitle("All-reduce by the model: 5 µs a message, 25 GB/s a link and direction. "
                    "Dotted: where another becomes the fastest.", fontsize=11)
    figure.tight_layout(rect=(0, 0.045, 1, 0.99))
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(SHOWN), frameon=False)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out.with_suffix(".png"), dpi=110)
    figure.savefig(out.with_suffix(".svg"), metadata={"Date": None, "Description": stamp_of(curves_text + changes_text)})
    pyplot.close(figure)


def stamp_of(text):
    """Says which numbers a picture shows."""
    return "drawn from numbers with SHA-256 " + hashlib.sha256(text.encode()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="toroid-costs")
    parser.add_argument("--docs", required=True, type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    page, picture = arguments.docs / "algorithms.md", arguments.docs / PICTURE
    tables = {found["name"]: found["body"] for found in TABLE.finditer(printed_by(arguments.program, "tables"))}
    curves, changes = (printed_by(arguments.program, what) for what in ("curves", "changes"))
    old = page.read_text()
    there = [found["name"] for found in TABLE.finditer(old)]
    if sorted(there) != sorted(tables):
        sys.exit(f"costs.py: {page} has the tables {there}, the program prints {list(tables)}")
    new = TABLE.sub(lambda found: found[1] + tables[found["name"]] + found[4], old)
    if not arguments.check:
        page.write_text(new)
        draw(curves, changes, picture)
        return
    faults = []
    for before, after in zip(old.split("\n"), new.split("\n")):
        if before != after:
            faults.append(f"{page} says\n  {before}\nwhere the program prints\n  {after}")
    if len(old) != len(new) and not faults:
        faults.append(f"{page} and what the program prints differ in length")
    if stamp_of(curves + changes) not in picture.with_suffix(".svg").read_text():
        faults.append(f"{picture}.svg shows other numbers than the program prints")
    if PICTURE not in old or not picture.with_suffix(".png").exists():
        faults.append(f"{page} does not show {PICTURE}")
    print("\n".join(faults) or f"{len(tables)} tables and a picture are what the program prints")
    if faults:
        sys.exit("costs.py: run it without --check to write them anew")


if __name__ == "__main__":
    main()
