# SPDX-License-Identifier: MIT
"""What generation gives: pieces as they come, and whole answers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Sequence


class TokenLogprob(NamedTuple):
    """How likely a token was: the natural logarithm of its probability by the model, before the sampler's stages."""

    token: int
    logprob: float
    #: The likeliest tokens at this place, best first.
    top: list[tuple[int, float]]


@dataclass
class ToolCall:
    """A call of a tool. `arguments` is the text of a JSON object."""

    id: str
    name: str
    arguments: str

    def parsed(self) -> Any:
        """The arguments as Python's objects. ValueError where an answer without strict tools wrote no JSON."""
        return json.loads(self.arguments)


@dataclass(slots=True)
class Usage:
    """Numbers of tokens; of the prompt's, `cached` did not run, as another text had run them."""

    prompt: int = 0
    cached: int = 0
    answer: int = 0
    drafted: int = 0
    accepted: int = 0


@dataclass(slots=True)
class Chunk:
    """A piece of an answer: what one step gave. str(chunk) is its text.

    `text` never ends within a character, and holds back what may become a stop text. The last chunk has a
    `finish_reason`: "stop" (an end token, a stop text or a complete grammar), "length" (max_tokens or the context), "tool_calls",
    "cancelled"; and the `usage`.
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
class Answer:
    """A whole answer. `parsed`: the object that the schema's type made of the text."""

    text: str = ""
    reasoning: str = ""
    tokens: list[int] = field(default_factory=list)
    tool_calls: list[ToolCall] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    finish_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    parsed: Any = None

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
        """The answer as a message for the next turn."""
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
