# SPDX-License-Identifier: MIT
"""Results of generation: chunks of an answer, and whole answers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Generic, Mapping, NamedTuple, Sequence, TypeVar, cast

from .errors import AnswerError

T = TypeVar("T")
_UNREAD = object()


class TokenLogprob(NamedTuple):
    """A token with its log-probability: the natural logarithm of its probability by the model, before the sampler's
    stages."""

    token: int
    logprob: float
    #: The likeliest tokens at this place, the likeliest first.
    top: list[tuple[int, float]]


@dataclass
class ToolCall:
    """A tool call. `arguments` is the text of a JSON object."""

    id: str
    name: str
    arguments: str

    def parsed(self) -> Any:
        """The arguments as a Python object. Raises ValueError if they are not JSON, which happens without strict
        tools."""
        return json.loads(self.arguments)


@dataclass(slots=True)
class Usage:
    """Numbers of tokens. `cached` counts the tokens of the prompt that did not run, because another text had run
    them."""

    prompt: int = 0
    cached: int = 0
    answer: int = 0
    drafted: int = 0
    accepted: int = 0


@dataclass(slots=True)
class Chunk:
    """A chunk of an answer: the text and tokens of one step. str(chunk) is its text.

    `text` has complete characters, and not what may be the beginning of a stop text. The last chunk has a
    `finish_reason` and the `usage`. The reason is "stop" (an end token, a stop text or a complete grammar), "length"
    (max_tokens or the context), "tool_calls" or "cancelled".
    """

    text: str = ""
    reasoning: str = ""
    tokens: list[int] = field(default_factory=list)
    tool_calls: list[ToolCall] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    finish_reason: str | None = None
    usage: Usage | None = None

    def __str__(self) -> str:
        return self.text


@dataclass
class Answer(Generic[T]):
    """A whole answer. The parameter is the type of `parsed`."""

    text: str = ""
    reasoning: str = ""
    tokens: list[int] = field(default_factory=list)
    tool_calls: list[ToolCall] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    finish_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    #: The form that was asked for: a type, a JSON schema, a grammar, or None.
    schema: Any = field(default=None, repr=False, compare=False)
    _value: Any = field(default=_UNREAD, init=False, repr=False, compare=False)

    @property
    def parsed(self) -> T:
        """The text as an object of the schema's type, or as the value for a JSON schema. None if no form, or a grammar
        that is not a schema, was asked for.

        Raises AnswerError if the text is not complete, which `finish_reason` tells, if tools are called instead, or if
        the type refuses the text. The type's exception is then the cause.
        """
        if self._value is _UNREAD:
            self._value = self._read()
        return cast(T, self._value)

    def _read(self) -> Any:
        from ._schema import read
        from .sampling import Grammar

        schema = self.schema
        if schema is None or isinstance(schema, Grammar) and schema.kind != "schema":
            return None
        if why := _WHY_NOT.get(self.finish_reason):
            raise AnswerError(f"the answer has no value for its schema, because {why} after {len(self.tokens)} tokens: "
                              f"{_shorten(self.text)}")
        try:
            return json.loads(self.text) if isinstance(schema, (Mapping, bool, Grammar)) else read(schema, self.text)
        except ValueError as failure:
            name = getattr(schema, "__name__", "its schema")
            raise AnswerError(f"the answer is not what {name} takes: {failure}") from failure

    def extend(self, chunks: Sequence[Chunk]) -> None:
        """Appends chunks."""
        self.text += "".join([chunk.text for chunk in chunks])
        self.reasoning += "".join([chunk.reasoning for chunk in chunks])
        for chunk in chunks:
            self.tokens += chunk.tokens
            self.tool_calls += chunk.tool_calls
            self.logprobs += chunk.logprobs
            self.finish_reason = chunk.finish_reason or self.finish_reason
            self.usage = chunk.usage or self.usage

    def message(self) -> dict[str, Any]:
        """Returns the answer as a message for the next turn."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.tool_calls
            ]
        return message

    def __str__(self) -> str:
        return self.text


_WHY_NOT = {
    "": "it is being generated, or was not read to its end,",
    "length": "max_tokens or the context (n_ctx) cut it",
    "cancelled": "it was cancelled",
    "tool_calls": "it calls tools instead,",
}


def _shorten(text: str) -> str:
    return repr(text) if len(text) <= 80 else repr(text[:40]) + " ... " + repr(text[-30:])
