#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws who sends to whom in which step, from what toroid-schedule --format json prints.

    tools/draw_schedules.py build/release/tools/toroid-schedule --docs docs            # writes docs/pictures
    tools/draw_schedules.py build/release/tools/toroid-schedule --docs docs --check    # 1 if they show something else
"""
import argparse
import hashlib
import json
import pathlib
import subprocess
import sys

# Name, ranks, heading.
IN_TIME = [("direct", 5, "direct"), ("ring", 5, "ring"), ("halving_doubling", 8, "halving_doubling"),
           ("in_order_tree", 8, "tree, in order"), ("tree", 8, "tree: two of them")]
ROWS, COLUMNS = 3, 4
UP, DOWN, OTHER_UP, OTHER_DOWN = "#d55e00", "#0072b2", "#e69f00", "#56b4e9"


def printed_by(program, *arguments):
    return subprocess.run([program, *arguments, "--format", "json"], check=True, capture_output=True, text=True,
                          timeout=60).stdout


def stamp_of(texts):
    """Says which schedules a picture shows."""
    return "drawn from schedules with SHA-256 " + hashlib.sha256("".join(texts).encode()).hexdigest()


def transfers_of(schedule):
    """(step, from, to, first block, number of blocks, whether the value is final) of each transfer between ranks."""
    for op in schedule["operations"]:
        for to in op["to"]:
            if to != op["rank"]:
                yield op["step"], op["rank"], to, *op["blocks"], op["at"] == "delivered"


def draw_in_time(pyplot, texts, out):
    schedules = [json.loads(text) for text in texts]
    figure, all_axes = pyplot.subplots(1, len(schedules), figsize=(13, 4.6),
                                       gridspec_kw={"width_ratios": [s["ranks"] for s in schedules]})
    for axes, schedule, (name, ranks, heading) in zip(all_axes, schedules, IN_TIME):
        two_trees = name == "tree"
        for step, rank, to, block, _, final in transfers_of(schedule):
            colour = (OTHER_DOWN if final else OTHER_UP) if two_trees and block == 1 else DOWN if final else UP
            axes.annotate("", (to, step + 0.93), (rank, step + 0.07),
                          arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.1, "mutation_scale": 9,
                                      "shrinkA": 0, "shrinkB": 0})
        combining = [(op["rank"], op["step"]) for op in schedule["operations"] if len(op["from"]) > 1]
        for step in range(schedule["steps"]):
            axes.plot(range(ranks), [step] * ranks, "o", color="#bbbbbb", markersize=3.5, zorder=1)
        axes.plot(*zip(*combining), "o", color="#222222", markersize=5.5, zorder=3)
        axes.set_title(heading, fontsize=11)
        axes.set_xlim(-0.5, ranks - 0.5)
        axes.set_ylim(schedule["steps"] - 0.7, -0.3)
        axes.set_xticks(range(ranks))
        axes.set_yticks(range(schedule["steps"]))
        axes.set_xlabel("rank")
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)
    all_axes[0].set_ylabel("step")
    figure.text(0.5, 0.025, "orange: operands on their way up    blue: results on their way down    "
                "black: combines    (lighter: the second tree)", ha="center", fontsize=10)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    save(pyplot, figure, out, texts)


def draw_torus(pyplot, texts, out):
    schedule = json.loads(texts[0])
    each = schedule["blocks"] // 4
    last = schedule["steps"] - 1
    middle = last // 2
    shown = [(0, "step 0: all four parts on their first axis"), (middle - 1, f"step {middle - 1}: on their second axis"),
             (middle, f"step {middle}: results begin to come back"), (last - 1, f"step {last - 1}: along the first axis again")]
    colours = [UP, "#cc79a7", DOWN, "#009e73"]
    names = ["row first, to the right", "row first, to the left", "column first, down", "column first, up"]
    figure, all_axes = pyplot.subplots(1, len(shown), figsize=(13, 3.9))
    for axes, (at, heading) in zip(all_axes, shown):
        seen = set()
        for step, rank, to, block, _, _ in transfers_of(schedule):
            part = block // each
            if step != at or (rank, to, part) in seen:
                continue
            seen.add((rank, to, part))
            (row, column), (to_row, to_column) = divmod(rank, COLUMNS), divmod(to, COLUMNS)
            right, down = to_column - column, to_row - row
            right += COLUMNS * ((right < -1) - (right > 1))  # round the edge
            down += ROWS * ((down < -1) - (down > 1))
            aside = 0.09 if part in (0, 3) else -0.09
            start = (column + 0.17 * right + aside * abs(down), row + 0.17 * down + aside * abs(right))
            axes.annotate("", (start[0] + 0.62 * right, start[1] + 0.62 * down), start,
                          arrowprops={"arrowstyle": "-|>", "color": colours[part], "linewidth": 1.6, "mutation_scale": 10,
                                      "shrinkA": 0, "shrinkB": 0})
        for rank in range(ROWS * COLUMNS):
            row, column = divmod(rank, COLUMNS)
            axes.text(column, row, str(rank), ha="center", va="center", fontsize=9,
                      bbox={"boxstyle": "circle,pad=0.25", "facecolor": "#eeeeee", "edgecolor": "#888888"})
        axes.set_title(heading, fontsize=10)
        axes.set_xlim(-0.85, COLUMNS - 0.15)
        axes.set_ylim(ROWS - 0.15, -0.85)
        axes.set_aspect("equal")
        axes.axis("off")
    handles = [pyplot.Line2D([], [], color=colour, linewidth=2, label=name) for colour, name in zip(colours, names)]
    figure.tight_layout(rect=(0, 0.09, 1, 1))
    figure.legend(handles=handles, loc="lower center", ncol=4, frameon=False)
    save(pyplot, figure, out, texts)


def save(pyplot, figure, out, texts):
    figure.savefig(out.with_suffix(".png"), dpi=110)
    figure.savefig(out.with_suffix(".svg"), metadata={"Date": None, "Description": stamp_of(texts)})
    pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="toroid-schedule")
    parser.add_argument("--docs", required=True, type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    pictures = arguments.docs / "pictures"
    in_time = [printed_by(arguments.program, name, "--ranks", str(ranks)) for name, ranks, _ in IN_TIME]
    torus = [printed_by(arguments.program, "torus_2d", "--rows", str(ROWS), "--columns", str(COLUMNS))]
    if arguments.check:
        stale = [name for name, texts in (("schedules", in_time), ("torus", torus))
                 if stamp_of(texts) not in (pictures / f"{name}.svg").read_text()]
        print(f"2 pictures, {len(stale)} of other schedules than the library's {stale}")
        sys.exit(1 if stale else 0)
    import matplotlib  # not needed to check

    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot

    pyplot.rcParams.update({"svg.hashsalt": "toroid", "font.size": 9})
    pictures.mkdir(parents=True, exist_ok=True)
    draw_in_time(pyplot, in_time, pictures / "schedules")
    draw_torus(pyplot, torus, pictures / "torus")


if __name__ == "__main__":
    main()
