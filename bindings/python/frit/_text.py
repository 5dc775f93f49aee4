# SPDX-License-Identifier: MIT
"""Turns an answer's tokens into text. Characters are complete, a possible beginning of a stop text is held back, and a
turn's text is split into its parts."""

from __future__ import annotations

import ctypes
from ctypes import byref
from typing import Any, Sequence

from . import _declarations as c
from ._handle import Handle, Unique
from ._library import check, decode, lib, text_at, two_calls
from .model import Model
from .results import Chunk, ToolCall
from .sampling import Grammar


class Turn(Unique):
    """One turn of a chat: its prompt, the grammar of its answer, and the answer split into parts."""

    def __init__(self, model: Model, conversation: bytes, media: Any = ()) -> None:
        self.model = model
        self.handle = ctypes.c_void_p()
        check(lib.frit_turn_new_with_media(byref(self.handle), model._handle, conversation, len(conversation),
                                           media or None, len(media)))
        self._owned = Handle(self.handle, lib.frit_turn_free, model)
        self._part = c.frit_part()
        self._has_calls = False

    def tokens(self) -> list[int]:
        buffer, n = two_calls(
            lambda out, room, count: int(lib.frit_turn_tokenize(self.handle, None, out, room, count)),
            lambda room: (ctypes.c_int32 * room)(), 2048)
        return list(buffer[:n])

    def grammar(self, form: Grammar | None, one_call: bool, open_objects: bool) -> Handle | None:
        """Returns the grammar of the answer, or None if the answer is free."""
        options = c.frit_turn_grammar_options(one_call=one_call, open_objects=open_objects)
        if form is not None:
            data = form.text.encode("utf-8", "surrogatepass")
            options.format, options.n_format = data, len(data)
            options.kind, options.any_order = form.kind_value, form.any_order
            options.open_objects = open_objects or form.open_objects
        found = ctypes.c_void_p()
        check(lib.frit_turn_grammar(byref(found), self.handle, byref(options)))
        return Handle(found, lib.frit_grammar_free, self.model) if found.value else None

    def push(self, text: str, chunk: Chunk, last: bool = False) -> None:
        data = text.encode("utf-8", "surrogatepass")
        if data:
            check(lib.frit_turn_push(self.handle, data, len(data)))
        if last:
            check(lib.frit_turn_end(self.handle))
        part = self._part
        while lib.frit_turn_next(self.handle, byref(part)):
            piece = decode(text_at(part.text, part.n_bytes))
            if part.kind == c.FRIT_PART_CALL:
                chunk.tool_calls.append(ToolCall(decode(part.id), decode(part.name), piece))
            elif part.kind == c.FRIT_PART_REASONING:
                chunk.reasoning += piece
            else:
                chunk.text += piece



class Text(Unique):
    """Turns tokens into chunks of text."""

    def __init__(self, model: Model, stop: Sequence[str], turn: Turn | None, follows: Sequence[int],
                 n_healed: int) -> None:
        self.model = model
        self.turn = turn
        self._stop = [s for s in stop if s]
        self._held = ""
        self._handle = ctypes.c_void_p()
        self._piece, self._n = ctypes.c_void_p(), ctypes.c_size_t()
        self._piece_at, self._n_at = byref(self._piece), byref(self._n)
        flags = c.FRIT_TEXT_SPECIAL if turn else 0
        check(lib.frit_text_stream_new(byref(self._handle), model._handle, flags))
        self._owned = Handle(self._handle, lib.frit_text_stream_free, model)
        self._n_skip = 0   # characters of the prompt's end that the answer spells again
        if follows:
            given = self._follow(follows[: len(follows) - n_healed])
            if n_healed:
                whole = Text(model, (), None, (), 0)
                self._n_skip = whole._follow(follows) - given
        self.stopped_by: str | None = None

    def _follow(self, tokens: Sequence[int]) -> int:
        """Pushes a prompt's tokens, so that the answer's first word keeps the space before it. Returns the length of
        their text."""
        return sum(len(self._push(token)) for token in tokens)

    def _push(self, token: int) -> str:
        status = lib.frit_text_stream_push(self._handle, token, self._piece_at, self._n_at)
        if status:
            check(status)
        return ctypes.string_at(self._piece.value or 0, self._n.value).decode("utf-8", "replace") if self._n.value else ""

    def _is_hidden(self, token: int) -> bool:
        turn = self.turn
        return turn is not None and not self.model.token_piece(token) and not lib.frit_turn_shows(turn.handle, token)

    def push(self, token: int, chunk: Chunk) -> bool:
        """Adds to the chunk the text that this token completes. True: a stop text was found, and the answer ends."""
        if self.turn is not None and self._is_hidden(token):
            return False
        return self._give(self._push(token), chunk, False)

    def end(self, chunk: Chunk) -> None:
        """Adds the text that was held back."""
        text = ""
        if self.stopped_by is None:
            check(lib.frit_text_stream_flush(self._handle, self._piece_at, self._n_at))
            text = decode(text_at(self._piece.value, self._n.value))
        if text or self._held or self.turn is not None:
            self._give(text, chunk, True)

    def _give(self, text: str, chunk: Chunk, last: bool) -> bool:
        if self._n_skip:
            n = min(self._n_skip, len(text))
            self._n_skip -= n
            text = text[n:]
        if self._stop and self.stopped_by is None:
            text = self._hold_back(self._held + text, last)
        if self.turn is None:
            chunk.text += text
        else:
            self.turn.push(text, chunk, last)
        return self.stopped_by is not None

    def _hold_back(self, text: str, last: bool) -> str:
        found = [(at, -len(stop), stop) for stop in self._stop if (at := text.find(stop)) >= 0]
        if found:
            at, _, self.stopped_by = min(found)
            self._held = ""
            return text[:at]
        keep = 0
        if not last:
            for stop in self._stop:
                for n in range(min(len(stop) - 1, len(text)), keep, -1):
                    if text.endswith(stop[:n]):
                        keep = n
                        break
        self._held = text[len(text) - keep:] if keep else ""
        return text[: len(text) - keep]
