# SPDX-License-Identifier: MIT
"""Small types that programs import from llama_cpp."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Sequence

LLAMA_DEFAULT_SEED = 0xFFFFFFFF
LLAMA_SPLIT_MODE_NONE, LLAMA_SPLIT_MODE_LAYER, LLAMA_SPLIT_MODE_ROW = 0, 1, 2
LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED = -1
LLAMA_ROPE_SCALING_TYPE_NONE, LLAMA_ROPE_SCALING_TYPE_LINEAR, LLAMA_ROPE_SCALING_TYPE_YARN = 0, 1, 2
LLAMA_POOLING_TYPE_UNSPECIFIED = -1
LLAMA_POOLING_TYPE_NONE, LLAMA_POOLING_TYPE_MEAN, LLAMA_POOLING_TYPE_CLS = 0, 1, 2
LLAMA_POOLING_TYPE_LAST, LLAMA_POOLING_TYPE_RANK = 3, 4
LLAMA_ATTENTION_TYPE_UNSPECIFIED = -1
GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1 = 0, 1, 2, 3, 6, 7
GGML_TYPE_Q8_0, GGML_TYPE_IQ4_NL, GGML_TYPE_BF16 = 8, 20, 30

LogitsProcessor = Callable[[Any, Any], Any]
StoppingCriteria = Callable[[Any, Any], bool]


class LogitsProcessorList(list[LogitsProcessor]):
    """A list of functions that change logits, called in order: f(input_ids, scores) -> scores, with NumPy arrays."""

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        for processor in self:
            scores = processor(input_ids, scores)
        return scores


class StoppingCriteriaList(list[StoppingCriteria]):
    """A list of functions that end an answer: f(input_ids, logits) -> bool."""

    def __call__(self, input_ids: Any, logits: Any) -> bool:
        return any(criterion(input_ids, logits) for criterion in self)


class MinTokensLogitsProcessor:
    """Bans the end token until the answer has a minimum of tokens."""

    def __init__(self, min_tokens: int, token_eos: int) -> None:
        self.min_tokens = min_tokens
        self.token_eos = token_eos
        self.prompt_tokens: int | None = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if self.prompt_tokens is None:
            self.prompt_tokens = len(input_ids)
        if len(input_ids) - self.prompt_tokens < self.min_tokens:
            scores[self.token_eos] = float("-inf")
        return scores


class LlamaGrammar:
    """The grammar of an answer, as GBNF or a JSON schema."""

    def __init__(self, *, _grammar: str, _kind: str = "gbnf") -> None:
        self._grammar = _grammar
        self._kind = _kind

    @classmethod
    def from_string(cls, grammar: str, verbose: bool = True) -> LlamaGrammar:
        return cls(_grammar=grammar)

    @classmethod
    def from_file(cls, file: str | Path, verbose: bool = True) -> LlamaGrammar:
        text = Path(file).read_text(encoding="utf-8")
        if not text:
            raise ValueError(f"{file}: the grammar is empty")
        return cls(_grammar=text)

    @classmethod
    def from_json_schema(cls, json_schema: str, verbose: bool = True) -> LlamaGrammar:
        json.loads(json_schema)
        return cls(_grammar=json_schema, _kind="schema")


class BaseLlamaCache:
    """A cache of beginnings in llama-cpp-python. frit's engine has a prefix cache of its own, which all texts share."""

    def __init__(self, capacity_bytes: int = 2 << 30) -> None:
        self.capacity_bytes = capacity_bytes

    @property
    def cache_size(self) -> int:
        """Always 0: the cached data is in the engine's memory."""
        return 0


class LlamaRAMCache(BaseLlamaCache):
    """Stands for the engine's own prefix cache, which is always used."""


LlamaCache = LlamaRAMCache


class LlamaDiskCache(BaseLlamaCache):
    """Raises NotImplementedError: `frit.Engine(prefix_disk="FOLDER:SIZE")` keeps beginnings on disk."""

    def __init__(self, cache_dir: str = ".cache/llama_cache", capacity_bytes: int = 2 << 30) -> None:
        raise NotImplementedError("LlamaDiskCache: frit keeps beginnings on disk with Engine(prefix_disk='FOLDER:SIZE')")


class LlamaDraftModel:
    """A method that guesses tokens. LlamaPromptLookupDecoding is the only one; `frit.Engine.generate(speculate=...)`
    takes draft models."""

    def __call__(self, input_ids: Any, /, **kwargs: Any) -> Any:
        raise NotImplementedError


class LlamaPromptLookupDecoding(LlamaDraftModel):
    """Guesses the tokens that followed an earlier occurrence of the last tokens. The number of guesses is chosen by
    measuring, and the numbers of this object are not used."""

    def __init__(self, max_ngram_size: int = 2, num_pred_tokens: int = 10) -> None:
        self.max_ngram_size = max_ngram_size
        self.num_pred_tokens = num_pred_tokens

    def __call__(self, input_ids: Any, /, **kwargs: Any) -> Any:
        """Returns the tokens that followed the longest earlier occurrence of the last tokens, as a NumPy array. A Llama
        does not call it."""
        import numpy as np

        ids = list(map(int, input_ids))
        for n in range(min(self.max_ngram_size, len(ids) - 1), 0, -1):
            for at in range(len(ids) - n):
                if ids[at: at + n] == ids[-n:]:
                    return np.array(ids[at + n: at + n + self.num_pred_tokens], np.intc)
        return np.array([], np.intc)


class LlamaState:
    """The state that `save_state` returns."""

    def __init__(self, input_ids: Sequence[int], n_tokens: int, llama_state: bytes, seed: int) -> None:
        self.input_ids = list(input_ids)
        self.n_tokens = n_tokens
        self.llama_state = llama_state
        self.llama_state_size = len(llama_state)
        self.seed = seed


class LlamaTokenizer:
    """The tokenizer of a Llama."""

    def __init__(self, llama: Any) -> None:
        self._llama = llama

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = True) -> list[int]:
        return self._llama.tokenize(text, add_bos, special)  # type: ignore[no-any-return]

    def detokenize(self, tokens: Sequence[int], prev_tokens: Sequence[int] | None = None,
                   special: bool = False) -> bytes:
        return self._llama.detokenize(tokens, prev_tokens, special)  # type: ignore[no-any-return]

    def encode(self, text: str, add_bos: bool = True, special: bool = True) -> list[int]:
        return self.tokenize(text.encode("utf-8", "ignore"), add_bos, special)

    def decode(self, tokens: Sequence[int]) -> str:
        return self.detokenize(tokens).decode("utf-8", "ignore")
