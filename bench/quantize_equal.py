#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares all tensors of a model's mixes with llama-quantize's: names, types, and every byte.

    bench/quantize_equal.py build/release/frit model.gguf --peer PATH/llama-quantize --importance model.imatrix.gguf

Both programs make each mix, with importance and, if the mix does not need it, without. Prints a line for each tensor
that differs, and the number of equal tensors. Ends with 1 if a tensor differs.
"""
import argparse
import os
import subprocess
import sys
import tempfile

from gguf_file import read_tensors

MIXES = (
    "q8_0 q6_k q5_k_m q5_k_s q5_1 q5_0 q4_k_m q4_k_s q4_1 q4_0 iq4_nl iq4_xs q3_k_l q3_k_m q3_k_s iq3_m iq3_s iq3_xs "
    "iq3_xxs q2_k q2_k_s iq2_m iq2_s iq2_xs iq2_xxs iq1_m iq1_s tq2_0 tq1_0 q2_0 q1_0"
).split()


def tensors(path):
    """Returns type, shape and bytes of each tensor by name."""
    with open(path, "rb") as file:
        data = file.read()
    heads = sorted(read_tensors(data), key=lambda head: head[3])
    ends = [head[3] for head in heads[1:]] + [len(data)]
    found = {}
    for (name, kind, shape, at), end in zip(heads, ends):
        found[name] = (kind, shape, data[at:end].rstrip(b"\0"))   # without padding
    return found


def make(command):
    """Runs a command. False: the program refuses the mix."""
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def compare(args, mix, importance, folder):
    ours, theirs = (os.path.join(folder, name) for name in ("ours.gguf", "theirs.gguf"))
    for path in (ours, theirs):
        if os.path.exists(path):
            os.remove(path)
    command = [args.frit, "quantize", args.model, ours, "-q", "--mix", mix]
    peer = [args.peer] + (["--imatrix", importance] if importance else []) + [args.model, theirs, mix.upper()]
    made = make(command + (["--importance", importance] if importance else [])), make(peer)
    if not made[0] or not made[1]:
        if made[0] != made[1]:
            print(f"{mix}: {'ours' if made[1] else 'theirs'} alone refuses")
        return 0, int(made[0] != made[1])
    a, b = tensors(ours), tensors(theirs)
    different = [name for name in a.keys() | b.keys() if a.get(name) != b.get(name)]
    for name in different:
        print(f"{mix}{' with importance' if importance else ''}: '{name.decode()}' differs")
    return len(a.keys() | b.keys()) - len(different), len(different)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frit")
    parser.add_argument("model")
    parser.add_argument("--peer", required=True)
    parser.add_argument("--importance", required=True)
    parser.add_argument("--mixes", nargs="*", default=MIXES)
    args = parser.parse_args()
    n_equal = n_different = n_files = 0
    with tempfile.TemporaryDirectory() as folder:
        for mix in args.mixes:
            for importance in (None, args.importance):
                equal, different = compare(args, mix, importance, folder)
                n_equal, n_different, n_files = n_equal + equal, n_different + different, n_files + (equal > 0)
    print(f"{n_files} files: {n_equal} tensors are equal, {n_different} differ")
    sys.exit(n_different > 0)


if __name__ == "__main__":
    main()
