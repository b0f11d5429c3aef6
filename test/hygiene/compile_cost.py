#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what the library costs to compile, and holds it to a budget of CPU seconds (user and system).

* toroid/toroid.hpp at -O0, less a file that includes just the same standard and Linux headers;
* one all_reduce call at -O2.

Runs of both files alternate; the figure is the median of three.
"""
import argparse
import resource
import statistics
import sys
import tempfile

import compilers

INCLUDE_BUDGET = 0.8
CALL_BUDGET = 4.0
RUNS = 3
ONE_CALL = """#include <toroid/toroid.hpp>
#include <vector>
int main() {
  toroid::run_threads(2, [](auto& comm) {
    std::vector<float> values(1000, 1.0f);
    toroid::all_reduce(comm, values);
  });
}
"""


def cpu_seconds(command, text):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = compilers.run(command, text)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} fails:\n{result.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", required=True)
    parser.add_argument("--compilers", nargs="+", required=True)
    arguments = parser.parse_args()
    over = 0
    with tempfile.TemporaryDirectory() as folder:
        for compiler in arguments.compilers:
            common = [compiler, "-std=c++20", f"-I{arguments.include}", "-pthread", "-c", "-o", f"{folder}/out.o"]
            common += ["-x", "c++", "-"]
            library = "#include <toroid/toroid.hpp>\n"
            headers = compilers.std_includes(compiler, arguments.include, library)
            bare = "".join(f"#include <{header}>\n" for header in headers)
            times = {"with": [], "without": [], "call": []}
            for run in range(RUNS + 1):
                measured = {
                    "with": cpu_seconds(common + ["-O0"], library),
                    "without": cpu_seconds(common + ["-O0"], bare),
                    "call": cpu_seconds(common + ["-O2"], ONE_CALL),
                }
                for name, seconds in measured.items():
                    if run > 0:  # the first round fills the file cache
                        times[name].append(seconds)
            median = {name: statistics.median(seconds) for name, seconds in times.items()}
            include = median["with"] - median["without"]
            print(
                f"{compiler}: toroid/toroid.hpp {median['with']:.2f} s, its {len(headers)} standard and Linux headers "
                f"{median['without']:.2f} s: {include:.2f} s more, budget {INCLUDE_BUDGET} s"
            )
            print(f"{compiler}: one all_reduce call at -O2 {median['call']:.2f} s, budget {CALL_BUDGET} s")
            over += (include > INCLUDE_BUDGET) + (median["call"] > CALL_BUDGET)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
