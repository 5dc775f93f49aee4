# SPDX-License-Identifier: MIT
"""Checks arguments and converts them to the library's types. ctypes would cut numbers and texts without an error.

A wrong type is a TypeError, a value out of range an InvalidError (ValueError); the sentence names the argument.
"""

from __future__ import annotations

import ctypes
import math
import operator
import os
import reprlib
import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Iterable, TypeVar

from .errors import InvalidError

INT_MAX = 2**31 - 1
S = TypeVar("S", bound=ctypes.Structure)
_shown = reprlib.Repr()
_shown.maxstring = _shown.maxother = 60


def show(value: Any) -> str:
    """Returns a value as error sentences show it."""
    return _shown.repr(value)


def integer(name: str, value: Any, least: int = -INT_MAX - 1, most: int = INT_MAX) -> int:
    """Returns an integer from `least` to `most`. NumPy's integers are allowed."""
    try:
        if isinstance(value, bool):
            raise TypeError
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: found {show(value)}, expected an integer") from None
    if not least <= found <= most:
        expected = f"{least} or more" if found < least and most >= INT_MAX else f"{least} to {most}"
        raise InvalidError(f"{name}: found {found}, expected {expected}")
    return found


def number(name: str, value: Any) -> float:
    """Returns a finite number."""
    if isinstance(value, (bool, str, bytes)) or not hasattr(value, "__float__") and not hasattr(value, "__index__"):
        raise TypeError(f"{name}: found {show(value)}, expected a number")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    except (TypeError, ValueError):
        raise TypeError(f"{name}: found {show(value)}, expected a number") from None
    if not math.isfinite(found):
        raise InvalidError(f"{name}: found {show(value)}, expected a finite number")
    return found


def flag(name: str, value: Any) -> bool:
    """Returns True or False. Values that equal 0 or 1 are allowed, NumPy's included."""
    try:
        if not isinstance(value, (str, bytes)) and value in (0, 1):
            return bool(value)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name}: found {show(value)}, expected True or False")


def text(name: str, value: Any) -> bytes | None:
    """Returns a name as UTF-8. It has no zero byte. None stays None."""
    if value is None:
        return None
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"{name}: found {show(value)}, expected a str")
    return _terminated(name, value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value)


def _terminated(name: str, data: bytes) -> bytes:
    if b"\0" in data:
        raise InvalidError(f"{name}: {show(data)} has a NUL character, which the library would end at")
    return data


def content(name: str, value: Any) -> bytes:
    """Returns a text of any characters as UTF-8. Bytes are returned unchanged."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"{name}: found {show(value)}, expected a str or bytes")


def path_of(name: str, value: Any) -> bytes:
    """Returns a path in the form that the library reads."""
    try:
        found = os.fspath(value)
    except TypeError:
        raise TypeError(f"{name}: found {show(value)}, expected a path: a str or an os.PathLike") from None
    if isinstance(found, str):
        found = found.encode("utf-8", "surrogatepass") if sys.platform == "win32" else os.fsencode(found)
    return _terminated(name, found)


def function(name: str, value: Any) -> Any:
    """Returns a callable, or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name}: found {show(value)}, expected a function")
    return value


def instance(name: str, value: Any, kind: type, other: str = "") -> Any:
    """Returns an object that is an instance of `kind`."""
    if not isinstance(value, kind):
        hint = f"frit.{kind.__name__}" + (f" or {other}" if other else "")
        raise TypeError(f"{name}: found {show(value)}, expected {hint}")
    return value


def mapping(name: str, value: Any) -> Mapping[Any, Any]:
    """Returns a dict or another mapping."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}: found {show(value)}, expected a dict")
    return value


def texts(name: str, value: Any) -> list[str]:
    """Returns a list of texts; one text becomes a list of one."""
    if isinstance(value, str):
        return [value]
    try:
        items = list(value)
    except TypeError:
        items = [None]
    for item in items:
        if not isinstance(item, str):
            raise TypeError(f"{name}: found {show(value)}, expected a str or a sequence of them")
    return items


def sequence(name: str, value: Any, of: str) -> Any:
    """Returns a list or another sequence. A text is refused."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Sequence) and not hasattr(value, "__len__"):
        raise TypeError(f"{name}: found {show(value)}, expected a sequence of {of}")
    return value


def token_array(name: str, value: Any, expected: str = "a sequence of ints") -> Any:
    """Returns tokens as an array of the library's type. Any iterable of ints is allowed, and NumPy's arrays."""
    if isinstance(value, ctypes.Array) and value._type_ is ctypes.c_int32:
        return value
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        items = value if isinstance(value, (list, tuple)) else value.tolist() if hasattr(value, "tolist") else list(value)
        found = array("i", items)
    except TypeError:
        raise TypeError(f"{name}: found {show(value)}, expected {expected}") from None
    except OverflowError:
        beyond = next(item for item in items if not -INT_MAX - 1 <= item <= INT_MAX)
        raise InvalidError(f"{name}: found {beyond}, which is no token") from None
    return (ctypes.c_int32 * len(found)).from_buffer(found)


def chosen(name: str, value: Any, table: Iterable[str]) -> str:
    """Returns one of the names of a table."""
    names = list(table)
    if not isinstance(value, str) or value not in names:
        is_text = isinstance(value, str)
        raise (InvalidError if is_text else TypeError)(
            f"{name}: found {show(value)}, expected one of {', '.join(names)}" + (suggestion(value, names) if is_text else ""))
    return value


def refuse(call: Callable[..., Any], unknown: Mapping[str, Any]) -> None:
    """Raises TypeError for keywords that a function or class does not have."""
    if unknown:
        import inspect

        check_names(call.__name__, unknown, [name for name in inspect.signature(call).parameters if name != "unknown"])


def check_names(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises TypeError for an unknown keyword, and suggests the known one that is most similar."""
    names = list(known)
    for name in given:
        if name not in names:
            raise TypeError(f"{what}: the option '{name}' is unknown" + suggestion(name, names))


def suggestion(name: str, known: Iterable[str]) -> str:
    """Returns the end of a sentence that suggests the most similar of several names."""
    import difflib

    near = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean '{near[0]}'?" if near else ""


_CONVERTERS: dict[Any, Callable[[str, Any], Any]] = {
    ctypes.c_bool: flag, ctypes.c_float: number, ctypes.c_double: number, ctypes.c_char_p: text,
    ctypes.c_int32: integer, ctypes.c_size_t: lambda name, value: integer(name, value, 0, 2**63 - 1),
}
_types: dict[type[ctypes.Structure], dict[str, Any]] = {}


def options_of(kind: type[S], /, **values: Any) -> S:
    """Makes a struct of the library from arguments with the names of its fields."""
    if kind not in _types:
        _types[kind] = {field[0]: field[1] for field in kind._fields_}
    types = _types[kind]
    return kind(**{name: _CONVERTERS[types[name]](name, value) if types[name] in _CONVERTERS else value
                   for name, value in values.items()})
