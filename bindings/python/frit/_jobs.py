# SPDX-License-Identifier: MIT
"""Generates the texts of an engine. Texts that are generated at the same time share steps."""

from __future__ import annotations

import ctypes
import os
from collections import deque
from ctypes import byref, c_bool
from threading import get_ident
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import _declarations as c
from ._arguments import content, flag, integer, texts, token_array
from ._core import Core, callbacks
from ._handle import Handle, Unique
from ._library import check, last_error, lib
from ._sinks import Sink, flush_sinks
from ._text import Text, Turn
from .errors import FritError, InternalError, copy_of
from .results import Chunk, TokenLogprob, Usage
from .sampling import Grammar, Sampler

if TYPE_CHECKING:
    from .engine import Engine
    from .image import Pictures
    from .model import Adapter
    from .session import Session

MOST_TOKENS = 64   # most tokens of one step with speculation
MOST_TEXTS = 64    # most texts that share a step
HOLD_S = 2e-4      # least seconds between two wake-ups of readers while steps are faster than half of that


_PACKAGE = os.path.dirname(__file__) + os.sep


def _beyond_package(trace: TracebackType | None) -> TracebackType | None:
    """Drops the first frames of a traceback, those of this package, which would keep the engine alive with the
    exception."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        trace = trace.tb_next
    return trace


class Job(Unique):
    """A text that is being generated. The caller's thread makes it, then only the engine's worker uses it."""

    def __init__(self, engine: Engine, prompt: Sequence[int], sampler: Sampler, sink: Sink, *,
                 max_tokens: int | None = None, stop: Sequence[str] = (), turn: Turn | None = None,
                 is_text: bool = True, logprobs: int | None = None, adapters: Sequence[tuple[Adapter, float]] = (),
                 salt: bytes = b"", weight: int = 1, priority: int = 0, speculate: Any = None,
                 ignore_end: bool = False, heal: bool = False, shift: int | None = None,
                 session: Session | None = None, pictures: Pictures | None = None) -> None:
        self.engine = engine
        self.model = engine.model
        self.prompt = list(prompt)
        if max_tokens is not None:
            integer("max_tokens", max_tokens, 0)
        self.sampler = sampler
        self.sink = sink
        self.max_tokens = max_tokens
        self.stop = texts("stop", stop)
        self.turn = turn
        self.pictures = pictures
        self.is_text = is_text
        self.n_top = None if logprobs is None else integer("logprobs", logprobs, 0, 256)
        self.adapters = adapters
        self.salt = content("salt", salt)
        self.weight, self.priority = integer("weight", weight, 1, 1000), integer("priority", priority)
        self.speculate = speculate
        #: The engine of a draft model. Other threads may use it between two calls.
        self.draft: Core | None = getattr(speculate, "_frit_core", None) if session is None else session._draft
        self.ignore_end = flag("ignore_end", ignore_end)
        self.heal = flag("heal", heal)
        self.shift = None if shift is None else integer("context_shift", shift, 0)
        self.lender = session
        self._lent = session._hold() if session is not None else None   # outlives the session's close()
        self.grammar: Grammar | None = None
        self.turn_grammar: Handle | None = None
        self.schema: Any = None   # the type, schema or grammar of the answer
        self.cancelled = False
        self.done = False
        self.has_called = False          # the answer has called a tool
        self.until: Callable[[list[int]], bool] | None = None   # True ends the answer before its next token
        self.tokens: list[int] = []      # the answer so far
        self.session = ctypes.c_void_p()
        self.asked = False
        self.by_logits = False
        self._is_ahead = c_bool()   # the pick after the one that is in flight is requested too
        self.usage = Usage(prompt=len(self.prompt))
        self._token = ctypes.c_int32()
        self._picked = c.frit_picked()
        self._options = c.frit_pick_options(logprobs=logprobs is not None, n_top=logprobs or 0, late=True)
        self._many = (ctypes.c_int32 * MOST_TOKENS)() if speculate is not None else None
        self._one = (ctypes.c_int32 * 1)()
        self._text: Text | None = None
        self._has_grammar = True
        self._has_sampler = False
        self._n_ctx = engine.info.n_ctx

    # ------------------------------------------------------------------ beginning and end

    def start(self) -> None:
        """Makes the session and queues the prompt, and after a preemption the answer so far."""
        if self._text is None:
            self._n_keep = self._prepare()
        if self._lent is not None:
            self.session = self._lent.value
        else:
            check(lib.frit_session_new(byref(self.session), self.engine._core.handle))
            self._set_up()
        if self.model.info.kind == "encoder-decoder":
            source = token_array("prompt", self.prompt)
            check(lib.frit_session_encode(self.session, source, len(source), None))
            self._push([self.model.info.decoder_start, *self.tokens])
        else:
            self._push(self.prompt[: self._n_keep] + self.tokens)
        if self.shift is not None:
            options = c.frit_shift_options(n_keep=max(32, self.shift))
            check(lib.frit_session_set_shift(self.session, byref(options)))

    def _prepare(self) -> int:
        n_keep = len(self.prompt)
        self.sampler.lock()
        self._has_sampler = True
        prompt, tokens = self.prompt, self.tokens   # the closure must not hold the job, which has the sampler
        self.sampler.timeline = lambda: prompt + tokens
        accept, handle = lib.frit_sampler_accept, self.sampler._handle
        has_source = self.model.info.kind == "encoder-decoder"
        if not has_source:
            n_vocab = self.model.info.n_vocab
            for token in self.prompt:
                if token < n_vocab:   # larger ids stand for pictures
                    check(accept(handle, token))
            if self.heal:
                n_keep = self.sampler._heal(self.prompt)
        follows = self.prompt if self.is_text and not has_source else ()
        self._text = Text(self.model, self.stop, self.turn, follows, len(self.prompt) - n_keep)
        self._has_grammar = self.engine._set_grammar(self)
        return n_keep

    def _set_up(self) -> None:
        if self.adapters:
            set_adapters(self.session, self.adapters)
        if self.salt:
            check(lib.frit_session_set_salt(self.session, self.salt, len(self.salt)))
        if self.weight != 1 or self.priority:
            check(lib.frit_session_set_share(self.session, self.weight, self.priority))
        if self.speculate is not None:
            if self.draft is not None:
                self.draft.check_open()
            check(lib.frit_session_speculate(self.session, byref(self.speculate)))

    def _push(self, tokens: Sequence[int]) -> None:
        array = token_array("tokens", tokens)
        media = self.pictures.array if self.pictures is not None else None
        options = c.frit_push_options(media=media, n_media=len(media)) if media is not None else c.frit_push_options()
        check(lib.frit_session_push(self.session, array, len(array), byref(options)))

    def release(self) -> None:
        """Frees the session, unless it is lent, so that its pages are free."""
        if self.lender is None and self.session:
            self.engine._core.discard(self.session, self.draft)
        elif self.session and self.asked and not self.by_logits and lib.frit_session_status(self.session) == 0:
            # The caller keeps the session without picks, and without a token that the answer does not have.
            lib.frit_session_truncate(self.session, lib.frit_session_length(self.session) - self._is_ahead.value)
        self.session = ctypes.c_void_p()
        self.asked = self._is_ahead.value = False

    def _end_all(self) -> None:
        self.release()
        self.done = True
        if self._has_sampler:
            self._has_sampler = False
            self.sampler.unlock()

    def finish(self, reason: str, chunk: Chunk | None = None) -> None:
        chunk = chunk or Chunk()
        if self._text is not None:
            self._text.end(chunk)
        if reason == "stop" and (self.has_called or chunk.tool_calls):
            reason = "tool_calls"
        self._count()
        self._end_all()
        chunk.finish_reason, chunk.usage = reason, self.usage
        self.sink(chunk)
        self.sink(None)

    def _count(self) -> None:
        self.usage.answer = len(self.tokens)
        if self.session:
            self.usage.cached = lib.frit_session_cached(self.session)
            if self.speculate is not None:
                info = c.frit_speculation_info()
                check(lib.frit_session_get_speculation(self.session, byref(info)))
                self.usage.drafted, self.usage.accepted = info.n_drafted, info.n_accepted

    def fail(self, failure: BaseException) -> None:
        self._end_all()
        self.sink(failure.with_traceback(_beyond_package(failure.__traceback__)))

    # ------------------------------------------------------------------ tokens

    @property
    def runs_alone(self) -> bool:
        """True if one call can give the next token. It must not be used while other texts share the step."""
        return bool(self.tokens) and not self.asked and self.n_top is None

    def ask(self) -> None:
        """Requests a token from the next step. If the logits exist already, `land` samples from them instead."""
        if self.asked:
            return
        if lib.frit_session_length(self.session) >= self._n_ctx and self.shift is None:
            self.finish("length")
            return
        self.asked = True
        self.by_logits = self.sampler.has_stage or lib.frit_session_pending(self.session) == 0
        if not self.by_logits:
            status = lib.frit_session_pick(self.session, self.sampler._handle, byref(self._options))
            if status == c.FRIT_E_UNSUPPORTED:
                self.by_logits = True
            else:
                check(status)

    def run_ahead(self) -> None:
        """Makes the late pick of the token that is in flight, and requests the token after it, where the answer goes on
        whatever token comes."""
        if self.by_logits or self._is_ahead.value:
            return
        lib.frit_session_complete_pick(self.session, self.sampler._handle)   # a failure is the session's status
        if self.speculate is None and (self.max_tokens is None or len(self.tokens) + 2 <= self.max_tokens):
            lib.frit_session_pick_ahead(self.session, self.sampler._handle, byref(self._options),
                                        byref(self._is_ahead))   # a failure is the session's status

    @property
    def has_token(self) -> bool:
        """True if a step has run that the token comes from."""
        if self.by_logits:
            return bool(lib.frit_session_pending(self.session) == 0)
        return bool(lib.frit_session_has_picked(self.session))

    def land(self) -> None:
        """Takes the token of the step that ran."""
        is_queued = self._is_ahead.value
        self.asked = self._is_ahead.value = False
        chunk = Chunk()
        token = self._sample(chunk) if self.by_logits else self._take_pick(chunk)
        handle = self.sampler._handle
        check(lib.frit_sampler_accept(handle, token))
        if self._take(token, chunk) and self.lender is None:
            return
        if is_queued and self.done:   # a lent session keeps the token, and forgets the pick after it
            check(lib.frit_session_truncate(self.session, lib.frit_session_length(self.session)))
            return
        if is_queued:
            self.asked = True
            self.sink(chunk)
            return
        self._one[0] = token
        status = lib.frit_session_push(self.session, self._one, 1, None)
        if status == c.FRIT_E_LIMIT and not self.done:
            self.finish("length", chunk)
            return
        check(status)
        if not self.done:
            self.sink(chunk)

    def _take_pick(self, chunk: Chunk) -> int:
        picked = self._picked
        check(lib.frit_session_picked(self.session, byref(picked)))
        if self.n_top is not None:
            top = [(picked.top[i].token, picked.top[i].logprob) for i in range(picked.n_top)]
            chunk.logprobs.append(TokenLogprob(picked.token, picked.logprob, top))
        return int(picked.token)

    def _sample(self, chunk: Chunk) -> int:
        handle = self.sampler._handle
        check(lib.frit_session_status(self.session))
        logits = lib.frit_session_logits(self.session)
        check(lib.frit_sampler_set_position(handle, lib.frit_session_length(self.session)))
        self.sampler.check(lib.frit_sampler_sample(handle, logits, byref(self._token)))
        if self.n_top is not None:
            chunk.logprobs.append(self._logprobs(logits))
        return self._token.value

    def _logprobs(self, logits: Any) -> TokenLogprob:
        n_vocab = self.model.info.n_vocab
        own, top = c.frit_logprob(token=self._token.value), (c.frit_logprob * (self.n_top or 0))()
        check(lib.frit_logprobs_of(logits, n_vocab, byref(own), 1))
        check(lib.frit_logprobs_top(logits, n_vocab, top, len(top)))
        return TokenLogprob(own.token, own.logprob, [(item.token, item.logprob) for item in top])

    def run_alone(self) -> None:
        """Takes the next token, or with speculation the next tokens, by one call."""
        if self._many is None:
            status = lib.frit_session_next(self.session, self.sampler._handle, byref(self._token))
            tokens: Sequence[int] = (self._token.value,)
        else:
            n = ctypes.c_size_t()
            status = lib.frit_session_next_tokens(self.session, self.sampler._handle, self._many, MOST_TOKENS, byref(n))
            tokens = self._many[: n.value]
        if status == c.FRIT_E_LIMIT:
            self.finish("length")
            return
        if status or self.sampler.has_stage:
            self.sampler.check(status)
        chunk = Chunk()
        for i, token in enumerate(tokens):
            if self._take(token, chunk, is_last=i + 1 == len(tokens)):
                self._forget(len(tokens) - i - 1)
                return
        self.sink(chunk)

    def _forget(self, n: int) -> None:
        """Removes the last n tokens, which follow the answer's end, from a lent session."""
        if n and self.lender is not None:
            check(lib.frit_session_truncate(self.session, lib.frit_session_length(self.session) - n))

    def _take(self, token: int, chunk: Chunk, is_last: bool = True) -> bool:
        """Adds a token to the answer. True: the answer has ended, and the last chunk was sent. is_last: no accepted
        token of the same call follows."""
        assert self._text is not None
        if self.until is not None and self._is_over(self.until):
            chunk.logprobs.clear()
            return self._end("stop", chunk)
        self.tokens.append(token)
        chunk.tokens.append(token)
        if not self.ignore_end and self.model.is_end(token):
            return self._end("stop", chunk)
        is_stopped = self._text.push(token, chunk)
        self.has_called = self.has_called or bool(chunk.tool_calls)
        if is_stopped:
            return self._end("stop", chunk)
        if self.max_tokens is not None and len(self.tokens) >= self.max_tokens:
            return self._end("length", chunk)
        if is_last and self._has_grammar and lib.frit_sampler_is_over(self.sampler._handle):
            return self._end("stop", chunk)
        return False

    def _is_over(self, until: Callable[[list[int]], bool]) -> bool:
        me = get_ident()
        callbacks.add(me)
        try:
            return bool(until(self.prompt + self.tokens))
        finally:
            callbacks.discard(me)

    def _end(self, reason: str, chunk: Chunk) -> bool:
        if self.lender is None:
            self.finish(reason, chunk)
        else:   # the caller keeps the session, and `land` pushes the last token
            session = self.session
            self.finish(reason, chunk)
            self.session = session
        return True


def set_adapters(session: ctypes.c_void_p, adapters: Sequence[tuple[Adapter, float]]) -> None:
    """Sets the adapters with which a session's next tokens run."""
    handles = (ctypes.c_void_p * len(adapters))(*[adapter._handle for adapter, _ in adapters])
    scales = (ctypes.c_float * len(adapters))(*[scale for _, scale in adapters])
    check(lib.frit_session_set_adapters(session, handles, scales, len(adapters)))


class Scheduler:
    """Steps the worker's jobs: those that run, and those that wait for a place.

    Readers get the chunks of a step after the step's variables are gone. A reader that drops the last reference to an
    engine then ends the engine in the reader's own thread.
    """

    def __init__(self, engine: ctypes.c_void_p) -> None:
        self.engine = engine
        self.running: list[Job] = []
        self.waiting: deque[Job] = deque()
        self._n_rows = ctypes.c_int32()
        self._had_rows = False    # the last step had something to run
        self._most = MOST_TEXTS   # lower after the cache was full
        self._stepped = self._flushed = 0.0   # times of the last step and the last flush

    @property
    def is_busy(self) -> bool:
        return bool(self.running or self.waiting)

    def add(self, job: Job) -> None:
        self.waiting.append(job)

    def step(self) -> None:
        """Runs one step for all texts that run, and sends chunks to readers."""
        self._flush(self._advance())

    def _advance(self) -> bool:
        """Runs one step. True: a text has begun or ended, so readers are woken at once."""
        for job in self.running:
            if job.cancelled:
                self.drop_cancelled()
                break
        has_begun = bool(self.waiting)
        if has_begun:
            self.drop_cancelled()
            self._admit()
        running = self.running
        if len(running) == 1 and running[0].runs_alone and not self.waiting:
            self._try(running[0], running[0].run_alone)
        elif running:
            self._step_together()
        n_done = 0
        for job in running:
            n_done += job.done
        if n_done:
            self.running = [job for job in self.running if not job.done]
            self._most = min(MOST_TEXTS, self._most + n_done)
        return has_begun or n_done > 0

    def _flush(self, now: bool) -> None:
        """Sends chunks to readers. Waking a thread takes as long as a quick step, so several quick steps share a
        wake-up."""
        before, self._stepped = self._stepped, perf_counter()
        if now or self._stepped - before > HOLD_S / 2 or self._stepped - self._flushed > HOLD_S:
            self._flushed = self._stepped
            flush_sinks()

    def _step_together(self) -> None:
        """Submits a step, and takes the tokens of the one before it. While a device with a queue runs the step, tokens
        are read. Where there is no queue, the step has run, and its tokens are taken."""
        for job in self.running:
            if job.asked:
                self._try(job, job.run_ahead)
            elif job.speculate is not None and job.runs_alone:
                self._try(job, job.run_alone)
            else:
                self._try(job, job.ask)
        asked = [job for job in self.running if job.asked and not job.done]
        if not asked:
            return
        had_rows, self._had_rows = self._had_rows, False
        status = lib.frit_engine_advance(self.engine, byref(self._n_rows))
        if status == c.FRIT_E_LIMIT:
            self._make_room(last_error(status))
            return
        if status:
            self.fail_all(last_error(status))
            return
        self._had_rows = self._n_rows.value > 0
        landed = False
        for job in asked:
            if job.has_token:
                landed = True
                self._try(job, job.land)
        is_stuck = any(not job.done and job.pictures is None for job in asked)   # pictures are encoded without rows
        if not landed and not had_rows and not self._had_rows and is_stuck:
            self.fail_all(InternalError("a step had nothing to run, and texts wait for it"))

    def _try(self, job: Job, what: Callable[[], None]) -> None:
        try:
            if job.done:
                return
            if job.draft is None:
                what()
            else:
                with job.draft.lent():
                    what()
        except BaseException as failure:  # noqa: BLE001 - raised in the thread that reads the stream
            if not job.done:
                job.fail(failure)

    def drop_cancelled(self) -> None:
        for job in [*self.running, *self.waiting]:
            if job.cancelled:
                self._try(job, lambda job=job: job.finish("cancelled"))  # type: ignore[misc]
        self.running = [job for job in self.running if not job.done]
        self.waiting = deque(job for job in self.waiting if not job.done)

    def _admit(self) -> None:
        while self.waiting and len(self.running) < self._most:
            job = self.waiting.popleft()
            self._try(job, job.start)
            if not job.done:
                self.running.append(job)

    def _make_room(self, failure: FritError) -> None:
        """Preempts the text that began last when all texts wait for room in the cache. It runs again later."""
        for job in reversed(self.running):
            if job.lender is None and not job.done and len(self.running) > 1:
                job.release()
                self.running.remove(job)
                self._most = max(1, len(self.running))
                self.waiting.appendleft(job)
                return
        self._fail(self.running, failure)

    def fail_all(self, failure: BaseException) -> None:
        self._fail([*self.running, *self.waiting], failure)
        self.running, self.waiting = [], deque()

    @staticmethod
    def _fail(jobs: Sequence[Job], failure: BaseException) -> None:
        for job in jobs:
            if not job.done:
                job.fail(copy_of(failure) if isinstance(failure, FritError) else failure)
