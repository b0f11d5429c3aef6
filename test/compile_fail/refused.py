#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles one section of refused.cpp: as it stands it must fail with the words written beside it, and as its twin it
must compile."""
import argparse
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).with_name("refused.cpp")


def expected_words(section):
    text = SOURCE.read_text()
    body = re.search(rf"^#(?:el)?if defined\({section}\)\n(.*?)^#(?:el|end)", text, re.S | re.M)
    if not body:
        sys.exit(f"no section {section} in {SOURCE}")
    words = re.findall(r"^// expect: (.*)$", body.group(1), re.M)
    if not words or "REFUSED(" not in body.group(1):
        sys.exit(f"{section} needs a line '// expect: …' and a fault in REFUSED(…)")
    return words


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--section", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--compilers", nargs="+", required=True)
    arguments = parser.parse_args()
    failures = 0
    for compiler in arguments.compilers:

        def compile_with(*flags):
            command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{arguments.include}"]
            command += [f"-D{arguments.section}", *flags, str(SOURCE)]
            return subprocess.run(command, capture_output=True, text=True, timeout=100)

        twin = compile_with("-DTWIN")
        if twin.returncode:
            failures += 1
            print(f"{compiler}: the twin of {arguments.section} does not compile:\n{twin.stderr[:4000]}")
        refused = compile_with()
        if refused.returncode == 0:
            failures += 1
            print(f"{compiler}: {arguments.section} compiles, and must not")
            continue
        errors = [line for line in refused.stderr.split("\n") if re.search(r"\berror:", line)]
        for words in expected_words(arguments.section):
            if words not in refused.stderr:
                failures += 1
                print(f"{compiler}: {arguments.section} is refused without the words\n  {words}\nbut with")
                print("\n".join(f"  {line}" for line in errors[:10]))
        print(f"{compiler}: {arguments.section}: {len(errors)} errors, the first: {(errors or [''])[0]}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
