# SPDX-License-Identifier: MIT
"""Generates texts on a device with a queue: one at a time, together, and in sessions. test_ahead.py runs it in a process
whose loader finds the emulated GPU."""

from __future__ import annotations

import json
import sys

import frit

PROMPTS = ["Once upon a time", "The little dog", "A bird", "Lily and Ben went to the park"]
OPTIONS = {"max_tokens": 10, "temperature": 0.8, "top_k": 20, "seed": 7, "repeat_penalty": 1.1}


def tokens_of(stream: frit.Stream) -> list[int]:
    return [token for chunk in stream for token in chunk.tokens]


def main() -> None:
    model = frit.Model(sys.argv[1])
    calls = {"advance": 0, "step": 0}
    lib = frit._library.lib

    def count(name: str, key: str) -> None:
        function = getattr(lib, name)

        def call(*arguments: object) -> int:
            calls[key] += 1
            return int(function(*arguments))

        setattr(lib, name, call)

    count("frit_engine_advance", "advance")
    count("frit_engine_step", "step")
    with frit.Engine(model, n_ctx=256, n_sessions=8, device="cuda", gpu_layers="all", deterministic=True) as engine:
        alone = [tokens_of(engine.generate(prompt, **OPTIONS)) for prompt in PROMPTS]
        before = dict(calls)
        streams = [engine.generate(prompt, **OPTIONS) for prompt in PROMPTS]
        together = [tokens_of(stream) for stream in streams]
        n_steps = calls["advance"] - before["advance"]
        # Sessions keep what their answers have, and go on from there.
        sessions = [engine.session() for _ in PROMPTS]
        lent = [session.generate(prompt, **OPTIONS) for session, prompt in zip(sessions, PROMPTS)]
        first = next(iter(lent[0]))
        lent[0].close()
        of_sessions = [tokens_of(stream) for stream in lent[1:]]
        lengths = [len(session) for session in sessions]
        more = tokens_of(sessions[1].generate(**OPTIONS))
        print(json.dumps({"backend": engine.info.backend, "alone": alone, "together": together, "steps": n_steps,
                          "plain_steps": calls["step"], "of_sessions": of_sessions, "lengths": lengths,
                          "first": first.tokens, "prompts": [len(model.tokenize(p)) for p in PROMPTS], "more": more}))


if __name__ == "__main__":
    main()
