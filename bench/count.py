#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the instructions that products of packed weights execute, in qemu's emulator. It helps to judge kernels for
processors that are not available, and to compare compilers. The matrix has 16 rows x 256 columns; each number of tokens
is counted separately.

    bench/count.py BUILD [BUILD ...] --isa dotprod [--types q4_k,q8_0] [--tokens 1,2,32]

Each BUILD is a build folder with bench/bench_count (cmake --build BUILD --target bench_count).
"""
import argparse
import os
import re
import shutil
import subprocess
import tempfile

ADDRESS = re.compile(r"Trace \d+: \S+ \[\w+/(\w+)/")


def emulator(program):
    if not os.path.exists(program):
        raise SystemExit(f"{program} does not exist; cmake --build BUILD --target bench_count builds it")
    with open(program, "rb") as file:
        machine = int.from_bytes(file.read(20)[18:], "little")
    if machine == 183:
        return ["qemu-aarch64", "-cpu", "max", "-L", "/usr/aarch64-linux-gnu"]
    return ["qemu-x86_64", "-cpu", "max"]


def count(build, isa, dtype, tokens):
    program = os.path.join(build, "bench", "bench_count")
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        run_by = emulator(program)
        if not shutil.which(run_by[0]):
            raise SystemExit(f"{run_by[0]} was not found; the package qemu-user has it")
        command = run_by + ["-singlestep", "-d", "exec,nochain", "-D", log, program, isa, dtype, tokens]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            raise SystemExit(f"{' '.join(command)}: {run.stderr.strip()}")
        begin, end = (int(text, 16) for text in run.stdout.split())
        n, counts = 0, False
        with open(log) as lines:
            for line in lines:
                found = ADDRESS.search(line)
                if not found:
                    continue
                at = int(found.group(1), 16)
                counts = counts and at != end or at == begin
                n += counts
    return n


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="BUILD")
    parser.add_argument("--isa", required=True)
    parser.add_argument("--types", default="q4_0,q4_k,q6_k,q8_0")
    parser.add_argument("--tokens", default="1,2,32")
    args = parser.parse_args()
    print("| type | tokens | " + " | ".join(args.builds) + " |")
    print("| --- | ---: |" + " ---: |" * len(args.builds))
    for dtype in args.types.split(","):
        for tokens in args.tokens.split(","):
            counts = [f"{count(build, args.isa, dtype, tokens):,}" for build in args.builds]
            print(f"| {dtype} | {tokens} | " + " | ".join(counts) + " |", flush=True)


if __name__ == "__main__":
    main()
