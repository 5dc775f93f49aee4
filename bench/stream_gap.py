#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how long a generating session waits for its next token while other sessions run prompts.

Steps an engine with a random model and three sessions. One session generates, and two run prompts of 1,000 tokens again
and again. Prints median, 99th percentile and maximum of the time between two tokens of the generating session, without
and with the prompts.

    make && cmake --build --preset release --target frit_shared
    bench/stream_gap.py build/release/libfrit.so --threads 16 [--shape llama-1b] [--type q4_k_m]
        [--layers 0] [--cpu avx512vnni]
"""
import argparse
import ctypes as c
import statistics
import time

CONTEXT, PROMPT = 2048, 1000
OUTPUT_NONE = 1   # frit_output


class RandomOptions(c.Structure):   # frit_random_options, with room for later members
    _fields_ = [("shape", c.c_char_p), ("type", c.c_char_p), ("n_layers", c.c_int32), ("n_threads", c.c_int32),
                ("rest", c.c_uint64 * 16)]


class EngineOptions(c.Structure):   # frit_engine_options, with room for later members
    _fields_ = [("n_ctx", c.c_int32), ("n_sessions", c.c_int32), ("n_threads", c.c_int32), ("n_batch", c.c_int32),
                ("n_threads_batch", c.c_int32), ("cpu", c.c_char_p), ("rest", c.c_uint64 * 24)]


class PushOptions(c.Structure):   # frit_push_options, with room for later members
    _fields_ = [("output", c.c_int), ("rest", c.c_uint64 * 16)]


class Engine:
    def __init__(self, library, args):
        self.lib = c.CDLL(library)
        self.lib.frit_error.restype = c.c_char_p
        self.lib.frit_session_pending.restype = c.c_size_t
        self.n_pushed = 0
        model, self.engine = c.c_void_p(), c.c_void_p()
        shape = RandomOptions(shape=args.shape.encode(), type=args.type.encode(), n_layers=args.layers)
        options = EngineOptions(n_ctx=CONTEXT, n_sessions=3, n_threads=args.threads,
                                cpu=args.cpu.encode() if args.cpu else None)
        self.call("frit_model_open_random", c.byref(model), c.byref(shape), None)
        self.call("frit_engine_new", c.byref(self.engine), model, c.byref(options))

    def call(self, name, *args):
        if getattr(self.lib, name)(*args) != 0:
            raise SystemExit(f"stream_gap: {name}: {self.lib.frit_error().decode()}")

    def session(self):
        session = c.c_void_p()
        self.call("frit_session_new", c.byref(session), self.engine)
        return session

    def pending(self, session):
        return self.lib.frit_session_pending(session)

    def push(self, session, n, options=None):
        self.n_pushed += 1   # each prompt begins differently, so no token comes from the prefix cache
        tokens = (c.c_int32 * n)(*[5 + (7 * i + self.n_pushed) % 32000 for i in range(n)])
        self.call("frit_session_push", session, tokens, c.c_size_t(n), options)

    def truncate(self, session, n):
        self.call("frit_session_truncate", session, c.c_size_t(n))

    def step(self):
        self.call("frit_engine_step", self.engine, None)


def measure(engine, stream, prompts, seconds):
    gaps, last, n_prompt, start = [], None, 0, time.monotonic()
    while time.monotonic() - start < seconds:
        for session in prompts:
            if engine.pending(session) == 0:
                engine.truncate(session, 0)
                engine.push(session, PROMPT, c.byref(PushOptions(output=OUTPUT_NONE)))
                n_prompt += PROMPT
        engine.step()
        if engine.pending(stream) == 0:
            now = time.monotonic()
            if last is not None:
                gaps.append(now - last)
            last = now
            if len(gaps) % (CONTEXT // 2) == CONTEXT // 2 - 1:
                engine.truncate(stream, 32)
            engine.push(stream, 1)
    n_prompt -= sum(engine.pending(session) for session in prompts)
    ms = sorted(1000 * gap for gap in gaps)
    return (f"median {statistics.median(ms):.1f} ms, p99 {ms[int(0.99 * len(ms))]:.1f} ms, max {ms[-1]:.1f} ms; "
            f"prompts {n_prompt / seconds:.0f} tokens/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("library", help="path of libfrit.so")
    parser.add_argument("--shape", default="llama-1b", help="of frit bench --random (llama-1b)")
    parser.add_argument("--type", default="q4_k_m", help="of weights (q4_k_m)")
    parser.add_argument("--layers", type=int, default=0, help="the first layers; 0: all")
    parser.add_argument("--threads", type=int, default=0, help="0: as frit chooses")
    parser.add_argument("--cpu", help="best instruction set")
    args = parser.parse_args()
    engine = Engine(args.library, args)
    stream, prompts = engine.session(), [engine.session(), engine.session()]
    engine.push(stream, 32)
    for others, seconds in (([], 2), (prompts, 2)):   # a warm-up, which makes plans and measures the pace
        measure(engine, stream, others, seconds)
    for session in prompts:
        engine.truncate(session, 0)   # the rest of the warm-up must not run beside the stream
    print("alone:", measure(engine, stream, [], 4))
    print("with two prompts of 1,000 tokens:", measure(engine, stream, prompts, 10))


main()
