# SPDX-License-Identifier: MIT
"""Read by type checkers alone (test_parsed.py): they must report the lines that end in "wrong", and no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

from pydantic import BaseModel
from typing_extensions import assert_type

import frit


class Person(BaseModel):
    name: str


@dataclass
class Place:
    x: float


class Note(TypedDict):
    text: str


engine = frit.load("model.gguf", n_ctx=512, progress=print)
frit.load("model.gguf", n_ctxx=512)  # wrong
frit.load("model.gguf", n_ctx="512")  # wrong
frit.Engine(engine.model, n_thread=3)  # wrong

assert_type(engine.chat("?", schema=Person).parsed, Person)
assert_type(engine.chat("?", schema=Place, temperature=0).parsed, Place)
assert_type(engine.chat("?", schema=Note).parsed, Note)
assert_type(engine.chat("?", schema=int).parsed, int)
assert_type(engine.chat("?").parsed, None)
assert_type(engine.chat("?", schema={"type": "null"}).parsed, Any)
assert_type(engine.chat_stream("?", schema=Person).result().parsed, Person)
engine.chat("?", schema=Person).parsed.names  # wrong
engine.chat("?", temprature=1)  # wrong
engine.chat("?", temperature="hot")  # wrong
engine.chat_stream("?", tool=[])  # wrong

engine.generate("x", max_tokens=3, top_k=1, stop=["\n"], logit_bias={1: -1.0})
engine.generate("x", max_token=3)  # wrong
engine.generate("x", top_k="1")  # wrong
engine.agenerate("x", until=lambda tokens: len(tokens) > 3)
engine.generate_batch(["x"], seeds=1)  # wrong
frit.Sampler(engine.model, top_kk=1)  # wrong
engine.session().generate("x", top_kk=1)  # wrong


async def run() -> None:
    assert_type((await engine.achat("?", schema=Person)).parsed, Person)
    assert_type(await engine.achat_stream("?", schema=Place).result(), frit.Answer[Place])


options: frit.GenerateOptions = {"max_tokens": 3, "temperature": 0.5}
engine.generate("x", **options)
