# SPDX-License-Identifier: MIT
"""Makes JSON schemas of types, and objects of these types from JSON.

Pydantic's models do both with pydantic. Dataclasses, TypedDicts, enumerations, Literal, lists, tuples, dicts and unions
need no package.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import json
import types
import typing
from typing import Any, Mapping, Union, get_args, get_origin, get_type_hints

_JSON_TYPES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_LISTS = (list, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_UNIONS = (Union, types.UnionType)
_REQUIRED, _NOT_REQUIRED = (getattr(typing, name, Ellipsis) for name in ("Required", "NotRequired"))   # since Python 3.11


def is_model(kind: Any) -> bool:
    """True if pydantic made the class."""
    return isinstance(kind, type) and hasattr(kind, "model_json_schema")


def is_type(kind: Any) -> bool:
    """True if a schema can be made of `kind`: a class or an annotation. A schema itself is not a type."""
    return isinstance(kind, type) or get_origin(kind) is not None or isinstance(kind, types.UnionType)


def schema_of(kind: Any) -> dict[str, Any]:
    """Returns the JSON schema of a type. Raises TypeError if JSON cannot represent the type."""
    definitions: dict[str, Any] = {}
    schema = _Schemas(definitions).of(kind)
    return {**schema, "$defs": definitions} if definitions else schema


class _Schemas:
    def __init__(self, definitions: dict[str, Any]) -> None:
        self.definitions = definitions
        self._names: dict[Any, str] = {}

    def of(self, kind: Any) -> dict[str, Any]:
        if is_model(kind):
            schema: dict[str, Any] = kind.model_json_schema()
            self.definitions.update(schema.pop("$defs", {}))
            return schema
        if kind in (Any, object):
            return {}
        if kind in _JSON_TYPES:
            return {"type": _JSON_TYPES[kind]}
        origin, args = get_origin(kind), get_args(kind)
        if hasattr(kind, "__metadata__") or origin in (_REQUIRED, _NOT_REQUIRED):
            return self.of(args[0])
        if origin is typing.Literal:
            return {"enum": list(args)}
        if origin in _UNIONS:
            return {"anyOf": [self.of(arg) for arg in args]}
        if kind is tuple or origin is tuple:
            return self._tuple(args)
        if kind in _LISTS or origin in _LISTS:
            return {"type": "array", **({"items": self.of(args[0])} if args else {})}
        if kind in _DICTS or origin in _DICTS:
            return {"type": "object", **({"additionalProperties": self.of(args[1])} if args else {})}
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return {"enum": [member.value for member in kind]}
        if has_fields(kind):
            return self._reference(kind)
        raise TypeError(f"{kind!r} has no JSON schema: expected a pydantic model, a dataclass, a TypedDict, an Enum, Literal, "
                        f"str, int, float, bool, None, or a list, tuple, dict or union of them")

    def _tuple(self, args: tuple[Any, ...]) -> dict[str, Any]:
        if not args:
            return {"type": "array"}
        if len(args) == 2 and args[1] is Ellipsis:
            return {"type": "array", "items": self.of(args[0])}
        return {"type": "array", "prefixItems": [self.of(arg) for arg in args], "items": False,
                "minItems": len(args), "maxItems": len(args)}

    def _reference(self, kind: Any) -> dict[str, Any]:
        """Returns a reference to the definition of a class with fields. The class may contain itself."""
        if kind not in self._names:
            name, n = kind.__name__, 1
            while name in self.definitions:
                n += 1
                name = f"{kind.__name__}{n}"
            self._names[kind] = name
            self.definitions[name] = {}
            hints = fields_of(kind)
            self.definitions[name] = {
                "type": "object", "title": kind.__name__, "properties": {key: self.of(hint) for key, hint in hints.items()},
                "required": [key for key in hints if key in required_of(kind)], "additionalProperties": False}
        return {"$ref": f"#/$defs/{self._names[kind]}"}


def has_fields(kind: Any) -> bool:
    """True for a dataclass or a TypedDict."""
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or hasattr(kind, "__total__"))


def fields_of(kind: Any) -> dict[str, Any]:
    """Returns the annotations of the fields that the JSON form of a class has."""
    hints = get_type_hints(kind, include_extras=True)
    if not dataclasses.is_dataclass(kind):
        return hints
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


def required_of(kind: Any) -> set[str]:
    if not dataclasses.is_dataclass(kind):   # __required_keys__ ignores NotRequired in modules with future annotations
        marks = {key: get_origin(hint) for key, hint in fields_of(kind).items()}
        required = {key for key in kind.__required_keys__ if marks[key] is not _NOT_REQUIRED}
        return required | {key for key, mark in marks.items() if mark is _REQUIRED}
    missing = dataclasses.MISSING
    return {field.name for field in dataclasses.fields(kind) if field.default is missing and field.default_factory is missing}


# ------------------------------------------------------------------ values


def read(kind: Any, text: str) -> Any:
    """Makes the object of a type from a JSON text. Raises ValueError if the text does not match the type."""
    if is_model(kind):
        return kind.model_validate_json(text)
    return build(kind, json.loads(text))


def build(kind: Any, value: Any) -> Any:
    """Makes the object of a type from a value of parsed JSON."""
    if kind in (Any, object):
        return value
    if is_model(kind):
        return kind.model_validate(value)
    if kind in _JSON_TYPES:
        return _plain(kind, value)
    origin, args = get_origin(kind), get_args(kind)
    if hasattr(kind, "__metadata__") or origin in (_REQUIRED, _NOT_REQUIRED):
        return build(args[0], value)
    if origin is typing.Literal:
        _expect(value in args, value, kind)
        return next(arg for arg in args if arg == value)
    if origin in _UNIONS:
        return _first(args, value)
    if kind is tuple or origin is tuple:
        _expect(isinstance(value, list), value, kind)
        kinds = args
        if not args or args[-1] is Ellipsis:
            kinds = (args[0] if args else Any,) * len(value)
        _expect(len(kinds) == len(value), value, kind)
        return tuple(build(kind, item) for kind, item in zip(kinds, value))
    if kind in _LISTS or origin in _LISTS:
        _expect(isinstance(value, list), value, kind)
        items = [build(args[0] if args else Any, item) for item in value]
        base = origin or kind
        return base(items) if base in (set, frozenset) else items
    if kind in _DICTS or origin in _DICTS:
        _expect(isinstance(value, dict), value, kind)
        return {key: build(args[1] if args else Any, item) for key, item in value.items()}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(value)
    return _with_fields(kind, value)


def _expect(holds: bool, value: Any, kind: Any) -> None:
    if not holds:
        raise ValueError(f"found {json.dumps(value)[:80]}, expected {getattr(kind, '__name__', kind)}")


def _plain(kind: Any, value: Any) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    _expect(type(value) is kind, value, kind)
    return value


def _first(kinds: tuple[Any, ...], value: Any) -> Any:
    """Returns the object of the first type of a union that matches the value."""
    failures = []
    for kind in kinds:
        try:
            return build(kind, value)
        except ValueError as failure:
            failures.append(str(failure))
    raise ValueError(" or ".join(failures))


def _with_fields(kind: Any, value: Any) -> Any:
    _expect(isinstance(value, Mapping), value, kind)
    hints = fields_of(kind)
    missing = required_of(kind) - set(value)
    if missing or not set(value) <= set(hints):
        raise ValueError(f"found the properties {', '.join(value) or 'none'}, expected those of {kind.__name__}: {', '.join(hints)}")
    made = {key: build(hints[key], item) for key, item in value.items()}
    return kind(**made)
