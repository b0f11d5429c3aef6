#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that toroid/toroid.hpp pulls in only standard and Linux headers of a list, each cheap to compile."""
import argparse
import sys

import compilers

STANDARD = """
    array atomic bit cassert cerrno chrono concepts cstddef cstdint cstdio cstdlib cstring exception limits memory mutex
    new optional span stdexcept string string_view thread type_traits utility vector
""".split()
LINUX = """
    dirent.h fcntl.h linux/futex.h linux/membarrier.h poll.h sched.h signal.h sys/mman.h sys/prctl.h sys/resource.h
    sys/random.h sys/socket.h sys/stat.h sys/statvfs.h sys/syscall.h sys/types.h sys/uio.h sys/un.h sys/wait.h time.h unistd.h
""".split()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--include", required=True)
    parser.add_argument("--compilers", nargs="+", required=True)
    arguments = parser.parse_args()
    complaints = 0
    for compiler in arguments.compilers:
        # The check must see what is there, also what is included a second time.
        twice = "#include <string>\n#include <regex>\n#include <string>\n"
        seen = compilers.std_includes(compiler, arguments.include, twice)
        if set(seen) != {"string", "regex"}:
            print(f"{compiler}: the check itself sees {seen}")
            complaints += 1
        found = compilers.std_includes(compiler, arguments.include, "#include <toroid/toroid.hpp>\n")
        for header, where in sorted(found.items()):
            if header not in STANDARD + LINUX:
                print(f"{compiler}: <{header}>, included by {where}, is not in the list of {__file__}")
                complaints += 1
        print(f"{compiler}: {len(found)} headers: {' '.join(sorted(found))}")
        complaints += not found
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
