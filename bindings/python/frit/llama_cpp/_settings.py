# SPDX-License-Identifier: MIT
"""Converts keywords of llama-cpp-python to frit's options. A keyword that frit does not support raises an exception."""

from __future__ import annotations

import difflib
import weakref
from typing import Any, Callable, Mapping

from .._arguments import integer, number, show
from ..engine import Engine
from ..model import Model
from ..sampling import Candidates, Grammar, Sampler
from ._formats import template_file
from ._types import LlamaGrammar, LlamaPromptLookupDecoding

CACHE_TYPES = {0: "f32", 1: "f16", 2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 8: "q8_0", 20: "iq4_nl", 30: "bf16"}
ROPE_SCALINGS = {-1: None, 0: "none", 1: "linear", 2: "yarn"}
POOLINGS = {-1: None, 0: "none", 1: "mean", 2: "cls", 3: "last", 4: "rank"}

# keyword -> the values that change nothing, and the reason why others are refused
FIXED: dict[str, tuple[tuple[Any, ...], str]] = {
    "split_mode": ((0, 1), "frit divides a model between devices by layers"),
    "main_gpu": ((0,), "frit uses the first GPU"),
    "tensor_split": ((None,), "frit divides layers by the memory that devices have"),
    "use_mlock": ((False,), "frit does not lock memory"),
    "kv_overrides": ((None,), "frit does not change a model's metadata"),
    "attention_type": ((-1,), "a model's attention is what its file says"),
    "offload_kqv": ((True,), "keys and values are where their layer is"),
    "lora_base": ((None,), "adapters are applied to the model that is opened"),
    "numa": ((False, True, 0, 1), "frit places memory itself on machines with several nodes"),
    "chat_handler": ((None,), "chats are what the model's template makes of them; images are not read"),
    "tokenizer": ((None,), "texts become tokens by the model's own vocabulary"),
    # Keywords of earlier versions; LangChain still names some of them.
    "n_parts": ((-1, 1), "the number of a model's files is found"),
    "f16_kv": ((True, False), "type_k and type_v name the types of the cache"),   # ignored for years
    "mul_mat_q": ((None, True), "products are chosen by the device"),
    "low_vram": ((False,), "n_gpu_layers says what runs on the GPU"),
    "n_gqa": ((None,), "the model's file says it"),
    "device": ((None, "cpu"), "n_gpu_layers says what runs on the GPU"),
    "rms_norm_eps": ((None,), "the model's file says it"),
}
# Keywords that change how a result is computed, but not the result: any value is allowed.
HINTS = ("n_ubatch", "flash_attn", "op_offload", "no_perf")


def check_fixed(values: Mapping[str, Any], known: list[str]) -> None:
    """Raises an exception for unknown keywords and for values that frit does not support."""
    for name, value in values.items():
        if name not in FIXED:
            near = difflib.get_close_matches(name, [*known, *FIXED], 1)
            raise TypeError(f"Llama: the keyword '{name}' is unknown" + (f"; did you mean '{near[0]}'?" if near else ""))
        allowed, why = FIXED[name]
        if value not in allowed:
            raise NotImplementedError(f"Llama: {name}={value!r} cannot be had: {why}")


def _choose(table: Mapping[int, Any], name: str, value: Any) -> Any:
    if isinstance(value, str) and value in table.values():
        return value
    if value not in table:
        raise NotImplementedError(f"Llama: {name}={value!r} cannot be had: expected one of {sorted(table)}")
    return table[value]


def open_model(path: str, settings: Mapping[str, Any]) -> Model:
    """Opens the model that the keywords describe. Raises ValueError if the file does not exist, as llama-cpp-python
    does."""
    try:
        return Model(
            path, vocab_only=settings["vocab_only"], use_mmap=settings["use_mmap"],
            chat_template=template_file(settings["chat_format"]),
            rope_scaling=_choose(ROPE_SCALINGS, "rope_scaling_type", settings["rope_scaling_type"]),
            rope_freq_base=settings["rope_freq_base"], rope_freq_scale=settings["rope_freq_scale"],
            yarn_ext_factor=max(0.0, settings["yarn_ext_factor"]),
            yarn_attn_factor=0 if settings["yarn_attn_factor"] == 1 else settings["yarn_attn_factor"],
            yarn_beta_fast=0 if settings["yarn_beta_fast"] == 32 else settings["yarn_beta_fast"],
            yarn_beta_slow=0 if settings["yarn_beta_slow"] == 1 else settings["yarn_beta_slow"],
            yarn_orig_ctx=settings["yarn_orig_ctx"])
    except FileNotFoundError as failure:
        raise ValueError(f"Model path does not exist: {path}") from failure


def open_engine(model: Model, settings: Mapping[str, Any]) -> Engine:
    """Makes the engine that the keywords describe. It has room for two texts: the timeline of `eval` and a
    completion."""
    layers = settings["n_gpu_layers"]
    types = {name: None if settings[name] is None else _choose(CACHE_TYPES, name, settings[name])
             for name in ("type_k", "type_v")}
    return Engine(
        model, n_ctx=settings["n_ctx"], n_sessions=2, n_batch=settings["n_batch"],
        n_threads=settings["n_threads"] or 0, n_threads_batch=settings["n_threads_batch"] or 0,
        device="cpu" if layers == 0 else None, gpu_layers="all" if layers < 0 else layers or None,
        cache_type_k=types["type_k"], cache_type_v=types["type_v"], full_windows=bool(settings["swa_full"]))


def speculation_of(draft: Any) -> str | None:
    """Returns frit's name for the method of a draft model."""
    if draft is None:
        return None
    if isinstance(draft, LlamaPromptLookupDecoding):
        return "ngram"
    raise NotImplementedError("Llama: draft_model: only LlamaPromptLookupDecoding can be had here; "
                              "frit.Engine.generate(speculate=...) takes a draft model")


def processor_stage(processors: Any, n_vocab: int, own: Callable[[], Sampler | None]) -> Callable[[Candidates], None]:
    """Returns a stage of a sampler that runs logits processors."""
    import numpy as np

    calls = processors if callable(processors) else None

    def stage(candidates: Candidates) -> None:
        items = candidates.numpy()
        scores = np.full(n_vocab, -np.inf, np.float32)
        scores[items["token"]] = items["logit"]
        sampler = own()
        ids = np.array(sampler.timeline() if sampler else [], np.intc)
        if calls is not None:
            scores = calls(ids, scores)
        else:
            for processor in processors:
                scores = processor(ids, scores)
        items["logit"] = np.asarray(scores, np.float32)[items["token"]]

    return stage


class Watch:
    """Keeps the logits of each token for stopping criteria."""

    def __init__(self, criteria: Any, n_vocab: int) -> None:
        self.criteria = criteria if callable(criteria) else None
        self.list = () if callable(criteria) else tuple(criteria)
        self.n_vocab = n_vocab
        self.scores: Any = None

    def see(self, candidates: Candidates) -> None:
        import numpy as np

        items = candidates.numpy()
        self.scores = np.full(self.n_vocab, -np.inf, np.float32)
        self.scores[items["token"]] = items["logit"]

    def until(self, tokens: list[int]) -> bool:
        import numpy as np

        ids = np.array(tokens, np.intc)
        if self.criteria is not None:
            return bool(self.criteria(ids, self.scores))
        return any(criterion(ids, self.scores) for criterion in self.list)


def sampler_of(model: Model, *, temp: float, top_k: int, top_p: float, min_p: float, typical_p: float,
               repeat_penalty: float, frequency_penalty: float, presence_penalty: float, tfs_z: float,
               mirostat_mode: int, mirostat_tau: float, mirostat_eta: float, seed: int, last_n: int,
               logit_bias: Mapping[Any, float] | None = None, logits_processor: Any = None,
               watch: Watch | None = None) -> Sampler:
    """Makes a sampler from llama-cpp-python's parameters. Values that the model's file recommends are ignored."""
    made: list[weakref.ref[Sampler]] = []   # a weak reference, since the sampler holds the stage
    stages: list[Callable[[Candidates], None]] = []
    if logits_processor:
        stages.append(processor_stage(logits_processor, model.info.n_vocab, lambda: made[0]()))
    if watch is not None:
        stages.append(watch.see)

    def run(candidates: Candidates) -> None:
        for stage in stages:
            stage(candidates)

    top_k = integer("top_k", top_k)
    if number("temperature", temp) < 0:   # a negative temperature draws from unchanged probabilities
        temp, top_k, top_p, min_p, typical_p, tfs_z, mirostat_mode = 1, 0, 1, 0, 1, 1, 0
    order = "custom,penalties,top-k,tfs,typical,top-p,min-p,temp" if stages else None
    sampler = Sampler(
        model, recommended=False, seed=None if seed == 0xFFFFFFFF else seed, temperature=temp, top_k=max(0, top_k),
        top_p=top_p, min_p=min_p, typical_p=typical_p, tfs_z=tfs_z, repeat_penalty=repeat_penalty,
        frequency_penalty=frequency_penalty, presence_penalty=presence_penalty, repeat_last_n=last_n,
        mirostat=mirostat_mode, mirostat_tau=mirostat_tau, mirostat_eta=mirostat_eta, samplers=order,
        logit_bias={int(token): bias for token, bias in logit_bias.items()} if logit_bias else None,
        stage=run if stages else None)
    made.append(weakref.ref(sampler))
    return sampler


def most_tokens(max_tokens: int | None) -> int | None:
    """Returns frit's max_tokens: None, 0 and negative numbers set no limit."""
    most = 0 if max_tokens is None else integer("max_tokens", max_tokens)
    return most if most > 0 else None


def grammar_of(model: Model, grammar: LlamaGrammar | None, response_format: Mapping[str, Any] | None = None) -> Grammar | None:
    """Returns the grammar of an answer: the caller's, or the one of a response format."""
    if grammar is not None:
        if not isinstance(grammar, LlamaGrammar):
            raise TypeError(f"grammar: found {show(grammar)}, expected a LlamaGrammar, as of LlamaGrammar.from_string")
        return Grammar(model, grammar._grammar, kind=grammar._kind)
    kind = (response_format or {}).get("type", "text")
    if response_format is None or kind == "text":
        return None
    if kind == "json_object":
        return Grammar(model, response_format.get("schema") or {"type": "object"}, kind="schema")
    if kind == "json_schema":
        return Grammar(model, response_format["json_schema"].get("schema", {}), kind="schema")
    raise ValueError(f"response_format: the type '{kind}' is unknown; expected text, json_object or json_schema")
