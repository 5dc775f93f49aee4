# SPDX-License-Identifier: MIT
"""Asynchronous streams."""

from __future__ import annotations

import asyncio
import gc

import frit
from conftest import PROMPT


def test_fifty_streams(model: frit.Model) -> None:
    prompts = [f"{PROMPT} there {'lived' if i % 2 else 'was'} {i}" for i in range(50)]

    async def run(engine: frit.Engine) -> list[list[int]]:
        streams = [engine.agenerate(prompt, max_tokens=12, temperature=0, ignore_end=True) for prompt in prompts]
        most = 0
        async for _ in streams[0]:
            most = max(most, engine.n_streams)
        assert most > 40
        return [(await stream.result()).tokens for stream in streams]

    with frit.Engine(model, n_ctx=128, n_sessions=50) as engine:
        found = asyncio.run(run(engine))
        expected = [engine.generate(prompt, max_tokens=12, temperature=0, ignore_end=True).result().tokens for prompt in prompts]
    # Sums of rows that share a step may be rounded differently, so a few texts may differ where two tokens are almost
    # equally likely.
    assert sum(a == b for a, b in zip(found, expected)) >= 45
    assert all(len(tokens) == 12 for tokens in found)


def test_cancelling_frees_pages(model: frit.Model) -> None:
    """Cancels 50 texts each of which would fill the cache; afterwards a text can fill it."""

    async def endless(engine: frit.Engine, begun: asyncio.Semaphore) -> None:
        async for _ in engine.agenerate(PROMPT, ignore_end=True, context_shift=32):
            begun.release()

    async def run(engine: frit.Engine) -> frit.Answer:
        begun = asyncio.Semaphore(0)
        tasks = [asyncio.create_task(endless(engine, begun)) for _ in range(50)]
        for _ in range(60):
            await asyncio.wait_for(begun.acquire(), 60)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(e, asyncio.CancelledError) for e in ended)
        answer = await asyncio.wait_for(engine.agenerate(PROMPT, ignore_end=True, temperature=0).result(), 60)
        assert engine.n_streams == 0
        return answer

    with frit.Engine(model, n_ctx=256, n_sessions=2, prefix_cache=False) as engine:
        answer = asyncio.run(run(engine))
        assert answer.usage.prompt + len(answer.tokens) == 256


def test_dropped_and_closed_streams(engine: frit.Engine) -> None:
    async def run() -> None:
        stream = engine.agenerate(PROMPT, ignore_end=True, context_shift=32)
        await stream.__anext__()
        del stream
        gc.collect()
        async with engine.achat_stream("Tell me a tale.", ignore_end=True, context_shift=32) as other:
            await other.__anext__()
        while engine.n_streams:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_others_of_asyncio(engine: frit.Engine) -> None:
    async def run() -> None:
        text, answer, vectors = await asyncio.gather(
            engine.agenerate(PROMPT, max_tokens=8, temperature=0).text(),
            engine.achat("Tell me a tale.", max_tokens=8, temperature=0, schema={"enum": ["yes", "no"]}),
            engine.aembed(["one", "two"]))
        assert text == engine.generate(PROMPT, max_tokens=8, temperature=0).text()
        assert answer.parsed in ("yes", "no")
        assert vectors.tolist() == engine.embed(["one", "two"]).tolist()
        try:
            await engine.agenerate([99999], max_tokens=3).result()
        except frit.InvalidError:
            return
        raise AssertionError("an id outside the vocabulary was taken")

    asyncio.run(asyncio.wait_for(run(), 60))
