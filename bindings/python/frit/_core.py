# SPDX-License-Identifier: MIT
"""Ensures that one thread at a time calls an engine.

A call takes the engine's lock if it is free, and runs in the caller's own thread, which costs less than a microsecond.
While streams are generated, the engine's worker thread holds the lock: calls of other threads are put into its queue
and run between two steps.

A call that would wait for ever is refused: a call from a function that the engine itself calls, such as a stage of a
sampler, also when the call comes through other engines; and a call of an engine that another process made, since a fork
does not have its worker.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref
from collections import deque
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, Callable, Iterator

from ._handle import Unique
from ._library import lib
from ._sinks import flush_sinks
from .errors import InvalidError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ._jobs import Job, Scheduler

_WITHIN = "an engine cannot be called from a function that it calls itself"
_CLOSED = "the engine is closed"
_FORKED = "the engine belongs to the process that made it, and this is a fork of it: make an engine here, or start " \
          "processes by spawn"
EXIT_S = 10.0   # seconds that the end of the program waits for engines

callbacks: set[int] = set()   # threads that run a function of the program that an engine called
_waiting: dict[int, Core] = {}   # thread -> the engine for which it waits
_cores: weakref.WeakSet[Core] = weakref.WeakSet()


class _Call:
    """A function that the worker runs for a caller."""

    __slots__ = ("function", "future")

    def __init__(self, function: Callable[[], Any], future: Future[Any]) -> None:
        self.function: Callable[[], Any] | None = function
        self.future: Future[Any] | None = future

    def run(self) -> None:
        """Runs the function. Objects that the function uses are released before the caller continues. The future is not
        in the frames of an exception, which would otherwise keep the caller's frames alive."""
        function, self.function = self.function, None
        future, self.future = self.future, None
        if function is None or future is None or not future.set_running_or_notify_cancel():
            return
        try:
            result = function()
        except BaseException as failure:  # noqa: BLE001 - raised in the thread that waits
            function = None
            future.set_exception(failure)
        else:
            function = None
            future.set_result(result)
        finally:
            del future

    def fail(self, failure: BaseException) -> None:
        if self.future is not None and self.future.set_running_or_notify_cancel():
            self.future.set_exception(failure)


class Core(Unique):
    """The library's engine, its lock, its queue and its worker. Sessions and jobs keep it alive."""

    def __init__(self, handle: ctypes.c_void_p, keep: Any) -> None:
        self.handle = handle
        self.keep = keep           # the model
        self.refusal = ""          # the reason why it cannot be called any more, as an error sentence
        self.is_foreign = False    # made by the process from which this one was forked
        self._lock = threading.Lock()
        self._owner = 0
        self._wanted = False
        self._ended = False
        self._dead: deque[tuple[ctypes.c_void_p, Core | None]] = deque()
        self._inbox: SimpleQueue[Any] = SimpleQueue()
        self._taken: Any = None   # the item of the inbox that the worker handles
        self._worker: threading.Thread | None = None
        self._starting = threading.Lock()
        self._scheduler: Scheduler | None = None
        _cores.add(self)

    # ------------------------------------------------------------------ calls

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Returns function(*arguments). No other thread uses the engine while the function runs."""
        me = get_ident()
        if self._owner == me:
            raise InvalidError(_WITHIN)
        if not self._wanted and self._lock.acquire(False):
            self._owner = me
            try:
                if self.refusal:
                    raise InvalidError(self.refusal)
                return function(*arguments)
            finally:
                self._release()
        future = self.submit(lambda: function(*arguments))
        try:
            with self.waits():
                return future.result()
        finally:
            del future   # the traceback of the future's exception has this frame

    def submit(self, function: Callable[[], Any]) -> Future[Any]:
        """Gives the worker a function to run between two steps."""
        from concurrent.futures import Future

        future: Future[Any] = Future()
        self._put(_Call(function, future))
        return future

    def add(self, job: Job) -> None:
        """Gives the worker a text to generate."""
        self._put(job)

    def wake(self) -> None:
        """Tells the worker that a job was cancelled."""
        if self._worker is not None:
            self._inbox.put(_WAKE)

    @property
    def may_wait(self) -> bool:
        """True if the calling thread can wait for the engine without checking for a deadlock."""
        me = get_ident()
        return self._owner != me and me not in callbacks and not self.is_foreign

    @contextmanager
    def waits(self) -> Iterator[None]:
        """Marks the calling thread as waiting for the engine. Raises InvalidError if the engine waits for that
        thread."""
        if self.is_foreign:
            raise InvalidError(_FORKED)
        me = get_ident()
        _waiting[me] = self
        try:
            core: Core | None = self
            for _ in range(len(_waiting) + 1):
                if core is not None and core._owner == me:
                    raise InvalidError(_WITHIN)
                core = _waiting.get(core._owner) if core is not None else None
            yield
        finally:
            del _waiting[me]

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Holds the engine for a call of another engine, which uses it to guess tokens."""
        if not self._lock.acquire(False):
            with self.waits():
                self._lock.acquire()
        self._owner = get_ident()
        try:
            yield
        finally:
            self._release()

    def free_session(self, handle: ctypes.c_void_p, draft: Core | None = None) -> None:
        """Frees a session now or, if the engine is in a call, after the call. It never waits, so finalizers may call
        it."""
        if self.is_foreign:
            return
        self._dead.append((handle, draft))
        if self._lock.acquire(False):
            self._owner = get_ident()
            self._release()
        elif self._worker is not None:
            self._inbox.put(_WAKE)

    def discard(self, handle: ctypes.c_void_p, draft: Core | None) -> None:
        """Frees a session of the worker. A session with a draft model is freed when the draft model's engine is
        free."""
        if draft is None:
            lib.frit_session_free(handle)
        else:
            self._dead.append((handle, draft))

    def _bury(self, patience: float = 0) -> None:
        for _ in range(len(self._dead)):
            try:
                dead = self._dead.popleft()
            except IndexError:
                return
            handle, draft = dead
            if draft is None or draft._ended:
                lib.frit_session_free(handle)
            elif draft._lock.acquire(timeout=patience):   # its session of the draft model is freed too
                draft._owner = get_ident()
                lib.frit_session_free(handle)
                draft._release()
            else:
                self._dead.append(dead)

    def _release(self) -> None:
        if self._dead:
            self._bury()
        self._owner = 0
        self._lock.release()

    # ------------------------------------------------------------------ the worker

    def _put(self, item: Any) -> None:
        if self._owner == get_ident():
            raise InvalidError(_WITHIN)
        with self._starting:
            if self.refusal:
                raise InvalidError(self.refusal)
            if self._worker is None:
                from ._jobs import Scheduler

                self._scheduler = Scheduler(self.handle)
                self._worker = threading.Thread(target=self._run, name="frit-engine", daemon=True)
                self._worker.start()
            self._inbox.put(item)

    def _run(self) -> None:
        scheduler = self._scheduler
        assert scheduler is not None
        while True:
            self._taken = self._inbox.get()
            self._wanted = True
            self._lock.acquire()
            self._wanted = False
            self._owner = get_ident()
            try:
                if not self._serve(scheduler):
                    self._end()
                    return
            except BaseException as failure:  # noqa: BLE001 - raised in the threads that read streams
                scheduler.fail_all(failure)
                flush_sinks()
            finally:
                self._release()

    def _serve(self, scheduler: Scheduler) -> bool:
        """Runs the calls in the queue and steps until no work is left. False: the engine closes."""
        while True:
            if self._taken is _STOP:
                scheduler.fail_all(InvalidError("the engine was closed"))
                flush_sinks()
                return False
            flush_sinks()   # the item may be a call that takes long
            self._handle(scheduler)
            while self._inbox.empty():   # no other thread takes items
                if not scheduler.is_busy:
                    flush_sinks()
                    return True
                if self._dead:
                    self._bury()
                scheduler.step()
            self._taken = self._inbox.get()

    def _handle(self, scheduler: Scheduler) -> None:
        item, self._taken = self._taken, None
        if item is _WAKE:
            self._bury()
        elif isinstance(item, _Call):
            scheduler.drop_cancelled()   # after this the sessions of cancelled texts are free for the call
            item.run()
        else:
            scheduler.add(item)

    # ------------------------------------------------------------------ the end

    def close(self, patience: float | None = None) -> None:
        """Ends the worker and frees the engine. Streams end with an error; sessions cannot run any more. patience:
        seconds to wait for threads that use the engine; it is not freed if they use it longer."""
        if not self._stop():
            return
        until = None if patience is None else monotonic() + patience
        worker = self._worker
        if worker is not None:
            if worker is not threading.current_thread():
                worker.join(patience)
        elif self._lock.acquire(timeout=-1 if until is None else max(0.0, until - monotonic())):
            self._owner = get_ident()
            self._release_last()

    def _stop(self) -> bool:
        """Refuses all further calls. False: the engine was closed before."""
        with self._starting:
            if self.refusal:
                return False
            self.refusal = _CLOSED
            if self._worker is not None:
                self._inbox.put(_STOP)
            return True

    def check_open(self) -> None:
        if self.refusal:
            raise InvalidError(self.refusal)

    def check_outside(self) -> None:
        """Raises InvalidError if the caller is a function that the engine calls."""
        if self._owner == get_ident():
            raise InvalidError(_WITHIN)

    def _release_last(self) -> None:
        try:
            self._end()
        finally:
            self._release()

    def _end(self) -> None:
        self._drain()
        self._bury(1)
        lib.frit_engine_free(self.handle)
        self._ended = True
        self._scheduler = self.keep = None

    def _drain(self) -> None:
        while True:
            try:
                item = self._inbox.get_nowait()
            except Empty:
                flush_sinks()
                return
            failure = InvalidError("the engine was closed")
            if not isinstance(item, _Mark):
                item.fail(failure)

    def leave(self) -> None:
        """Marks the engine as unusable in a forked process, which does not have the worker. The engine's memory is not
        freed."""
        self.is_foreign, self.refusal = True, _FORKED
        self._lock, self._starting = threading.Lock(), threading.Lock()
        self._owner, self._worker, self._scheduler, self._taken = 0, None, None, None
        self._inbox = SimpleQueue()
        self._dead.clear()


class _Mark:
    pass


_STOP, _WAKE = _Mark(), _Mark()


def _leave_all() -> None:
    callbacks.clear()
    _waiting.clear()
    for core in list(_cores):
        core.leave()


def _close_all() -> None:
    """Closes all engines when the program ends, because threads in the library would use memory that is freed later."""
    until = monotonic() + EXIT_S
    for core in list(_cores):
        core.close(max(0.0, until - monotonic()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)
atexit.register(_close_all)
