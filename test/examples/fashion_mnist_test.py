#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains on the real Fashion-MNIST with several numbers of ranks and compares the weights.

usage: fashion_mnist_test.py PROGRAM [DIRECTORY WITH THE DATA]

Exits with 77 where the data are not installed (Debian: dataset-fashion-mnist).
"""

import array
import os
import re
import subprocess
import sys
import tempfile

PARAMETERS = 784 * 10 + 10
TOLERANCE = 1e-5
WANTED_ACCURACY = 83.0
TIME_LIMIT = 60  # seconds, for any one run


def train(program, folder, data, *options):
    """Runs the program; returns (weights as bytes, test accuracy in percent, fingerprint, what it printed)."""
    path = os.path.join(folder, "weights")
    command = [program, "--data", data, "--save", path, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    last = re.search(r"^test accuracy ([0-9.]+) % after .*; weights ([0-9a-f]{16}) on every rank$", done.stdout, re.M)
    if not last:
        sys.exit(f"{' '.join(command)}: no summary in\n{done.stdout}")
    with open(path, "rb") as file:
        weights = file.read()
    os.remove(path)
    if len(weights) != 4 * PARAMETERS:
        sys.exit(f"{' '.join(command)}: saved {len(weights)} bytes, not {4 * PARAMETERS}")
    return weights, float(last[1]), last[2], done.stdout


def distance(a, b):
    """The largest difference between two sets of weights."""
    return max(abs(x - y) for x, y in zip(array.array("f", a), array.array("f", b)))


def main():
    program = sys.argv[1]
    data = sys.argv[2] if len(sys.argv) > 2 else "/usr/share/datasets/fashion-mnist"
    if not os.path.exists(os.path.join(data, "train-images-idx3-ubyte.gz")):
        print(f"skipped: no Fashion-MNIST in {data}")
        sys.exit(77)

    failures = []

    def check(ok, text):
        print(("ok      " if ok else "FAILED  ") + text, flush=True)
        if not ok:
            failures.append(text)

    with tempfile.TemporaryDirectory() as folder:
        few = ["--epochs", "2", "--seed", "7"]
        by_ranks = {}
        for ranks in (1, 2, 3, 4):
            first = train(program, folder, data, "--ranks", str(ranks), *few)
            again = train(program, folder, data, "--ranks", str(ranks), *few)
            by_ranks[ranks] = first[0]
            check(first[0] == again[0], f"{ranks} ranks: the same bits on a second run")
            check(first[2] == again[2], f"{ranks} ranks: the same fingerprint on a second run")
            apart = distance(by_ranks[1], first[0])
            check(apart <= TOLERANCE, f"{ranks} ranks: within {TOLERANCE:g} of one rank ({apart:.2g})")
            lines = re.findall(r"^epoch +[0-9]+/2  loss [0-9.]+ ", first[3], re.M)
            check(len(lines) == 2, f"{ranks} ranks: one line of progress an epoch")

        threads = train(program, folder, data, "--ranks", "2", "--transport", "threads", *few)
        apart = distance(by_ranks[1], threads[0])
        check(apart <= TOLERANCE, f"2 ranks as threads: within {TOLERANCE:g} of one rank ({apart:.2g})")

        # If these did not differ, the comparisons above would have compared nothing.
        other = train(program, folder, data, "--ranks", "1", "--epochs", "2", "--seed", "8")
        apart = distance(by_ranks[1], other[0])
        check(apart > 10 * TOLERANCE, f"another seed gives other weights ({apart:.2g} apart)")

        # 997 images a step: neither the batch nor the last, shorter one divides by any of these numbers of ranks.
        odd = {ranks: train(program, folder, data, "--ranks", str(ranks), "--batch", "997", "--epochs", "1")[0]
               for ranks in (1, 2, 3, 4)}
        for ranks in (2, 3, 4):
            apart = distance(odd[1], odd[ranks])
            check(apart <= TOLERANCE, f"batches of 997, {ranks} ranks: within {TOLERANCE:g} of one rank ({apart:.2g})")

        _, accuracy, _, printed = train(program, folder, data)
        check(accuracy >= WANTED_ACCURACY, f"as started without options: {accuracy} % of the test images right")
        print(printed)

    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
