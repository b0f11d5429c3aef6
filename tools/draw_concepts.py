#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the nouns of the library and how a call goes through them.

    tools/draw_concepts.py --docs docs    # writes docs/pictures/concepts.svg and .png
"""
import argparse
import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as pyplot
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

INK, NOUN, BYTES, USER = "#222222", "#d6e6f4", "#e4f1e1", "#f3efe2"


def box(axes, x, y, width, height, title, lines, colour):
    axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=1.1", facecolor=colour,
                                  edgecolor=INK, linewidth=1))
    top = y + height - 2.2
    axes.text(x + width / 2, top, title, ha="center", va="center", fontsize=11.5, fontweight="bold", color=INK)
    for i, line in enumerate(lines):
        axes.text(x + width / 2, top - 2.7 - 2.35 * i, line, ha="center", va="center", fontsize=9, color=INK)


def arrow(axes, start, end, text="", at=(0, 0), style="-|>", line="-", number=None):
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle=style, mutation_scale=13, linewidth=1.3, linestyle=line,
                                   color=INK, shrinkA=0, shrinkB=0))
    middle = ((start[0] + end[0]) / 2 + at[0], (start[1] + end[1]) / 2 + at[1])
    if number:
        axes.text(middle[0] - 1.9, middle[1], number, ha="center", va="center", fontsize=9, color="white", fontweight="bold",
                  bbox={"boxstyle": "circle,pad=0.22", "facecolor": "#0072b2", "edgecolor": "none"})
    axes.text(middle[0], middle[1], text, ha="left", va="center", fontsize=9, color=INK)


def draw(out):
    pyplot.rcParams.update({"svg.hashsalt": "toroid"})
    figure, axes = pyplot.subplots(figsize=(11.5, 7.4))
    axes.set_xlim(0, 115)
    axes.set_ylim(0, 74)
    axes.axis("off")

    box(axes, 34, 67, 47, 6.4, "toroid::all_reduce(comm, in, out, op, algorithm)", ["your program, on every rank"], USER)
    box(axes, 40, 47, 35, 11, "collective", ["the call: binds buffers, operator,", "algorithm and communicator;",
                                             "below it there are only bytes"], NOUN)
    box(axes, 1, 47, 31, 11, "schedule", ["what moves when: a pure function", "(rank, ranks, step) → operations;",
                                           "knows no transport, no type"], NOUN)
    box(axes, 83, 47, 31, 11, "communicator", ["a group of ranks, with options;", "numbers calls, keeps the error,",
                                                "knows no algorithm"], NOUN)
    axes.add_patch(FancyBboxPatch((32, 26.6), 52, 14.6, boxstyle="round,pad=0,rounding_size=1.1", facecolor="#f7faf6",
                                  edgecolor=INK, linewidth=1))
    axes.text(58, 39.4, "executors walk a schedule over a transport", ha="center", va="center", fontsize=9.5, color=INK)
    box(axes, 34, 28, 22, 9.5, "mapped executor", ["reads and writes where", "peers' memory can be reached"], BYTES)
    box(axes, 60, 28, 22, 9.5, "message executor", ["a message for each block", "that a peer needs"], BYTES)
    box(axes, 1, 28, 25, 9.5, "checker, cost, drawing", ["prove, time and show", "the same schedule"], BYTES)
    axes.add_patch(FancyBboxPatch((31, 2), 83, 15.5, boxstyle="round,pad=0,rounding_size=1.1", facecolor=NOUN, edgecolor=INK,
                                  linewidth=1))
    axes.text(72.5, 4.7, "transport: how bytes reach a peer; knows no algorithm, no operator, no type", ha="center", va="center",
              fontsize=9.5, color=INK)
    box(axes, 33, 7.5, 24, 8.6, "threads, shm", ["mailboxes, hand-over", "regions, doorbells"], "white")
    box(axes, 59, 7.5, 24, 8.6, "mpi", ["start, test and wait for", "sends and receives"], "white")
    box(axes, 85, 7.5, 28, 8.6, "one of your own", ["a model of mapped_transport", "or of message_transport"], "white")

    arrow(axes, (57.5, 67), (57.5, 58), "arguments are checked; nothing has moved yet", (4.2, 0), number="1")
    arrow(axes, (40, 52.5), (32, 52.5))
    axes.text(36, 54.2, "picks", ha="center", fontsize=9, color=INK)
    arrow(axes, (75, 52.5), (83, 52.5))
    axes.text(79, 54.2, "asks", ha="center", fontsize=9, color=INK)
    arrow(axes, (57.5, 47), (57.5, 41.2))
    arrow(axes, (24, 47), (32, 38), line=(0, (4, 2)))
    arrow(axes, (13.5, 47), (13.5, 37.5), line=(0, (4, 2)))
    arrow(axes, (98.5, 47), (98.5, 17.5), line=(0, (4, 2)))
    axes.text(99.7, 36, "owns one rank's\nend of it", fontsize=9, color=INK, va="center")
    arrow(axes, (45, 28), (45, 17.5), style="<|-|>")
    arrow(axes, (71, 28), (71, 17.5), style="<|-|>")
    for y, number, text in ((25.3, "2", "entry: ranks compare the call"), (22.7, "3", "walk: step after step"),
                            (20.1, "4", "leave: nobody uses the buffers")):
        axes.text(48, y, number, ha="center", va="center", fontsize=8.5, color="white", fontweight="bold",
                  bbox={"boxstyle": "circle,pad=0.2", "facecolor": "#0072b2", "edgecolor": "none"})
        axes.text(49.9, y, text, va="center", fontsize=8.6, color=INK)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.subplots_adjust(0.005, 0.005, 0.995, 0.995)
    figure.savefig(out.with_suffix(".png"), dpi=110)
    figure.savefig(out.with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", required=True, type=pathlib.Path)
    draw(parser.parse_args().docs / "pictures/concepts")
