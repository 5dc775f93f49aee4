# SPDX-License-Identifier: MIT
"""The class Llama with llama-cpp-python's methods and keywords."""

from __future__ import annotations

import fnmatch
import inspect
import logging
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Generator, Iterator, Mapping, Sequence, cast

from ..engine import Engine
from ..model import Adapter
from ..names import pull
from ..results import Answer, TokenLogprob
from ..sampling import Sampler
from ..session import Session
from .._sinks import Stream
from . import _replies as replies
from ._settings import (
    POOLINGS,
    Watch,
    _choose,
    check_fixed,
    grammar_of,
    most_tokens,
    open_engine,
    open_model,
    sampler_of,
    speculation_of,
)
from ._types import BaseLlamaCache, LlamaGrammar, LlamaState, LlamaTokenizer


class Llama:
    """A model with llama-cpp-python's interface. Any thread may use it; completions share steps.

    The keywords are llama-cpp-python's, with differences: logprobs do not need logits_all; embeddings of a model
    without a pooling type are those of the last token; an unknown keyword raises TypeError, and one that frit does not
    support NotImplementedError.
    """

    def __init__(self, model_path: str, *, n_gpu_layers: int = 0, vocab_only: bool = False, use_mmap: bool = True,
                 seed: int = 0xFFFFFFFF, n_ctx: int = 512, n_batch: int = 512, n_ubatch: int = 512,
                 n_threads: int | None = None, n_threads_batch: int | None = None, rope_scaling_type: int | None = -1,
                 pooling_type: int = -1, rope_freq_base: float = 0.0, rope_freq_scale: float = 0.0,
                 yarn_ext_factor: float = -1.0, yarn_attn_factor: float = 1.0, yarn_beta_fast: float = 32.0,
                 yarn_beta_slow: float = 1.0, yarn_orig_ctx: int = 0, logits_all: bool = False,
                 embedding: bool = False, flash_attn: bool = False, op_offload: bool | None = None,
                 swa_full: bool | None = None, no_perf: bool = False, last_n_tokens_size: int = 64,
                 lora_scale: float = 1.0, lora_path: str | None = None, chat_format: str | None = None,
                 draft_model: Any = None, type_k: int | str | None = None, type_v: int | str | None = None,
                 spm_infill: bool = False, verbose: bool = True, **others: Any) -> None:
        given = {k: v for k, v in locals().items() if k not in ("self", "others")}
        check_fixed(others, list(inspect.signature(Llama.__init__).parameters))
        self._given = {**given, **others}
        settings = {**given, "rope_freq_base": rope_freq_base or 0.0, "rope_freq_scale": rope_freq_scale or 0.0,
                    "rope_scaling_type": -1 if rope_scaling_type is None else rope_scaling_type}
        if not verbose:
            logging.getLogger("frit").setLevel(logging.ERROR)
        self.model_path, self.verbose, self.chat_format = model_path, verbose, chat_format
        self.last_n_tokens_size, self.spm_infill, self.embedding = last_n_tokens_size, spm_infill, embedding
        self.draft_model, self.chat_handler, self.cache = draft_model, None, None
        self._speculate = speculation_of(draft_model)
        self._pooling = cast("str | None", _choose(POOLINGS, "pooling_type", pooling_type))
        self._seed, self.logits_all = seed, logits_all
        self._model = open_model(model_path, settings)
        self._engine: Engine | None = None if vocab_only else open_engine(self._model, settings)
        self.n_batch = n_batch
        info = self._engine.info if self._engine else None
        self._n_ctx = info.n_ctx if info else n_ctx
        self.n_threads, self.n_threads_batch = (info.n_threads, info.n_threads_batch) if info else (0, 0)
        # LlamaIndex reads this member. In llama-cpp-python it is a C struct.
        self.context_params = SimpleNamespace(n_ctx=self._n_ctx, n_batch=n_batch, embeddings=embedding)
        self._adapters = [(Adapter(self._model, lora_path), lora_scale)] if lora_path else []
        self._session: Session | None = None
        self._scores: list[Any] = []
        self.metadata = {key: value if isinstance(value, str) else str(value).lower() if isinstance(value, bool)
                         else str(value) for key, value in self._model.metadata.items()}

    def _require(self) -> Engine:
        if self._engine is None:
            raise RuntimeError("Llama: the model was opened with vocab_only=True, or is closed: it runs nothing")
        return self._engine

    # ------------------------------------------------------------------ text

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = False) -> list[int]:
        """Returns the tokens of UTF-8 text."""
        tokens = self._model.tokenize(text, special=False, parse_special=special)
        bos = self._model.token("bos")
        return [bos, *tokens] if add_bos and self._model.info.adds_bos and bos is not None else tokens

    def detokenize(self, tokens: Sequence[int], prev_tokens: Sequence[int] | None = None,
                   special: bool = False) -> bytes:
        """Returns the bytes of tokens. prev_tokens: the tokens before them, with which the first token keeps its
        space."""
        if prev_tokens:
            before = self._model.detokenize_bytes(prev_tokens, special=special)
            return self._model.detokenize_bytes([*prev_tokens, *tokens], special=special)[len(before):]
        return self._model.detokenize_bytes(tokens, special=special)

    def tokenizer(self) -> LlamaTokenizer:
        return LlamaTokenizer(self)

    @property
    def tokenizer_(self) -> LlamaTokenizer:
        return LlamaTokenizer(self)

    def n_ctx(self) -> int:
        """Returns the size of the context in tokens."""
        return self._n_ctx

    def n_embd(self) -> int:
        return self._model.info.n_embd

    def n_vocab(self) -> int:
        return self._model.info.n_vocab

    def token_eos(self) -> int:
        return self._token("eos")

    def token_bos(self) -> int:
        return self._token("bos")

    def token_nl(self) -> int:
        return self._token("newline")

    def _token(self, role: str) -> int:
        found = self._model.token(role)
        return -1 if found is None else found

    def pooling_type(self) -> int:
        """Returns the number of the pooling type that is used."""
        name = self._pooling or self._model.info.pooling
        return next((number for number, pooling in POOLINGS.items() if pooling == name), -1)

    # ------------------------------------------------------------------ completions

    def create_completion(self, prompt: str | list[int], suffix: str | None = None, max_tokens: int | None = 16,
                          temperature: float = 0.8, top_p: float = 0.95, min_p: float = 0.05, typical_p: float = 1.0,
                          logprobs: int | None = None, echo: bool = False, stop: str | list[str] | None = None,
                          frequency_penalty: float = 0.0, presence_penalty: float = 0.0, repeat_penalty: float = 1.0,
                          top_k: int = 40, stream: bool = False, seed: int | None = None, tfs_z: float = 1.0,
                          mirostat_mode: int = 0, mirostat_tau: float = 5.0, mirostat_eta: float = 0.1,
                          model: str | None = None, stopping_criteria: Any = None, logits_processor: Any = None,
                          grammar: LlamaGrammar | None = None, logit_bias: Mapping[Any, float] | None = None) -> Any:
        """Continues a prompt. Returns a dict in OpenAI's form, or an iterator of dicts if `stream` is true.

        max_tokens: None, 0 or a negative number: until the context ends. Raises ValueError if the prompt exceeds the
            context.
        """
        engine = self._require()
        watch = Watch(stopping_criteria, self.n_vocab()) if stopping_criteria else None
        sampler = self._sampler(temp=temperature, top_k=top_k, top_p=top_p, min_p=min_p, typical_p=typical_p,
                                repeat_penalty=repeat_penalty, frequency_penalty=frequency_penalty,
                                presence_penalty=presence_penalty, tfs_z=tfs_z, mirostat_mode=mirostat_mode,
                                mirostat_tau=mirostat_tau, mirostat_eta=mirostat_eta, seed=seed,
                                logit_bias=logit_bias, logits_processor=logits_processor, watch=watch)
        tokens = self._prompt(prompt, suffix)
        text = prompt if isinstance(prompt, str) else self.detokenize(prompt).decode("utf-8", "ignore")
        answer = self._start(engine, tokens, sampler, max_tokens, stop, grammar_of(self._model, grammar), logprobs, watch)
        reply = replies.Reply("text_completion", "cmpl", model or self.model_path)
        after = suffix or "" if self._model.token("fim_suffix") is None else ""
        if stream:
            return replies.completion_pieces(reply, self._model, iter(answer), 0 if echo else len(text),
                                             logprobs is not None, text if echo else "", after)
        return self._completion(reply, answer.result(), tokens, text if echo else "", len(text), after, logprobs)

    __call__ = create_completion

    def _completion(self, reply: replies.Reply, answer: Answer[Any], tokens: list[int], before: str, offset: int,
                    after: str, logprobs: int | None) -> dict[str, Any]:
        found = None
        if logprobs is not None:
            entries = ([*self._prompt_logprobs(tokens, logprobs)] if before else []) + answer.logprobs
            found = replies.legacy_logprobs(self._model, entries, 0 if before else offset, bool(before))
        choice = {"text": before + answer.text + after, "index": 0, "logprobs": found,
                  "finish_reason": replies.reason_of(answer.finish_reason)}
        return reply.whole(choice, answer.usage)

    def _prompt_logprobs(self, tokens: list[int], n_top: int) -> Iterator[TokenLogprob]:
        """Yields the log-probabilities of a prompt's tokens. The first token has 0, unless it is BOS, which is left
        out."""
        from ..logprobs import top_logprobs

        with self._require().session() as session:
            rows = session.all_logits(tokens)
        if tokens[0] != self._model.token("bos"):
            yield TokenLogprob(tokens[0], 0.0, [])
        for i, token in enumerate(tokens[1:]):
            yield top_logprobs(rows[i], token, n_top)

    def _start(self, engine: Engine, tokens: Sequence[int], sampler: Sampler, max_tokens: int | None,
               stop: str | Sequence[str] | None, grammar: Any, logprobs: int | None, watch: Watch | None) -> Stream[Any]:
        if len(tokens) >= self._n_ctx:
            raise ValueError(f"Requested tokens ({len(tokens)}) exceed context window of {self._n_ctx}")
        return engine.generate(tokens, sampler=sampler, max_tokens=most_tokens(max_tokens),
                               stop=stop or (), grammar=grammar, logprobs=logprobs, adapters=self._adapters,
                               speculate=self._speculate, until=watch.until if watch else None)

    def _prompt(self, prompt: str | Sequence[int], suffix: str | None) -> list[int]:
        if not isinstance(prompt, str):
            tokens = list(prompt)
        elif suffix is not None and (fill := self._infill(prompt, suffix)) is not None:
            return fill
        else:
            tokens = self.tokenize(prompt.encode("utf-8"), add_bos=True, special=True)
        bos = self._model.token("bos")
        return tokens or ([bos] if bos is not None else tokens)

    def _infill(self, prefix: str, suffix: str) -> list[int] | None:
        roles = [self._model.token(role) for role in ("fim_prefix", "fim_suffix", "fim_middle")]
        if any(token is None for token in roles):
            return None
        before, after, middle = (token for token in roles if token is not None)
        first = [before, *self.tokenize(prefix.encode("utf-8"), add_bos=False)]
        last = [after, *self.tokenize(suffix.encode("utf-8"), add_bos=False)]
        bos = self._model.token("bos")
        start = [bos] if self._model.info.adds_bos and bos is not None else []
        return start + (last + first if self.spm_infill else first + last) + [middle]

    def _sampler(self, *, seed: int | None = None, **options: Any) -> Sampler:
        return sampler_of(self._model, seed=self._seed if seed is None else seed, last_n=self.last_n_tokens_size, **options)

    # ------------------------------------------------------------------ chats

    def create_chat_completion(self, messages: Sequence[Mapping[str, Any]], functions: Sequence[Any] | None = None,
                               function_call: Any = None, tools: Sequence[Any] | None = None, tool_choice: Any = None,
                               temperature: float = 0.2, top_p: float = 0.95, top_k: int = 40, min_p: float = 0.05,
                               typical_p: float = 1.0, stream: bool = False, stop: str | list[str] | None = None,
                               seed: int | None = None, response_format: Mapping[str, Any] | None = None,
                               max_tokens: int | None = None, presence_penalty: float = 0.0,
                               frequency_penalty: float = 0.0, repeat_penalty: float = 1.0, tfs_z: float = 1.0,
                               mirostat_mode: int = 0, mirostat_tau: float = 5.0, mirostat_eta: float = 0.1,
                               model: str | None = None, logits_processor: Any = None,
                               grammar: LlamaGrammar | None = None, logit_bias: Mapping[Any, float] | None = None,
                               logprobs: bool | None = None, top_logprobs: int | None = None) -> Any:
        """Returns the answer to messages: a dict in OpenAI's form, or an iterator of dicts if `stream` is true."""
        if functions is not None:
            tools = [{"type": "function", "function": function} for function in functions]
            named = isinstance(function_call, Mapping)
            tool_choice = {"type": "function", "function": function_call} if named else function_call
        sampler = self._sampler(temp=temperature, top_k=top_k, top_p=top_p, min_p=min_p, typical_p=typical_p,
                                repeat_penalty=repeat_penalty, frequency_penalty=frequency_penalty,
                                presence_penalty=presence_penalty, tfs_z=tfs_z, mirostat_mode=mirostat_mode,
                                mirostat_tau=mirostat_tau, mirostat_eta=mirostat_eta, seed=seed,
                                logit_bias=logit_bias, logits_processor=logits_processor)
        answer = self._require().chat_stream(
            replies.with_tool_calls(messages), tools=tools or (), tool_choice=tool_choice, sampler=sampler,
            schema=grammar_of(self._model, grammar, response_format),
            max_tokens=most_tokens(max_tokens), stop=stop or (),
            logprobs=(top_logprobs or 0) if logprobs else None, adapters=self._adapters, speculate=self._speculate)
        reply = replies.Reply("chat.completion", "chatcmpl", model or self.model_path)
        is_legacy = functions is not None
        if stream:
            return replies.chat_pieces(reply, self._model, iter(answer), bool(logprobs), is_legacy)
        whole = answer.result()
        reason = replies.reason_of(whole.finish_reason)
        message = replies.chat_message(whole, is_legacy)
        if self.chat_format == "chatml-function-calling" and whole.tool_calls:   # this format has both
            message["function_call"] = replies.call_of(whole.tool_calls[0])["function"]
        return reply.whole({
            "index": 0, "message": message,
            "logprobs": replies.chat_logprobs(self._model, whole.logprobs) if logprobs else None,
            "finish_reason": "function_call" if is_legacy and reason == "tool_calls" else reason}, whole.usage)

    def create_chat_completion_openai_v1(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the result of `create_chat_completion` as objects of the package openai, which must be installed."""
        from openai.types.chat import ChatCompletion, ChatCompletionChunk

        found = self.create_chat_completion(*args, **kwargs)
        if kwargs.get("stream"):
            return (ChatCompletionChunk(**chunk) for chunk in found)
        return ChatCompletion(**found)

    # ------------------------------------------------------------------ embeddings

    def create_embedding(self, input: str | list[str], model: str | None = None) -> dict[str, Any]:
        """Returns embeddings in OpenAI's form."""
        vectors, n_tokens = self.embed(input if isinstance(input, list) else [input], return_count=True)
        return {"object": "list", "model": model or self.model_path,
                "data": [{"object": "embedding", "embedding": vector, "index": i} for i, vector in enumerate(vectors)],
                "usage": {"prompt_tokens": n_tokens, "total_tokens": n_tokens}}

    def embed(self, input: str | list[str], normalize: bool = False, truncate: bool = True,
              return_count: bool = False) -> Any:
        """Returns the vector of a text or the vectors of a list of texts. Raises RuntimeError unless embedding=True was
        given."""
        if not self.embedding:
            raise RuntimeError("Llama model must be created with embedding=True to call this method")
        texts = [input] if isinstance(input, str) else input
        tokens = [self._model.tokenize(text) for text in texts]
        if truncate:
            tokens = [ids[: self.n_batch] for ids in tokens]
        for ids in tokens:
            if len(ids) > self.n_batch:
                raise ValueError(f"Requested tokens ({len(ids)}) exceed batch size of {self.n_batch}")
        if self._pooling == "none":
            vectors = []
            for ids in tokens:
                with self._require().session() as session:
                    vectors.append(session.hidden_states(ids).tolist())
        else:
            vectors = self._require().embed(tokens, pooling=self._pooling,
                                            normalize="l2" if normalize else "none").tolist()
        found = vectors[0] if isinstance(input, str) else vectors
        return (found, sum(map(len, tokens))) if return_count else found

    # ------------------------------------------------------------------ token by token

    def _timeline(self) -> Session:
        if self._session is None:
            self._session = self._require().session()
            if self._adapters:
                self._session.set_adapters(self._adapters)
        return self._session

    @property
    def n_tokens(self) -> int:
        return len(self._session) if self._session else 0

    @property
    def input_ids(self) -> Any:
        """The tokens that `eval` has run, as a NumPy array."""
        import numpy as np

        return np.array(self._session.tokens if self._session else [], np.intc)

    _input_ids = input_ids

    @property
    def scores(self) -> Any:
        """The logits that `eval` has kept, [n_tokens, n_vocab]. Without logits_all, all rows but the last one are
        zeros."""
        import numpy as np

        rows = np.zeros((self.n_tokens, self.n_vocab()), np.float32)
        for at, values in self._scores:
            if at < len(rows):
                rows[at] = np.asarray(values)
        return rows

    @property
    def eval_tokens(self) -> list[int]:
        return self._session.tokens if self._session else []

    @property
    def eval_logits(self) -> list[list[float]]:
        rows: list[list[float]] = self.scores.tolist()
        return rows if self.logits_all else rows[-1:]

    def reset(self) -> None:
        """Forgets the tokens that `eval` has run."""
        self._scores = []
        if self._session is not None:
            self._session.truncate(0)

    def eval(self, tokens: Sequence[int]) -> None:
        """Runs tokens after those of earlier calls."""
        session = self._timeline()
        at = len(session)
        if at + len(tokens) > self._n_ctx:
            raise ValueError(f"Requested tokens ({at + len(tokens)}) exceed context window of {self._n_ctx}")
        if self.logits_all:
            if len(tokens) > 1:
                self._scores += [(at + i, row) for i, row in enumerate(session.all_logits(tokens[:-1]))]
        session.push(list(tokens)[-1:] if self.logits_all else list(tokens))
        last = (len(session) - 1, session.logits())
        self._scores = [*self._scores, last] if self.logits_all else [last]

    def sample(self, top_k: int = 40, top_p: float = 0.95, min_p: float = 0.05, typical_p: float = 1.0,
               temp: float = 0.80, repeat_penalty: float = 1.0, frequency_penalty: float = 0.0,
               presence_penalty: float = 0.0, tfs_z: float = 1.0, mirostat_mode: int = 0, mirostat_eta: float = 0.1,
               mirostat_tau: float = 5.0, penalize_nl: bool = True, logits_processor: Any = None,
               grammar: LlamaGrammar | None = None, idx: int | None = None) -> int:
        """Samples a token from the last logits, or with logits_all from those at place `idx`."""
        assert self.n_tokens > 0
        sampler = self._sampler(temp=temp, top_k=top_k, top_p=top_p, min_p=min_p, typical_p=typical_p,
                                repeat_penalty=repeat_penalty, frequency_penalty=frequency_penalty,
                                presence_penalty=presence_penalty, tfs_z=tfs_z, mirostat_mode=mirostat_mode,
                                mirostat_tau=mirostat_tau, mirostat_eta=mirostat_eta, logits_processor=logits_processor)
        return self._sample(sampler, grammar, idx)

    def _sample(self, sampler: Sampler, grammar: LlamaGrammar | None, idx: int | None) -> int:
        tokens = self._timeline().tokens
        sampler.timeline = lambda: tokens
        for token in tokens:
            sampler.accept(token)
        if grammar is not None:
            sampler.set_grammar(grammar_of(self._model, grammar))
        at = len(tokens) - 1 if idx is None else idx
        rows = dict(self._scores)
        if at not in rows:
            raise ValueError(f"idx {idx}: no logits were kept there; logits_all=True keeps them all")
        return sampler.sample(rows[at])

    def generate(self, tokens: Sequence[int], top_k: int = 40, top_p: float = 0.95, min_p: float = 0.05,
                 typical_p: float = 1.0, temp: float = 0.80, repeat_penalty: float = 1.0, reset: bool = True,
                 frequency_penalty: float = 0.0, presence_penalty: float = 0.0, tfs_z: float = 1.0,
                 mirostat_mode: int = 0, mirostat_tau: float = 5.0, mirostat_eta: float = 0.1,
                 penalize_nl: bool = True, logits_processor: Any = None, stopping_criteria: Any = None,
                 grammar: LlamaGrammar | None = None) -> Generator[int, Sequence[int] | None, None]:
        """Yields the tokens after a prompt. send() adds tokens of the caller after the last one."""
        sampler = self._sampler(temp=temp, top_k=top_k, top_p=top_p, min_p=min_p, typical_p=typical_p,
                                repeat_penalty=repeat_penalty, frequency_penalty=frequency_penalty,
                                presence_penalty=presence_penalty, tfs_z=tfs_z, mirostat_mode=mirostat_mode,
                                mirostat_tau=mirostat_tau, mirostat_eta=mirostat_eta, logits_processor=logits_processor)
        session = self._timeline()
        sampler.timeline = lambda: session.tokens
        if reset:
            self._rewind(list(tokens))
        else:
            self.eval(tokens)
        for token in session.tokens:
            sampler.accept(token)
        if grammar is not None:
            sampler.set_grammar(grammar_of(self._model, grammar))
        watch = Watch(stopping_criteria, self.n_vocab()) if stopping_criteria else None
        while len(session) < self._n_ctx:
            logits = self._scores[-1][1]
            token = sampler.sample(logits)
            if watch is not None:
                watch.scores = logits.numpy()
                if watch.until(session.tokens):
                    return
            sampler.accept(token)
            more = yield token
            for other in more or ():
                sampler.accept(other)
            self.eval([token, *(more or ())])

    def _rewind(self, tokens: list[int]) -> None:
        """Changes the timeline to `tokens`. Tokens after the common beginning are run."""
        session = self._timeline()
        n_same = min(self.longest_token_prefix(session.tokens, tokens), len(tokens) - 1)
        session.truncate(max(0, n_same))
        self._scores = [(at, row) for at, row in self._scores if at < n_same]
        self.eval(tokens[max(0, n_same):])

    def set_seed(self, seed: int) -> None:
        self._seed = seed

    def set_cache(self, cache: BaseLlamaCache | None) -> None:
        """Changes no computation: the engine has a prefix cache that all texts share."""
        if cache is not None and not isinstance(cache, BaseLlamaCache):
            raise NotImplementedError("set_cache: frit keeps beginnings in the engine, not in an object of the caller's")
        self.cache = cache  # type: ignore[assignment]

    # ------------------------------------------------------------------ states

    def save_state(self) -> LlamaState:
        """Returns the tokens that `eval` has run, with the session's state."""
        session = self._timeline()
        return LlamaState(session.tokens, len(session), session.state(), self._seed)

    def load_state(self, state: LlamaState) -> None:
        session = self._timeline()
        session.set_state(state.llama_state)
        self._seed = state.seed
        self._scores = [(len(session) - 1, session.logits())] if len(session) else []

    def __getstate__(self) -> dict[str, Any]:
        return self._given

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def close(self) -> None:
        """Frees the model and its memory at once."""
        self._session = None
        if getattr(self, "_engine", None) is not None:
            self._engine.close()  # type: ignore[union-attr]
            self._engine = None

    def __enter__(self) -> Llama:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ others

    @staticmethod
    def logits_to_logprobs(logits: Any, axis: int = -1) -> Any:
        """Returns the logarithms of the probabilities of logits. Needs NumPy."""
        import numpy as np

        values = np.asarray(logits, np.float32)
        values = values - values.max(axis=axis, keepdims=True)
        return values - np.log(np.exp(values).sum(axis=axis, keepdims=True))

    @staticmethod
    def longest_token_prefix(a: Sequence[int], b: Sequence[int]) -> int:
        """Returns the length of the common beginning of two token sequences."""
        n = 0
        for x, y in zip(a, b):
            if x != y:
                break
            n += 1
        return n

    @classmethod
    def from_pretrained(cls, repo_id: str, filename: str, additional_files: Sequence[str] | None = None,
                        local_dir: str | os.PathLike[str] | None = None, local_dir_use_symlinks: bool | str = "auto",
                        cache_dir: str | os.PathLike[str] | None = None, **kwargs: Any) -> Llama:
        """Downloads a file of a repository of the Hugging Face hub, by name or pattern, and opens it. Patterns and
        folders need the package huggingface-hub."""
        try:
            from huggingface_hub import HfApi, hf_hub_download
        except ImportError:
            if not any("*" in name or "?" in name for name in (filename, *(additional_files or ()))) and not (local_dir or cache_dir):
                for name in additional_files or ():
                    pull(f"hf:{repo_id}:{name}", update=False)
                return cls(model_path=f"hf:{repo_id}:{filename}", **kwargs)
            raise ImportError("Llama.from_pretrained needs the package huggingface-hub for patterns and folders: "
                              "pip install huggingface-hub, or name the file alone") from None
        names = HfApi().list_repo_files(repo_id)

        def fetch(pattern: str) -> str:
            found = [name for name in names if fnmatch.fnmatch(name, pattern)]
            if len(found) != 1:
                raise ValueError(f"{'No file' if not found else 'Multiple files'} found in {repo_id} that match "
                                 f"{pattern}\n\nAvailable Files:\n{names}")
            return str(hf_hub_download(repo_id, found[0], local_dir=local_dir, cache_dir=cache_dir))

        path = fetch(filename)
        for pattern in additional_files or ():
            fetch(pattern)
        return cls(model_path=str(Path(path)), **kwargs)
