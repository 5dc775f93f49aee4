# SPDX-License-Identifier: MIT
"""Models: opened files with their tokenizer, metadata and chat template; adapters for models."""

from __future__ import annotations

import ctypes
import json
import os
from ctypes import byref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Sequence, Union

from . import _declarations as c
from ._arguments import chosen, content, flag, instance, integer, options_of, path_of, refuse, sequence, show, token_array
from ._handle import Handle, Unique
from ._library import callback, check, decode, lib, text_at, two_calls
from .errors import CancelledError
from .names import found_path

if TYPE_CHECKING:
    from typing_extensions import Never

Path = Union[str, "os.PathLike[str]"]
Progress = Union[Callable[[float], object], bool]
Message = Mapping[str, Any]

# Maps the library's log levels to those of Python's logging.
_LEVELS = {c.FRIT_LOG_ERROR: 40, c.FRIT_LOG_WARNING: 30, c.FRIT_LOG_INFO: 20, c.FRIT_LOG_DEBUG: 10}


def _tell(_ctx: int, level: int, sentence: bytes) -> None:
    import logging

    logging.getLogger("frit").log(_LEVELS.get(level, 20), "%s", decode(sentence))


_log = callback(c.frit_log_fn, _tell)


class Watch:
    """Wraps a progress function for the library. Returning False cancels, and an exception is raised by `check`. Python
    handles Ctrl-C when the function is called, so a wrapper is used without a progress function too."""

    def __init__(self, progress: Progress | None) -> None:
        asked = self._asked = [False]   # True in the list: the progress function has cancelled
        call = progress
        if not callable(call) and call not in (None, True, False):
            raise TypeError(f"progress: found {show(progress)}, expected a function, or True or False")

        def run(_ctx: Any, done: float) -> bool:
            asked[0] = callable(call) and call(done) is False
            return not asked[0]

        self.function = callback(c.frit_progress_fn, run, False)

    def check(self, status: int) -> None:
        try:
            check(status)
        except CancelledError:
            if self._asked[0]:
                raise
            raise KeyboardInterrupt from None   # Ctrl-C came before the function's first line


@dataclass(frozen=True)
class ModelInfo:
    """Properties of a model. Sizes are in bytes, `n_ctx_train` in tokens."""

    kind: str
    path: str
    format: str
    architecture: str
    name: str
    file_type: str
    tokenizer: str
    chat_format: str
    pooling: str
    n_params: int
    n_bytes: int
    n_vocab: int
    n_ctx_train: int
    n_embd: int
    n_layer: int
    n_head: int
    n_head_kv: int
    n_ff: int
    adds_bos: bool
    adds_eos: bool
    n_layer_next: int
    n_embed_tokens: int
    decoder_start: int


_KINDS = {c.FRIT_KIND_DECODER: "decoder", c.FRIT_KIND_ENCODER: "encoder", c.FRIT_KIND_ENCODER_DECODER: "encoder-decoder"}
_ROLES = {
    "bos": c.FRIT_ROLE_BOS, "eos": c.FRIT_ROLE_EOS, "eot": c.FRIT_ROLE_EOT, "unknown": c.FRIT_ROLE_UNKNOWN,
    "separator": c.FRIT_ROLE_SEPARATOR, "pad": c.FRIT_ROLE_PAD, "mask": c.FRIT_ROLE_MASK,
    "newline": c.FRIT_ROLE_NEWLINE, "fim_prefix": c.FRIT_ROLE_FIM_PREFIX, "fim_suffix": c.FRIT_ROLE_FIM_SUFFIX,
    "fim_middle": c.FRIT_ROLE_FIM_MIDDLE,
}


class Model(Unique):
    """An opened model: weights, vocabulary, chat template. It never changes; any thread may use it.

    path: a GGUF file (any part of a split model), a safetensors file or a Hugging Face folder; or a name
        ("hf:ORG/REPO", "ollama:llama3.2:1b", "https://...", a short name), which is fetched if it is not on this
        machine (`frit.pull`).
    vocab_only: opens the tokenizer without the weights. No engine can use the model.
    use_mmap: False reads the file into memory instead of mapping it.
    type: quantizes the matrices while an engine loads them ("q8_0", "q4_k_m", ...); None: they keep the file's types.
    chat_template: the path of a file with a template that replaces the model's, or the name of one of the model's
        templates.
    progress: called with 0 to 1 while the model is fetched and opened; returning False cancels (CancelledError). None:
        a terminal shows the progress of fetching; False: no progress is shown.
    mmproj: the path of the encoder of pictures, for a GGUF file; None: the file mmproj-*.gguf beside it.
    rope_*, yarn_*: the rotation of positions; 0 and None: as the file says.
    Warnings about the file go to the logger "frit".

    Raises NotFoundError, FormatError, UnsupportedError, InputOutputError, OutOfMemoryError; for names also NetworkError
    and DeniedError.
    """

    def __init__(self, path: Path, *, vocab_only: bool = False, use_mmap: bool = True, type: str | None = None,
                 chat_template: Path | None = None, progress: Progress | None = None,
                 rope_scaling: str | None = None, rope_scale: float = 0, rope_freq_scale: float = 0,
                 rope_freq_base: float = 0, yarn_ext_factor: float = 0, yarn_attn_factor: float = 0,
                 yarn_beta_fast: float = 0, yarn_beta_slow: float = 0, yarn_orig_ctx: int = 0,
                 mmproj: Path | None = None, **unknown: Never) -> None:
        refuse(Model, unknown)
        watch = Watch(progress)
        options = options_of(
            c.frit_model_options, vocab_only=vocab_only, type=type,
            chat_template=None if chat_template is None else path_of("chat_template", chat_template),
            progress=watch.function, log=_log, rope_scaling=rope_scaling, rope_scale=rope_scale,
            rope_freq_scale=rope_freq_scale, rope_freq_base=rope_freq_base, yarn_ext_factor=yarn_ext_factor,
            yarn_attn_factor=yarn_attn_factor, yarn_beta_fast=yarn_beta_fast, yarn_beta_slow=yarn_beta_slow,
            yarn_orig_ctx=yarn_orig_ctx, mmproj=None if mmproj is None else path_of("mmproj", mmproj),
        )
        options.no_mmap = not flag("use_mmap", use_mmap)
        handle = ctypes.c_void_p()
        place = path_of("path", found_path(path, progress))
        watch.check(lib.frit_model_open(byref(handle), place, byref(options)))
        self._take(handle)

    @classmethod
    def from_bytes(cls, data: bytes) -> Model:
        """Opens a GGUF file that is in memory. The bytes are kept as long as the model."""
        instance("data", data, bytes)
        model = cls.__new__(cls)
        handle = ctypes.c_void_p()
        options = c.frit_model_options(log=_log)
        check(lib.frit_model_open_memory(byref(handle), data, len(data), byref(options)))
        model._take(handle, data)
        return model

    def next_layer(self) -> Model:
        """Returns the model's layer for multi-token prediction as a model. An engine of it guesses tokens
        (`Session.speculate`). Raises UnsupportedError if the file has no such layer."""
        model = type(self).__new__(type(self))
        handle = ctypes.c_void_p()
        check(lib.frit_model_open_next(byref(handle), self._handle))
        model._take(handle, self)
        return model

    def _take(self, handle: ctypes.c_void_p, keep: Any = None) -> None:
        self._handle = handle
        self._owned = Handle(handle, lib.frit_model_free, keep)
        self._ends: dict[int, bool] = {}
        self._info: ModelInfo | None = None

    @property
    def info(self) -> ModelInfo:
        """Name, sizes and kind of the model."""
        if self._info is None:
            raw = c.frit_model_info()
            check(lib.frit_model_get_info(self._handle, byref(raw)))
            values: dict[str, Any] = {name: getattr(raw, name) for name in ModelInfo.__dataclass_fields__}
            values = {k: decode(v) if isinstance(v, bytes) or v is None else v for k, v in values.items()}
            values["kind"] = _KINDS.get(raw.kind, "unknown")
            self._info = ModelInfo(**values)
        return self._info

    @property
    def metadata(self) -> dict[str, Any]:
        """All metadata by GGUF's names. A list of more than 64 items is {"length": N, "first": [...]}."""
        found: dict[str, Any] = {}
        size, n = 1 << 16, ctypes.c_size_t()
        buffer = ctypes.create_string_buffer(size)
        i = 0
        while key := lib.frit_model_get_meta_json(self._handle, i, buffer, size, 64, byref(n)):
            if n.value >= size:
                size = n.value + 1
                buffer = ctypes.create_string_buffer(size)
                continue
            found[decode(key)] = json.loads(buffer.raw[: n.value].decode("utf-8", "replace"))
            i += 1
        return found

    def tokenize(self, text: str | bytes, *, special: bool = True, parse_special: bool = False) -> list[int]:
        """Returns the tokens of a text.

        special: adds BOS and EOS if the model asks for them.
        parse_special: converts the text of special tokens ("<|im_end|>") to these tokens.
        """
        data = content("text", text)
        flags = (c.FRIT_TEXT_SPECIAL if special else 0) | (c.FRIT_TEXT_PARSE_SPECIAL if parse_special else 0)
        buffer, n = two_calls(
            lambda out, room, count: int(lib.frit_tokenize(self._handle, data, len(data), flags, out, room, count)),
            lambda room: (ctypes.c_int32 * room)(), len(data) // 2 + 16)
        return list(buffer[:n])

    def detokenize_bytes(self, tokens: Iterable[int], *, special: bool = False) -> bytes:
        """Returns the bytes of tokens. special: includes the text of special tokens."""
        array = token_array("tokens", tokens)
        flags = c.FRIT_TEXT_SPECIAL if special else 0
        buffer, n = two_calls(
            lambda out, room, count: int(lib.frit_detokenize(self._handle, array, len(array), flags, out, room, count)),
            ctypes.create_string_buffer, 8 * len(array) + 16)
        return bytes(buffer.raw[:n])

    def detokenize(self, tokens: Iterable[int], *, special: bool = False) -> str:
        """Returns the text of tokens. Broken characters become U+FFFD."""
        return self.detokenize_bytes(tokens, special=special).decode("utf-8", "replace")

    def token_piece(self, token: int) -> bytes:
        """Returns the bytes that generation shows for a token. A control token has no bytes."""
        n = ctypes.c_size_t()
        return text_at(lib.frit_token_piece(self._handle, integer("token", token), byref(n)), n.value)

    def is_end(self, token: int) -> bool:
        """True if the token ends an answer."""
        found = self._ends.get(token)
        if found is None:
            found = self._ends[token] = bool(lib.frit_token_is_end(self._handle, integer("token", token)))
        return found

    def token(self, role: str) -> int | None:
        """Returns the token of a role: "bos", "eos", "eot", "unknown", "separator", "pad", "mask", "newline",
        "fim_prefix", "fim_suffix", "fim_middle". None if the model has no such token."""
        token = int(lib.frit_token_of_role(self._handle, _ROLES[chosen("role", role, _ROLES)]))
        return None if token < 0 else token

    def chat_prompt(self, messages: Sequence[Message], **variables: Any) -> str:
        """Returns the prompt that the model's template makes of messages, to look at. The variables are those of the
        template: tools, add_generation_prompt, enable_thinking, ..."""
        data = json.dumps({"messages": list(sequence("messages", messages, "dicts")), **variables}).encode()
        buffer, n = two_calls(
            lambda out, room, count: int(
                lib.frit_chat_render_json(self._handle, None, data, len(data), out, room, count)),
            ctypes.create_string_buffer, 4096)
        return str(buffer.raw[:n].decode("utf-8", "replace"))

    def embedding_width(self, pooling: str | None = None, n_dims: int = 0) -> int:
        """Returns the number of values in each vector of `Engine.embed`."""
        n = ctypes.c_size_t()
        options = options_of(c.frit_embed_options, pooling=pooling, n_dims=n_dims)
        check(lib.frit_embed_width(self._handle, byref(options), byref(n)))
        return n.value

    def __repr__(self) -> str:
        info = self.info
        return f"<frit.Model {info.name or info.path} ({info.architecture}, {info.file_type})>"


class Adapter(Unique):
    """A low-rank adapter (LoRA) or a control vector: a GGUF file, the folder of a PEFT adapter, or a name.

    first_layer, last_layer: the layers that a control vector changes; 0: all layers that it has.
    Raises NotFoundError, FormatError; InvalidError if the adapter is for another model.
    """

    def __init__(self, model: Model, path: Path, *, first_layer: int = 0, last_layer: int = 0, **unknown: Never) -> None:
        refuse(Adapter, unknown)
        instance("model", model, Model)
        options = options_of(c.frit_adapter_options, first_layer=first_layer, last_layer=last_layer)
        self._handle = ctypes.c_void_p()
        place = path_of("path", found_path(path, None))
        check(lib.frit_adapter_open(byref(self._handle), model._handle, place, byref(options)))
        self._owned = Handle(self._handle, lib.frit_adapter_free, model)
        self.model = model

    @property
    def info(self) -> dict[str, Any]:
        """The adapter's path, name, format, kind, n_tensors, rank, alpha (0: the file has no alpha), and n_bytes in
        memory."""
        raw = c.frit_adapter_info()
        check(lib.frit_adapter_get_info(self._handle, byref(raw)))
        names = ("path", "name", "format", "kind", "n_tensors", "rank", "alpha", "n_bytes")
        values = {name: getattr(raw, name) for name in names}
        return {k: decode(v) if isinstance(v, bytes) else v for k, v in values.items()}
