#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks rules about the text of the tree: arrows between folders, first lines, macros, state, words.

tree.py --root DIR     check a tree
tree.py --self-test    check the checks: each rule must catch a header made to break it
"""
import argparse
import pathlib
import re
import sys
import tempfile

# Folder by folder, what a header may include besides its own folder: only what stands below it. `schedule` and
# `transport` never see each other; nothing below the transports knows devices.
BELOW = {
    "core": set(),
    "topology": {"core"},
    "device": {"core", "topology"},
    "schedule": {"core", "topology"},
    "transport": {"core", "topology", "device"},
    "communicator": {"core", "topology", "device", "schedule", "transport"},
    "collective": {"core", "topology", "device", "schedule", "transport", "communicator"},
    "train": {"core", "topology", "device", "schedule", "transport", "communicator", "collective"},
    "resnet50": {"core", "topology", "device", "schedule", "transport", "communicator", "collective", "train"},
}
# Headers that stand above the folders, and what each gathers.
GATHERING = {
    "toroid.hpp": {"core", "topology", "schedule", "transport", "communicator", "collective"},
    "train.hpp": set(BELOW) - {"resnet50"},
}
MACROS = re.compile(r"TOROID_(ASSERT|HOST_DEVICE|VERSION_(MAJOR|MINOR|PATCH))$")
# The one place where something outlives a call without an owner among the caller's objects; the header says why.
STATE_BY_DESIGN = {("transport/background.hpp", "thread_local background list;")}
LONGEST_HEADER = 600  # lines; more is not read in one sitting
LONGEST_LINE = 120
SPDX = "SPDX-License-Identifier: Apache-2.0"
# Split so that this file passes its own check.
WORDS = ["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK", "not imple" + "mented", "unimple" + "mented"]
SOURCES = {".hpp", ".cpp", ".cu", ".inc", ".py", ".cmake", ".in", ".sh"}
FORMATTED = {".hpp", ".cpp", ".cu", ".inc"}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')


def code_of(text):
    """The text without comments and string contents, line by line as before."""
    text = COMMENT.sub(lambda m: "\n" * m.group().count("\n"), text)
    return "\n".join(line if line.lstrip().startswith("#") else STRING.sub('""', line) for line in text.split("\n"))


def check_arrows(path, relative, text, headers):
    folder = relative.parts[0] if len(relative.parts) > 1 else None
    if folder is None and relative.name not in GATHERING:
        yield f"{path}: a header stands in one of {', '.join(BELOW)}"
        return
    if folder is not None and folder not in BELOW:
        yield f"{path}: the folder {folder} is not in the order of layers"
        return
    allowed = BELOW[folder] | {folder} if folder else GATHERING[relative.name]
    for number, line in enumerate(text.split("\n"), 1):
        include = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not include:
            continue
        quote, target = include.groups()
        if quote == '"':
            yield f"{path}:{number}: included as \"{target}\"; the library includes <toroid/...>"
        if not target.startswith("toroid/"):
            continue
        inner = pathlib.PurePath(target).relative_to("toroid")
        if inner not in headers:
            yield f"{path}:{number}: {target} does not exist"
        elif len(inner.parts) == 1:
            yield f"{path}:{number}: {target} gathers headers for users; include what is needed"
        elif inner.parts[0] not in allowed:
            yield f"{path}:{number}: {folder or relative.name} may not include {inner.parts[0]} ({target})"


def check_state(path, relative, code):
    """State that outlives a call. globals.py finds what hides from this, in the symbols of a program."""

    def line_of(match):
        return code[: match.start()].count("\n") + 1

    # A declaration that meets a parenthesis first is a function.
    for match in re.finditer(r"\b(static|inline|thread_local|extern)\b[^;={(]*[;={]", code):
        words = " ".join(match.group().split())
        constant = re.search(r"\b(const|constexpr)\b", words) and "thread_local" not in words
        if (relative.as_posix(), words) in STATE_BY_DESIGN:
            continue
        if not constant and not re.search(r"\b(namespace|operator)\b|extern \"\"", words):
            yield f"{path}:{line_of(match)}: mutable state: {words}"
    for match in re.finditer(r"(?<!\w)((secure_)?getenv|environ)\b", code):
        yield f"{path}:{line_of(match)}: reads the environment"


def check_header(path, relative, text, headers):
    lines = text.split("\n")
    if lines[0] != f"// {SPDX}":
        yield f"{path}:1: the first line must be // {SPDX}"
    if path.suffix == ".hpp" and (len(lines) < 2 or lines[1] != "#pragma once"):
        yield f"{path}:2: the second line must be #pragma once"
    if len(lines) > LONGEST_HEADER:
        yield f"{path}: {len(lines)} lines; split what is longer than {LONGEST_HEADER}"
    code = code_of(text)
    for match in re.finditer(r"(?m)^\s*#\s*define\s+(\w+)", code):
        if not MACROS.match(match.group(1)):
            yield f"{path}: defines the macro {match.group(1)}"
    for match in re.finditer(r"\busing\s+namespace\b", code):
        yield f"{path}:{code[:match.start()].count(chr(10)) + 1}: using namespace in a header"
    yield from check_arrows(path, relative, text, headers)
    yield from check_state(path, relative, code)


def check_text(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        for word in WORDS:
            if re.search(rf"\b{word}\b", line):
                yield f"{path}:{number}: {word}"
        if line != line.rstrip():
            yield f"{path}:{number}: white space at the end of the line"
        if "\t" in line and path.suffix in SOURCES:
            yield f"{path}:{number}: a tab"
        if len(line) > LONGEST_LINE and path.suffix in FORMATTED:
            yield f"{path}:{number}: {len(line)} columns"
    if text and not text.endswith("\n"):
        yield f"{path}: no end of line at the end of the file"


def check_first_line(path, text):
    head = text.split("\n")[:2]
    if not any(SPDX in line for line in head):
        yield f"{path}: no line {SPDX} among the first two"


def check_tree(root):
    include = root / "include" / "toroid"
    headers = {p.relative_to(include): p for p in sorted(include.rglob("*")) if p.is_file()}
    if not headers:
        yield f"{include}: no headers"
    for relative, path in headers.items():
        # A fragment is a part of the header of its name, which includes it more than once.
        if path.suffix != ".hpp" and not (path.suffix == ".inc" and relative.with_suffix(".hpp") in headers):
            yield f"{path}: headers end in .hpp, a fragment of NAME.hpp is NAME.inc"
            continue
        yield from check_header(path, relative, path.read_text(), headers)
    texts = SOURCES | {".md", ".txt", ".json", ".expected"}
    files = [p for p in root.iterdir() if p.is_file() and (p.suffix in texts or p.suffix == "") and p.name != "LICENSE"]
    for folder in ["include", "examples", "bench", "test", "cmake", "docs", "scripts", "tools", ".ci"]:
        files += [p for p in (root / folder).rglob("*") if p.is_file() and (p.suffix in texts or p.suffix == "")]
    for path in sorted(files):
        if "__pycache__" in path.parts:
            continue
        text = path.read_text()
        yield from check_text(path, text)
        is_script = text.startswith("#!")
        if (path.suffix in SOURCES or path.name == "CMakeLists.txt" or is_script) and path.suffix != ".md":
            yield from check_first_line(path, text)


GOOD = f"// {SPDX}\n#pragma once\n"
# Each: a file's name below include/toroid, its text, and words of the complaint that must follow.
FAULTS = [
    ("core/a.hpp", GOOD + "#include <toroid/topology/good.hpp>\n", "core may not include topology"),
    ("schedule/a.hpp", GOOD + "#include <toroid/transport/good.hpp>\n", "schedule may not include transport"),
    ("transport/a.hpp", GOOD + "#include <toroid/schedule/good.hpp>\n", "transport may not include schedule"),
    ("schedule/a.hpp", GOOD + "#include <toroid/device/good.hpp>\n", "schedule may not include device"),
    ("transport/detail/a.hpp", GOOD + "#include <toroid/collective/good.hpp>\n", "may not include collective"),
    ("toroid.hpp", GOOD + "#include <toroid/train/good.hpp>\n", "toroid.hpp may not include train"),
    ("core/a.hpp", GOOD + "#include <toroid/core/missing.hpp>\n", "does not exist"),
    ("core/a.hpp", GOOD + '#include "good.hpp"\n', "the library includes <toroid/...>"),
    ("collective/a.hpp", GOOD + "#include <toroid/train.hpp>\n", "gathers headers"),
    ("stray.hpp", GOOD, "stands in one of"),
    ("other/a.hpp", GOOD, "not in the order of layers"),
    ("core/a.h", GOOD, "end in .hpp"),
    ("core/a.inc", GOOD, "end in .hpp"),
    ("core/good.inc", f"// {SPDX}\n#include <toroid/topology/good.hpp>\n", "core may not include topology"),
    ("core/a.hpp", "#pragma once\n", "first line"),
    ("core/a.hpp", f"// {SPDX}\n", "#pragma once"),
    ("core/a.hpp", GOOD + "#define TOROID_OTHER 1\n", "defines the macro TOROID_OTHER"),
    ("core/a.hpp", GOOD + "namespace toroid {\nusing namespace std;\n}\n", "using namespace"),
    ("core/a.hpp", GOOD + "namespace toroid {\ninline int calls = 0;\n}\n", "mutable state: inline int calls"),
    ("core/a.hpp", GOOD + "namespace toroid {\nstatic int calls;\n}\n", "mutable state: static int calls"),
    ("core/a.hpp", GOOD + "inline int f() {\n  static int calls = 0;\n  return ++calls;\n}\n", "static int calls"),
    ("core/a.hpp", GOOD + "struct s {\n  static inline int calls{0};\n};\n", "static inline int calls"),
    ("core/a.hpp", GOOD + "inline thread_local int calls = 0;\n", "mutable state: inline thread_local"),
    ("core/a.hpp", GOOD + 'inline const char* f() { return std::getenv("A"); }\n', "reads the environment"),
    ("core/a.hpp", GOOD + "// " + WORDS[0] + ": later\n", WORDS[0]),
    ("core/a.hpp", GOOD + "int f(); \n", "white space"),
    ("core/a.hpp", GOOD + "\tint f();\n", "a tab"),
    ("core/a.hpp", GOOD + "// " + "x" * LONGEST_LINE + "\n", "columns"),
    ("core/a.hpp", GOOD + "int f();", "no end of line"),
    ("core/a.hpp", GOOD + "\n" * LONGEST_HEADER, "split what is longer"),
]
# What must pass: state that is constant, functions, text that only looks like a fault.
CLEAN = GOOD + """#include <toroid/core/good.hpp>

#include <string>

namespace toroid {
/// Words such as getenv and static int x; in a comment.
inline constexpr int most = 8;
static const int least = 1;
template <class T>
inline constexpr bool is_small = sizeof(T) < 8;
inline int f(int x = 3) { return x; }
inline std::string name();
struct s {
  static constexpr int size = 4;
  static int of(int x) noexcept;
  static s make() { return {}; }
};
inline const char* text() { return "thread_local static int x; getenv"; }
}  // namespace toroid
"""


def self_test():
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for layer in BELOW:
            (root / "include/toroid" / layer / "detail").mkdir(parents=True)
            (root / "include/toroid" / layer / "good.hpp").write_text(GOOD)
        (root / "include/toroid/train.hpp").write_text(GOOD)
        clean = root / "include/toroid/collective/clean.hpp"
        clean.write_text(CLEAN)
        (root / "include/toroid/topology/good.inc").write_text(f"// {SPDX}\n")
        for complaint in check_tree(root):
            print(f"complaint about a clean tree: {complaint}")
            failures += 1
        for name, text, words in FAULTS:
            path = root / "include/toroid" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            complaints = list(check_tree(root))
            if not any(words in complaint and path.name in complaint for complaint in complaints):
                print(f"not caught in {name}: {text!r}\n  expected: {words}\n  got: {complaints}")
                failures += 1
            path.unlink()
    print(f"{len(FAULTS)} faults tried, {failures} failures")
    return 1 if failures or not FAULTS else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--root", type=pathlib.Path)
    what.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    complaints = list(check_tree(arguments.root))
    for complaint in complaints:
        print(complaint)
    print(f"{len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
