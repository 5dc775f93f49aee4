# SPDX-License-Identifier: MIT
"""Reads the list of tensors of a GGUF file, for benchmarks that compare or change their bytes."""
import struct

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}   # bytes of GGUF's value types


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


def read_tensors(data):
    """Returns name, type, shape (innermost first) and offset in the file of each tensor, in the order of the file."""
    reader = Reader(data)
    reader.at = 8
    n_tensors, n_pairs = reader.number("Q"), reader.number("Q")
    alignment = 32
    for _ in range(n_pairs):
        key, kind = reader.text(), reader.number("I")
        value = reader.value(kind)
        if key == b"general.alignment":
            (alignment,) = struct.unpack("<I", value)
    heads = []
    for _ in range(n_tensors):
        name = reader.text()
        shape = [reader.number("Q") for _ in range(reader.number("I"))]
        heads.append((name, reader.number("I"), shape, reader.number("Q")))
    begin = (reader.at + alignment - 1) // alignment * alignment
    return [(name, kind, shape, begin + offset) for name, kind, shape, offset in heads]
