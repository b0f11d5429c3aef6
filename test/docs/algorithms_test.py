#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the table of algorithms in docs/algorithms.md to what the schedules state.

    algorithms_test.py TOROID_SCHEDULE docs/algorithms.md
    algorithms_test.py TOROID_SCHEDULE docs/algorithms.md --self-test    # faults put into the table must be caught
"""
import json
import math
import pathlib
import re
import subprocess
import sys
from fractions import Fraction

HEAD = "| collective | algorithm | schedule | steps |"
GROUPS = [(p, 1) for p in (2, 3, 4, 5, 7, 8, 12, 16, 17, 64, 100)]
GRIDS = [(rows * columns, rows) for rows, columns in ((2, 3), (3, 3), (3, 4), (4, 3), (7, 5), (16, 64))]


def table_of(page):
    """{(collective, schedule): row}, a row being a dictionary by the words of the head."""
    lines = page.split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith(HEAD))
    cells = lambda line: [cell.strip() for cell in line.strip("|").split("|")]
    rows = {}
    for line in lines[first + 2:]:
        if not line.startswith("|"):
            break
        row = dict(zip(cells(lines[first]), cells(line)))
        key = (row["collective"], row["schedule"].strip("`"))
        if key in rows:
            raise ValueError(f"two rows for {key}")
        rows[key] = row
    return rows


def value_of(formula, ranks, rows):
    """Of "2 (p - 1)/p S" and the like, as a fraction; S is 1."""
    log2 = lambda n: n.bit_length() - 1
    names = {"p": ranks, "q": math.ceil(math.log2(ranks)), "h": log2(ranks), "t": log2(ranks - 1), "S": 1,
             "X": ranks // rows, "Y": rows, "N": ranks}
    text = re.sub(r"(?<=[\w)]) (?=[\w(])", " * ", formula)
    if not re.fullmatch(r"[\w+\-*/() ]+", text) or set(re.findall(r"[A-Za-z]\w*", text)) - set(names):
        raise ValueError(f"{formula!r} is not understood")
    text = re.sub(r"\b(\d+|[A-Za-z])\b", lambda m: f"Fraction({names.get(m[1], m[1])})", text)
    return eval(text, {"Fraction": Fraction})  # numbers and signs only, as checked above


def bytes_of(cell, ranks, rows):
    general, _, few = cell.partition(" (of ")
    for word, number in (("two ranks", 2), ("three", 3)):
        exception = re.search(rf"{word} ([\d/]+ S)", few)
        if exception and ranks == number:
            return value_of(exception[1], ranks, rows)
    return value_of(general, ranks, rows)


def complaints(table, stated):
    for key in sorted({(fact["collective"], fact["schedule"]) for fact in stated} ^ set(table)):
        yield f"{key}: in the table but no schedule, or the other way round"
    for fact in stated:
        row = table.get((fact["collective"], fact["schedule"]))
        if row is None:
            continue
        ranks, rows = fact["ranks"], fact["rows"]
        where = f"{fact['collective']} {fact['schedule']} of {ranks} ranks in {rows} rows"
        if value_of(row["steps"], ranks, rows) != fact["steps"]:
            yield f"{where}: {fact['steps']} steps, not {row['steps']}"
        if bytes_of(row["bytes the busiest rank sends"], ranks, rows) != Fraction(*fact["sent"]):
            yield f"{where}: {Fraction(*fact['sent'])} S sent, not {row['bytes the busiest rank sends']}"
        for name, value in (("operators", fact["operators"]), ("determinism", f"`{fact['determinism']}`"),
                            ("pieces overlap", "yes" if fact["pipelined"] else "no")):
            if row[name] != value:
                yield f"{where}: {name} {value}, not {row[name]}"


def facts(program):
    for ranks, rows in GROUPS + GRIDS:
        printed = subprocess.run([program, "all", "--ranks", str(ranks), "--rows", str(rows), "--format", "facts"],
                                 check=True, capture_output=True, text=True, timeout=60).stdout
        yield from map(json.loads, printed.splitlines())


FAULTS = [("2 q + 1", "2 q"), ("2 p - 1", "2 p"), ("of three 3/2 S", "of three 2 S"), ("2 (X + Y) - 3", "2 (X + Y) - 2"),
          ("| (p - 1) S | yes", "| p S | yes"), ("commuting", "all"), ("`run_to_run`", "`any_chunking`"),
          ("| no |", "| yes |"), ("| t + 2 |", "| h + 2 |"),
          ("| `halving_doubling` | q + 1", "| `halving` | q + 1")]


def main():
    program, path = sys.argv[1:3]
    page, stated = pathlib.Path(path).read_text(), list(facts(program))
    failures = list(complaints(table_of(page), stated))
    print("\n".join(failures))
    if "--self-test" in sys.argv:
        for fault, (good, bad) in enumerate(FAULTS):
            changed = page.replace(good, bad, 1)
            if changed != page and list(complaints(table_of(changed), stated)):
                continue
            failures.append(f"fault {fault}: {good} -> {bad}")
            print("not caught, or nothing to put it into:", failures[-1])
    print(f"{len(stated)} statements of schedules, {len(failures)} complaints")
    sys.exit(1 if failures or not stated else 0)


if __name__ == "__main__":
    main()
