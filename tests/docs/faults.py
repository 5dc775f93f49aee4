#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each test that docs/dev/testing.md names exists.

    tests/docs/faults.py    ends with 1 if a named program or test is not there, or a number from 1 to 80 has no row

The last cell of a row names programs, `folder/program`, each followed by names of its tests, which `…` may shorten.
"""
import glob
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAGE = os.path.join(ROOT, "docs", "dev", "testing.md")
N_FAULTS = 80


def source_of(program):
    """Returns the text of a program's source, or None. `hub/pull` is a program in Python, `make NAME` a target of make,
    `server/load` a call of one."""
    if program.startswith("make "):
        names, program = ["Makefile"], program[5:]
    else:
        folder, name = program.split("/")
        names = [f"tests/{program}_test.c", f"tests/{program}_test.py", f"tests/{program}_test.cmake"]
        names += [os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "tests", folder, "*", name + "_test.c"))]
        if program.startswith("fuzz/"):
            names = [f"tests/{program}_fuzz.c"]
    for name in names:
        path = os.path.join(ROOT, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            return text if name != "Makefile" or re.search(rf"^{re.escape(program)}:", text, re.M) else None
    with open(os.path.join(ROOT, "tests", "CMakeLists.txt"), encoding="utf-8") as file:
        return "" if re.search(rf"add_test\(NAME {re.escape(program)}\s", file.read()) else None


def numbers(cell):
    """Returns the numbers of a cell: "9 … 23" and "1, 2"."""
    ends = re.fullmatch(r"(\d+) … (\d+)", cell)
    return range(int(ends[1]), int(ends[2]) + 1) if ends else [int(n) for n in re.findall(r"\d+", cell)]


def check_tests(number, cell):
    """Yields a sentence for each program or test of a row that does not exist."""
    source, program = None, None
    for part in re.split(r"(`[^`]+`)", cell):
        if part.startswith("`"):
            program = part.strip("`")
            source = source_of(program)
            if source is None:
                yield f"{number}: there is no program '{program}'"
            continue
        for name in re.findall(r"…?[a-z0-9]+(?:_[a-z0-9]+)+_?…?", part):
            if source is not None and name.strip("…_") not in source:
                yield f"{number}: {program} has no test '{name}'"


def main():
    wrong, seen = [], set()
    with open(PAGE, encoding="utf-8") as page:
        rows = [line.strip().strip("|").split(" | ") for line in page if line.startswith("| ")]
    for row in rows:
        cells = [cell.strip() for cell in row]
        if not re.match(r"\d", cells[0]):
            continue
        seen.update(numbers(cells[0]))
        wrong += check_tests(cells[0], cells[-1])
        if len(cells) != 4:
            wrong.append(f"{cells[0]}: {len(cells)} cells, expected 4")
        elif "`" not in cells[-1] and "*not covered*" not in cells[2]:
            wrong.append(f"{cells[0]}: names no test, and does not say that it is not covered")
    wrong += [f"{n}: has no row" for n in range(1, N_FAULTS + 1) if n not in seen]
    print("\n".join(wrong) if wrong else f"{N_FAULTS} faults, all named tests exist")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
