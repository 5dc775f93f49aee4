# SPDX-License-Identifier: MIT
"""Samplers, which choose the next token, with stages in Python; and grammars."""

from __future__ import annotations

import ctypes
import json
import math
import os
import threading
from ctypes import byref
from threading import get_ident
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping

from . import _declarations as c
from ._arguments import (
    chosen,
    content,
    flag,
    function,
    instance,
    integer,
    mapping,
    number,
    refuse,
    show,
    suggestion,
    text,
    texts,
    token_array,
)
from ._core import callbacks
from ._handle import Handle, Unique
from ._library import check, decode, lib
from ._tensor import Tensor
from .errors import InvalidError
from .model import Model

if TYPE_CHECKING:
    from typing_extensions import Never, Unpack

    from ._options import SamplerNumbers


class Candidates(Unique):
    """The candidates of a stage in Python: tokens with their logits, in the library's memory.

    An object is valid during the call only, and empty afterwards. `candidates[i].token` and `candidates[i].logit` are a
    token and its logit, which can be set.
    """

    def __init__(self, address: int, n: int) -> None:
        self._items: Any = (c.frit_candidate * n).from_address(address)

    def _end(self) -> None:
        self._items = (c.frit_candidate * 0)()

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, i: int) -> Any:
        return self._items[i]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def ban(self, tokens: Iterable[int]) -> None:
        """Sets the logits of tokens to -infinity."""
        banned = set(tokens)
        for item in self._items:
            if item.token in banned:
                item.logit = float("-inf")

    def numpy(self) -> Any:
        """Returns a view of type [("token", int32), ("logit", float32)], without a copy."""
        import numpy

        return numpy.frombuffer(self._items, dtype=[("token", "<i4"), ("logit", "<f4")])


#: A function that changes logits, or moves the candidates that stay to the front and returns their number.
Stage = Callable[[Candidates], "int | None"]


def _option_rows() -> dict[str, Any]:
    n = ctypes.c_size_t()
    rows = lib.frit_sampler_option_rows(byref(n))
    return {decode(rows[i].name): rows[i] for i in range(n.value)}


_rows: dict[str, Any] = {}
_ALIASES = {"temperature": "temp", "typical": "typical-p", "tfs": "tfs-z"}


def sampler_option_names() -> list[str]:
    """Returns the names of the samplers' options as Python writes them: "top_k", "dry_multiplier", ..."""
    if not _rows:
        _rows.update(_option_rows())
    return [name.replace("-", "_") for name in _rows]


def _row_name(name: str) -> str:
    names = sampler_option_names()
    row = _ALIASES.get(name, name.replace("_", "-"))
    if row in _rows:
        return row
    raise TypeError(f"Sampler: the option '{name}' is unknown" + suggestion(name, [*names, *_ALIASES]))


def _option_text(name: str, row: Any, value: Any) -> bytes:
    """Returns a value in the form in which the library reads options."""
    if row.type == c.FRIT_OPTION_FLAG:
        return str(int(flag(name, value))).encode()
    if row.type == c.FRIT_OPTION_INT:
        return str(integer(name, value, int(row.min), int(row.max))).encode()
    if row.type == c.FRIT_OPTION_FLOAT:
        found = number(name, value)
        if not row.min <= found <= row.max:
            raise InvalidError(f"{name}: found {show(value)}, expected {row.min:g} to {row.max:g}")
        return repr(found).encode()
    return text(name, value) or b""


def _biases(biases: Any) -> Iterator[str]:
    for token, bias in mapping("logit_bias", biases).items():
        value = bias if isinstance(bias, float) and math.isinf(bias) else number(f"logit_bias[{show(token)}]", bias)
        yield f"{integer('logit_bias', token, 0)}={value!r}"


def text_list(name: str, items: Iterable[str | bytes]) -> tuple[c.frit_option_list, Any]:
    """Returns texts in the library's form, and the object that must live as long as this form."""
    data = [text(name, item) or b"" for item in items]
    array = (ctypes.c_char_p * len(data))(*data)
    # ctypes.cast would make an array that refers to itself
    return c.frit_option_list((ctypes.c_void_p * len(data)).from_buffer(array), len(data)), (array, data)


class Sampler(Unique):
    """Chooses the tokens of one text. One thread at a time may use it.

    temperature: 0 always picks the likeliest token. The default is 0.8, or the value that the model's file recommends.
    The other options have such defaults too: top_k (40), top_p (0.95), min_p (0.05), repeat_penalty, frequency_penalty,
    presence_penalty, repeat_last_n, typical_p, tfs_z, top_n_sigma, xtc_probability, xtc_threshold, dry_multiplier,
    dry_base, mirostat, mirostat_tau, mirostat_eta, samplers, ... `sampler_option_names()` lists them.
    seed: equal seeds give equal texts; None or -1: a random seed.
    logit_bias: a number for each token, which is added to its logit; -inf bans the token.
    stage: a function that gets and may change all candidates of each token.
    recommended: False ignores the values that the model's file recommends.

    Raises TypeError for unknown options, InvalidError for values out of range.
    """

    def __init__(self, model: Model, *, temperature: float | None = None, seed: int | None = None,
                 logit_bias: Mapping[int, float] | None = None, stage: Stage | None = None, recommended: bool = True,
                 dry_sequence_breakers: Iterable[str] | None = None, **options: Unpack[SamplerNumbers]) -> None:
        instance("model", model, Model)
        self.model = model
        self._failures: list[BaseException] = []   # exceptions of the stage in Python
        #: Returns the tokens of prompt and answer, as far as the sampler's user knows them.
        self.timeline: Callable[[], list[int]] = list
        raw = c.frit_sampler_options()
        keep: list[Any] = []
        self._set_defaults(raw)
        if recommended:
            check(lib.frit_sampler_recommend(model._handle, byref(raw)))
        given: dict[str, Any] = {"temperature": temperature, **options}
        for name, value in given.items():
            if value is not None:
                row = _row_name(name)
                data = _option_text(name, _rows[row], value)
                keep.append(data)
                check(lib.frit_sampler_set_option(byref(raw), row.encode(), data))
        if seed is None or integer("seed", seed, -1, 2**64 - 1) < 0:
            seed = int.from_bytes(os.urandom(8), "little") >> 1
        raw.seed = seed
        if logit_bias:
            raw.logit_bias, held = text_list("logit_bias", _biases(logit_bias))
            keep.append(held)
        if dry_sequence_breakers is not None:
            raw.dry_breakers, held = text_list("dry_sequence_breakers", texts("dry_sequence_breakers", dry_sequence_breakers))
            keep.append(held)
        function("stage", stage)
        if stage is not None:
            raw.stage = c.frit_stage_fn(self._stage_function(stage))
            keep.append(raw.stage)
        #: The seed that is used.
        self.seed: int = raw.seed
        #: True if a stage in Python runs for each token.
        self.has_stage = stage is not None
        self.has_grammar = False
        self._used = threading.Lock()
        self._handle = ctypes.c_void_p()
        check(lib.frit_sampler_new(byref(self._handle), model._handle, byref(raw)))
        self._owned = Handle(self._handle, lib.frit_sampler_free, (model, keep))

    def lock(self) -> None:
        """Reserves the sampler for a text or a call, until `unlock`."""
        if not self._used.acquire(False):
            raise InvalidError("the sampler is in use by a text or another thread: make a sampler for each of them")

    def unlock(self) -> None:
        """Ends the reservation that `lock` began."""
        self._used.release()

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self.lock()
        try:
            return function(self._handle, *arguments)
        finally:
            self._used.release()

    @staticmethod
    def _set_defaults(raw: Any) -> None:
        sampler_option_names()
        for row in _rows.values():
            if row.fallback and row.type in (c.FRIT_OPTION_INT, c.FRIT_OPTION_FLOAT):
                check(lib.frit_option_set(byref(row), byref(raw), row.fallback))

    def _stage_function(self, stage: Stage) -> Callable[[Any, Any, int], int]:
        failures = self._failures   # the closure must not hold the sampler, which holds the closure

        def run(_ctx: Any, items: Any, n: int) -> int:
            me = get_ident()
            is_outer = me not in callbacks
            callbacks.add(me)
            candidates = Candidates(ctypes.addressof(items.contents), n)
            try:
                kept = stage(candidates)
                return n if kept is None else int(kept)
            except BaseException as failure:  # noqa: BLE001 - C cannot pass it on; `check` raises it
                failures[:] = [failure]
                return n
            finally:
                candidates._end()
                if is_outer:
                    callbacks.discard(me)

        return run

    def check(self, status: int) -> None:
        """Raises the exception of the stage in Python, or the exception of a status other than FRIT_OK."""
        if self._failures:
            raise self._failures.pop()
        check(status)

    def accept(self, token: int) -> None:
        """Remembers a picked token: penalties, the grammar and the position of random draws depend on it."""
        check(self._call(lib.frit_sampler_accept, integer("token", token)))

    def sample(self, logits: Tensor | Any) -> int:
        """Returns a token for logits [n_vocab], which are a tensor of this package or an array of float32. Does not
        accept it."""
        token = ctypes.c_int32()
        if isinstance(logits, Tensor):
            buffer: Any = logits.buffer
        else:
            try:
                view = memoryview(logits).cast("B").cast("f")
            except TypeError:
                raise TypeError(f"logits: found {show(logits)}, expected a frit.Tensor or an array of float32") from None
            buffer = (ctypes.c_float * len(view)).from_buffer_copy(view)
        if len(buffer) < self.model.info.n_vocab:
            raise ValueError(f"logits: found {len(buffer)} numbers, expected {self.model.info.n_vocab}")
        self.check(self._call(lib.frit_sampler_sample, buffer, byref(token)))
        return token.value

    def reset(self) -> None:
        """Forgets accepted tokens and the grammar, and sets the position to 0."""
        check(self._call(lib.frit_sampler_reset))

    def set_grammar(self, grammar: Grammar | None) -> None:
        """Permits only tokens that the grammar allows. None: all tokens are permitted."""
        if grammar is not None:
            instance("grammar", grammar, Grammar)
        check(self._call(lib.frit_sampler_set_grammar, grammar._handle if grammar else None))
        self.has_grammar = grammar is not None

    @property
    def is_over(self) -> bool:
        """True if the text is complete by the grammar and no further token is allowed."""
        return bool(self._call(lib.frit_sampler_is_over))

    def heal(self, tokens: Iterable[int]) -> int:
        """Begins token healing. Returns the number of the prompt's tokens to push; the answer spells the others
        again."""
        self.lock()
        try:
            return self._heal(tokens)
        finally:
            self.unlock()

    def _heal(self, tokens: Iterable[int]) -> int:
        array, n = token_array("tokens", tokens), ctypes.c_size_t()
        check(lib.frit_sampler_heal(self._handle, self.model._handle, array, len(array), byref(n)))
        return n.value


_GRAMMARS = {"gbnf": c.FRIT_GRAMMAR_GBNF, "schema": c.FRIT_GRAMMAR_SCHEMA, "regex": c.FRIT_GRAMMAR_REGEX,
             "tags": c.FRIT_GRAMMAR_TAGS}


class Grammar(Unique):
    """A grammar of an answer, compiled for a model's vocabulary. It never changes: any number of samplers may use it.

    text: rules in GBNF, a JSON schema (as text or a dict), a regular expression (ECMA-262), or structural tags (as text
        or a dict), which give a form to the parts of a text that begin with triggers.
    kind: "gbnf", "schema", "regex" or "tags".
    any_order: a schema's properties may come in any order.
    open_objects: objects may have properties that their schema does not name, unless it forbids them, as JSON Schema
        says. Without open_objects, an object has only the properties that its schema names, unless the schema allows
        others explicitly.
    Raises InvalidError for errors in the text, UnsupportedError for a text that cannot become a grammar.
    """

    def __init__(self, model: Model, text: str | Mapping[str, Any] | bool, *, kind: str = "gbnf",
                 any_order: bool = False, open_objects: bool = False, **unknown: Never) -> None:
        refuse(Grammar, unknown)
        instance("model", model, Model)
        if not isinstance(text, (str, Mapping, bool)):
            raise TypeError(f"text: found {show(text)}, expected a str, or a dict")
        self.kind = chosen("kind", kind, _GRAMMARS)
        self.text = text if isinstance(text, str) else json.dumps(text)
        self.any_order = flag("any_order", any_order)
        self.open_objects = flag("open_objects", open_objects)
        data = content("text", self.text)
        options = c.frit_grammar_options(kind=_GRAMMARS[kind], any_order=any_order, open_objects=open_objects)
        self._handle = ctypes.c_void_p()
        check(lib.frit_grammar_new(byref(self._handle), model._handle, data, len(data), byref(options)))
        self._owned = Handle(self._handle, lib.frit_grammar_free, model)

    @property
    def kind_value(self) -> int:
        """The number that the library uses for `kind`."""
        return _GRAMMARS[self.kind]
