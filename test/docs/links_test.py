#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever the Markdown pages of the tree point to is there, and the examples are all in the course.

    links_test.py ROOT
    links_test.py --self-test    # pages with faults must be complained about
"""
import pathlib
import re
import sys
import tempfile

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.S | re.M)
HEADING = re.compile(r"^#+ (.*)$", re.M)
CODE = re.compile(r"`((?:include|docs|test|examples|bench|tools|cmake|scripts)/[\w./-]+)`")


def anchors_of(page):
    """As GitHub makes them of headings."""
    text = FENCE.sub("", page)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in HEADING.findall(text)}


def complaints(root):
    pages = [p for p in sorted(root.rglob("*.md")) if "build" not in p.relative_to(root).parts[:1]]
    if not pages:
        yield f"{root}: no pages"
    for path in pages:
        text = FENCE.sub("", path.read_text())
        name = path.relative_to(root)
        for target in LINK.findall(text):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            there = path.parent / file if file else path
            if not there.exists():
                yield f"{name}: {target} does not exist"
            elif anchor and anchor not in anchors_of(there.read_text()):
                yield f"{name}: {target} has no such heading"
        for file in CODE.findall(text):
            # The beginning of a name is as good as a file; a folder may be where something is to go.
            is_pattern = file.endswith("/") or re.search(r"NN|NAME|DATE", file)
            if not is_pattern and not list(root.glob(file + "*")):
                yield f"{name}: {file} does not exist"
    examples = root / "examples"
    course = (examples / "README.md").read_text()
    for example in sorted(examples.glob("[0-9][0-9]_*.cpp")):
        for file in (example.name, example.with_suffix(".expected").name):
            if f"({file})" not in course:
                yield f"examples/README.md does not mention {file}"


def self_test():
    good = "# Head line\n[a](README.md) [b](#head-line) [c](https://example.org) `docs/a.md`\n```\n[x](nowhere)\n```\n"
    faults = [("[a](gone.md)", "gone.md does not exist"), ("[a](../README.md#gone)", "no such heading"),
              ("[a](#gone)", "no such heading"), ("`include/gone.hpp`", "include/gone.hpp does not exist")]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs").mkdir()
        (root / "examples").mkdir()
        (root / "README.md").write_text(good)
        (root / "examples/01_a.cpp").write_text("")
        (root / "examples/README.md").write_text("[a](01_a.cpp)")
        (root / "docs/a.md").write_text("# A\n")
        faults.append(("", "does not mention 01_a.expected"))
        for text, words in faults:
            (root / "docs/a.md").write_text(text)
            if not any(words in complaint for complaint in complaints(root)):
                failures += 1
                print(f"not caught: {text!r}, {words}")
        (root / "docs/a.md").write_text("# A\n")
        (root / "examples/01_a.expected").write_text("")
        (root / "examples/README.md").write_text("[a](01_a.cpp) [b](01_a.expected)")
        for complaint in complaints(root):
            failures += 1
            print(f"complaint about good pages: {complaint}")
    print(f"{len(faults)} faults tried, {failures} failures")
    return failures


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    found = list(complaints(pathlib.Path(sys.argv[1])))
    print("\n".join(found + [f"{len(found)} complaints"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
