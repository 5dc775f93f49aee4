# SPDX-License-Identifier: MIT
"""Wrong arguments raise an exception whose sentence names the argument, and no number is cut."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, Callable

import pytest

import frit
from conftest import PROMPT
from frit._options import ChatOptions, EngineOptions, GenerateOptions, SamplerNumbers, SamplerOptions

BEYOND = 2**32 + 64   # becomes 64 if it is cut to 32 bits

# name: (call, exception, a part of its sentence)
WRONG: dict[str, tuple[Callable[[frit.Engine, frit.Model], Any], type[Exception], str]] = {
    "token beyond 32 bits": (lambda e, m: m.detokenize([2**40]), ValueError, "tokens: found 1099511627776, which is no token"),
    "prompt beyond 32 bits": (lambda e, m: e.generate([BEYOND]), ValueError, "prompt: found 4294967360"),
    "pushed token": (lambda e, m: e.session().push([BEYOND]), ValueError, "tokens: found 4294967360"),
    "accepted token": (lambda e, m: frit.Sampler(m).accept(BEYOND), ValueError, "token: found 4294967360"),
    "piece of token": (lambda e, m: m.token_piece(BEYOND), ValueError, "token: found 4294967360"),
    "end token": (lambda e, m: m.is_end(BEYOND), ValueError, "token: found 4294967360"),
    "bias of token": (lambda e, m: frit.Sampler(m, logit_bias={BEYOND: 1}), ValueError, "logit_bias: found 4294967360"),
    "token of a text to embed": (lambda e, m: e.embed([[BEYOND]]), ValueError, r"texts\[0\]: found 4294967360"),
    "n_ctx": (lambda e, m: frit.Engine(m, n_ctx=BEYOND), ValueError, "n_ctx: found 4294967360, expected 0 to 2147483647"),
    "negative n_ctx": (lambda e, m: frit.Engine(m, n_ctx=-3), ValueError, "n_ctx: found -3, expected 0 or more"),
    "n_threads": (lambda e, m: frit.Engine(m, n_ctx=64, n_threads=2**20), ValueError, "^n_threads: .* expected 0 to 1024"),
    "n_state_copies": (lambda e, m: frit.Engine(m, n_state_copies=BEYOND), ValueError, "n_state_copies: found 4294967360"),
    "rope_scale": (lambda e, m: frit.Model("x", rope_scale=float("nan")), ValueError, "rope_scale: found nan"),
    "yarn_orig_ctx": (lambda e, m: frit.Model("x", yarn_orig_ctx=BEYOND), ValueError, "yarn_orig_ctx: found 4294967360"),
    "max_tokens": (lambda e, m: e.generate("x", max_tokens=-1), ValueError, "max_tokens: found -1, expected 0 or more"),
    "n_keep": (lambda e, m: e.session().truncate(2**64), ValueError, "n_keep: found 18446744073709551616"),
    "weight": (lambda e, m: e.session().set_share(weight=2**32 + 1), ValueError, "weight: found 4294967297, expected 1 to 1000"),
    "context_shift": (lambda e, m: e.generate("x", context_shift=BEYOND), ValueError, "context_shift: found 4294967360"),
    "n_drop": (lambda e, m: e.session().set_shift(32, BEYOND), ValueError, "n_drop: found 4294967360"),
    "max_drafts": (lambda e, m: e.session().speculate(max_drafts=BEYOND), ValueError, "max_drafts: found 4294967360"),
    "logprobs": (lambda e, m: e.generate("x", logprobs=BEYOND), ValueError, "logprobs: found 4294967360, expected 0 to 256"),
    "n_dims": (lambda e, m: e.embed("x", n_dims=2**33), ValueError, "n_dims: found|numbers of each vector"),
    "seed": (lambda e, m: frit.Sampler(m, seed=2**70), ValueError, "seed: found"),
    "first_layer": (lambda e, m: frit.Adapter(m, "x", first_layer=BEYOND), ValueError, "first_layer: found 4294967360"),

    "path with NUL": (lambda e, m: frit.Model("models\0.gguf"), ValueError, "path: .* has a NUL character"),
    "adapter's path with NUL": (lambda e, m: frit.Adapter(m, "a\0b"), ValueError, "path: .* has a NUL character"),
    "session's path with NUL": (lambda e, m: e.session().save("a\0b"), ValueError, "path: .* has a NUL character"),
    "weights cache with NUL": (lambda e, m: frit.Engine(m, weights_cache="a\0b"), ValueError, "weights_cache: .* has a NUL"),
    "type with NUL": (lambda e, m: frit.Model("x", type="q8_0\0"), ValueError, "type: .* has a NUL character"),
    "samplers with NUL": (lambda e, m: frit.Sampler(m, samplers="top-k\0x"), ValueError, "samplers: .* has a NUL character"),
    "breaker with NUL": (lambda e, m: frit.Sampler(m, dry_sequence_breakers=["a\0"]), ValueError, "has a NUL character"),

    "path": (lambda e, m: frit.Model(3), TypeError, "path: found 3, expected a path"),
    "model": (lambda e, m: frit.Engine("model.gguf"), TypeError, "model: found 'model.gguf', expected frit.Model or frit.load"),
    "sampler's model": (lambda e, m: frit.Sampler(e), TypeError, "model: found .* expected frit.Model"),
    "use_mmap": (lambda e, m: frit.Model("x", use_mmap="no"), TypeError, "use_mmap: found 'no', expected True or False"),
    "cache type": (lambda e, m: frit.Engine(m, cache_type_k=3), TypeError, "cache_type_k: found 3, expected a str"),
    "unknown cache type": (lambda e, m: frit.Engine(m, cache_type_k="q4"), ValueError, "^cache_type_k: 'q4' is not one of"),
    "max_tokens as text": (lambda e, m: e.generate("x", max_tokens="3"), TypeError, "max_tokens: found '3', expected an integer"),
    "max_tokens as float": (lambda e, m: e.generate("x", max_tokens=3.5), TypeError, "max_tokens: found 3.5, expected an integer"),
    "prompt": (lambda e, m: e.generate(3), TypeError, "prompt: found 3, expected a str or a sequence of ints"),
    "prompt without tokens": (lambda e, m: e.generate([]), ValueError, r"prompt: found \[\], which has no token"),
    "prompts": (lambda e, m: e.generate_batch("abc"), TypeError, "prompts: found 'abc', expected a sequence"),
    "stop": (lambda e, m: e.generate("x", stop=[3]), TypeError, r"stop: found \[3\], expected a str or a sequence"),
    "temperature": (lambda e, m: e.generate("x", temperature="hot"), TypeError, "temperature: found 'hot', expected a number"),
    "temperature NaN": (lambda e, m: e.generate("x", temperature=float("nan")), ValueError, "temperature: found nan"),
    "top_p": (lambda e, m: e.generate("x", top_p=2), ValueError, "top_p: found 2, expected 0 to 1"),
    "top_k": (lambda e, m: frit.Sampler(m, top_k=-1), ValueError, "top_k: found -1, expected 0 or more"),
    "bias": (lambda e, m: frit.Sampler(m, logit_bias={1: "a"}), TypeError, r"logit_bias\[1\]: found 'a', expected a number"),
    "biases": (lambda e, m: frit.Sampler(m, logit_bias=[1]), TypeError, r"logit_bias: found \[1\], expected a dict"),
    "grammar": (lambda e, m: e.generate("x", grammar='root ::= "a"'), TypeError, "grammar: found .* expected frit.Grammar"),
    "grammar's kind": (lambda e, m: frit.Grammar(m, "x", kind="gbfn"), ValueError, "kind: found 'gbfn', .* did you mean 'gbnf'"),
    "grammar's text": (lambda e, m: frit.Grammar(m, b"x"), TypeError, "text: found b'x', expected a str"),
    "stage": (lambda e, m: e.generate("x", stage=3), TypeError, "stage: found 3, expected a function"),
    "until": (lambda e, m: e.generate("x", until=3), TypeError, "until: found 3, expected a function"),
    "progress": (lambda e, m: frit.Engine(m, progress=3), TypeError, "progress: found 3, expected a function"),
    "progress of pull": (lambda e, m: frit.pull("hf:a/b", progress=3), TypeError, "progress: found 3, expected a function"),
    "sampler": (lambda e, m: e.generate("x", sampler={}), TypeError, "sampler: found {}, expected frit.Sampler"),
    "adapters": (lambda e, m: e.generate("x", adapters=["lora.gguf"]), TypeError, r"adapters\[0\]: .* expected a frit.Adapter"),
    "adapter alone": (lambda e, m: e.session().set_adapters(3), TypeError, "adapters: found 3, expected a sequence"),
    "speculate": (lambda e, m: e.generate("x", speculate="ngramm"), ValueError, "speculate: .* did you mean 'ngram'"),
    "messages": (lambda e, m: e.chat(3), TypeError, "messages: found 3, expected a sequence of dicts"),
    "message": (lambda e, m: e.chat(["x"]), TypeError, r"messages\[0\]: found 'x', expected a dict"),
    "tools": (lambda e, m: e.chat("x", tools=[3]), TypeError, r"tools\[0\]: found 3, expected a function or a dict"),
    "template": (lambda e, m: e.chat("x", template=3), TypeError, "template: found 3, expected a dict"),
    "schema": (lambda e, m: e.chat("x", schema=7), TypeError, "schema: found 7, expected a pydantic model"),
    "content": (lambda e, m: e.chat([{"role": "user", "content": {1, 2}}]), TypeError, "expected what JSON can say"),
    "texts": (lambda e, m: e.embed([3]), TypeError, r"texts\[0\]: found 3, expected"),
    "text": (lambda e, m: m.tokenize(3), TypeError, "text: found 3, expected a str or bytes"),
    "tokens as text": (lambda e, m: m.detokenize("abc"), TypeError, "tokens: found 'abc', expected a sequence of ints"),
    "tokens as floats": (lambda e, m: m.detokenize([1.5]), TypeError, r"tokens: found \[1.5\], expected a sequence of ints"),
    "role": (lambda e, m: m.token("boss"), ValueError, "role: found 'boss', .* did you mean 'bos'"),
    "logits": (lambda e, m: frit.Sampler(m).sample([1, 2]), TypeError, r"logits: found \[1, 2\], expected a frit.Tensor"),

    "unknown option of load": (lambda e, m: frit.load("x", n_ctxx=3), TypeError, "load: .* 'n_ctxx' .* mean 'n_ctx'"),
    "unknown option of Engine": (lambda e, m: frit.Engine(m, n_thread=3), TypeError, "Engine: .* mean 'n_threads'"),
    "unknown option of Model": (lambda e, m: frit.Model("x", mmap=False), TypeError, "Model: .* mean 'use_mmap'"),
    "unknown option of Grammar": (lambda e, m: frit.Grammar(m, "x", kinds="gbnf"), TypeError, "Grammar: .* mean 'kind'"),
    "unknown option of Sampler": (lambda e, m: frit.Sampler(m, temprature=1), TypeError, "Sampler: .* mean 'temperature'"),
    "unknown option of generate": (lambda e, m: e.generate("x", max_token=3), TypeError, "generate: .* mean 'max_tokens'"),
    "unknown option of chat": (lambda e, m: e.chat("x", tool=[]), TypeError, "chat: .* mean 'tools'"),
    "option beside a sampler": (lambda e, m: e.generate("x", sampler=frit.Sampler(m), top_k=1), TypeError, "set it there"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_named(name: str, engine: frit.Engine, model: frit.Model) -> None:
    call, kind, sentence = WRONG[name]
    with pytest.raises(kind, match=sentence) as raised:
        call(engine, model)
    assert kind is TypeError or isinstance(raised.value, frit.InvalidError)


def test_numbers_of_numpy_are_numbers(engine: frit.Engine, model: frit.Model) -> None:
    np = pytest.importorskip("numpy")
    answer = engine.generate(np.array(model.tokenize(PROMPT)), max_tokens=np.int64(3), temperature=np.float32(0),
                             ignore_end=np.bool_(True)).result()
    assert len(answer.tokens) == 3
    assert model.detokenize([np.int32(token) for token in answer.tokens]) == model.detokenize(answer.tokens)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ZeroDivisionError])
def test_what_a_progress_function_raises_is_raised(raised: type[BaseException], model_path: str) -> None:
    def fail(done: float) -> None:
        raise raised

    new = frit.Model(model_path)   # its first engine packs the weights, and so reports progress
    for call in (lambda: frit.Model(model_path, progress=fail), lambda: frit.Engine(new, n_ctx=64, progress=fail)):
        with pytest.raises(raised):
            call()
    with pytest.raises(frit.CancelledError):
        frit.Model(model_path, progress=lambda done: False)
    assert frit.Model(model_path, progress=lambda done: None).info.n_vocab == 8192


def test_what_a_log_handler_raises_is_raised(model_path: str, tmp_path: Path) -> None:
    from frit import _declarations as c
    from frit import _library as library

    heard = library.callback(c.frit_log_fn, lambda *_: 1 // 0)
    heard(None, 0, b"a sentence")
    with pytest.raises(ZeroDivisionError):
        library.check(0)
    library.check(0)   # the exception is raised only once


def test_an_error_names_the_field_and_the_kind_of_mistake(engine: frit.Engine) -> None:
    with pytest.raises(frit.InvalidError) as raised:
        engine.chat([{"role": "king", "content": "x"}])
    assert (raised.value.field, raised.value.code) == ("messages[0].role", "invalid_value")
    with pytest.raises(frit.FritError) as raised:
        frit.Model("no such file")
    assert (raised.value.field, raised.value.code) == (None, None)


def test_a_note_may_have_any_bytes(engine: frit.Engine) -> None:
    session = engine.session()
    session.note = b"a\0b"
    assert session.note == b"a\0b"


def test_typed_options_are_the_options() -> None:
    names = {"seed", "logit_bias", "dry_sequence_breaker"}   # these options have keywords of their own
    assert set(SamplerNumbers.__annotations__) == set(frit.sampler_option_names()) - names | {"typical", "tfs"}

    def keywords(function: Any) -> set[str]:
        return {p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY}

    assert set(EngineOptions.__annotations__) == keywords(frit.Engine) - {"progress"}
    own = set(SamplerNumbers.__annotations__)
    assert set(SamplerOptions.__annotations__) == own | keywords(frit.Sampler)
    assert set(GenerateOptions.__annotations__) == set(SamplerOptions.__annotations__) | keywords(frit.Engine.generate)
    assert set(ChatOptions.__annotations__) == set(SamplerOptions.__annotations__) | keywords(frit.Engine._chat_job)
