#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a GGUF file in bf16 anew, with weights that lie on no grid of 4 bits, to measure quantization with.

    bench/off_grid.py FROM.gguf TO.gguf

A model that is had only in 4 bits, decoded, lies on that format's grid: a file in the same format loses nothing, and
measures nothing. Here each number of a matrix moves by up to half a step of its 32 neighbours' grid of 16 levels,
evenly at random, which is about as far as rounding had moved it.
"""
import array
import random
import struct
import sys

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}   # of GGUF's value types
F32, BF16 = 0, 30
BLOCK, STEPS = 32, 15


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self):
        n = self.number("Q")
        self.at += n
        return self.data[self.at - n:self.at]

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind != 9:
            self.at += SIZES[kind]
            return self.data[self.at - SIZES[kind]:self.at]
        item, n = self.number("I"), self.number("Q")
        if item == 8:
            return [self.text() for _ in range(n)]
        self.at += n * SIZES[item]
        return None


def tensors_of(data):
    """Type, number of dimensions, offset in the file and elements of each tensor."""
    reader = Reader(data)
    reader.at = 8
    n_tensors, n_pairs = reader.number("Q"), reader.number("Q")
    alignment = 32
    for _ in range(n_pairs):
        key, kind = reader.text(), reader.number("I")
        value = reader.value(kind)
        if key == b"general.alignment":
            (alignment,) = struct.unpack("<I", value)
    found = []
    for _ in range(n_tensors):
        reader.text()
        shape = [reader.number("Q") for _ in range(reader.number("I"))]
        n_elems = 1
        for n in shape:
            n_elems *= n
        found.append((reader.number("I"), len(shape), reader.number("Q"), n_elems))
    begin = (reader.at + alignment - 1) // alignment * alignment
    return [(kind, n_dims, begin + offset, n) for kind, n_dims, offset, n in found]


def moved(numbers, draw):
    """bf16 numbers, moved."""
    values = array.array("f", array.array("I", [n << 16 for n in numbers]).tobytes())
    out = array.array("f")
    for i in range(0, len(values), BLOCK):
        block = values[i:i + BLOCK]
        step = (max(block) - min(block)) / STEPS
        out.extend([x + (draw() - 0.5) * step for x in block])
    # To the nearest bf16; numbers of weights are far from the largest.
    return array.array("H", [(n + 0x7FFF + (n >> 16 & 1)) >> 16 for n in array.array("I", out.tobytes())])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as file:
        data = bytearray(file.read())
    if data[:4] != b"GGUF" or sys.byteorder != "little":
        sys.exit(f"{sys.argv[1]}: is no GGUF file, or this machine is not little-endian")
    draw = random.Random(1).random
    for kind, n_dims, offset, n_elems in tensors_of(bytes(data)):
        if n_dims < 2 or kind != BF16:
            continue
        for at in range(0, n_elems, 1 << 16):
            n = min(1 << 16, n_elems - at)
            begin, end = offset + 2 * at, offset + 2 * (at + n)
            data[begin:end] = moved(array.array("H", bytes(data[begin:end])), draw).tobytes()
    with open(sys.argv[2], "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main()
