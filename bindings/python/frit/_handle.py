# SPDX-License-Identifier: MIT
"""Objects of the library that Python owns: freed once, when nothing uses them any more.

They are freed by __del__, not by weakref.finalize, which would run when the program ends, while other threads still use them,
and which keeps for ever what refers to its own object. When the interpreter ends, nothing is freed: the system takes it all.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, NoReturn

_n_forks = 0   # between the first process and this one


def _count_fork() -> None:
    global _n_forks
    _n_forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class Handle:
    """Frees an object of the library when it is dropped. keep: what must live as long as the object."""

    __slots__ = ("value", "keep", "_free", "_forks")

    def __init__(self, value: Any, free: Callable[[Any], Any], keep: Any = None) -> None:
        self.value = value
        self.keep = keep
        self._free = free
        self._forks = _n_forks

    # A fork's copy may have been in use by a thread that the fork does not have.
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
