# SPDX-License-Identifier: MIT
"""Passes chunks to queues of threads and of event loops, and has the streams that read them."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Generic, Iterator, TypeVar

from ._handle import Unique
from .results import Answer, Chunk

if TYPE_CHECKING:
    import asyncio

    from ._jobs import Job

T = TypeVar("T")   # the type of the answer's object
Sink = Callable[[Any], None]   # takes chunks, and at the end None or an exception


class _Collected(threading.local):
    """Chunks that no reader has yet. One call wakes a reader for all its chunks."""

    def __init__(self) -> None:
        self.queues: list[tuple[SimpleQueue[list[Any]], list[Any]]] = []
        self.loops: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Queue[Any], Any]]] = {}


_collected = _Collected()


def thread_sink(queue: SimpleQueue[list[Any]]) -> Sink:
    """Returns a sink that puts lists of items into a queue when `flush_sinks` is called."""
    held: list[Any] = []

    def put(item: Any) -> None:
        if not held:
            _collected.queues.append((queue, held))
        held.append(item)

    return put


def loop_sink(loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[Any]) -> Sink:
    """Returns a sink that puts items into a queue of an event loop when `flush_sinks` is called."""

    def put(item: Any) -> None:
        _collected.loops.setdefault(loop, []).append((queue, item))

    return put


def _deliver(items: list[tuple[asyncio.Queue[Any], Any]]) -> None:
    for queue, item in items:
        queue.put_nowait(item)


def flush_sinks() -> None:
    """Gives readers the chunks that the calling thread has collected for them."""
    if _collected.queues:
        queues, _collected.queues = _collected.queues, []
        for queue, held in queues:
            queue.put(held[:])
            held.clear()
    if _collected.loops:
        loops, _collected.loops = _collected.loops, {}
        for loop, items in loops.items():
            try:
                loop.call_soon_threadsafe(_deliver, items)
            except RuntimeError:
                pass   # the loop is closed: it has no readers any more


class _Source(Unique, Generic[T]):
    """The common part of both kinds of streams: reads a job once. A job that has ended is dropped, and with it its
    engine."""

    def __init__(self, job: Job) -> None:
        self._job: Job | None = job
        self._answer: Answer[T] = Answer(schema=job.schema)
        self._read: list[Chunk] = []   # chunks that `_answer` does not have yet
        self._over = False

    @property
    def answer(self) -> Answer[T]:
        """The answer as far as it was read."""
        if self._read:
            self._answer.extend(self._read)
            self._read = []
        return self._answer

    def _cancel(self) -> None:
        self._over = True
        job, self._job = self._job, None
        if job is not None and not job.done:
            job.cancelled = True
            job.engine._core.wake()

    def _take(self, item: Any) -> Chunk | None:
        if item is None or isinstance(item, BaseException):
            self._over = True
            self._job = None
            if item is None:
                return None
            try:
                raise item
            finally:
                del item   # the exception's traceback has this frame
        self._read.append(item)
        return item  # type: ignore[no-any-return]

    def __del__(self) -> None:
        if not self._over:
            self._cancel()


class Stream(_Source[T]):
    """An answer while it is generated: an iterator of chunks. Closing or dropping it stops the answer and frees its
    session.

    `text()` and `result()` read to the end.
    """

    def __init__(self, job: Job, queue: SimpleQueue[list[Any]]) -> None:
        super().__init__(job)
        self._queue = queue
        self._ready: list[Any] = []   # in reverse order

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        if self._over:
            raise StopIteration
        if not self._ready:
            assert self._job is not None
            core = self._job.engine._core
            if core.may_wait:
                self._ready = self._queue.get()
            else:
                with core.waits():
                    self._ready = self._queue.get()
            self._ready.reverse()
        chunk = self._take(self._ready.pop())
        if chunk is None:
            raise StopIteration
        return chunk

    def close(self) -> None:
        """Stops the answer."""
        self._cancel()

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def result(self) -> Answer[T]:
        """Reads to the end and returns the answer."""
        for _ in self:
            pass
        return self.answer

    def text(self) -> str:
        """Reads to the end and returns the answer's text."""
        return self.result().text


class AsyncStream(_Source[T]):
    """An answer while it is generated, for asyncio: an asynchronous iterator of chunks. Cancelling the task that reads
    it stops the answer and frees its session; so does `aclose()`."""

    def __init__(self, job: Job, queue: asyncio.Queue[Any]) -> None:
        super().__init__(job)
        self._queue = queue

    def __aiter__(self) -> AsyncIterator[Chunk]:
        return self

    async def __anext__(self) -> Chunk:
        from asyncio import CancelledError

        if self._over:
            raise StopAsyncIteration
        assert self._job is not None
        if self._job.engine._core.is_foreign:
            with self._job.engine._core.waits():   # raises InvalidError with the reason
                pass
        try:
            chunk = self._take(await self._queue.get())
        except CancelledError:
            self._cancel()
            raise
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        """Stops the answer."""
        self._cancel()

    async def __aenter__(self) -> AsyncStream[T]:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._cancel()

    async def result(self) -> Answer[T]:
        """Reads to the end and returns the answer."""
        async for _ in self:
            pass
        return self.answer

    async def text(self) -> str:
        """Reads to the end and returns the answer's text."""
        return (await self.result()).text
