# SPDX-License-Identifier: MIT
"""Answers as objects of types, and the reasons why an answer has no object."""

from __future__ import annotations

import asyncio
import enum
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import pytest

import frit
from conftest import ROOT
from frit._schema import build, read, schema_of

ASK = "A king, as JSON."


class Job(enum.Enum):
    king = "king"
    miller = "miller"


@dataclass
class Person:
    job: Job
    happy: bool
    age: Annotated[Optional[int], "years"] = None
    friends: list[Person] = field(default_factory=list)


class Place(TypedDict, total=False):
    x: float
    mark: Union[Literal["here", "there"], None]


@dataclass
class Land:
    king: Person
    corner: tuple[float, float]
    places: dict[str, Place]


def test_schemas_of_types() -> None:
    schema = schema_of(Land)
    assert schema["$ref"] == "#/$defs/Land"
    land, person = schema["$defs"]["Land"], schema["$defs"]["Person"]
    assert land["properties"]["king"] == {"$ref": "#/$defs/Person"} and land["additionalProperties"] is False
    assert person["required"] == ["job", "happy"] and person["properties"]["job"] == {"enum": ["king", "miller"]}
    assert person["properties"]["friends"] == {"type": "array", "items": {"$ref": "#/$defs/Person"}}
    assert schema["$defs"]["Place"]["required"] == [] and land["properties"]["corner"]["minItems"] == 2
    assert schema_of(list[int]) == {"type": "array", "items": {"type": "integer"}}
    with pytest.raises(TypeError, match="has no JSON schema: expected a pydantic model, a dataclass"):
        schema_of(dict[str, object.__class__])
    with pytest.raises(TypeError, match="has no JSON schema"):
        schema_of(Path)


def test_values_of_types() -> None:
    text = '{"king": {"job": "king", "happy": true, "friends": [{"job": "miller", "happy": false, "age": 7}]}, ' \
           '"corner": [1, 2.5], "places": {"a": {"x": 1, "mark": null}, "b": {}}}'
    land = read(Land, text)
    assert land.king == Person(Job.king, True, None, [Person(Job.miller, False, 7)])
    assert land.corner == (1.0, 2.5) and isinstance(land.corner[0], float)
    assert land.places == {"a": {"x": 1.0, "mark": None}, "b": {}}
    for kind, value, said in ((Person, {"job": "king"}, "expected those of Person"), (Person, {"job": "x", "happy": True}, "x"),
                              (int, 1.5, "expected int"), (tuple[int, int], [1], "expected tuple"), (bool, 1, "expected bool"),
                              (Union[int, str], [], "expected int or .*expected str"), (Literal["a"], "b", "expected")):
        with pytest.raises(ValueError, match=said):
            build(kind, value)


@pytest.mark.parametrize("kind", [Person, Place, list[Job], Optional[Person], Literal["king", "miller"], bool, dict[str, bool]],
                         ids=str)
def test_an_answer_is_of_the_type(kind: Any, engine: frit.Engine) -> None:
    for seed in range(6):
        answer = engine.chat(ASK, schema=kind, seed=seed, max_tokens=150)
        if answer.finish_reason == "stop":
            assert answer.parsed == read(kind, answer.text) and answer.parsed is answer.parsed
            return
    pytest.skip("no seed of six gave a short one")


def test_pydantics_definitions_are_found_within_tools(engine: frit.Engine) -> None:
    pydantic = pytest.importorskip("pydantic")
    Inner = pydantic.create_model("Inner", x=(int, ...))
    Outer = pydantic.create_model("Outer", inner=(Inner, ...), others=(list[Inner], ...))

    def tool(one, two, *more, **others):  # type: ignore[no-untyped-def]
        """A tool."""

    tool.__annotations__ = {"one": Outer, "two": list[Outer], "more": int, "others": int}
    from frit._chat import tool_of

    parameters = tool_of(tool)["function"]["parameters"]
    assert set(parameters["$defs"]) == {"Inner"} and list(parameters["properties"]) == ["one", "two"]
    assert frit.Grammar(engine.model, parameters, kind="schema")


def test_a_cut_answer_says_why_it_has_no_value(engine: frit.Engine) -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string", "minLength": 300}}, "required": ["text"]}
    for form in (schema, frit.Grammar(engine.model, schema, kind="schema"), Land):
        answer = engine.chat(ASK, schema=form, max_tokens=3)
        assert answer.finish_reason == "length" and answer.text
        for _ in range(2):
            with pytest.raises(frit.AnswerError, match=r"max_tokens or the context \(n_ctx\) cut it after 3 tokens: "):
                answer.parsed
    stream = engine.chat_stream(ASK, schema=schema)
    next(stream)
    with pytest.raises(frit.AnswerError, match="it is being generated"):
        stream.answer.parsed
    stream.close()
    called = frit.Answer(text="", finish_reason="tool_calls", schema=schema)
    with pytest.raises(frit.AnswerError, match="calls tools"):
        called.parsed
    assert frit.Answer(text="x", finish_reason="length").parsed is None   # no schema was asked for


def test_the_context_that_cuts_an_answer_is_named(model: frit.Model) -> None:
    with frit.Engine(model, n_ctx=64) as engine:
        answer = engine.chat(ASK, schema={"type": "string", "minLength": 1000})
        with pytest.raises(frit.AnswerError, match="cut it"):
            answer.parsed


def test_what_a_type_refuses_is_the_cause(engine: frit.Engine) -> None:
    pydantic = pytest.importorskip("pydantic")

    def refuse(value: str) -> str:
        raise ValueError("none is good enough")

    Job = pydantic.create_model("Job", job=(Annotated[Literal["king"], pydantic.AfterValidator(refuse)], ...))
    answer = engine.chat(ASK, schema=Job, max_tokens=50)
    with pytest.raises(frit.AnswerError, match="(?s)not what Job takes: .*none is good enough") as raised:
        answer.parsed
    assert isinstance(raised.value.__cause__, pydantic.ValidationError) and isinstance(raised.value, ValueError)


def test_streams_and_generated_texts_have_values_too(engine: frit.Engine) -> None:
    grammar = frit.Grammar(engine.model, {"enum": ["yes", "no"]}, kind="schema")
    assert engine.generate("Is it so?", grammar=grammar).result().parsed in ("yes", "no")
    assert engine.chat_stream(ASK, schema=Literal["yes"]).result().parsed == "yes"
    assert asyncio.run(engine.achat(ASK, schema=Literal["yes"])).parsed == "yes"
    assert engine.chat(ASK, schema=frit.Grammar(engine.model, 'root ::= "a"')).parsed is None
    assert engine.chat(ASK, schema={"type": "null"}).parsed is None


TYPED = ROOT / "bindings" / "python" / "tests" / "typed.py"


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_know_options_and_values(checker: str) -> None:
    if checker == "mypy":
        pytest.importorskip("mypy")
        arguments = ["--strict", "--python-version", "3.11", "--output", "json"]
    else:
        pytest.importorskip("pyright")
        if subprocess.run([sys.executable, "-m", "pyright", "--version"], capture_output=True).returncode != 0:
            pytest.skip("pyright cannot fetch what it runs by")
        arguments = ["--outputjson", "--pythonpath", sys.executable]
    said = subprocess.run([sys.executable, "-m", checker, *arguments, str(TYPED)], capture_output=True, text=True,
                          cwd=ROOT / "bindings" / "python", env={**os.environ, "MYPYPATH": "."})
    if checker == "mypy":
        found = {json.loads(line)["line"]: json.loads(line)["message"] for line in said.stdout.splitlines() if line.startswith("{")}
    else:
        found = {item["range"]["start"]["line"] + 1: item["message"] for item in json.loads(said.stdout)["generalDiagnostics"]
                 if item["severity"] == "error"}
    expected = {i for i, line in enumerate(TYPED.read_text().splitlines(), 1) if line.endswith("# wrong")}
    assert set(found) == expected and len(expected) >= 8, (found, said.stderr)
