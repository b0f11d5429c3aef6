#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains on small made-up data: against a plain reference, on awkward shares, and with damaged files and arguments.

usage: fashion_mnist_files_test.py PROGRAM
"""

import array
import gzip
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

FEATURES, CLASSES = 784, 10
TRAIN_IMAGES, TRAIN_LABELS = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"

failures = []


def check(ok, text):
    print(("ok      " if ok else "FAILED  ") + text, flush=True)
    if not ok:
        failures.append(text)


def idx(dimensions, content, kind=8):
    return bytes([0, 0, kind, len(dimensions)]) + struct.pack(f">{len(dimensions)}I", *dimensions) + bytes(content)


def made_up(count, seed):
    """Images whose class shows, with noise: (rows of pixels, labels)."""
    source = random.Random(seed)
    labels = [source.randrange(CLASSES) for _ in range(count)]
    images = [[source.randrange(256) if (i + label) % CLASSES else 255 for i in range(FEATURES)] for label in labels]
    return images, labels


def files(train, test):
    """The four files, uncompressed, by name."""
    result = {}
    for (images, labels), image_name, label_name in ((train, TRAIN_IMAGES, TRAIN_LABELS),
                                                     (test, TEST_IMAGES, TEST_LABELS)):
        result[image_name] = idx((len(images), 28, 28), [pixel for image in images for pixel in image])
        result[label_name] = idx((len(labels),), labels)
    return result


def write(folder, contents):
    """Writes files; compresses those that do not say how they look on disk by being ("raw", bytes)."""
    os.makedirs(folder)
    for name, content in contents.items():
        raw = content[1] if isinstance(content, tuple) else gzip.compress(content)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(raw)


def run(program, *options):
    return subprocess.run([program, *options], capture_output=True, text=True, timeout=120)


def weights_of(program, folder, data, *options):
    path = os.path.join(folder, "weights")
    done = run(program, "--data", data, "--save", path, *options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(options)}: exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    with open(path, "rb") as file:
        values = array.array("f", file.read())
    return values, float(re.search(r"^test accuracy ([0-9.]+) %", done.stdout, re.M)[1])


def reference(train, test, epochs, rate):
    """Gradient descent over the whole set at each step, written down as plainly as can be, in double precision."""
    images, labels = train
    pixels = [pixel for image in images for pixel in image]
    mean = sum(pixels) / len(pixels)
    deviation = math.sqrt(sum(pixel * pixel for pixel in pixels) / len(pixels) - mean * mean)

    def standardised(image):
        return [(pixel - mean) / deviation for pixel in image]

    def logits(x):
        return [sum(w * v for w, v in zip(weights[c], x)) + biases[c] for c in range(CLASSES)]

    weights = [[0.0] * FEATURES for _ in range(CLASSES)]
    biases = [0.0] * CLASSES
    speed = [[0.0] * (FEATURES + 1) for _ in range(CLASSES)]
    inputs = [standardised(image) for image in images]
    for epoch in range(epochs):
        gradient = [[0.0] * (FEATURES + 1) for _ in range(CLASSES)]
        for x, label in zip(inputs, labels):
            likely = [math.exp(value) for value in logits(x)]
            total = sum(likely)
            for c in range(CLASSES):
                delta = likely[c] / total - (1 if c == label else 0)
                gradient[c] = [g + delta * value for g, value in zip(gradient[c], x + [1.0])]
        step = rate * (1 - epoch / epochs)
        for c in range(CLASSES):
            speed[c] = [0.9 * v + g / len(images) for v, g in zip(speed[c], gradient[c])]
            weights[c] = [w - step * v for w, v in zip(weights[c], speed[c])]
            biases[c] -= step * speed[c][FEATURES]
    right = 0
    for image, label in zip(*test):
        z = logits(standardised(image))
        right += z.index(max(z)) == label
    return [w for row in weights for w in row] + biases, 100 * right / len(test[1])


def distance(a, b):
    return max(abs(x - y) for x, y in zip(a, b))


def check_training(program, folder):
    train, test = made_up(23, 1), made_up(37, 2)
    data = os.path.join(folder, "whole")
    write(data, files(train, test))

    expected, accuracy = reference(train, test, 4, 0.01)
    check(len(expected) == FEATURES * CLASSES + CLASSES, "the reference has as many weights")
    # 26 ranks: three of them have no image in any batch.
    for ranks, transport in ((1, "shm"), (2, "shm"), (3, "shm"), (4, "shm"), (26, "shm"), (5, "threads")):
        got, percent = weights_of(program, folder, data, "--ranks", str(ranks), "--transport", transport, "--epochs",
                                  "4", "--batch", "1000", "--learning-rate", "0.01")
        check(len(got) == len(expected) and distance(got, expected) <= 1e-5,
              f"{ranks} ranks, {transport}: the reference's weights ({distance(got, expected):.2g} apart)")
        check(abs(percent - accuracy) < 0.006, f"{ranks} ranks, {transport}: {percent} % right, as the reference")

    one, _ = weights_of(program, folder, data, "--ranks", "1", "--epochs", "3", "--batch", "5")
    for ranks in (2, 3, 4, 7):
        got, _ = weights_of(program, folder, data, "--ranks", str(ranks), "--epochs", "3", "--batch", "5")
        check(distance(one, got) <= 1e-5, f"batches of 5, {ranks} ranks: as one rank ({distance(one, got):.2g} apart)")
    check(distance(one, expected) > 1e-3, "batches of 5 lead elsewhere than the whole set")

    plain = os.path.join(folder, "plain")
    write(plain, {name: ("raw", content) for name, content in files(train, test).items()})
    got, _ = weights_of(program, folder, plain, "--ranks", "1", "--epochs", "3", "--batch", "5")
    check(got == one, "uncompressed files give the same bits")

    short, _ = weights_of(program, folder, data, "--ranks", "2", "--epochs", "1", "--batch", "1")
    check(all(math.isfinite(value) for value in short), "batches of one image on two ranks")


def check_damage(program, folder):
    train, test = made_up(6, 3), made_up(4, 4)
    good = files(train, test)
    compressed = gzip.compress(good[TRAIN_IMAGES])
    checksum = bytearray(compressed)
    checksum[-8] ^= 1
    inside = bytearray(compressed)
    inside[len(inside) // 2] ^= 0xFF
    pixels = good[TRAIN_IMAGES][16:]

    cases = [
        ("a missing file", TEST_LABELS, None, "cannot open: No such file or directory"),
        ("an empty file", TRAIN_IMAGES, ("raw", b""), "ends within its header"),
        ("a header cut short", TRAIN_IMAGES, good[TRAIN_IMAGES][:11], "ends within its header"),
        ("another format", TRAIN_IMAGES, b"P5 28 28 255\n" + pixels, "not an IDX file"),
        ("another element type", TRAIN_IMAGES, idx((6, 28, 28), pixels, kind=0x0D), "IDX type 13, not 8"),
        ("too few dimensions", TRAIN_IMAGES, idx((6, 784), pixels), "an array of 2 dimensions, not 3"),
        ("labels with two dimensions", TRAIN_LABELS, idx((6, 1), [0] * 6), "an array of 2 dimensions, not 1"),
        ("no image", TRAIN_IMAGES, idx((0, 28, 28), b""), "dimension 0 is zero"),
        ("images of another size", TRAIN_IMAGES, idx((6, 32, 32), bytes(6 * 1024)), "images of 32 x 32, not 28 x 28"),
        ("more promised than a machine has", TRAIN_IMAGES, idx((0xFFFFFFFF, 0xFFFF, 0xFFFF), pixels),
         "but it holds 4704"),
        ("dimensions that overflow", TRAIN_IMAGES, idx((0xFFFFFFFF,) * 3, pixels), "its dimensions overflow"),
        ("a pixel missing", TRAIN_IMAGES, good[TRAIN_IMAGES][:-1], "promises 4704 bytes, but it holds 4703"),
        ("a pixel too many", TRAIN_IMAGES, good[TRAIN_IMAGES] + b"\0", "it goes on after the 4704 bytes"),
        ("a label missing", TRAIN_LABELS, idx((5,), [0] * 5), "5 labels for 6 images"),
        ("a label too large", TRAIN_LABELS, idx((6,), [0, 9, 0, 10, 0, 0]), "label 3 is 10, beyond the 10 classes"),
        ("a compressed file cut short", TRAIN_IMAGES, ("raw", compressed[:-100]),
         "damaged compressed data: unexpected end of file"),
        ("a checksum that does not match", TRAIN_IMAGES, ("raw", bytes(checksum)),
         "damaged compressed data: incorrect data check"),
        ("damage within", TRAIN_IMAGES, ("raw", bytes(inside)), "damaged compressed data"),
        ("damaged test labels", TEST_LABELS, idx((4,), [0, 0, 0, 255]), "label 3 is 255"),
    ]
    for number, (what, name, content, words) in enumerate(cases):
        data = os.path.join(folder, f"damaged{number}")
        saved = os.path.join(folder, f"saved{number}")
        write(data, {**{key: value for key, value in good.items() if key != name},
                     **({} if content is None else {name: content})})
        done = run(program, "--data", data, "--save", saved, "--epochs", "1")
        expected = f"fashion_mnist: {os.path.join(data, name)}: "
        check(done.returncode == 1 and done.stderr.startswith(expected) and words in done.stderr
              and done.stderr.count("\n") == 1 and done.stdout == "" and not os.path.exists(saved),
              f"{what}: {done.stderr.strip() or done.returncode}")

    data = os.path.join(folder, "a folder for a file")
    write(data, {name: content for name, content in good.items() if name != TEST_IMAGES})
    os.mkdir(os.path.join(data, TEST_IMAGES))
    done = run(program, "--data", data)
    check(done.returncode == 1 and "cannot read: Is a directory" in done.stderr, f"a folder: {done.stderr.strip()}")

    data = os.path.join(folder, "sound")
    write(data, good)
    for target, words in (("/dev/full", "cannot write the weights"), (folder, "cannot open for writing")):
        for transport in ("shm", "threads"):
            done = run(program, "--data", data, "--epochs", "1", "--save", target, "--transport", transport)
            check(done.returncode == 1 and f"{target}: {words}" in done.stderr,
                  f"weights to {target}, {transport}: {done.stderr.strip() or done.returncode}")


def check_arguments(program):
    cases = [
        (["--rank", "2"], "unknown option '--rank'"),
        (["more"], "unknown option 'more'"),
        (["--ranks"], "--ranks needs a value"),
        (["--ranks", "2", "--ranks", "3"], "--ranks is given twice"),
        (["--ranks", "0"], "--ranks: 0 is not greater than zero"),
        (["--ranks", "-2"], "--ranks: -2 is not greater than zero"),
        (["--ranks", "two"], "--ranks: 'two' is not a number"),
        (["--ranks", "2.5"], "--ranks: '2.5' is not a number"),
        (["--ranks", ""], "--ranks: '' is not a number"),
        (["--ranks", "99999999999"], "--ranks: 99999999999 is out of range"),
        (["--epochs", "0"], "--epochs: 0 is not greater than zero"),
        (["--batch", "0"], "--batch: 0 is not greater than zero"),
        (["--batch", "-1"], "--batch: '-1' is not a number"),
        (["--seed", "x"], "--seed: 'x' is not a number"),
        (["--learning-rate", "-0.1"], "--learning-rate: -0.1 is not greater than zero"),
        (["--learning-rate", "nan"], "--learning-rate: nan is not greater than zero"),
        (["--learning-rate", "inf"], "--learning-rate must be finite"),
        (["--transport", "pigeon"], "--transport: 'pigeon' is neither shm nor threads"),
        (["--save", ""], "--save needs the name of a file"),
    ]
    for arguments, words in cases:
        done = run(program, *arguments)
        check(done.returncode == 2 and done.stderr.startswith("fashion_mnist: " + words) and "usage:" in done.stderr
              and done.stdout == "", f"{' '.join(arguments)}: {done.stderr.splitlines()[:1] or done.returncode}")
    done = run(program, "--help")
    check(done.returncode == 0 and done.stdout.startswith("usage:") and done.stderr == "", "--help")


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_training(sys.argv[1], folder)
        check_damage(sys.argv[1], folder)
    check_arguments(sys.argv[1])
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
