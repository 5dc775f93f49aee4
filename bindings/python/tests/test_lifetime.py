# SPDX-License-Identifier: MIT
"""Objects are freed when they should be, without the cycle collector. A call that would use freed memory, or wait for
ever, is refused."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import weakref
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

import frit
from conftest import PROMPT, ROOT
from frit.llama_cpp import Llama, LogitsProcessorList

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "bindings" / "python")}
ENDLESS = {"ignore_end": True, "context_shift": 32}


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def program(text: str, *arguments: str, seconds: int = 120) -> str:
    """Runs a program that must end without an error in time, and returns its output."""
    made = subprocess.run([sys.executable, "-c", textwrap.dedent(text), *arguments], env=ENVIRONMENT, timeout=seconds,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout


# ------------------------------------------------------------------ freed with the last reference


def by_stream(engine: frit.Engine) -> None:
    for _ in engine.generate(PROMPT, max_tokens=3):
        pass


def by_finished_stream_that_is_kept(engine: frit.Engine) -> Any:
    stream = engine.generate(PROMPT, max_tokens=3)
    stream.text()
    return stream


def by_dropped_stream(engine: frit.Engine) -> None:
    next(engine.generate(PROMPT, **ENDLESS))


def by_own_sampler(engine: frit.Engine) -> Any:
    sampler = frit.Sampler(engine.model, temperature=0)
    engine.generate(PROMPT, max_tokens=3, sampler=sampler).text()
    assert len(sampler.timeline()) == len(engine.model.tokenize(PROMPT)) + 3


def by_stage(engine: frit.Engine) -> None:
    engine.generate(PROMPT, max_tokens=3, stage=lambda candidates: None).text()


def failure_of(stream: frit.Stream) -> BaseException:
    try:
        stream.text()
    except BaseException as failure:  # noqa: BLE001
        return failure
    raise AssertionError


def by_failed_stage(engine: frit.Engine) -> None:
    def fail(candidates: frit.Candidates) -> None:
        raise KeyError("mine")

    assert isinstance(failure_of(engine.generate(PROMPT, max_tokens=3, stage=fail)), KeyError)


def by_failed_text(engine: frit.Engine) -> None:
    assert isinstance(failure_of(engine.generate([99999])), frit.InvalidError)


def by_failed_call(engine: frit.Engine) -> None:
    session = engine.session()
    with pytest.raises(frit.InvalidError):
        session.push([99999])
    with pytest.raises(frit.InvalidError):
        frit.Sampler(engine.model, temperature=0, stage=lambda candidates: 0).sample(engine_logits(session))


def engine_logits(session: frit.Session) -> Any:
    session.push(PROMPT)
    return session.logits()


def by_calls_of_the_worker(engine: frit.Engine) -> None:
    stream = engine.generate(PROMPT, **ENDLESS)
    next(stream)
    assert engine.embed("a").shape and len(engine.session()) == 0
    with pytest.raises(frit.InvalidError):
        engine.embed(["x"], pooling="sum")


def by_chat(engine: frit.Engine) -> None:
    assert engine.chat("A king?", schema={"enum": ["yes", "no"]}).text in ('"yes"', '"no"')


def by_sessions(engine: frit.Engine) -> None:
    session = engine.session()
    session.generate(PROMPT, max_tokens=3).text()
    fork = session.fork()
    assert fork.next(frit.Sampler(engine.model, temperature=0)) >= 0 and fork.hidden_states([1, 2]).shape
    session.logits(copy=False)


def by_asyncio(engine: frit.Engine) -> None:
    async def run() -> None:
        await engine.agenerate(PROMPT, max_tokens=3).text()
        stream = engine.agenerate(PROMPT, **ENDLESS)
        task = asyncio.create_task(stream.result())
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await engine.aembed(["x"])
        with pytest.raises(frit.InvalidError):
            await engine.agenerate([99999]).text()

    asyncio.run(run())


def by_speculation(engine: frit.Engine) -> None:
    draft = frit.Engine(engine.model, n_ctx=128)
    engine.generate(PROMPT, max_tokens=8, speculate=draft).text()
    session = engine.session()
    session.speculate(draft)
    session.push(PROMPT)
    session.next_tokens(frit.Sampler(engine.model, temperature=0))


USES: list[Callable[[frit.Engine], Any]] = [
    by_stream, by_finished_stream_that_is_kept, by_dropped_stream, by_own_sampler, by_stage, by_failed_stage,
    by_failed_text,    by_failed_call, by_calls_of_the_worker, by_chat, by_sessions, by_asyncio, by_speculation]


def gone(*references: weakref.ref[Any]) -> bool:
    """True if all objects are freed within five seconds. The worker may be in a step when the last reference is
    dropped."""
    for _ in range(500):
        if all(reference() is None for reference in references):
            return True
        threading.Event().wait(0.01)
    return False


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_an_engine_goes_with_its_last_name(use: Callable[[frit.Engine], Any], model_path: str, no_collector: None) -> None:
    engine = frit.load(model_path, n_ctx=128, n_sessions=2)
    references = [weakref.ref(x) for x in (engine, engine._core, engine.model)]
    kept = use(engine)
    del engine
    assert gone(*references)
    del kept


def test_a_llama_goes_with_its_last_name(model_path: str, no_collector: None) -> None:
    pytest.importorskip("numpy")

    def same(ids: Any, scores: Any) -> Any:
        return scores

    llm = Llama(model_path, n_ctx=256, verbose=False)
    references = [weakref.ref(x) for x in (llm, llm._engine, llm._model)]
    llm(PROMPT, max_tokens=3, logits_processor=LogitsProcessorList([same]), stopping_criteria=lambda ids, logits: len(ids) > 6)
    next(llm.create_chat_completion([{"role": "user", "content": "?"}], stream=True))
    for token in llm.generate(llm.tokenize(PROMPT.encode()), logits_processor=LogitsProcessorList([same])):
        break
    llm.save_state()
    del llm
    assert gone(*references)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="the address sanitizer keeps freed memory")
@pytest.mark.parametrize("make", ["frit.load(path, n_ctx=256)", "frit.llama_cpp.Llama(path, n_ctx=256, verbose=False)"])
def test_loading_again_and_again_takes_no_more_memory(make: str, model_path: str) -> None:
    said = program(f"""
        import gc, sys, frit, frit.llama_cpp
        gc.disable()
        path = sys.argv[1]
        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20
        for i in range(8):
            x = {make}
            x.generate("Once", max_tokens=4).text() if hasattr(x, "embed") and not hasattr(x, "eval") else x("Once", max_tokens=4)
            print(resident())
        """, model_path)
    sizes = [float(line) for line in said.split()]
    # Each model is opened before the previous one is freed.
    assert max(sizes[3:]) < max(sizes[:3]) + 16, sizes


def test_bytes_of_a_model_go_with_it(model_path: str, no_collector: None) -> None:
    data = Path(model_path).read_bytes()
    n_before = sys.getrefcount(data)
    grammar = frit.Grammar(frit.Model.from_bytes(data), 'root ::= "a"')
    assert sys.getrefcount(data) > n_before   # the grammar has the model's vocabulary
    del grammar
    assert sys.getrefcount(data) == n_before


# ------------------------------------------------------------------ calls after freeing


def test_a_session_may_be_closed_under_its_stream(engine: frit.Engine) -> None:
    expected = engine.generate(PROMPT, max_tokens=60, temperature=0, ignore_end=True).result().tokens
    session = engine.session()
    stream = session.generate(PROMPT, max_tokens=60, temperature=0, ignore_end=True)
    next(stream)
    session.close()
    assert stream.result().tokens == expected
    with pytest.raises(frit.InvalidError, match="the session is closed"):
        session.push([1])


def test_a_session_that_generates_is_not_changed(engine: frit.Engine) -> None:
    session = engine.session()
    stream = session.generate(PROMPT, ignore_end=True)
    next(stream)
    sampler = frit.Sampler(engine.model)
    for change in (lambda: session.push([1]), lambda: session.truncate(0), lambda: session.next(sampler), session.run,
                   lambda: session.set_state(b""), lambda: session.generate(PROMPT), session.logits,
                   lambda: session.speculate("ngram"), lambda: session.set_adapters([])):
        with pytest.raises(frit.InvalidError, match="generates a text"):
            change()
    assert len(session) > 0
    stream.close()
    session.truncate(0)
    session.push(PROMPT)
    assert len(session.logits()) == engine.model.info.n_vocab


def test_a_sampler_belongs_to_one_text(engine: frit.Engine, model: frit.Model) -> None:
    sampler = frit.Sampler(model, temperature=0)
    stream = engine.generate(PROMPT, sampler=sampler, **ENDLESS)
    next(stream)
    for use in (lambda: sampler.reset(), lambda: sampler.accept(1), lambda: sampler.set_grammar(None), lambda: sampler.heal([1]),
                lambda: engine.generate(PROMPT, sampler=sampler).text(), lambda: engine.session().next(sampler)):
        with pytest.raises(frit.InvalidError, match="in use by a text"):
            use()
    stream.close()
    while engine.n_streams:
        threading.Event().wait(0.01)
    sampler.reset()


def test_a_draft_model_may_be_closed_and_used_meanwhile(engine: frit.Engine, model: frit.Model) -> None:
    expected = engine.generate(PROMPT, max_tokens=60, temperature=0, ignore_end=True).result().tokens
    draft = frit.Engine(model, n_ctx=256)
    stream = engine.generate(PROMPT, max_tokens=60, temperature=0, ignore_end=True, speculate=draft)
    next(stream)
    other = draft.generate(PROMPT, max_tokens=20, temperature=0).result().tokens
    assert other == expected[:20]
    session = engine.session()
    session.speculate(draft)
    draft.close()
    assert stream.result().tokens == expected
    session.push(PROMPT)
    assert session.next_tokens(frit.Sampler(model, temperature=0))[0] == expected[0]
    for use in (lambda: engine.generate(PROMPT, speculate=draft), lambda: engine.session().speculate(draft)):
        with pytest.raises(frit.InvalidError, match="closed"):
            use()
    with pytest.raises(frit.InvalidError, match="an engine of its own"):
        engine.generate(PROMPT, speculate=engine)


def test_candidates_end_with_their_call(engine: frit.Engine) -> None:
    kept: list[frit.Candidates] = []
    engine.generate(PROMPT, max_tokens=2, stage=lambda candidates: kept.append(candidates)).text()
    assert len(kept) == 2 and len(kept[0]) == 0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_owners_are_not_copied(copied: Callable[[Any], Any], engine: frit.Engine, model: frit.Model) -> None:
    session = engine.session()
    stream = engine.generate(PROMPT, max_tokens=2)
    for owner in (model, engine, session, stream, frit.Sampler(model), frit.Grammar(model, 'root ::= "a"'), engine._core):
        with pytest.raises(TypeError, match=f"^{type(owner).__name__}: it owns memory of the library and cannot be (copied|pickled)"):
            copied(owner)
        with pytest.raises(TypeError):
            copied([owner] if copied is not copy.copy else owner)
    session.push(PROMPT)
    logits = session.logits(copy=False)
    again = copied(logits)
    again = pickle.loads(again) if isinstance(again, bytes) else again
    assert again.tolist() == logits.tolist() and again.address != logits.address


@pytest.mark.parametrize("left", ["thread", "stream", "session", "many", "embed", "stage"])
def test_a_program_ends_while_engines_run(left: str, model_path: str) -> None:
    program("""
        import sys, threading, time, frit
        model = frit.Model(sys.argv[1])
        engine = frit.Engine(model, n_ctx=512, n_sessions=4, n_threads=1)
        left = sys.argv[2]
        def forever():
            while True:
                engine.generate("Once", max_tokens=400, ignore_end=True).text()
        def steps():
            session, sampler = engine.session(), frit.Sampler(model)
            session.push("Once")
            while True:
                session.next(sampler)
        def embeds():
            while True:
                engine.embed(["a text"] * 40)
        def many():
            while True:
                frit.Model(sys.argv[1]).tokenize("a b c " * 1000)
        what = {"thread": forever, "session": steps, "embed": embeds, "many": many}.get(left)
        for _ in range(3 if what else 0):
            threading.Thread(target=what, daemon=True).start()
        if left == "stream":
            stream = engine.generate("Once", ignore_end=True, context_shift=32)
            next(stream)
        if left == "stage":
            stream = engine.generate("Once", ignore_end=True, context_shift=32, stage=lambda c: time.sleep(0.01))
            next(stream)
        time.sleep(0.4)
        """, model_path, left)


# ------------------------------------------------------------------ calls that would wait for ever


def in_time(run: Callable[[], Any]) -> list[Any]:
    """Returns a list with the function's result or exception. The function must end within a minute."""
    found: list[Any] = []

    def work() -> None:
        try:
            found.append(run())
        except BaseException as failure:  # noqa: BLE001
            found.append(failure)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert found, "it waits for ever"
    return found


def test_a_stage_that_calls_its_engine_is_refused(engine: frit.Engine) -> None:
    others = engine.generate(PROMPT, **ENDLESS)
    session = engine.session()
    session.push(PROMPT)
    uses: list[Callable[[], Any]] = [
        lambda: engine.generate("y", max_tokens=2).text(), lambda: engine.chat("y"), lambda: engine.embed("y"),
        lambda: [next(others) for _ in range(5000)], lambda: session.run(), engine.session, engine.close, engine.read_info]
    for use in uses:
        for run in (lambda stage: engine.generate("x", max_tokens=3, stage=stage).text(),
                    lambda stage: session.next(frit.Sampler(engine.model, stage=stage))):
            (failure,) = in_time(lambda: run(lambda candidates: use() and None))
            assert isinstance(failure, frit.InvalidError) and "from a function that it calls itself" in str(failure), (use, failure)
    (failure,) = in_time(lambda: engine.generate("x", max_tokens=3, until=lambda tokens: bool(engine.embed("y"))).text())
    assert isinstance(failure, frit.InvalidError)
    others.close()


def test_engines_whose_stages_call_each_other_are_refused(model: frit.Model) -> None:
    one, two = (frit.Engine(model, n_ctx=128, n_threads=1) for _ in range(2))
    two.generate(PROMPT, max_tokens=1).text()   # starts the worker

    def inner(candidates: frit.Candidates) -> None:
        one.generate("z", max_tokens=1).text()

    def outer(candidates: frit.Candidates) -> None:
        two.generate("y", max_tokens=1, stage=inner).text()

    (failure,) = in_time(lambda: one.generate("x", max_tokens=1, stage=outer).text())
    assert isinstance(failure, frit.InvalidError)
    (text,) = in_time(lambda: one.generate("x", max_tokens=1, stage=lambda c: two.generate("y", max_tokens=1).text() and None).text())
    assert isinstance(text, str)
    (failure,) = in_time(lambda: [s.text() for s in (one.generate("x", speculate=two, max_tokens=40),
                                                     two.generate("x", speculate=one, max_tokens=40))])
    assert isinstance(failure, (list, frit.InvalidError))
    one.close()
    two.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_is_refused_the_engine_and_may_make_its_own(model_path: str) -> None:
    said = program("""
        import os, signal, sys, frit
        model = frit.Model(sys.argv[1])
        engine = frit.Engine(model, n_ctx=256, n_threads=2)
        session = engine.session()
        text = engine.generate("Once", max_tokens=3, temperature=0).text()
        stream = engine.generate("Once", ignore_end=True, context_shift=32)
        next(stream)
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            for use in (lambda: engine.generate("Once").text(), lambda: list(stream), lambda: engine.embed("x"),
                        lambda: session.push([1]), engine.session, lambda: engine.chat("x")):
                try:
                    use()
                except frit.InvalidError as failure:
                    print(str(failure)[:47], flush=True)
            engine.close()
            del session, stream
            other = frit.Engine(model, n_ctx=256, n_threads=2)
            assert other.generate("Once", max_tokens=3, temperature=0).text() == text
            print("ended", flush=True)
            sys.exit(0)   # with all that is done at exit
        assert os.waitpid(child, 0)[1] == 0
        stream.close()
        assert engine.generate("Once", max_tokens=3, temperature=0).text() == text
        """, model_path)
    assert said.split("\n") == ["the engine belongs to the process that made it,"] * 6 + ["ended", ""]
