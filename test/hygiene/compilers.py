# SPDX-License-Identifier: Apache-2.0
"""What the checks that call a compiler share."""
import pathlib
import re
import subprocess


def run(command, text=None):
    return subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True, timeout=300)


def std_includes(compiler, include, text):
    """The system headers that a source, and the library's headers it pulls, name themselves: {header: who names it}.

    Only directives that the preprocessor carries out count; those of system headers are theirs.
    """
    # -dI keeps the directives in the output, also of headers already seen, between marks that say which file is read.
    result = run([compiler, "-std=c++20", "-E", "-dI", f"-I{include}", "-x", "c++", "-"], text)
    if result.returncode:
        raise RuntimeError(f"{compiler} -E fails:\n{result.stderr}")
    own = pathlib.Path(include).resolve()
    found = {}
    reading = None
    for line in result.stdout.split("\n"):
        mark = re.match(r'# \d+ "([^"]*)"', line)
        if mark:
            path = pathlib.Path(mark.group(1))
            is_ours = mark.group(1) == "<stdin>" or own in path.resolve().parents
            reading = mark.group(1) if is_ours else None
        directive = re.match(r"#\s*include\s*<([^>]+)>", line)
        if directive and reading and not directive.group(1).startswith("toroid/"):
            found.setdefault(directive.group(1), reading)
    return found
