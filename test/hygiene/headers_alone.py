#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each header alone, with the project's warnings as errors."""
import argparse
import concurrent.futures
import os
import pathlib
import sys

import compilers


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--include", required=True, type=pathlib.Path)
    parser.add_argument("--flags", required=True, help="compiler flags, separated by blanks")
    parser.add_argument("--mpi", default="",
                        help="where <mpi.h> stands; without it, headers whose names end with mpi.hpp are left out")
    parser.add_argument("--compilers", nargs="+", required=True)
    arguments = parser.parse_args()
    flags = arguments.flags.split()

    def check(compiler, header):
        # As a second inclusion, so that the compiler does not take it for the main file.
        source = f"#include <{header}>\n#include <{header}>\n"
        command = [compiler, "-std=c++20", "-fsyntax-only", "-Werror", *flags, f"-I{arguments.include}"]
        if header.name.endswith("mpi.hpp"):
            command += ["-isystem", arguments.mpi]
        command += ["-x", "c++", "-"]
        return compiler, header, compilers.run(command, source)

    headers = sorted(path.relative_to(arguments.include) for path in arguments.include.rglob("*.hpp"))
    if not arguments.mpi:
        print("headers whose names end with mpi.hpp are left out: no MPI was asked for (TOROID_MPI)")
        headers = [header for header in headers if not header.name.endswith("mpi.hpp")]
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(check, compiler, header) for compiler in arguments.compilers for header in headers]
        for job in jobs:
            compiler, header, result = job.result()
            if result.returncode:
                failures += 1
                print(f"{compiler}: {header} does not compile alone:\n{result.stderr}")
    print(f"{len(headers)} headers, {len(arguments.compilers)} compilers, {failures} failures")
    return 1 if failures or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
