# SPDX-License-Identifier: MIT
"""Writes frit/_declarations.py: the types and functions of include/frit.h and include/frit_tools.h for ctypes.

    python bindings/python/generate.py [--check]      --check: only says whether the file is up to date

The C preprocessor resolves macros, and this script reads the few forms of declarations that remain. Any other form is
an error, so that no declaration is left out by mistake.
"""

from __future__ import annotations

import keyword
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parent.parent / "include"
TARGET = HERE / "frit" / "_declarations.py"

NUMBERS = {
    "bool": "c_bool", "int": "c_int", "unsigned": "c_uint", "float": "c_float", "double": "c_double",
    "size_t": "c_size_t", "int32_t": "c_int32", "int64_t": "c_int64", "uint8_t": "c_uint8", "uint64_t": "c_uint64",
    "uint32_t": "c_uint32", "char": "c_char",
}
PYTHON = {"c_bool": "bool", "c_float": "float", "c_double": "float", "c_char_p": "bytes | None"}
# Texts that do not end with a zero byte. Python gets their address, and reads them with their length.
NOT_TERMINATED = {"frit_token_info.text", "frit_token_piece", "frit_part.text", "frit_session_note", "frit_embed_prompt"}

HEAD = '''# SPDX-License-Identifier: MIT
# Made by bindings/python/generate.py from include/frit.h and include/frit_tools.h: do not edit.
"""Types and functions of libfrit for ctypes. Opaque objects and buffers are addresses (c_void_p)."""

from __future__ import annotations

from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    Union,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any
'''


def preprocess() -> str:
    """Returns the headers' own text. System headers are replaced by empty files, since their types are in the tables
    above."""
    with tempfile.TemporaryDirectory() as empty:
        for name in ("stdbool.h", "stddef.h", "stdint.h"):
            (Path(empty) / name).write_text("")
        command = [*os.environ.get("CC", "cc").split(), "-E", "-P", "-undef", "-nostdinc", "-DFRIT_API=",
                   "-isystem", empty, str(INCLUDE / "frit_tools.h")]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return re.sub(r"\s+", " ", text)


def statements(text: str) -> list[str]:
    found, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "{(") - (c in "})")
        if c == ";" and depth == 0:
            found.append(text[start:i].strip())
            start = i + 1
    if text[start:].strip():
        raise SystemExit(f"generate: text after the last declaration: {text[start:]!r}")
    return found


class Declarations:
    def __init__(self) -> None:
        self.opaque: set[str] = set()
        self.enums: set[str] = set()
        self.records: set[str] = set()
        self.callbacks: set[str] = set()
        self.scalars: dict[str, str] = {}
        self.values: dict[str, int] = {}
        self.body: list[str] = []
        self.functions: list[str] = []

    def type_of(self, text: str, place: str, is_result: bool = False) -> str:
        """Returns the ctypes type of a declaration without its name."""
        text = re.sub(r"\bconst\b", " ", text).strip()
        stars = text.count("*")
        name = text.replace("*", " ").strip()
        name = re.sub(r"^(struct|enum|union) ", "", name)
        if name == "void":
            base = "None"
        elif name in NUMBERS:
            base = NUMBERS[name]
        elif name in self.scalars:
            base = self.scalars[name]
        elif name in self.enums:
            base = "c_int"
        elif name in self.records or name in self.callbacks:
            base = name
        elif name in self.opaque:
            base = "None"
            if stars == 0:
                raise SystemExit(f"generate: {place}: {name} by value")
        else:
            raise SystemExit(f"generate: {place}: the type '{text}' is unknown")
        if stars == 0:
            return base
        if base == "c_char" and stars == 1:
            return "c_void_p" if place in NOT_TERMINATED or (is_result and place in NOT_TERMINATED) else "c_char_p"
        if base in ("None", "c_char"):
            return "c_void_p" if stars == 1 else "POINTER(c_void_p)"
        return f"POINTER({base})" if stars == 1 else f"POINTER(POINTER({base}))"

    def argument(self, text: str, place: str) -> str:
        text = text.strip()
        text, n_arrays = re.subn(r"\[[^]]*\]$", "", text)
        match = re.fullmatch(r"(.*?[\s*])([A-Za-z_]\w*)", text)
        if not match:
            raise SystemExit(f"generate: {place}: the argument '{text}' has no name")
        found = self.type_of(match[1] + "*" * n_arrays, place)
        # Callers own arrays of bytes, which may have zeros.
        return "c_void_p" if found == "POINTER(c_uint8)" else found

    def arguments(self, text: str, place: str) -> list[str]:
        return [] if text.strip() == "void" else [self.argument(a, place) for a in text.split(",")]

    def field(self, text: str, record: str) -> list[tuple[str, str]]:
        inline = re.fullmatch(r"(.*?)\(\*(\w+)\)\((.*)\)", text)
        if inline:
            return [(inline[2], self.callback_type(inline[1], inline[3], f"{record}.{inline[2]}"))]
        first, *others = [part.strip() for part in text.split(",")]
        match = re.fullmatch(r"(.*?)([\s*]+)(\w+)((?:\[\w+\])?)", first)
        if not match:
            raise SystemExit(f"generate: {record}: the field '{text}' is not understood")
        base, found = match[1], []
        for stars, name, size in [(match[2], match[3], match[4])] + [
            re.fullmatch(r"(\**)(\w+)((?:\[\w+\])?)", o).groups() for o in others  # type: ignore[union-attr]
        ]:
            kind = self.type_of(base + stars, f"{record}.{name}")
            if size:
                inner = size.strip("[]")
                kind += f" * {self.values.get(inner, inner)}"
            found.append((name, kind))
        return found

    def record(self, kind: str, name: str, body: str) -> None:
        fields = [f for part in body.split(";") if part.strip() for f in self.field(part.strip(), name)]
        self.records.add(name)
        self.opaque.discard(name)
        lines = [f"class {name}({'Union' if kind == 'union' else 'Structure'}):"]
        lines += [f"    {field}: {self.python(type_)}" for field, type_ in fields if not keyword.iskeyword(field)]
        lines += ["    _fields_ = ["] + [f'        ("{field}", {type_}),' for field, type_ in fields] + ["    ]"]
        self.body.append("\n".join(lines))

    def python(self, type_: str) -> str:
        if type_ in PYTHON:
            return PYTHON[type_]
        if type_ == "c_void_p":
            return "int | None"
        return "int" if re.fullmatch(r"c_\w+", type_) else (type_ if type_ in self.records else "Any")

    def enum(self, name: str, body: str) -> None:
        value, lines = -1, []
        for item in body.split(","):
            if not item.strip():
                continue
            key, _, text = item.partition("=")
            value = int(text, 0) if text.strip() else value + 1
            self.values[key.strip()] = value
            lines.append(f"{key.strip()} = {value}")
        if name:
            self.enums.add(name)
        self.body.append("\n".join(lines))

    def callback_type(self, result: str, arguments: str, place: str) -> str:
        types = [self.type_of(result.strip(), place), *self.arguments(arguments, place)]
        return f"CFUNCTYPE({', '.join(types)})"

    def read(self, statement: str) -> None:
        statement = re.sub(r'^extern "C" \{', "", statement).strip()
        if m := re.fullmatch(r"typedef (struct|union) (\w+) \{(.*)\} (\w+)", statement):
            self.record(m[1], m[4], m[3])
        elif m := re.fullmatch(r"typedef enum (\w+) \{(.*)\} (\w+)", statement):
            self.enum(m[3], m[2])
        elif m := re.fullmatch(r"enum \{(.*)\}", statement):
            self.enum("", m[1])
        elif m := re.fullmatch(r"typedef struct (\w+) (\w+)", statement):
            self.opaque.add(m[2])
        elif m := re.fullmatch(r"typedef (.*?)\(\*(\w+)\)\((.*)\)", statement):
            self.callbacks.add(m[2])
            self.body.append(f"{m[2]} = {self.callback_type(m[1], m[3], m[2])}")
        elif m := re.fullmatch(r"typedef (\w+) (\w+)", statement):
            self.scalars[m[2]] = NUMBERS[m[1]]
        elif m := re.fullmatch(r"(.*?[\s*])(frit_\w+)\((.*)\)", statement):
            result = self.type_of(m[1].strip(), m[2], True)
            types = ", ".join(self.arguments(m[3], m[2]))
            self.functions.append(f'    "{m[2]}": ({result}, [{types}]),')
        else:
            raise SystemExit(f"generate: this declaration is not understood: {statement}")


def generate() -> str:
    declarations = Declarations()
    for statement in statements(preprocess()):
        declarations.read(statement)
    version = {}
    for part in ("MAJOR", "MINOR", "PATCH"):
        found = re.search(rf"#define FRIT_VERSION_{part} (\d+)", (INCLUDE / "frit.h").read_text())
        version[part] = found[1] if found else "0"
    parts = [HEAD.rstrip(), 'VERSION = "{MAJOR}.{MINOR}.{PATCH}"'.format(**version)]
    parts += declarations.body
    parts.append("FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {\n" + "\n".join(declarations.functions) + "\n}")
    return "\n\n".join(parts) + "\n"


def main() -> int:
    text = generate()
    if sys.argv[1:] == ["--check"]:
        if TARGET.read_text() == text:
            return 0
        print(f"{TARGET} differs from the headers: run bindings/python/generate.py", file=sys.stderr)
        return 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
