# SPDX-License-Identifier: MIT
"""The types of keyword arguments that calls pass on, for editors and type checkers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, TypedDict, Union

if TYPE_CHECKING:
    import os

    from .engine import Engine
    from .model import Adapter
    from .sampling import Grammar, Sampler, Stage

    Adapters = Sequence[Union[Adapter, "tuple[Adapter, float]"]]
    Until = Callable[[list[int]], bool]


class SamplerNumbers(TypedDict, total=False):
    """The numeric options of a sampler. `frit.Sampler` describes them."""

    temp: float
    dynatemp_range: float
    dynatemp_exponent: float
    top_k: int
    top_p: float
    min_p: float
    top_n_sigma: float
    typical: float
    typical_p: float
    tfs: float
    tfs_z: float
    xtc_probability: float
    xtc_threshold: float
    repeat_penalty: float
    frequency_penalty: float
    presence_penalty: float
    repeat_last_n: int
    no_penalize_nl: bool
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    adaptive_target: float
    adaptive_decay: float
    mirostat: int
    mirostat_tau: float
    mirostat_eta: float
    sampler_seq: str | None
    samplers: str | None


class SamplerOptions(SamplerNumbers, total=False):
    """All options of a sampler."""

    temperature: float | None
    seed: int | None
    logit_bias: Mapping[int, float] | None
    stage: Stage | None
    recommended: bool
    dry_sequence_breakers: Iterable[str] | None


class GenerateOptions(SamplerOptions, total=False):
    """Options of `Engine.generate`."""

    max_tokens: int | None
    stop: str | Sequence[str]
    sampler: Sampler | None
    grammar: Grammar | None
    logprobs: int | None
    adapters: Adapters
    speculate: str | Engine | None
    ignore_end: bool
    heal: bool
    salt: bytes
    weight: int
    priority: int
    context_shift: int | None
    until: Until | None


class AnswerOptions(SamplerOptions, total=False):
    """Options of an answer in a chat."""

    max_tokens: int | None
    stop: str | Sequence[str]
    sampler: Sampler | None
    logprobs: int | None
    adapters: Adapters
    speculate: str | Engine | None
    ignore_end: bool
    salt: bytes
    weight: int
    priority: int
    context_shift: int | None


class ChatOptions(AnswerOptions, total=False):
    """Options of a chat, without the form of its answer."""

    tools: Sequence[Any]
    tool_choice: Any
    template: Mapping[str, Any] | None
    continue_final_message: bool
    parallel_tool_calls: bool
    open_objects: bool
    image_tokens: int | None


class EngineOptions(TypedDict, total=False):
    """Options of `Engine`, which `load` also takes."""

    n_ctx: int
    n_sessions: int
    n_threads: int
    n_batch: int
    n_threads_batch: int
    cpu: str | None
    cache_type_k: str | None
    cache_type_v: str | None
    numa: str | None
    weights_cache: str | os.PathLike[str] | None
    n_state_copies: int
    prompt_budget: int
    device: str | None
    gpu_layers: int | str | None
    override_tensor: str | None
    deterministic: bool
    full_windows: bool
    prefix_cache: bool
    prefix_host_mib: int
    fit: str | None
    prefix_disk: str | None
    split: str | None
