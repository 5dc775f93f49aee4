# SPDX-License-Identifier: MIT
"""The declarations are equal to those of the headers, types have the sizes of C, and the library exports no other
functions."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from frit import _declarations as c
from frit._library import lib

HERE = Path(__file__).resolve().parents[1]
INCLUDE = HERE.parents[1] / "include"
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is here")


@needs_cc
def test_regenerated_declarations_are_the_same() -> None:
    subprocess.run([sys.executable, str(HERE / "generate.py"), "--check"], check=True)


@needs_cc
def test_structs_have_the_sizes_and_offsets_of_c(tmp_path: Path) -> None:
    lines, n = ["#include <frit_tools.h>"], 0
    for name, kind in vars(c).items():
        if isinstance(kind, type) and issubclass(kind, (ctypes.Structure, ctypes.Union)) and name.startswith("frit_"):
            n += 1
            lines.append(f'_Static_assert(sizeof({name}) == {ctypes.sizeof(kind)}, "{name}");')
            for field in kind._fields_:
                offset = getattr(kind, field[0]).offset
                lines.append(f'_Static_assert(offsetof({name}, {field[0]}) == {offset}, "{name}.{field[0]}");')
    assert n > 30
    (tmp_path / "sizes.c").write_text("\n".join(lines) + "\n")
    subprocess.run(["cc", "-fsyntax-only", f"-I{INCLUDE}", str(tmp_path / "sizes.c")], check=True)


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("nm") is None, reason="needs nm")
def test_library_exports_only_what_is_declared() -> None:
    listed = subprocess.run(["nm", "-D", "--defined-only", str(lib.path)], check=True, capture_output=True, text=True)
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert names == set(c.FUNCTIONS)


def test_version_is_the_headers() -> None:
    assert lib.frit_version() == c.VERSION.encode()
