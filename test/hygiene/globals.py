#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds state that the library keeps between calls: symbols of toroid in the writable sections of a program.

Names inside anonymous namespaces and functions of tests belong to the tests.
"""
import argparse
import re
import subprocess
import sys

# What each thread has begun; include/toroid/transport/background.hpp says why. With it, whether it has been set up.
BY_DESIGN = re.compile(r"(guard variable for )?toroid::transport::background::of_this_thread\(\)::list$")
# Tables of addresses are relocated once at start, then read-only.
WRITABLE = re.compile(r"\.(data|bss|tdata|tbss|tm_clone_table)$|\.(data|bss|tdata|tbss)\.(?!rel\.ro)")


def writable_symbols(binary):
    command = ["objdump", "--syms", "--demangle", binary]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n"):
        match = re.match(r"[0-9a-f]+ .{7} (\S+)\s+[0-9a-f]+\s+(?:\.hidden\s+)?(.*)", line)
        if match and WRITABLE.search(match.group(1)):
            yield match.group(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    symbols = list(writable_symbols(parser.parse_args().binary))
    state = [name for name in symbols if re.match(r"(guard variable for |TLS \w+ function for )?toroid::", name)]
    state = [name for name in state if not BY_DESIGN.match(name)]
    for name in state:
        print(f"mutable state: {name}")
    print(f"{len(symbols)} symbols in writable sections, {len(state)} of toroid")
    # Any program has some: none would mean that the symbols could not be read.
    return 1 if state or not symbols else 0


if __name__ == "__main__":
    sys.exit(main())
