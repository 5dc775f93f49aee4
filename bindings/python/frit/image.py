# SPDX-License-Identifier: MIT
"""Pictures: opens them from files, bytes, PIL and arrays, and finds them in messages."""

from __future__ import annotations

import base64
import binascii
import ctypes
import os
import sys
from collections.abc import Mapping, Sequence
from ctypes import byref
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _declarations as c
from ._arguments import integer, path_of, show
from ._handle import Handle, Unique
from ._library import check, lib
from .errors import FritError, InvalidError, UnsupportedError

if TYPE_CHECKING:
    from .model import Model

_SOURCES = "a path, the bytes of a file, a PIL image, an array [height, width, 3] of uint8, or a frit.Image"


class Image(Unique):
    """A picture as pixels: upright, RGB, without transparency. It never changes; any thread may use it.

    source: a path; the bytes of a PNG, JPEG, WebP or GIF file; a data URI ("data:image/png;base64,..."); a PIL image,
        whose EXIF orientation is applied; or an array [height, width, 3] of uint8.

    Raises FormatError for a damaged file, UnsupportedError for another format, LimitError for more than 20 MiB or
    64 Mi pixels, NotFoundError.
    """

    def __init__(self, source: Any) -> None:
        handle = ctypes.c_void_p()
        _open(handle, source)
        self._handle = handle
        self._owned = Handle(handle, lib.frit_image_free)
        width, height = ctypes.c_uint32(), ctypes.c_uint32()
        check(lib.frit_image_get_size(handle, byref(width), byref(height)))
        self.width: int = width.value
        self.height: int = height.value

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The pixels [height, width, 3] for NumPy: `numpy.asarray(image)` is a view of them that cannot be written."""
        pixels = ctypes.cast(lib.frit_image_pixels(self._handle), ctypes.c_void_p).value
        return {"shape": (self.height, self.width, 3), "typestr": "|u1", "data": (pixels, True), "version": 3}

    def __repr__(self) -> str:
        return f"<frit.Image of {self.width} x {self.height} pixels>"


def _open(handle: ctypes.c_void_p, source: Any) -> None:
    if isinstance(source, str) and source.startswith("data:"):
        source = _data_of(source)
    if isinstance(source, str) and source.startswith(("http://", "https://")):
        raise InvalidError(f"a picture: found {show(source)}; frit fetches no pictures: expected {_SOURCES}")
    if isinstance(source, (str, os.PathLike)):
        check(lib.frit_image_open(byref(handle), path_of("a picture", source), None))
    elif _is_pil(source):
        _open_pil(handle, source)
    else:
        _open_buffer(handle, source)


def _data_of(uri: str) -> bytes:
    head, comma, data = uri.partition(",")
    if not comma or not head.endswith(";base64"):
        raise InvalidError(f"a picture: found {show(uri)}, expected data:image/png;base64, and the data")
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as failure:
        raise InvalidError(f"a picture: found {show(uri)}, whose data is not base64: {failure}") from None


def _is_pil(source: Any) -> bool:
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(source, module.Image)


def _open_pil(handle: ctypes.c_void_p, picture: Any) -> None:
    from PIL import Image as pil, ImageOps

    if picture.mode.startswith(("I", "F")):
        raise UnsupportedError(f"a picture: found a PIL image of mode {picture.mode!r}, expected one of 8 bits: convert it")
    picture = ImageOps.exif_transpose(picture)
    palette = picture.palette.mode if picture.palette is not None else ""
    if "transparency" in picture.info or picture.mode.endswith(("A", "a")) or palette.endswith("A"):
        picture = picture.convert("RGBA")
        picture = pil.alpha_composite(pil.new("RGBA", picture.size, "white"), picture)
    data = picture.convert("RGB").tobytes()
    check(lib.frit_image_from_rgb(byref(handle), picture.width, picture.height, data))


def _open_buffer(handle: ctypes.c_void_p, source: Any) -> None:
    try:
        view = memoryview(source)
    except TypeError:
        raise TypeError(f"a picture: found {show(source)}, expected {_SOURCES}") from None
    if view.ndim == 1 and view.itemsize == 1:
        data = bytes(view)
        check(lib.frit_image_open_memory(byref(handle), data, len(data), None))
        return
    shape = list(view.shape or ())
    if len(shape) != 3 or shape[2] != 3 or view.format != "B":
        raise TypeError(f"a picture: found an array {shape} of format {view.format!r}, expected {_SOURCES}")
    check(lib.frit_image_from_rgb(byref(handle), shape[1], shape[0], view.tobytes()))


# ---------------------------------------------------------------------------- pictures of messages


LOW_TOKENS = 256   # most tokens of a picture with the detail "low", as on the server


class Part(NamedTuple):
    """A picture of a message. max_tokens: None: the limit of the chat."""

    image: Image
    max_tokens: int | None


def take_images(messages: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[Part]]:
    """Opens the pictures of messages. Returns the messages as a chat template reads them, with {"type": "image"} in
    each picture's place, and the pictures."""
    images: list[Part] = []
    return [_take_message(f"messages[{i}]", message, images) for i, message in enumerate(messages)], images


def _take_message(name: str, message: Mapping[str, Any], images: list[Part]) -> Mapping[str, Any]:
    parts = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(parts, (list, tuple)):
        return message
    return {**message, "content": [_take_part(f"{name}.content[{i}]", part, images) for i, part in enumerate(parts)]}


def _take_part(name: str, part: Any, images: list[Part]) -> Any:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind not in ("image", "image_url", "input_image"):
        return part
    images.append(_read_part(name, part))
    return {"type": "image"}


def _read_part(name: str, part: Mapping[str, Any]) -> Part:
    keys = [key for key in ("image", "path", "url", "image_url") if key in part]
    if len(keys) != 1:
        raise InvalidError(f"{name}: a picture with the keys {sorted(part)}, expected one of image, path, url, image_url")
    source, others = part[keys[0]], {key: part[key] for key in part if key not in ("type", keys[0])}
    if isinstance(source, Mapping):
        if "url" not in source:
            raise InvalidError(f"{name}.{keys[0]}: found {show(dict(source))}, expected a dict with url")
        others |= {key: source[key] for key in source if key != "url"}
        source = source["url"]
    detail = others.pop("detail", None)
    if detail not in (None, "auto", "low", "high"):
        raise InvalidError(f"{name}: the detail is {show(detail)}, expected low, high or auto")
    if others:
        raise InvalidError(f"{name}: the key '{next(iter(others))}' of a picture is unknown, expected detail")
    return Part(_open_part(name, source), LOW_TOKENS if detail == "low" else None)


def _open_part(name: str, source: Any) -> Image:
    if isinstance(source, Image):
        return source
    try:
        return Image(source)
    except (TypeError, FritError) as failure:
        raise _named(name, failure) from None


def _named(name: str, failure: Exception) -> Exception:
    """Returns the exception with the place of the picture before its sentence."""
    failure.args = (f"{name}: {failure.args[0] if failure.args else failure}", *failure.args[1:])
    return failure


# ---------------------------------------------------------------------------- pictures of a prompt


class Pictures(Unique):
    """The pictures of a turn, prepared for a model. An engine encodes them when it has to run their tokens."""

    def __init__(self, model: Model, parts: Sequence[Part], max_tokens: int | None, salt: bytes) -> None:
        most = 0 if max_tokens is None else integer("image_tokens", max_tokens, 1)
        self.array: Any = (ctypes.c_void_p * len(parts))()
        self._owned: list[Handle] = []
        for i, part in enumerate(parts):
            limits = [n for n in (most, part.max_tokens) if n]
            options = c.frit_media_options(max_tokens=min(limits, default=0), salt=salt.hex().encode() if salt else None)
            media = ctypes.c_void_p()
            check(lib.frit_media_prepare(byref(media), model._handle, part.image._handle, byref(options)))
            self._owned.append(Handle(media, lib.frit_media_free, model))
            self.array[i] = media
