# SPDX-License-Identifier: MIT
"""Makes replies as dicts in OpenAI's form, as llama-cpp-python does."""

from __future__ import annotations

import time
import uuid
from typing import Any, Iterator, Mapping, Sequence

from ..model import Model
from ..results import Answer, Chunk, TokenLogprob, ToolCall, Usage


def text_of(model: Model, token: int) -> str:
    """Returns a token's text as it appears in replies."""
    return model.token_piece(token).decode("utf-8", "ignore")


def usage_of(usage: Usage) -> dict[str, int]:
    return {"prompt_tokens": usage.prompt, "completion_tokens": usage.answer, "total_tokens": usage.prompt + usage.answer}


def legacy_logprobs(model: Model, entries: Sequence[TokenLogprob], offset: int,
                    first_is_null: bool = False) -> dict[str, Any]:
    """Returns the logprobs of a completion. The first token of an echoed prompt has no logprob."""
    tokens = [text_of(model, entry.token) for entry in entries]
    offsets, at = [], offset
    for text in tokens:
        offsets.append(at)
        at += len(text)
    top: list[dict[str, float] | None] = []
    for entry, text in zip(entries, tokens):
        row = {text_of(model, token): logprob for token, logprob in entry.top}
        row[text] = entry.logprob
        top.append(row)
    own: list[float | None] = [entry.logprob for entry in entries]
    if first_is_null and own:
        own[0] = top[0] = None
    return {"tokens": tokens, "text_offset": offsets, "token_logprobs": own, "top_logprobs": top}


def chat_logprobs(model: Model, entries: Sequence[TokenLogprob]) -> dict[str, Any]:
    """Returns the logprobs of a chat."""

    def one(token: int, logprob: float) -> dict[str, Any]:
        data = model.token_piece(token)
        return {"token": data.decode("utf-8", "ignore"), "bytes": list(data), "logprob": logprob}

    return {"content": [{**one(entry.token, entry.logprob), "top_logprobs": [one(*pair) for pair in entry.top]}
                        for entry in entries], "refusal": None}


class Reply:
    """The fields that all dicts of a reply have."""

    def __init__(self, kind: str, prefix: str, model: str) -> None:
        self.kind = kind
        self.fields = {"id": f"{prefix}-{uuid.uuid4()}", "object": kind, "created": int(time.time()), "model": model}

    def whole(self, choice: dict[str, Any], usage: Usage) -> dict[str, Any]:
        return {**self.fields, "choices": [choice], "usage": usage_of(usage)}

    def piece(self, choice: dict[str, Any]) -> dict[str, Any]:
        kind = "chat.completion.chunk" if self.kind == "chat.completion" else self.kind
        return {**self.fields, "object": kind, "choices": [choice]}


def completion_pieces(reply: Reply, model: Model, chunks: Iterator[Chunk], offset: int, wants_logprobs: bool,
                      before: str, after: str) -> Iterator[dict[str, Any]]:
    """Yields the dicts of a streamed completion: a dict for each chunk of text, then one with the finish reason."""
    entries: list[TokenLogprob] = []

    def choice(text: str, reason: str | None) -> dict[str, Any]:
        nonlocal offset
        logprobs = None
        if wants_logprobs and entries:
            logprobs = legacy_logprobs(model, entries, offset)
            entries.clear()
        offset += len(text)
        return {"text": text, "index": 0, "logprobs": logprobs, "finish_reason": reason}

    if before:
        yield reply.piece(choice(before, None))
    for chunk in chunks:
        entries += chunk.logprobs
        text = chunk.text + (after if chunk.finish_reason else "")
        if text:
            yield reply.piece(choice(text, None))
        if chunk.finish_reason:
            yield reply.piece(choice("", reason_of(chunk.finish_reason)))


def reason_of(reason: str) -> str:
    """Returns OpenAI's name for the reason why an answer ended."""
    return "stop" if reason == "cancelled" else reason


def call_of(call: ToolCall, i: int | None = None) -> dict[str, Any]:
    """Returns a tool call as a dict. Dicts of a stream also have the call's index."""
    made = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
    return made if i is None else {"index": i, **made}


def chat_message(answer: Answer[Any], is_legacy: bool) -> dict[str, Any]:
    """Returns an answer as a message. is_legacy: the request had functions, not tools."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text if not answer.tool_calls or answer.text else None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.tool_calls and is_legacy:
        call = answer.tool_calls[0]
        message["function_call"] = {"name": call.name, "arguments": call.arguments}
    elif answer.tool_calls:
        message["tool_calls"] = [call_of(call) for call in answer.tool_calls]
    return message


def with_tool_calls(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns messages with tool calls. The older form with function calls is converted."""
    made: list[Mapping[str, Any]] = []
    for message in messages:
        if isinstance(message, Mapping) and message.get("function_call"):
            call = {"id": f"call_{len(made)}", "type": "function", "function": message["function_call"]}
            others = {key: value for key, value in message.items() if key != "function_call"}
            message = others if message.get("tool_calls") else {**others, "tool_calls": [call]}
        elif isinstance(message, Mapping) and message.get("role") == "function":
            message = {**message, "role": "tool", "tool_call_id": f"call_{len(made) - 1}"}
        made.append(message)
    return made


def chat_pieces(reply: Reply, model: Model, chunks: Iterator[Chunk], wants_logprobs: bool,
                is_legacy: bool) -> Iterator[dict[str, Any]]:
    """Yields the dicts of a streamed chat."""

    def piece(delta: dict[str, Any], reason: str | None = None, logprobs: Any = None) -> dict[str, Any]:
        return reply.piece({"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason})

    yield piece({"role": "assistant"})
    n_calls = 0
    for chunk in chunks:
        logprobs = chat_logprobs(model, chunk.logprobs) if wants_logprobs and chunk.logprobs else None
        if chunk.reasoning:
            yield piece({"reasoning_content": chunk.reasoning})
        if chunk.text or logprobs:
            yield piece({"content": chunk.text}, None, logprobs)
        for call in chunk.tool_calls:
            if is_legacy:
                yield piece({"function_call": {"name": call.name, "arguments": call.arguments}})
            else:
                yield piece({"tool_calls": [call_of(call, n_calls)]})
            n_calls += 1
        if chunk.finish_reason:
            reason = reason_of(chunk.finish_reason)
            yield piece({}, "function_call" if is_legacy and reason == "tool_calls" else reason)
