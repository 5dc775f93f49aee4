#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks for symbols of GPUs' backends that other files use, by the object files of the native library, so that a change
which breaks the module for browsers is seen without its compiler.

    gpu_symbols.py LIST      LIST: a file with the names of the object files, separated by semicolons

The module leaves out these backends. Only the list of backends (backend.c) may name them.
"""

import re
import subprocess
import sys
from pathlib import Path

LEFT_OUT = re.compile(r"/backend/(cuda|webgpu)/|/placement/kernels\.c")   # frit_drop_foreign in cmake/FritCompiler.cmake


def symbols(files, *options):
    """Yields the names of the symbols of object files."""
    for start in range(0, len(files), 200):
        text = subprocess.run(["nm", "-P", *options, *files[start:start + 200]], check=True, capture_output=True, text=True).stdout
        for line in text.splitlines():
            name = line.split(" ")[0].lstrip("_")
            if name.startswith("frit_") and not line.endswith(":"):
                yield name


def main():
    files = [name for name in re.split(r"[;\n]", Path(sys.argv[1]).read_text()) if name]
    absent = [name for name in files if LEFT_OUT.search(name)]
    present = [name for name in files if not LEFT_OUT.search(name) and not re.search(r"/backend/backend\.c", name)]
    unbuilt = [name for name in files if not Path(name).exists()]
    if unbuilt:
        sys.exit(f"gpu_symbols: {len(unbuilt)} object files are not built, such as {unbuilt[0]}")
    if not absent or not present:
        sys.exit(f"gpu_symbols: {sys.argv[1]} names {len(absent)} files of GPUs and {len(present)} others")
    needed = sorted(set(symbols(absent, "-g", "--defined-only")) & set(symbols(present, "-u")))
    for name in needed:
        print(f"{name} is of a GPU's backend, and a file of the module for browsers uses it")
    sys.exit(1 if needed else 0)


main()
