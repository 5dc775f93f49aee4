#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares src/backend/no_gpu_web.c with what a module for browsers lacks, by the object files of the native library, so
that a change which breaks the module is seen without its compiler.

    stand_ins.py LIST      LIST: a file with the names of the object files, separated by semicolons

The module leaves out the backends of GPUs. Symbols of these backends that other files use must be defined in
no_gpu_web.c, and no others.
"""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "backend" / "no_gpu_web.c"
LEFT_OUT = re.compile(r"/backend/(cuda|webgpu)/|/placement/kernels\.c")   # frit_drop_foreign in cmake/FritCompiler.cmake
# The list of backends names these two where the machine is not WebAssembly.
LISTED = {"frit_backend_cuda", "frit_backend_webgpu"}


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
        sys.exit(f"stand_ins: {len(unbuilt)} object files are not built, such as {unbuilt[0]}")
    if not absent or not present:
        sys.exit(f"stand_ins: {sys.argv[1]} names {len(absent)} files of GPUs and {len(present)} others")
    needed = set(symbols(absent, "-g", "--defined-only")) & set(symbols(present, "-u"))
    defined = set(re.findall(r"^(?:const )?\w[\w ]*?[ *](frit_\w+)(?: =|\()", SOURCE.read_text(), re.M))
    missing, unused = sorted(needed - defined), sorted(defined - needed - LISTED)
    for name in missing:
        print(f"{SOURCE.name} lacks {name}, which a file of the module for browsers uses")
    for name in unused:
        print(f"{SOURCE.name} defines {name}, which no file of the module for browsers uses")
    sys.exit(1 if missing or unused else 0)


main()
