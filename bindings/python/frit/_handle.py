# SPDX-License-Identifier: MIT
"""Owns objects of the library. Each is freed once, when its last user drops it.

Objects are freed by __del__. weakref.finalize would free them when the program ends, while other threads still use
them, and would keep an object alive for ever if the finalizer's arguments refer to it. When the interpreter ends, no
object is freed: the system takes back the memory.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, NoReturn

_n_forks = 0   # forks between the first process and this one


def _count_fork() -> None:
    global _n_forks
    _n_forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class Handle:
    """Frees an object of the library when it is dropped. keep: an object that must live as long as this one."""

    __slots__ = ("value", "keep", "_free", "_forks")

    def __init__(self, value: Any, free: Callable[[Any], Any], keep: Any = None) -> None:
        self.value = value
        self.keep = keep
        self._free = free
        self._forks = _n_forks

    # A forked process does not free inherited objects: a thread that only the first process has may have been using
    # them.
    def __del__(self, _is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not _is_finalizing() and self._forks == _n_forks:
            self._free(self.value)


class Unique:
    """A class whose objects own something that cannot be copied."""

    def __copy__(self) -> NoReturn:
        self._refuse("copied")

    def __deepcopy__(self, _memo: Any) -> NoReturn:
        self._refuse("copied")

    def __reduce__(self) -> NoReturn:
        self._refuse("pickled")

    def __reduce_ex__(self, _protocol: Any) -> NoReturn:
        self._refuse("pickled")

    def _refuse(self, what: str) -> NoReturn:
        name = type(self).__name__
        raise TypeError(f"{name}: it owns memory of the library and cannot be {what}; pass the object itself, "
                        f"or make another {name}")
