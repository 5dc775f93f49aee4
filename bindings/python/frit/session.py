# SPDX-License-Identifier: MIT
"""Sessions: timelines of tokens that a program runs itself."""

from __future__ import annotations

import ctypes
import sys
from ctypes import byref
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Callable, Iterable, Sequence

from . import _declarations as c
from ._arguments import content, integer, options_of, path_of, token_array
from ._core import Core
from ._handle import Unique
from ._jobs import MOST_TOKENS, Job, set_adapters
from ._library import callback, check, lib, text_at
from ._options import GenerateOptions, SamplerOptions
from ._sinks import Stream, thread_sink
from ._tensor import Tensor
from .errors import InvalidError
from .model import Adapter, Path
from .sampling import Grammar, Sampler

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .engine import Engine


class _Handle:
    """Owns the library's session. It is freed when the session, the views of its memory and a text on it are
    dropped."""

    def __init__(self, engine: Engine, handle: ctypes.c_void_p) -> None:
        self.engine = engine
        self.value = handle
        self.draft: Core | None = None   # the draft model's engine, which guesses tokens

    def __del__(self, _is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not _is_finalizing():
            self.engine._core.free_session(self.value, self.draft)


class Session(Unique):
    """A timeline of tokens on an engine: it can push tokens, run them, read logits, sample, truncate, fork and save.

    `engine.session()` makes it. One thread at a time may call its methods.
    """

    def __init__(self, engine: Engine, _handle: ctypes.c_void_p | None = None) -> None:
        self.engine = engine
        self._held: _Handle | None = None
        handle = _handle or ctypes.c_void_p()
        if _handle is None:
            engine._core.call(lambda: check(lib.frit_session_new(byref(handle), engine._core.handle)))
        self._held = _Handle(engine, handle)
        self._kind: Any = None           # the options of speculation
        self._job: Job | None = None     # the text that is generated on the session
        self._token = ctypes.c_int32()
        self._token_at = byref(self._token)

    def _hold(self) -> _Handle:
        if self._held is None:
            raise InvalidError("the session is closed")
        return self._held

    def _require(self) -> ctypes.c_void_p:
        return self._hold().value

    @property
    def _draft(self) -> Core | None:
        return self._hold().draft

    def _call(self, function: Any, *arguments: Any) -> Any:
        return self.engine._core.call(function, self._require(), *arguments)

    def _change(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Runs a call that changes the session or runs it. Raises InvalidError while a text is generated on the
        session."""
        job = self._job
        if job is not None:
            if not job.done and not job.cancelled:
                raise InvalidError("the session generates a text: read its stream to the end, or close it, first")
            self._job = None
        draft = self._draft
        if draft is None:
            return self.engine._core.call(function, *arguments)

        def run() -> Any:
            with draft.lent():
                return function(*arguments)

        return self.engine._core.call(run)

    def _do(self, function: Any, *arguments: Any) -> None:
        handle = self._require()
        self._change(lambda: check(function(handle, *arguments)))

    # ------------------------------------------------------------------ the timeline

    def push(self, tokens: str | Iterable[int], *, results: bool = True) -> None:
        """Queues tokens, or the tokens of a text, for the next steps. results: keep the logits after the last token.
        Raises LimitError if the tokens exceed the context, InvalidError for ids outside the vocabulary; no token is
        queued then."""
        items = self.engine.model.tokenize(tokens, special=len(self) == 0) if isinstance(tokens, str) else tokens
        array = token_array("tokens", items)
        options = c.frit_push_options(output=c.FRIT_OUTPUT_LAST if results else c.FRIT_OUTPUT_NONE)
        self._do(lib.frit_session_push, array, len(array), byref(options))

    def encode(self, source: str | Iterable[int]) -> None:
        """Sets the text that the decoder of an encoder-decoder attends to."""
        items = self.engine.model.tokenize(source) if isinstance(source, str) else source
        array = token_array("source", items)
        self._do(lib.frit_session_encode, array, len(array), None)

    def run(self) -> None:
        """Runs the queued tokens."""
        self._change(self._run)

    def _run(self) -> None:
        handle = self._require()
        while lib.frit_session_pending(handle) > 0:
            check(lib.frit_engine_step(self.engine._core.handle, None))
        check(lib.frit_session_status(handle))

    def __len__(self) -> int:
        return int(self._call(lib.frit_session_length))

    @property
    def n_pending(self) -> int:
        """The number of queued tokens, which have not run."""
        return int(self._call(lib.frit_session_pending))

    @property
    def n_cached(self) -> int:
        """The number of tokens that did not run, because another text had run them."""
        return int(self._call(lib.frit_session_cached))

    @property
    def tokens(self) -> list[int]:
        """The tokens of the session."""
        return self.engine._core.call(self._tokens)  # type: ignore[no-any-return]

    def _tokens(self) -> list[int]:
        handle = self._require()
        n = lib.frit_session_length(handle)
        return list(lib.frit_session_tokens(handle)[:n]) if n else []

    def truncate(self, n_keep: int) -> None:
        """Forgets all tokens after the first n_keep. Raises InvalidError if there are fewer."""
        self._do(lib.frit_session_truncate, integer("n_keep", n_keep, 0, 2**63 - 1))

    def fork(self) -> Session:
        """Makes a second session with this one's tokens and state. Both continue with identical numbers and share the
        work that was done."""
        handle = ctypes.c_void_p()
        self._do(lambda own: lib.frit_session_fork(byref(handle), own))
        fork = Session(self.engine, handle)
        fork._hold().draft, fork._kind = self._draft, self._kind
        return fork

    # ------------------------------------------------------------------ results

    def logits(self, *, copy: bool = True) -> Tensor:
        """Runs the queued tokens and returns the logits after the last one, [n_vocab].

        copy: False returns a view of the session's own memory, whose numbers change with the next step. The memory
            lives as long as a view of it. Raises InvalidError if the last push had results=False.
        """
        return self._change(self._logits, copy)  # type: ignore[no-any-return]

    def _logits(self, copy: bool) -> Tensor:
        self._run()
        found = lib.frit_session_logits(self._require())
        if not found:
            raise InvalidError("the session has no logits: push a token first, with results")
        shape = (self.engine.model.info.n_vocab,)
        address = ctypes.addressof(found.contents)
        return Tensor.copy_of(address, shape) if copy else Tensor(self._held, address, shape)

    def all_logits(self, tokens: Iterable[int]) -> Tensor:
        """Pushes and runs tokens. Returns the logits after each of them, [n_tokens, n_vocab]."""
        return self._rows(tokens, c.FRIT_OUTPUT_ALL, self.engine.model.info.n_vocab)

    def hidden_states(self, tokens: Iterable[int]) -> Tensor:
        """Pushes and runs tokens. Returns the last hidden state of each of them, [n_tokens, n_embd]."""
        return self._rows(tokens, c.FRIT_OUTPUT_EMBEDDINGS, self.engine.model.info.n_embd)

    def _rows(self, tokens: Iterable[int], output: int, width: int) -> Tensor:
        array = token_array("tokens", tokens)
        out = Tensor.zeros((len(array), width))

        def row(_ctx: Any, i: int, values: Any, n: int) -> None:
            ctypes.memmove(out.address + 4 * width * i, values, 4 * min(n, width))

        function = callback(c.frit_row_fn, row)
        options = c.frit_push_options(output=output, row=function)

        def run() -> None:
            check(lib.frit_session_push(self._require(), array, len(array), byref(options)))
            try:
                self._run()
            except BaseException:
                lib.frit_session_truncate(self._require(), 0)   # a later step must not call the function
                raise

        self._change(run)
        return out

    # ------------------------------------------------------------------ sampling

    def next(self, sampler: Sampler) -> int:
        """Runs the queued tokens, samples the next token and queues it. Raises LimitError when the context is full."""
        return self._change(self._next, sampler)  # type: ignore[no-any-return]

    def _next(self, sampler: Sampler) -> int:
        sampler.lock()
        try:
            status = lib.frit_session_next(self._require(), sampler._handle, self._token_at)
        finally:
            sampler.unlock()
        if status or sampler.has_stage:
            sampler.check(status)
        return self._token.value

    def next_tokens(self, sampler: Sampler) -> list[int]:
        """Runs the queued tokens, samples the next tokens and queues them: several with speculation, otherwise one."""
        many, n = (ctypes.c_int32 * MOST_TOKENS)(), ctypes.c_size_t()

        def run() -> None:
            sampler.check(sampler._call(
                lambda handle: lib.frit_session_next_tokens(self._require(), handle, many, MOST_TOKENS, byref(n))))

        self._change(run)
        return many[: n.value]

    def generate(self, prompt: str | Sequence[int] = (), *, max_tokens: int | None = None,
                 stop: str | Sequence[str] = (), sampler: Sampler | None = None, grammar: Grammar | None = None,
                 logprobs: int | None = None, ignore_end: bool = False,
                 **sampling: Unpack[SamplerOptions]) -> Stream[Any]:
        """Pushes a prompt and returns a stream of the answer, which stays in the session. The options are those of
        `Engine.generate`. Other methods must not be called until the stream ends."""
        from .engine import grammar_of, tokens_of

        tokens = tokens_of(self.engine.model, "prompt", prompt, special=len(self) == 0)
        queue: SimpleQueue[list[Any]] = SimpleQueue()
        job = Job(self.engine, tokens, self.engine._sampler("generate", GenerateOptions, sampler, sampling), thread_sink(queue),
                  max_tokens=max_tokens, stop=stop, logprobs=logprobs, ignore_end=ignore_end, session=self)
        job.grammar, job.schema = grammar_of(grammar), grammar
        self._change(lambda: None)
        self._job = job
        self.engine._core.add(job)
        return Stream(job, queue)

    # ------------------------------------------------------------------ settings

    def set_adapters(self, adapters: Sequence[Adapter | tuple[Adapter, float]]) -> None:
        """Sets the adapters with which the next tokens run, each alone or with a scale. Earlier adapters are
        removed."""
        from .engine import with_scales

        self._change(set_adapters, self._require(), with_scales(adapters))

    def set_salt(self, salt: bytes) -> None:
        """Sets the salt of the prefix cache: the session reuses the work of sessions with an equal salt only. Raises
        InvalidError if tokens have run."""
        data = content("salt", salt)
        self._do(lib.frit_session_set_salt, data, len(data))

    def set_share(self, weight: int = 1, priority: int = 0) -> None:
        """Sets the session's share of the engine's steps: a weight of 1 to 1000, and any priority."""
        self._do(lib.frit_session_set_share, integer("weight", weight, 1, 1000), integer("priority", priority))

    def set_shift(self, n_keep: int | None, n_drop: int = 0) -> None:
        """Drops n_drop of the oldest tokens (0: half of them) when the context is full, but not the first n_keep (at
        least 32). None: the context ends when it is full."""
        options = None if n_keep is None else byref(options_of(c.frit_shift_options, n_keep=n_keep, n_drop=n_drop))
        self._do(lib.frit_session_set_shift, options)

    def set_extend(self, n_group: int | None, width: int = 512) -> None:
        """Raises UnsupportedError if n_group is above 1: the feature was removed. Model(rope_scaling="yarn") makes
        contexts longer than the model was trained for."""
        options = None if n_group is None else byref(options_of(c.frit_extend_options, n_group=n_group, width=width))
        self._do(lib.frit_session_set_extend, options)

    def speculate(self, kind: str | Engine = "ngram", *, max_drafts: int = 0, min_p: float = 0,
                  always: bool = False) -> None:
        """Runs tokens that will probably be picked in the same step. The text does not change. kind: "ngram", "none",
        or the engine of a draft model, which must not be used otherwise meanwhile."""
        from .engine import speculation

        options = speculation(kind, self.engine) or c.frit_speculate_options(kind=b"none")
        given = options_of(c.frit_speculate_options, max_drafts=max_drafts, min_p=min_p, always=always)
        options.max_drafts, options.min_p, options.always = given.max_drafts, given.min_p, given.always
        handle, draft = self._hold(), getattr(options, "_frit_core", None)

        def run() -> None:
            if draft is None:
                check(lib.frit_session_speculate(handle.value, byref(options)))
            else:
                with draft.lent():
                    draft.check_open()
                    check(lib.frit_session_speculate(handle.value, byref(options)))
            handle.draft, self._kind = draft, kind

        self._change(run)

    # ------------------------------------------------------------------ saving

    def save(self, path: Path) -> None:
        """Writes the session to a file. The file appears when it is complete."""
        self._do(lib.frit_session_save, path_of("path", path))

    def load(self, path: Path) -> None:
        """Replaces the session by a saved one of the same model and cache types. Raises FormatError or InvalidError if
        it does not fit."""
        self._do(lib.frit_session_load, path_of("path", path))

    def state(self) -> bytes:
        """Returns the bytes that `save` writes."""
        return self._change(self._state)  # type: ignore[no-any-return]

    def _state(self) -> bytes:
        n = ctypes.c_size_t()
        status = lib.frit_session_save_memory(self._require(), None, 0, byref(n))
        if status != c.FRIT_E_LIMIT:
            check(status)
        buffer = ctypes.create_string_buffer(n.value)
        check(lib.frit_session_save_memory(self._require(), buffer, n.value, byref(n)))
        return buffer.raw[: n.value]

    def set_state(self, state: bytes | bytearray | memoryview) -> None:
        """Replaces the session by the one that `state()` returned."""
        data = content("state", state)
        self._do(lib.frit_session_load_memory, data, len(data))

    @property
    def note(self) -> bytes:
        """The program's own bytes that are saved with the session."""
        return self.engine._core.call(self._note)  # type: ignore[no-any-return]

    @note.setter
    def note(self, value: bytes) -> None:
        data = content("note", value)
        self._do(lib.frit_session_set_note, data, len(data))

    def _note(self) -> bytes:
        n = ctypes.c_size_t()
        return text_at(lib.frit_session_note(self._require(), byref(n)), n.value)

    # ------------------------------------------------------------------ the end

    def close(self) -> None:
        """Frees the session's pages when no view of its memory and no stream of a text on it is left."""
        self._held = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
