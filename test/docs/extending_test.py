#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the programs out of docs/extending.md, compiles them, runs them, and compares what they print with the page.

A part is what stands below a heading of the second level. Its C++ blocks, one after the other, are a program; its text
block is what that prints. The first compiler's programs run, the others only have to compile.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def parts_of(page):
    """[(name, program, what it prints)]"""
    found = []
    for part in re.split(r"^## ", page, flags=re.M)[1:]:
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", part, re.S | re.M)
        program = "".join(text for language, text in blocks if language == "cpp")
        printed = [text for language, text in blocks if language == "text"]
        unknown = [language for language, _ in blocks if language not in ("cpp", "text")]
        name = part.split("\n", 1)[0]
        if unknown or not program or len(printed) != 1:
            raise ValueError(f"{name}: needs C++ blocks and one of text, and has no others; found {unknown}")
        if len(re.findall(r"^\*\*[1-4]\. ", part, re.M)) != 4:
            raise ValueError(f"{name}: has not four steps")
        found.append((name, program, printed[0]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--part", help="only the one whose heading ends so")
    parser.add_argument("--include", required=True)
    parser.add_argument("--flags", default="", help="compiler flags, separated by blanks")
    parser.add_argument("--compilers", nargs="+", required=True)
    arguments = parser.parse_args()
    parts = [part for part in parts_of(arguments.page.read_text())
             if arguments.part is None or part[0].lower().endswith(arguments.part)]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, program, expected in parts:
            source, binary = pathlib.Path(folder, "part.cpp"), pathlib.Path(folder, "part")
            source.write_text(program)
            for i, compiler in enumerate(arguments.compilers):
                command = [compiler, "-std=c++20", "-O1", "-Werror", *arguments.flags.split(), f"-I{arguments.include}",
                           "-pthread", str(source), *(["-o", str(binary)] if i == 0 else ["-fsyntax-only"])]
                compiled = subprocess.run(command, capture_output=True, text=True, timeout=500)
                if compiled.returncode:
                    failures += 1
                    print(f"{name}: {compiler} does not compile it:\n{compiled.stderr[:6000]}")
            if not binary.exists():
                continue
            ran = subprocess.run([binary], capture_output=True, text=True, timeout=300, cwd=folder)
            if ran.returncode or ran.stdout != expected:
                failures += 1
                print(f"{name}: ends with {ran.returncode} and prints\n{ran.stdout}{ran.stderr}\ninstead of\n{expected}")
            os.unlink(binary)
    print(f"{len(parts)} programs, {len(arguments.compilers)} compilers, {failures} failures")
    sys.exit(1 if failures or not parts else 0)


if __name__ == "__main__":
    main()
