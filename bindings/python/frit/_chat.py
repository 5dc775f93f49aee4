# SPDX-License-Identifier: MIT
"""Makes the JSON of a chat: messages, tools made of Python functions, schemas made of types."""

from __future__ import annotations

import json
from typing import Any, Callable, Mapping, Sequence, get_type_hints

from ._arguments import mapping, sequence, show
from ._schema import is_type, schema_of
from .model import Model
from .sampling import Grammar

def tool_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Describes a Python function as a tool, from its name, docstring and annotations."""
    import inspect

    hints = get_type_hints(function, include_extras=True)
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    required = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        try:
            properties[name] = schema_of(hints.get(name, str))
        except TypeError as failure:
            raise TypeError(f"tools: {function.__name__}({name}): {failure}") from None
        definitions |= properties[name].pop("$defs", {})
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    if definitions:
        parameters["$defs"] = definitions
    return {"type": "function", "function": {
        "name": function.__name__, "description": inspect.getdoc(function) or "", "parameters": parameters}}


def conversation_of(messages: str | Sequence[Mapping[str, Any]], tools: Sequence[Any], tool_choice: Any,
                    template: Mapping[str, Any] | None, continue_final: bool) -> bytes:
    """Returns the JSON text from which the library makes a turn."""
    if not isinstance(messages, str):
        for i, message in enumerate(sequence("messages", messages, "dicts, or a str")):
            if not isinstance(message, Mapping):
                raise TypeError(f"messages[{i}]: found {show(message)}, expected a dict with a role and content")
    for i, tool in enumerate(sequence("tools", tools, "functions or dicts")):
        if not callable(tool) and not isinstance(tool, Mapping):
            raise TypeError(f"tools[{i}]: found {show(tool)}, expected a function or a dict")
    conversation: dict[str, Any] = {
        "messages": [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
    }
    if tools:
        conversation["tools"] = [tool_of(tool) if callable(tool) else tool for tool in tools]
    if isinstance(tool_choice, str) and tool_choice not in ("auto", "none", "required"):
        tool_choice = {"type": "function", "function": {"name": tool_choice}}
    if tool_choice is not None:
        conversation["tool_choice"] = tool_choice
    if template is not None:
        conversation["chat_template_kwargs"] = dict(mapping("template", template))
    if continue_final:
        conversation["continue_final_message"] = True
        conversation["add_generation_prompt"] = False
    try:
        return json.dumps(conversation, allow_nan=False).encode()
    except (TypeError, ValueError) as failure:
        raise type(failure)(f"messages, tools and template: expected what JSON can say; {failure}") from None


def form_of(model: Model, schema: Any, open_objects: bool) -> Grammar | None:
    """Returns the grammar of an answer that must match `schema`. None: the answer is free."""
    if schema is None or isinstance(schema, Grammar):
        return schema
    if isinstance(schema, (Mapping, bool)):
        return Grammar(model, schema, kind="schema", open_objects=open_objects)
    if is_type(schema):
        return Grammar(model, schema_of(schema), kind="schema", open_objects=open_objects)
    raise TypeError(f"schema: found {show(schema)}, expected a pydantic model, a dataclass, a TypedDict or another type, "
                    f"a JSON schema as a dict, or a frit.Grammar")
