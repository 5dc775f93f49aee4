# SPDX-License-Identifier: MIT
"""Chats, tools, schemas; embeddings and scores; adapters."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Literal

import pytest

import frit
from conftest import PROMPT, TOOLS_TEMPLATE

TALE = "Tell me the tale of Rapunzel."


def test_chat_is_the_commands(engine: frit.Engine, model_path: str, command: str) -> None:
    import subprocess

    made = subprocess.run([command, "run", "-m", model_path, "--temp", "0", "-n", "24", "-c", "512", "--json", "-p", TALE],
                          check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    answer = engine.chat(TALE, max_tokens=24, temperature=0)
    assert answer.text == json.loads(made.stdout)["text"]
    assert answer.finish_reason == "length" and answer.usage.answer == 24
    streamed = "".join(map(str, engine.chat_stream([{"role": "user", "content": TALE}], max_tokens=24, temperature=0)))
    assert streamed == answer.text


def test_messages_are_checked(engine: frit.Engine) -> None:
    with pytest.raises(frit.InvalidError, match=r"messages\[0\]"):
        engine.chat([{"role": "nobody at all", "content": "x"}])
    with pytest.raises(TypeError, match="temprature"):
        engine.chat(TALE, temprature=1)
    with pytest.raises(TypeError, match="expected a pydantic model"):
        engine.chat(TALE, schema=7)  # type: ignore[arg-type]


def test_schema_as_dict(engine: frit.Engine) -> None:
    schema = {"type": "object", "additionalProperties": False, "required": ["job", "age"],
              "properties": {"job": {"enum": ["king", "miller"]}, "age": {"type": "integer", "minimum": 1, "maximum": 99}}}
    for seed in range(3):
        answer = engine.chat("A king, as JSON.", schema=schema, seed=seed, max_tokens=100)
        assert answer.finish_reason == "stop"
        assert answer.parsed == json.loads(answer.text)
        assert answer.parsed["job"] in ("king", "miller") and 1 <= answer.parsed["age"] <= 99


def test_guesses_take_nothing_of_the_end_of_an_answer(engine: frit.Engine) -> None:
    schema = {"enum": ["yes", "no", "none of these"]}
    for question in ("?", "Is it so?", TALE):
        plain, guessed = (engine.chat(question, schema=schema, temperature=0, speculate=kind) for kind in ("none", "ngram"))
        assert guessed.tokens == plain.tokens and guessed.parsed in schema["enum"]


def test_properties_are_those_that_the_schema_names(engine: frit.Engine) -> None:
    schema = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}
    for seed in range(3):
        assert engine.chat("A king, as JSON.", schema=schema, seed=seed, max_tokens=120).parsed == {"a": 1}
    opened = engine.chat("A king, as JSON.", schema=schema, seed=1, max_tokens=40, open_objects=True)
    assert opened.text.lstrip("{ \n").startswith('"a"')
    assert frit.Grammar(engine.model, schema, kind="schema", open_objects=True).open_objects


def test_schema_as_pydantic_model(engine: frit.Engine) -> None:
    pydantic = pytest.importorskip("pydantic")
    Person = pydantic.create_model("Person", job=(Literal["king", "miller"], ...), happy=(bool, ...))
    answer = engine.chat("A king, as JSON.", schema=Person, seed=3, max_tokens=100)
    assert isinstance(answer.parsed, Person) and answer.parsed.job in ("king", "miller")


@pytest.mark.parametrize("has_place", [True, False])   # whether the template writes tools
def test_tools(model_path: str, tmp_path: Path, has_place: bool) -> None:
    (tmp_path / "tools.jinja").write_text(TOOLS_TEMPLATE)
    model = frit.Model(model_path, chat_template=tmp_path / "tools.jinja" if has_place else None)
    engine = frit.Engine(model, n_ctx=1024)

    def weather(place: Literal["Bremen", "Paris"], warm: bool = False) -> str:
        """The weather of a place."""
        return f"{place}: {'sun' if warm else 'rain'}"

    answer = engine.chat("What is the weather in Bremen?", tools=[weather], tool_choice="weather", seed=5, max_tokens=300,
                         temperature=0.7)
    assert answer.finish_reason == "tool_calls", answer
    (call,) = answer.tool_calls
    assert call.name == "weather" and call.parsed()["place"] in ("Bremen", "Paris")
    message = answer.message()
    assert message["tool_calls"][0]["function"]["name"] == "weather"
    engine.chat([{"role": "user", "content": "?"}, message,
                 {"role": "tool", "tool_call_id": call.id, "content": weather(**call.parsed())}], max_tokens=4)


def test_embeddings_are_the_pooled_states(engine: frit.Engine, model: frit.Model) -> None:
    texts = ["A fox and a cat", PROMPT, "x"]
    found = engine.embed(texts)
    assert found.shape == (3, model.info.n_embd) == (3, model.embedding_width())
    for text, vector in zip(texts, found):
        last = engine.session().hidden_states(model.tokenize(text))[-1].tolist()
        length = math.sqrt(sum(x * x for x in last))
        assert vector.tolist() == pytest.approx([x / length for x in last], abs=2e-3)
    assert engine.embed(PROMPT, n_dims=7).shape == (7,)
    assert engine.embed([model.tokenize(PROMPT)])[0].tolist() == pytest.approx(found[1].tolist(), abs=1e-4)
    with pytest.raises(frit.InvalidError):
        engine.embed(["x"], pooling="sum")
    with pytest.raises(frit.UnsupportedError):
        engine.rerank("a query", ["a document"])


def write_peft(folder: Path, n_embd: int, rank: int = 4) -> Path:
    """Writes a PEFT adapter of layer 0's down projection with large weights."""
    (folder / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": rank, "lora_alpha": rank, "target_modules": ["o_proj"]}))
    name = "base_model.model.model.layers.0.self_attn.o_proj.lora_"
    shapes = {f"{name}A.weight": (rank, n_embd), f"{name}B.weight": (n_embd, rank)}
    header, data = {}, b""
    for key, shape in shapes.items():
        n = shape[0] * shape[1]
        values = struct.pack(f"<{n}f", *[math.sin(i * 1.7) * 0.5 for i in range(n)])
        header[key] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    return folder


def test_adapters(engine: frit.Engine, model: frit.Model, tmp_path: Path) -> None:
    adapter = frit.Adapter(model, write_peft(tmp_path, model.info.n_embd))
    assert adapter.info["kind"] == "lora" and adapter.info["rank"] == 4
    plain = engine.generate(PROMPT, max_tokens=12, temperature=0).result().tokens
    assert engine.generate(PROMPT, max_tokens=12, temperature=0, adapters=[adapter]).result().tokens != plain
    assert engine.generate(PROMPT, max_tokens=12, temperature=0, adapters=[(adapter, 0.0)]).result().tokens == plain
    session = engine.session()
    session.set_adapters([adapter])
    session.push(PROMPT)
    changed = session.logits().tolist()
    session.truncate(0)
    session.set_adapters([])
    session.push(PROMPT)
    assert session.logits().tolist() != changed


def test_speculation_with_a_draft_model(engine: frit.Engine, model: frit.Model) -> None:
    plain = engine.generate(PROMPT, max_tokens=40, temperature=0).result()
    with frit.Engine(model, n_ctx=512) as draft:
        answer = engine.generate(PROMPT, max_tokens=40, temperature=0, speculate=draft).result()
        assert answer.tokens == plain.tokens
        session = engine.session()
        session.speculate(draft, always=True)
        session.push(PROMPT)
        sampler, tokens = frit.Sampler(model, temperature=0), []
        steps = 0
        while len(tokens) < 40:
            tokens += session.next_tokens(sampler)
            steps += 1
        assert tokens[:40] == plain.tokens and steps < 40
        session.close()
