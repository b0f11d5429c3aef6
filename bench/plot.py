#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws time and bus bandwidth against size from what toroid-bench --format csv and yardstick print.

    toroid-bench all_reduce --format csv > threads.csv
    yardstick 2 4 67108864 4 inplace > yardstick.csv
    bench/plot.py threads.csv yardstick.csv --out all-reduce

writes all-reduce.png and all-reduce.svg. Lines of one configuration and size, such as those of several runs, are
drawn as their median.
"""
import argparse
import csv
import dataclasses
import statistics
import sys

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter
except ImportError:
    sys.exit("plot.py: matplotlib is missing; on Debian: apt-get install python3-matplotlib, and use /usr/bin/python3")

PLACES = {"in": "in place", "out": "out of place"}


@dataclasses.dataclass
class Point:
    size: int  # bytes
    time: float  # microseconds
    bandwidth: float  # bus bandwidth, GB/s; 0 where there is none


@dataclasses.dataclass
class Series:
    label: str
    points: list
    reference: bool = False  # what the others are held against


def size_text(size):
    """1024 -> '1 KiB', 102228128 -> '97.5 MiB'."""
    value, units = float(size), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.4g} {units[0]}"


def bus_factor(ranks):
    """Of an all-reduce, as in nccl-tests."""
    return 2 * (ranks - 1) / ranks


def read(path):
    """Yields (label, is it a reference, Point) for each line of a file."""
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if "collective" in row:
                segments = f", segments of {size_text(int(row['segment_bytes']))}" if row["segment_bytes"] else ""
                words = [row["collective"]] if row["collective"] == "barrier" else [
                    f"{row['collective']} {row['type']} {row['redop']}".replace(" none", ""),
                    f"{row['memory']} memory", row["algorithm"] + segments, PLACES[row["place"]]]
                over = row.get("transport") or row["launch"]
                over = "" if over == row["launch"] else f" over {over}"  # threads meet over threads: nothing to say
                label = f"{row['ranks']} {row['launch']}{over}, " + ", ".join(words)
                yield label, False, Point(int(row["bytes"]), float(row["time_us"]), float(row["busbw_gbs"]))
            elif "median_us" in row:
                size, time, ranks = int(row["bytes"]), float(row["median_us"]), int(row["ranks"])
                label = f"yardstick: {ranks} threads, {row['algorithm']}, {PLACES[row['place']]}"
                yield label, True, Point(size, time, size / time / 1e3 * bus_factor(ranks) if time > 0 else 0)
            else:
                raise ValueError(f"{path}: neither toroid-bench's nor yardstick's columns")


def gather(lines):
    """Series from (label, reference, Point), with one point for each size."""
    found = {}
    for label, reference, point in lines:
        found.setdefault((label, reference), {}).setdefault(point.size, []).append(point)
    return [
        Series(label, [
            Point(size, statistics.median(p.time for p in points), statistics.median(p.bandwidth for p in points))
            for size, points in sorted(sizes.items())
        ], reference) for (label, reference), sizes in found.items()
    ]


def number_text(value, _position=None):
    """Whole decades without exponents, as far as they can be read."""
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def draw(series, out, title):
    """Writes out.png and out.svg."""
    pyplot.rcParams.update({
        "font.size": 10,
        "svg.hashsalt": "toroid",  # the same picture gives the same file
        "axes.grid": True,
        "grid.color": "#dddddd",
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
    })
    colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]  # told apart by everyone
    markers = ["o", "s", "^", "D", "v", "P", "X"]
    rows = -(-len(series) // 2)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 5.0 + 0.22 * rows))
    shown, references = 0, 0
    for one in series:
        if one.reference:
            style = {"color": ["#444444", "#999999", "#bb8855", "#7788aa"][references % 4],
                     "linestyle": ["--", ":", "-."][references % 3], "linewidth": 2.2}
            references += 1
        else:
            style = {"color": colours[shown % len(colours)], "marker": markers[shown % len(markers)], "markersize": 4.5,
                     "linewidth": 1.4}
            shown += 1
        left.plot([p.size for p in one.points], [p.time for p in one.points], label=one.label, **style)
        moved = [p for p in one.points if p.bandwidth > 0]
        right.plot([p.size for p in moved], [p.bandwidth for p in moved], label=one.label, **style)

    sizes = sorted({p.size for one in series for p in one.points if p.size > 0})
    for axes, name in ((left, "time of a call (µs)"), (right, "bus bandwidth (GB/s, 1e9 bytes)")):
        axes.set_yscale("log")
        axes.set_ylabel(name)
        axes.yaxis.set_major_formatter(FuncFormatter(number_text))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("size of the buffer")
        if not sizes:
            continue
        axes.set_xscale("log", base=2)
        powers = [2**k for k in range(0, 60) if sizes[0] <= 2**k <= sizes[-1]] or sizes
        axes.xaxis.set_major_locator(FixedLocator(powers[::max(1, -(-len(powers) // 9))]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: size_text(size)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(axis="x", rotation=35)
    figure.suptitle(title, fontsize=12)
    handles, labels = left.get_legend_handles_labels()
    height = (0.34 + 0.24 * rows) / figure.get_figheight()
    figure.tight_layout(rect=(0, height, 1, 0.98))
    figure.legend(handles, labels, loc="lower center", ncol=2, frameon=False, bbox_to_anchor=(0.5, 0.0))
    figure.savefig(out + ".png", dpi=130)
    figure.savefig(out + ".svg", metadata={"Date": None})
    pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(description="Draws what toroid-bench --format csv and yardstick print.")
    parser.add_argument("files", nargs="+", metavar="FILE.csv")
    parser.add_argument("--out", required=True, metavar="PATH", help="where to write; .png and .svg are added")
    parser.add_argument("--title", default="Time and bus bandwidth")
    arguments = parser.parse_args()
    try:
        series = gather(line for path in arguments.files for line in read(path))
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"plot.py: {error}")
    if not series:
        sys.exit("plot.py: no lines in " + ", ".join(arguments.files))
    draw(series, arguments.out, arguments.title)


if __name__ == "__main__":
    main()
