# SPDX-License-Identifier: MIT
"""Who may call an engine: one thread at a time.

A call takes the engine's lock where it is free, and runs in the caller's own thread, which costs less than a microsecond.
Where streams are generated, the engine's worker thread holds the lock, and calls of others are put into its queue and
run between two steps.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Callable

from ._library import lib
from ._sinks import flush_sinks
from .errors import InvalidError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ._jobs import Job, Scheduler


class Core:
    """The library's engine, its lock, its queue and its worker. Sessions and jobs keep it alive."""

    def __init__(self, handle: ctypes.c_void_p, keep: Any) -> None:
        self.handle = handle
        self.keep = keep   # the model, and engines of draft models
        self.closed = False
        self._lock = threading.Lock()
        self._owner = 0
        self._wanted = False
        self._dead: deque[ctypes.c_void_p] = deque()
        self._inbox: SimpleQueue[Any] = SimpleQueue()
        self._worker: threading.Thread | None = None
        self._starting = threading.Lock()
        self._scheduler: Scheduler | None = None

    # ------------------------------------------------------------------ calls

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """function(*arguments), while no other thread uses the engine."""
        if self._owner == threading.get_ident():
            raise InvalidError("an engine cannot be called from a function that it calls itself")
        if not self._wanted and self._lock.acquire(False):
            self._owner = threading.get_ident()
            try:
                if self.closed:
                    raise InvalidError("the engine is closed")
                return function(*arguments)
            finally:
                self._release()
        return self.submit(lambda: function(*arguments)).result()

    def submit(self, function: Callable[[], Any]) -> Future[Any]:
        """The same by the worker, soon."""
        from concurrent.futures import Future

        future: Future[Any] = Future()
        self._put((function, future))
        return future

    def add(self, job: Job) -> None:
        """Gives the worker a text to generate."""
        self._put(job)

    def wake(self) -> None:
        """Tells the worker that a job was cancelled."""
        if self._worker is not None:
            self._inbox.put(_WAKE)

    def free_session(self, handle: ctypes.c_void_p) -> None:
        """Frees a session, now or when the engine is between two calls. For finalizers: never waits."""
        self._dead.append(handle)
        if self._lock.acquire(False):
            self._owner = threading.get_ident()
            self._release()
        elif self._worker is not None:
            self._inbox.put(_WAKE)

    def _bury(self) -> None:
        while self._dead:
            try:
                handle = self._dead.popleft()
            except IndexError:
                return
            lib.frit_session_free(handle)

    def _release(self) -> None:
        self._bury()
        self._owner = 0
        self._lock.release()

    # ------------------------------------------------------------------ the worker

    def _put(self, item: Any) -> None:
        with self._starting:
            if self.closed:
                raise InvalidError("the engine is closed")
            if self._worker is None:
                from ._jobs import Scheduler

                self._scheduler = Scheduler(self)
                self._worker = threading.Thread(target=self._run, name="frit-engine", daemon=True)
                self._worker.start()
            self._inbox.put(item)

    def _run(self) -> None:
        scheduler = self._scheduler
        assert scheduler is not None
        while True:
            item = self._inbox.get()
            self._wanted = True
            self._lock.acquire()
            self._wanted = False
            self._owner = threading.get_ident()
            try:
                if not self._serve(item, scheduler):
                    self._end()
                    return
            finally:
                self._release()

    def _serve(self, item: Any, scheduler: Scheduler) -> bool:
        """Runs what is in the queue, and steps, until nothing is left to do. False: the engine closes."""
        while True:
            if item is _STOP:
                scheduler.fail_all(InvalidError("the engine was closed"))
                return False
            flush_sinks()   # a call may take its time
            self._handle(item, scheduler)
            while self._inbox.empty():   # this thread alone takes from it
                if not scheduler.is_busy:
                    flush_sinks()
                    return True
                if self._dead:
                    self._bury()
                scheduler.step()
            item = self._inbox.get()

    def _handle(self, item: Any, scheduler: Scheduler) -> None:
        if item is _WAKE:
            self._bury()
        elif isinstance(item, tuple):
            function, future = item
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function())
                except BaseException as failure:  # noqa: BLE001 - passed on to who waits
                    future.set_exception(failure)
        else:
            scheduler.add(item)

    def close(self) -> None:
        """Ends the worker and frees the engine. Streams end with an error; sessions cannot run any more."""
        with self._starting:
            if self.closed:
                return
            self.closed = True
            worker = self._worker
            if worker is not None:
                self._inbox.put(_STOP)
        if worker is not None:
            if worker is not threading.current_thread():
                worker.join()
        elif self._owner != threading.get_ident():
            with self._lock:
                self._end()

    def _end(self) -> None:
        self._drain()
        self._bury()
        lib.frit_engine_free(self.handle)

    def _drain(self) -> None:
        while True:
            try:
                item = self._inbox.get_nowait()
            except Empty:
                flush_sinks()
                return
            failure = InvalidError("the engine was closed")
            if isinstance(item, tuple):
                item[1].set_exception(failure)
            elif item not in (_STOP, _WAKE):
                item.fail(failure)


class _Mark:
    pass


_STOP, _WAKE = _Mark(), _Mark()
