# SPDX-License-Identifier: MIT
"""Finds and opens libfrit, and turns its statuses into exceptions."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from threading import get_ident
from typing import Any, Callable

from ._declarations import FUNCTIONS, VERSION
from .errors import FritError, error_of

_NAMES = {"win32": ("frit.dll", "libfrit.dll"), "darwin": ("libfrit.dylib",)}


def find_library() -> Path:
    """Returns the library's path: the file that FRIT_LIBRARY names, for development, or the one in the package."""
    if named := os.environ.get("FRIT_LIBRARY"):
        return Path(named)
    folder = Path(__file__).resolve().parent / "lib"
    for name in _NAMES.get(sys.platform, ("libfrit.so",)):
        if (folder / name).exists():
            return folder / name
    raise ImportError(f"frit: {folder} has no library for {sys.platform}; install a wheel of frit for this system")


class Library:
    """Holds libfrit's functions as attributes. Each gets its types when it is first used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._dll = ctypes.CDLL(str(path))
        self._dll.frit_version.restype = ctypes.c_char_p
        found: str = self._dll.frit_version().decode()
        if found.split(".")[:2] != VERSION.split(".")[:2]:
            raise ImportError(f"frit: {path} is version {found}, this package is for {VERSION}")
        self.version = found

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in FUNCTIONS:
            raise AttributeError(f"libfrit has no function '{name}'")
        function: Any = getattr(self._dll, name)
        function.restype, function.argtypes = FUNCTIONS[name]
        setattr(self, name, function)
        return function  # type: ignore[no-any-return]


lib = Library(find_library())


_raised: dict[int, BaseException] = {}   # thread -> an exception of a Python function that the library called


def check(status: int) -> None:
    """Raises the exception of a Python function that the library called in this thread, or the exception of a status
    other than FRIT_OK."""
    if _raised and get_ident() in _raised:
        raise _raised.pop(get_ident())
    if status != 0:
        raise last_error(status)


def callback(kind: Any, function: Callable[..., Any], otherwise: Any = None) -> Any:
    """Wraps a Python function for the library. C cannot pass exceptions on: the next `check` raises them, and the
    library gets `otherwise` as the result."""

    def run(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except BaseException as failure:  # noqa: BLE001
            _raised.setdefault(get_ident(), failure)
            return otherwise

    return kind(run)


def last_error(status: int) -> FritError:
    """Returns the exception for the calling thread's last error, which had this status."""
    return error_of(status, decode(lib.frit_error()), decode(lib.frit_error_field()) or None,
                    decode(lib.frit_error_code()) or None)


def text_at(address: int | None, n_bytes: int) -> bytes:
    """Copies bytes of the library that do not end with a zero byte."""
    return ctypes.string_at(address, n_bytes) if address and n_bytes else b""


def decode(text: bytes | None) -> str:
    """Converts a text of the library to str."""
    return text.decode("utf-8", "replace") if text else ""


def two_calls(call: Callable[[Any, int, Any], int], make: Callable[[int], Any], capacity: int) -> tuple[Any, int]:
    """Calls `call` with a buffer, and again with a larger one if it was too small. Returns the buffer and the number of
    items."""
    n = ctypes.c_size_t()
    while True:
        buffer = make(capacity)
        status = call(buffer, capacity, ctypes.byref(n))
        if status == -7 and n.value > capacity:
            capacity = n.value
            continue
        check(status)
        return buffer, n.value
