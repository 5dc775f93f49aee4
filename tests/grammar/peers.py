#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares compiling schemas and making masks with llguidance, if that package is installed.

    peers.py PROGRAM MODEL [ROUNDS]

PROGRAM is test_grammar_mask. Both get the same schemas and the same vocabulary, which PROGRAM writes, and take turns.
llguidance's times include calls from Python (about 1 us each).
"""
import json
import random
import subprocess
import sys
import time

import llguidance


class Vocabulary:
    """What llguidance asks of a tokenizer. It is never asked to tokenize."""

    def __init__(self, tokens):
        self.tokens, self.eos_token_id, self.bos_token_id = tokens, 0, None

    def __call__(self, text):
        return []


def read(program, model):
    """The schemas, and the texts of tokens."""
    output = subprocess.run([program, "--words", model], capture_output=True, check=True, text=True)
    lines = output.stdout.splitlines()
    schemas = [line for line in lines if line.startswith("{")]
    return schemas, [bytes.fromhex(line[1:]) for line in lines if line.startswith("x")]


def compile_times(tokenizer, schema):
    """Milliseconds of the first and of half of the others."""
    times = []
    for _ in range(41):
        start = time.thread_time_ns()
        grammar = llguidance.LLMatcher.grammar_from_json_schema(schema, defaults={"whitespace_flexible": True})
        llguidance.LLMatcher(tokenizer, grammar)
        times.append((time.thread_time_ns() - start) * 1e-6)
    return times[0], sorted(times[1:])[20]


def mask_times(tokenizer, schema, n_masks):
    """Microseconds on average and at most, along random answers."""
    grammar = llguidance.LLMatcher.grammar_from_json_schema(schema, defaults={"whitespace_flexible": True})
    matcher = llguidance.LLMatcher(tokenizer, grammar)
    rng, total, most, n = random.Random(1), 0, 0, tokenizer.vocab_size
    for _ in range(n_masks):
        start = time.thread_time_ns()
        mask = matcher.compute_bitmask()
        took = time.thread_time_ns() - start
        total, most = total + took, max(most, took)
        t = rng.randrange(n)
        for _ in range(n):
            if t != 0 and mask[t // 8] >> (t % 8) & 1:
                break
            t = (t + 1) % n
        else:
            t = 0
        if t == 0 or not matcher.consume_token(t):
            matcher.reset()
    return total / n_masks * 1e-3, most * 1e-3


program, model = sys.argv[1:3]
schemas, tokens = read(program, model)
tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Vocabulary(tokens)))
for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 2):
    print(subprocess.run([program, "--bench", model], capture_output=True, check=True, text=True).stdout, end="")
    for schema in schemas:
        assert json.loads(schema)
        first, later = compile_times(tokenizer, schema)
        average, most = mask_times(tokenizer, schema, 1000)
        print(f"llguidance {llguidance.__version__}: first: {first:.2f} ms, later: compiled in {later:.2f} ms; "
              f"masks: {average:.2f} us on average, {most:.1f} us at most")
