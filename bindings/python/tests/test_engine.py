# SPDX-License-Identifier: MIT
"""Models, engines, sessions, streams."""

from __future__ import annotations

import gc
import json
import re
import subprocess
import threading
from pathlib import Path

import pytest

import frit
from conftest import PROMPT


def greedy(engine: frit.Engine, prompt: str = PROMPT, n: int = 24) -> list[int]:
    return engine.generate(prompt, max_tokens=n, temperature=0).result().tokens


def test_text_of_tokens(model: frit.Model) -> None:
    tokens = model.tokenize("The king's daughter — 3 wishes")
    assert model.detokenize(tokens) == "The king's daughter — 3 wishes"
    assert model.info.architecture == "llama" and model.info.n_vocab == 8192
    assert model.metadata["general.architecture"] == "llama"


def test_errors_are_exceptions_with_sentences(model: frit.Model, model_path: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing.gguf"):
        frit.Model("nothing.gguf")
    (tmp_path / "bad.gguf").write_bytes(b"GGUF and then nothing")
    with pytest.raises(frit.FormatError):
        frit.Model(tmp_path / "bad.gguf")
    with pytest.raises(TypeError, match="did you mean 'top_k'"):
        frit.Sampler(model, topk=3)
    with pytest.raises(frit.InvalidError):
        frit.Sampler(model, top_p=7)
    with pytest.raises(frit.InvalidError):
        frit.Engine(model, cache_type_k="nothing")


def test_greedy_tokens_are_the_commands(engine: frit.Engine, model: frit.Model, model_path: str, command: str) -> None:
    made = subprocess.run([command, "run", "-m", model_path, "--raw", "--temp", "0", "-n", "24", "-c", "512", "--json",
                           "-p", PROMPT], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    theirs = json.loads(made.stdout)
    answer = engine.generate(PROMPT, max_tokens=24, temperature=0).result()
    assert answer.text == theirs["text"]
    assert len(answer.tokens) == 24


def test_ways_of_generating_give_the_same_tokens(engine: frit.Engine, model: frit.Model) -> None:
    expected = greedy(engine)
    sampler = frit.Sampler(model, temperature=0)
    session = engine.session()
    session.push(PROMPT)
    assert [session.next(sampler) for _ in range(24)] == expected
    by_logits = engine.session()
    tokens = model.tokenize(PROMPT)
    by_logits.push(tokens)
    for token in expected[:6]:
        logits = by_logits.logits()
        assert max(range(len(logits)), key=lambda i: logits[i]) == token
        by_logits.push([token])
    assert [a.tokens for a in engine.generate_batch([PROMPT] * 3, max_tokens=24, temperature=0)] == [expected] * 3
    assert engine.generate(PROMPT, max_tokens=24, temperature=0, speculate="ngram").result().tokens == expected


def test_sampled_texts_follow_their_seed(engine: frit.Engine) -> None:
    texts = [engine.generate(PROMPT, max_tokens=12, temperature=4.0, top_p=1.0, min_p=0.0, seed=seed).text()
             for seed in (7, 7, 8)]
    assert texts[0] == texts[1] != texts[2]


def test_stop_texts_are_held_back(engine: frit.Engine) -> None:
    whole = engine.generate(PROMPT, max_tokens=24, temperature=0).text()
    stop = whole[20:27]
    chunks = list(engine.generate(PROMPT, max_tokens=24, temperature=0, stop=stop))
    assert "".join(map(str, chunks)) == whole[: whole.index(stop)]
    assert chunks[-1].finish_reason == "stop" and chunks[-1].usage is not None


def test_full_context_ends_a_text(model: frit.Model) -> None:
    with frit.Engine(model, n_ctx=128) as engine:
        answer = engine.generate(PROMPT, temperature=0, ignore_end=True).result()
        assert answer.finish_reason == "length"
        assert answer.usage.prompt + len(answer.tokens) == 128
        with pytest.raises(frit.LimitError):
            engine.generate([5] * 140).result()
        longer = engine.generate(PROMPT, temperature=0, ignore_end=True, max_tokens=200, context_shift=32)
        assert len(longer.result().tokens) == 200


def test_logprobs(engine: frit.Engine) -> None:
    answer = engine.generate(PROMPT, max_tokens=5, temperature=0, logprobs=3).result()
    assert [entry.token for entry in answer.logprobs] == answer.tokens
    for entry in answer.logprobs:
        assert entry.top[0] == (entry.token, entry.logprob) and len(entry.top) == 3 and entry.logprob < 0


def test_stage_in_python(engine: frit.Engine) -> None:
    expected = greedy(engine, n=1)[0]

    def ban(candidates: frit.Candidates) -> None:
        candidates.ban([expected])

    banned = engine.generate(PROMPT, max_tokens=6, temperature=0, stage=ban).result().tokens
    assert len(banned) == 6 and expected not in banned

    def fail(candidates: frit.Candidates) -> None:
        raise KeyError("a stage's own mistake")

    with pytest.raises(KeyError, match="a stage's own mistake"):
        engine.generate(PROMPT, max_tokens=6, stage=fail).result()
    assert greedy(engine, n=1) == [expected]


def test_grammar(engine: frit.Engine, model: frit.Model) -> None:
    grammar = frit.Grammar(model, 'root ::= " yes" | " no"')
    answer = engine.generate("Is it so?", grammar=grammar, seed=1).result()
    assert answer.text.strip() in ("yes", "no") and answer.finish_reason == "stop"
    with pytest.raises(frit.InvalidError):
        frit.Grammar(model, "root ::= (")
    number = {"begin": "", "content": {"type": "regex", "pattern": "[0-9]{1,3}"}, "end": "!"}
    tags = frit.Grammar(model, {"type": "structural_tag", "format": {"type": "tag", **number}}, kind="tags")
    assert re.fullmatch("[0-9]{1,3}!", engine.generate("How many?", grammar=tags, seed=1).result().text.strip())
    with pytest.raises(frit.InvalidError, match="neither structures nor a format"):
        frit.Grammar(model, {}, kind="tags")


def test_fork_truncate_save(engine: frit.Engine, model: frit.Model, tmp_path: Path) -> None:
    sampler = frit.Sampler(model, temperature=0)
    session = engine.session()
    session.push(PROMPT)
    session.note = b"a note"
    session.save(tmp_path / "s")
    state = session.state()
    fork = session.fork()
    expected = [session.next(sampler) for _ in range(8)]
    assert [fork.next(sampler) for _ in range(8)] == expected
    loaded = engine.session()
    loaded.load(tmp_path / "s")
    assert loaded.note == b"a note" and loaded.tokens == model.tokenize(PROMPT)
    assert [loaded.next(sampler) for _ in range(8)] == expected
    loaded.set_state(state)
    assert [loaded.next(sampler) for _ in range(8)] == expected
    loaded.truncate(len(model.tokenize(PROMPT)))
    assert len(loaded) == len(model.tokenize(PROMPT))
    with pytest.raises(frit.FormatError):
        loaded.set_state(b"nothing of ours")


def test_session_generates_and_keeps_its_answer(engine: frit.Engine, model: frit.Model) -> None:
    session = engine.session()
    first = session.generate(PROMPT, max_tokens=8, temperature=0).result()
    second = session.generate(max_tokens=8, temperature=0).result()
    assert first.tokens + second.tokens == greedy(engine, n=16)
    assert session.tokens == model.tokenize(PROMPT) + first.tokens + second.tokens


def test_two_engines_advance_in_two_threads(model: frit.Model) -> None:
    """Each thread waits for a token of the other engine before its next token, so both must be able to run at once."""
    engines = [frit.Engine(model, n_ctx=256, n_threads=1) for _ in range(2)]
    expected = greedy(engines[0], n=12)
    meet = threading.Barrier(2, timeout=60)
    found: list[list[int]] = [[], []]

    def run(i: int) -> None:
        for chunk in engines[i].generate(PROMPT, max_tokens=12, temperature=0):
            found[i] += chunk.tokens
            if not chunk.finish_reason:
                meet.wait()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert found == [expected, expected]
    for engine in engines:
        engine.close()


def test_many_threads_use_one_engine(engine: frit.Engine) -> None:
    expected = greedy(engine, n=10)
    found: list[list[int]] = []
    threads = [threading.Thread(target=lambda: found.append(greedy(engine, n=10))) for _ in range(12)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):   # direct calls run while the worker is busy
        session = engine.session()
        session.push([1, 2, 3])
        session.run()
        session.close()
    assert found == [expected] * 12


def test_dropped_streams_free_their_sessions(model: frit.Model) -> None:
    with frit.Engine(model, n_ctx=128, n_sessions=1, prefix_cache=False) as engine:
        for _ in range(6):   # each text needs more than a sixth of the cache, which is lost if the session is not freed
            stream = engine.generate(PROMPT, ignore_end=True)
            for _, _ in zip(range(30), stream):
                pass
            del stream
            gc.collect()
        answer = engine.generate(PROMPT, ignore_end=True, temperature=0).result()
        assert answer.usage.prompt + len(answer.tokens) == 128
        assert engine.n_streams == 0


def test_full_cache_runs_texts_again_later(model: frit.Model) -> None:
    with frit.Engine(model, n_ctx=128, n_sessions=1) as engine:
        expected = greedy(engine, n=100)
        answers = engine.generate_batch([PROMPT] * 4, max_tokens=100, temperature=0)
        assert [answer.tokens for answer in answers] == [expected] * 4


def test_closed_engine(model: frit.Model) -> None:
    engine = frit.Engine(model, n_ctx=128)
    session = engine.session()
    stream = engine.generate(PROMPT, ignore_end=True)
    next(stream)
    engine.close()
    with pytest.raises(frit.InvalidError, match="closed"):
        for _ in stream:
            pass
    with pytest.raises(frit.InvalidError, match="closed"):
        session.run()
    with pytest.raises(frit.InvalidError, match="closed"):
        engine.generate(PROMPT)
    session.close()


@pytest.mark.parametrize(("step_us", "least", "most"), [(50, 6, 14), (150, 32, 36)])
def test_quick_steps_share_a_wake(engine: frit.Engine, monkeypatch: pytest.MonkeyPatch, step_us: int, least: int,
                                  most: int) -> None:
    from frit import _jobs

    start, times, wakes = _jobs.perf_counter(), iter(range(1, 10**6)), []
    monkeypatch.setattr(_jobs, "perf_counter", lambda: start + next(times) * step_us * 1e-6)
    flush = _jobs.flush_sinks
    monkeypatch.setattr(_jobs, "flush_sinks", lambda: (wakes.append(1), flush()))
    chunks = list(engine.generate(PROMPT, max_tokens=32, temperature=0, ignore_end=True))
    assert sum(len(chunk.tokens) for chunk in chunks) == 32 and len(chunks) >= 32   # a chunk for each step
    assert least <= len(wakes) <= most, wakes
