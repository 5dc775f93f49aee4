#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares compiling schemas and making masks with llguidance and XGrammar, where these packages are installed.

    peers.py PROGRAM MODEL [ROUNDS]

PROGRAM is test_grammar_mask. All three libraries get the schemas and the vocabulary that PROGRAM writes, and run one
after the other in each round. Times are processor time; those of the packages include calls from Python (about 1 us
each). XGrammar imports PyTorch and Transformers but computes masks in any array: without them it gets NumPy's arrays
(pip install --no-deps xgrammar; pip install apache-tvm-ffi numpy pydantic). A package has LIMIT seconds to compile a
schema.
"""
import importlib.metadata
import importlib.util
import json
import multiprocessing
import random
import statistics
import subprocess
import sys
import time
import types

N_COMPILED, N_MASKS, LIMIT = 41, 1000, 20


def stand_in_for_torch():
    """Makes modules with the names that xgrammar's files import."""
    import numpy
    torch, transformers = types.ModuleType("torch"), types.ModuleType("transformers")
    for name in ("int32", "int64", "float32"):
        setattr(torch, name, getattr(numpy, name))
    for name in ("Tensor", "LongTensor", "FloatTensor"):
        setattr(torch, name, numpy.ndarray)
    torch.bool, torch.dtype, torch.device = numpy.bool_, numpy.dtype, object
    torch.tensor, torch.full = numpy.array, numpy.full
    for name in ("PreTrainedTokenizerBase", "PreTrainedTokenizerFast", "LogitsProcessor"):
        setattr(transformers, name, type(name, (), {}))
    sys.modules.update(torch=torch, transformers=transformers)


def read(program, model):
    """Returns the schemas, and the texts of tokens."""
    output = subprocess.run([program, "--words", model], capture_output=True, check=True, text=True)
    lines = output.stdout.splitlines()
    schemas = [line for line in lines if line.startswith("{")]
    return schemas, [bytes.fromhex(line[1:]) for line in lines if line.startswith("x")]


class Llguidance:
    class Vocabulary:
        """The methods of a tokenizer that llguidance needs. It never tokenizes."""

        def __init__(self, tokens):
            self.tokens, self.eos_token_id, self.bos_token_id = tokens, 0, None

        def __call__(self, text):
            return []

    def __init__(self, tokens):
        import llguidance
        self.lib, self.name = llguidance, f"llguidance {llguidance.__version__}"
        self.tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(self.Vocabulary(tokens)))

    def compile(self, schema):
        grammar = self.lib.LLMatcher.grammar_from_json_schema(schema, defaults={"whitespace_flexible": True})
        return self.lib.LLMatcher(self.tokenizer, grammar)

    def mask(self, matcher):
        return matcher.compute_bitmask()

    def accept(self, matcher, token):
        return matcher.consume_token(token)


class XGrammar:
    def __init__(self, tokens):
        import tvm_ffi   # must be imported before the stand-in, which lacks functions that it needs
        if not importlib.util.find_spec("torch"):
            stand_in_for_torch()
        import xgrammar
        self.lib, self.name = xgrammar, f"XGrammar {importlib.metadata.version('xgrammar')}"
        info = xgrammar.TokenizerInfo(tokens, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[0])
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.bits = xgrammar.allocate_token_bitmask(1, len(tokens))

    def compile(self, schema):
        return self.lib.GrammarMatcher(self.compiler.compile_json_schema(schema, strict_mode=False))

    def mask(self, matcher):
        if not matcher.fill_next_token_bitmask(self.bits):
            self.bits.fill(-1)   # fill_next_token_bitmask does not fill it if all tokens are allowed
        return self.bits.view("uint8")[0]

    def accept(self, matcher, token):
        return matcher.accept_token(token)


def compiles(peer, schema):
    """Compiles a schema in a process of its own, which can be ended."""
    child = multiprocessing.get_context("fork").Process(target=peer.compile, args=(schema,))
    child.start()
    child.join(LIMIT)
    if child.is_alive():
        child.kill()
        child.join()
    return child.exitcode == 0


def compile_times(peer, schema):
    """Returns the milliseconds of the first compilation, and the median of later ones."""
    times = []
    while len(times) < N_COMPILED and sum(times) < 5000:
        start = time.process_time_ns()
        peer.compile(schema)
        times.append((time.process_time_ns() - start) * 1e-6)
    return times[0], statistics.median(times[1:] or times)


def mask_times(peer, schema, n_tokens):
    """Returns the average and the largest number of microseconds for a mask, along random answers."""
    matcher = peer.compile(schema)
    rng, total, most = random.Random(1), 0, 0
    for _ in range(N_MASKS):
        start = time.thread_time_ns()
        mask = peer.mask(matcher)
        took = time.thread_time_ns() - start
        total, most = total + took, max(most, took)
        t = rng.randrange(n_tokens)
        for _ in range(n_tokens):
            if t != 0 and mask[t // 8] >> (t % 8) & 1:
                break
            t = (t + 1) % n_tokens
        else:
            t = 0
        if t == 0 or not peer.accept(matcher, t):
            matcher.reset()
    return total / N_MASKS * 1e-3, most * 1e-3


program, model = sys.argv[1:3]
schemas, tokens = read(program, model)
packages = {"llguidance": Llguidance, "xgrammar": XGrammar}
peers = [peer(tokens) for package, peer in packages.items() if importlib.util.find_spec(package)]
if not peers:
    raise SystemExit("peers.py: neither llguidance nor xgrammar is installed")
for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 2):
    print(subprocess.run([program, "--bench", model], capture_output=True, check=True, text=True).stdout, end="")
    for schema in schemas:
        assert json.loads(schema)
        for peer in peers:
            if not compiles(peer, schema):
                print(f"{peer.name}: not compiled within {LIMIT} s", flush=True)
                continue
            first, later = compile_times(peer, schema)
            average, most = mask_times(peer, schema, len(tokens))
            print(f"{peer.name}: first: {first:.2f} ms, later: compiled in {later:.2f} ms; "
                  f"masks: {average:.2f} us on average, {most:.1f} us at most", flush=True)
