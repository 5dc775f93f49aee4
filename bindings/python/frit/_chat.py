# SPDX-License-Identifier: MIT
"""What goes into a turn: messages, tools of Python functions, schemas of pydantic models."""

from __future__ import annotations

import json
from typing import Any, Callable, Mapping, Sequence, get_args, get_origin, get_type_hints

from .model import Model
from .results import Answer
from .sampling import Grammar

_JSON_TYPES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of an annotation: str, int, float, bool, list, dict, Literal, unions, pydantic models."""
    if hasattr(kind, "model_json_schema"):
        return kind.model_json_schema()  # type: ignore[no-any-return]
    if kind in _JSON_TYPES:
        return {"type": _JSON_TYPES[kind]}
    origin, args = get_origin(kind), get_args(kind)
    if kind is list or origin in (list, tuple, set):
        return {"type": "array", **({"items": schema_of(args[0])} if args else {})}
    if kind is dict or origin is dict:
        return {"type": "object"}
    if str(origin) == "typing.Literal":
        return {"enum": list(args)}
    if args and (str(origin) == "typing.Union" or type(kind).__name__ == "UnionType"):
        return {"anyOf": [schema_of(arg) for arg in args]}
    return {}


def tool_of(function: Callable[..., Any]) -> dict[str, Any]:
    """A Python function as a tool: name, docstring, annotations."""
    import inspect

    hints = get_type_hints(function)
    properties, required = {}, []
    for name, parameter in inspect.signature(function).parameters.items():
        properties[name] = schema_of(hints.get(name, str))
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"type": "function", "function": {
        "name": function.__name__, "description": inspect.getdoc(function) or "", "parameters": parameters}}


def conversation_of(messages: str | Sequence[Mapping[str, Any]], tools: Sequence[Any], tool_choice: Any,
                    template: Mapping[str, Any] | None, continue_final: bool) -> bytes:
    """The JSON that a turn is made of."""
    conversation: dict[str, Any] = {
        "messages": [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
    }
    if tools:
        conversation["tools"] = [tool_of(tool) if callable(tool) else tool for tool in tools]
    if isinstance(tool_choice, str) and tool_choice not in ("auto", "none", "required"):
        tool_choice = {"type": "function", "function": {"name": tool_choice}}
    if tool_choice is not None:
        conversation["tool_choice"] = tool_choice
    if template:
        conversation["chat_template_kwargs"] = dict(template)
    if continue_final:
        conversation["continue_final_message"] = True
        conversation["add_generation_prompt"] = False
    return json.dumps(conversation).encode()


def form_of(model: Model, schema: Any) -> Grammar | None:
    """The grammar for what a caller wants as an answer."""
    if schema is None or isinstance(schema, Grammar):
        return schema
    if hasattr(schema, "model_json_schema"):
        return Grammar(model, schema.model_json_schema(), kind="schema")
    if isinstance(schema, (Mapping, bool)):
        return Grammar(model, schema, kind="schema")
    raise TypeError(f"schema: expected a pydantic model, a JSON schema as a dict or a Grammar, found {schema!r}")


def finish_answer(answer: Answer, schema: Any) -> Answer:
    """Sets what the schema's type makes of the text. Answers that call tools, or were cut short, have none."""
    if schema is None or isinstance(schema, Grammar) or answer.finish_reason != "stop":
        return answer
    if hasattr(schema, "model_validate_json"):
        answer.parsed = schema.model_validate_json(answer.text)
    elif isinstance(schema, (Mapping, bool)):
        answer.parsed = json.loads(answer.text)
    return answer
