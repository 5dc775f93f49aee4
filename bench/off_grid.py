#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a GGUF file in bf16 with weights that lie on no grid of 4 bits, to measure quantization.

    bench/off_grid.py FROM.gguf TO.gguf

A model that is published only in 4 bits lies on the grid of its format when it is decoded: encoding it in that format
again loses nothing, so the loss cannot be measured. The script moves each number of a matrix by up to half a step of
the grid of 16 levels of its 32 neighbours. The moves are random and uniform, and about as large as the rounding errors
of the format were.
"""
import array
import math
import random
import sys

from gguf_file import read_tensors

F32, BF16 = 0, 30
BLOCK, STEPS = 32, 15


def moved(numbers, draw):
    """Returns bf16 numbers that were moved."""
    values = array.array("f", array.array("I", [n << 16 for n in numbers]).tobytes())
    out = array.array("f")
    for i in range(0, len(values), BLOCK):
        block = values[i:i + BLOCK]
        step = (max(block) - min(block)) / STEPS
        out.extend([x + (draw() - 0.5) * step for x in block])
    # Rounds to the nearest bf16. Overflow is not handled, since weights are far from the largest number.
    return array.array("H", [(n + 0x7FFF + (n >> 16 & 1)) >> 16 for n in array.array("I", out.tobytes())])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as file:
        data = bytearray(file.read())
    if data[:4] != b"GGUF" or sys.byteorder != "little":
        sys.exit(f"{sys.argv[1]}: is no GGUF file, or this machine is not little-endian")
    draw = random.Random(1).random
    for _, kind, shape, offset in read_tensors(bytes(data)):
        if len(shape) < 2 or kind != BF16:
            continue
        n_elems = math.prod(shape)
        for at in range(0, n_elems, 1 << 16):
            n = min(1 << 16, n_elems - at)
            begin, end = offset + 2 * at, offset + 2 * (at + n)
            data[begin:end] = moved(array.array("H", bytes(data[begin:end])), draw).tobytes()
    with open(sys.argv[2], "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main()
