# SPDX-License-Identifier: MIT
"""Engines: models that are loaded on this machine, and generate, chat, embed and rerank."""

from __future__ import annotations

import ctypes
import re
import weakref
from ctypes import byref
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Sequence, TypeVar, Union, overload

from . import _declarations as c
from ._arguments import (
    check_names,
    chosen,
    content,
    flag,
    function,
    instance,
    integer,
    number,
    options_of,
    path_of,
    refuse,
    sequence,
    show,
    token_array,
)
from ._chat import conversation_of, form_of
from ._core import Core
from ._handle import Unique
from ._jobs import Job
from .image import Pictures, take_images
from ._library import callback, check, decode, lib
from ._options import ChatOptions, EngineOptions, GenerateOptions, SamplerOptions
from ._sinks import AsyncStream, Stream, loop_sink, thread_sink
from ._tensor import Tensor
from ._text import Turn
from .model import Adapter, Message, Model, Path, Progress, Watch
from .errors import InvalidError
from .results import Answer
from .sampling import Grammar, Sampler
from .session import Session

if TYPE_CHECKING:
    from typing_extensions import Never, Unpack

T = TypeVar("T")   # the type of the answer's object
Prompt = Union[str, Sequence[int]]
Messages = Union[str, Sequence[Message]]
Adapters = Sequence[Union[Adapter, "tuple[Adapter, float]"]]
Until = Callable[["list[int]"], bool]


@dataclass(frozen=True)
class EngineInfo:
    """The sizes of an engine. `kv_bytes` is reserved for keys and values, `kv_token_bytes` is the part of one token."""

    backend: str
    isa: str
    n_ctx: int
    n_threads: int
    n_batch: int
    n_threads_batch: int
    kv_bytes: int
    kv_token_bytes: int
    scratch_bytes: int
    weight_bytes: int
    packed_bytes: int


class Engine(Unique):
    """A model that is loaded on this machine, with room for keys and values. Any thread may call it; texts share its
    steps.

    n_ctx: most tokens of one text; 0: the context that the model was trained for, if memory allows.
    n_sessions: the number of texts of full length for which the cache has room.
    n_threads: 0: one per fast core. n_threads_batch: threads that run prompts; 0: n_threads if that is given, else one
        per core.
    n_batch: most rows of one step; 0: 512.
    cache_type_k, cache_type_v: "f16" (None), "f32", "q8_0", "q4_0", ...
    device: "cpu", or the device beside it ("cuda"); None: the device of this machine, if it has one. gpu_layers: a
        number, "all" or "auto" (None). split: how several devices ("cuda:0-3", "cuda:0,2") divide the model: "tensor",
        "layer" or "auto" (None).
    override_tensor, numa, weights_cache, prefix_disk, prefix_host_mib, prompt_budget, n_state_copies, fit,
        deterministic, full_windows: options that `frit serve --help` explains.
    prefix_cache: False: a text does not reuse the beginning of another text that has run.
    progress: called with 0 to 1 while weights are loaded; returning False cancels (CancelledError).

    Raises OutOfMemoryError with sizes if the model does not fit, InvalidError for values outside their limits.
    """

    def __init__(self, model: Model, *, n_ctx: int = 0, n_sessions: int = 1, n_threads: int = 0, n_batch: int = 0,
                 n_threads_batch: int = 0, cpu: str | None = None, cache_type_k: str | None = None,
                 cache_type_v: str | None = None, numa: str | None = None, weights_cache: Path | None = None,
                 n_state_copies: int = 0, prompt_budget: int = 0, device: str | None = None,
                 gpu_layers: int | str | None = None, override_tensor: str | None = None, deterministic: bool = False,
                 full_windows: bool = False, prefix_cache: bool = True,
                 prefix_host_mib: int = 0, fit: str | None = None, prefix_disk: str | None = None,
                 split: str | None = None, progress: Progress | None = None,
                 **unknown: Never) -> None:
        refuse(Engine, unknown)
        instance("model", model, Model, "frit.load with a path")
        watch = Watch(progress)
        layers = gpu_layers if gpu_layers is None or isinstance(gpu_layers, str) else str(integer("gpu_layers", gpu_layers, 0))
        options = options_of(
            c.frit_engine_options, n_ctx=integer("n_ctx", n_ctx, 0), n_sessions=integer("n_sessions", n_sessions, 0),
            n_threads=integer("n_threads", n_threads, 0), n_batch=integer("n_batch", n_batch, 0),
            n_threads_batch=integer("n_threads_batch", n_threads_batch, 0), cpu=cpu, cache_type_k=cache_type_k,
            cache_type_v=cache_type_v, numa=numa,
            weights_cache=None if weights_cache is None else path_of("weights_cache", weights_cache),
            n_state_copies=n_state_copies, progress=watch.function, prompt_budget=prompt_budget, device=device,
            gpu_layers=layers, override_tensor=override_tensor, deterministic=deterministic, full_windows=full_windows,
            prefix_host_mib=integer("prefix_host_mib", prefix_host_mib, 0), fit=fit, prefix_disk=prefix_disk,
            split=split,
        )
        options.no_prefix_cache = not flag("prefix_cache", prefix_cache)
        handle = ctypes.c_void_p()
        try:
            watch.check(lib.frit_engine_new(byref(handle), model._handle, byref(options)))
        except InvalidError as failure:
            raise InvalidError(_as_keywords(str(failure))) from None
        self.model = model
        self._core = Core(handle, model)
        self._free = weakref.finalize(self, Core.close, self._core)
        self._free.atexit = False   # engines are closed by _core before the program ends
        self._info: EngineInfo | None = None

    # ------------------------------------------------------------------ the engine

    @property
    def info(self) -> EngineInfo:
        """The engine's sizes when it was made. `read_info()` gives the current ones."""
        return self._info or self.read_info()

    def read_info(self) -> EngineInfo:
        """Returns the engine's current sizes. Buffers grow with the steps that ran."""
        raw = c.frit_engine_info()
        self._core.call(lambda: check(lib.frit_engine_get_info(self._core.handle, byref(raw))))
        values = {name: getattr(raw, name) for name in EngineInfo.__dataclass_fields__}
        texts: dict[str, Any] = {k: decode(v) if isinstance(v, bytes) else v for k, v in values.items()}
        self._info = EngineInfo(**texts)
        return self._info

    def close(self) -> None:
        """Ends the worker and frees the memory at once. Streams that still run end with an error."""
        self._core.check_outside()
        self._free()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<frit.Engine of {self.model!r}: {self.info.n_ctx} tokens on {self.info.backend}>"

    def session(self) -> Session:
        """Makes a timeline of tokens. Raises LimitError if the cache has no room for its state."""
        return Session(self)

    @property
    def n_streams(self) -> int:
        """The number of texts that are being generated or wait for a place."""
        scheduler = self._core._scheduler   # None: no text was generated yet, or the engine is closed
        return sum(not job.done for job in [*scheduler.running, *scheduler.waiting]) if scheduler else 0

    # ------------------------------------------------------------------ generation

    def generate(self, prompt: Prompt, *, max_tokens: int | None = None, stop: str | Sequence[str] = (),
                 sampler: Sampler | None = None, grammar: Grammar | None = None, logprobs: int | None = None,
                 adapters: Adapters = (), speculate: str | Engine | None = None, ignore_end: bool = False,
                 heal: bool = False, salt: bytes = b"", weight: int = 1, priority: int = 0,
                 context_shift: int | None = None, until: Until | None = None,
                 **sampling: Unpack[SamplerOptions]) -> Stream[Any]:
        """Continues a text and returns a stream of chunks. No chat template is used.

        prompt: a text, which gets BOS if the model asks for it, or tokens, which are used unchanged.
        max_tokens: most tokens of the answer; None: the answer may go on until it or the context ends.
        stop: texts that end the answer. They are not part of it.
        sampler: a `frit.Sampler`; or its options instead: temperature, top_k, top_p, min_p, seed, logit_bias, ...
        grammar: the grammar that the answer must match. logprobs: the number of likeliest tokens that are reported at
            each place; 0: only the picked token.
        adapters: LoRA adapters, each alone or with a scale. speculate: "ngram", or the engine of a draft model.
        heal: the answer may begin within the prompt's last word. ignore_end: the answer continues after tokens that
            would end it.
        salt: a text reuses the beginnings of texts with an equal salt only. weight, priority: the text's share of
            steps.
        context_shift: the number of first tokens that stay when the context is full, while the oldest other tokens are
            dropped; None: the answer ends.
        until: a function that gets the tokens of prompt and answer before each token; returning True ends the answer.
        """
        queue: SimpleQueue[list[Any]] = SimpleQueue()
        job = self._job(prompt, thread_sink(queue), max_tokens=max_tokens, stop=stop, sampler=sampler, grammar=grammar,
                        logprobs=logprobs, adapters=adapters, speculate=speculate, ignore_end=ignore_end, heal=heal, salt=salt,
                        weight=weight, priority=priority, context_shift=context_shift, until=until, **sampling)
        self._core.add(job)
        return Stream(job, queue)

    def agenerate(self, prompt: Prompt, **options: Unpack[GenerateOptions]) -> AsyncStream[Any]:
        """Continues a text, for asyncio: `async for chunk in engine.agenerate(...)`, or
        `await engine.agenerate(...).text()`. The options are those of `generate`."""
        import asyncio

        queue: asyncio.Queue[Any] = asyncio.Queue()
        job = self._job(prompt, loop_sink(asyncio.get_running_loop(), queue), **options)
        self._core.add(job)
        return AsyncStream(job, queue)

    def _job(self, prompt: Prompt, sink: Callable[[Any], None], *, max_tokens: int | None = None,
             stop: str | Sequence[str] = (), sampler: Sampler | None = None, grammar: Grammar | None = None,
             logprobs: int | None = None, adapters: Adapters = (), speculate: str | Engine | None = None,
             ignore_end: bool = False, heal: bool = False, salt: bytes = b"", weight: int = 1, priority: int = 0,
             context_shift: int | None = None, until: Until | None = None, **sampling: Unpack[SamplerOptions]) -> Job:
        tokens = tokens_of(self.model, "prompt", prompt)
        if not tokens:
            raise InvalidError(f"prompt: found {show(prompt)}, which has no token; expected one or more")
        job = Job(self, tokens, self._sampler("generate", GenerateOptions, sampler, sampling),
                  sink, max_tokens=max_tokens, stop=stop, logprobs=logprobs, adapters=with_scales(adapters), salt=salt,
                  weight=weight, priority=priority, speculate=speculation(speculate, self), heal=heal,
                  ignore_end=ignore_end, shift=context_shift)
        job.grammar, job.until = grammar_of(grammar), function("until", until)
        job.schema = grammar
        return job

    def _sampler(self, what: str, known: Any, sampler: Sampler | None, options: Mapping[str, Any]) -> Sampler:
        check_names(what, options, known.__annotations__)
        if sampler is None:
            return Sampler(self.model, **options)
        if options:
            raise TypeError(f"{what}: '{next(iter(options))}' is an option of the sampler that is given: set it there")
        return instance("sampler", sampler, Sampler)  # type: ignore[no-any-return]

    def generate_batch(self, prompts: Iterable[Prompt], **options: Unpack[GenerateOptions]) -> list[Answer[Any]]:
        """Returns the answers to many prompts, which share steps. The options are those of `generate`."""
        if isinstance(prompts, str):
            raise TypeError(f"prompts: found {show(prompts)}, expected a sequence of prompts")
        streams = [self.generate(prompt, **options) for prompt in prompts]
        return [stream.result() for stream in streams]

    # ------------------------------------------------------------------ chats

    @overload
    def chat(self, messages: Messages, *, schema: None = None, **options: Unpack[ChatOptions]) -> Answer[None]: ...

    @overload
    def chat(self, messages: Messages, *, schema: type[T], **options: Unpack[ChatOptions]) -> Answer[T]: ...

    @overload
    def chat(self, messages: Messages, *, schema: Any, **options: Unpack[ChatOptions]) -> Answer[Any]: ...

    def chat(self, messages: Messages, *, schema: Any = None, **options: Unpack[ChatOptions]) -> Answer[Any]:
        """Returns the answer to a conversation.

        messages: dicts in the form of OpenAI's API, or a text, which becomes one message of the user. A picture is a
            part {"type": "image", "image": SOURCE} of a message's content, where SOURCE is what `frit.Image` takes, or
            {"type": "image_url", "image_url": {"url": "data:..."}}; its "detail" may be "low": 256 tokens at most.
        tools: Python functions with annotations and a docstring, or dicts {"type": "function", "function": {...}}.
        tool_choice: "auto", "none", "required", or the name of a tool.
        schema: the form of the answer's text: a type (a pydantic model, a dataclass, a TypedDict, Literal, a list of
            these, ...), of which `answer.parsed` is an object; a JSON schema as a dict, of which `answer.parsed` is the
            value; or a `frit.Grammar`.
        template: variables of the model's chat template, such as {"enable_thinking": False}.
        continue_final_message: the answer continues the last message.
        parallel_tool_calls: False: the answer has one call at most.
        open_objects: objects may have properties that the schema of the answer or of a tool does not name
            (`frit.Grammar`).
        image_tokens: most tokens of each picture; None: the model's limit.
        Other options are those of `generate`: max_tokens, stop, temperature, seed, logprobs, adapters, ...

        Raises UnsupportedError for a schema that cannot become a grammar, InvalidError if the template refuses the
        messages. `answer.parsed` raises AnswerError if the answer was cut.
        """
        return self.chat_stream(messages, schema=schema, **options).result()

    @overload
    def chat_stream(self, messages: Messages, *, schema: None = None, **options: Unpack[ChatOptions]) -> Stream[None]: ...

    @overload
    def chat_stream(self, messages: Messages, *, schema: type[T], **options: Unpack[ChatOptions]) -> Stream[T]: ...

    @overload
    def chat_stream(self, messages: Messages, *, schema: Any, **options: Unpack[ChatOptions]) -> Stream[Any]: ...

    def chat_stream(self, messages: Messages, *, schema: Any = None, **options: Unpack[ChatOptions]) -> Stream[Any]:
        """Returns the answer to a conversation as a stream of chunks: text, reasoning, tool calls. The options are
        those of `chat`."""
        queue: SimpleQueue[list[Any]] = SimpleQueue()
        job = self._chat_job(messages, thread_sink(queue), schema, **options)
        self._core.add(job)
        return Stream(job, queue)

    @overload
    async def achat(self, messages: Messages, *, schema: None = None, **options: Unpack[ChatOptions]) -> Answer[None]: ...

    @overload
    async def achat(self, messages: Messages, *, schema: type[T], **options: Unpack[ChatOptions]) -> Answer[T]: ...

    @overload
    async def achat(self, messages: Messages, *, schema: Any, **options: Unpack[ChatOptions]) -> Answer[Any]: ...

    async def achat(self, messages: Messages, *, schema: Any = None, **options: Unpack[ChatOptions]) -> Answer[Any]:
        """Returns the answer to a conversation, for asyncio. The options are those of `chat`."""
        return await self.achat_stream(messages, schema=schema, **options).result()

    @overload
    def achat_stream(self, messages: Messages, *, schema: None = None, **options: Unpack[ChatOptions]) -> AsyncStream[None]: ...

    @overload
    def achat_stream(self, messages: Messages, *, schema: type[T], **options: Unpack[ChatOptions]) -> AsyncStream[T]: ...

    @overload
    def achat_stream(self, messages: Messages, *, schema: Any, **options: Unpack[ChatOptions]) -> AsyncStream[Any]: ...

    def achat_stream(self, messages: Messages, *, schema: Any = None, **options: Unpack[ChatOptions]) -> AsyncStream[Any]:
        """Returns the answer to a conversation as a stream of chunks, for asyncio. The options are those of `chat`."""
        import asyncio

        queue: asyncio.Queue[Any] = asyncio.Queue()
        job = self._chat_job(messages, loop_sink(asyncio.get_running_loop(), queue), schema, **options)
        self._core.add(job)
        return AsyncStream(job, queue)

    def _chat_job(self, messages: Messages, sink: Callable[[Any], None], schema: Any, *, tools: Sequence[Any] = (),
                  tool_choice: Any = None, template: Mapping[str, Any] | None = None,
                  continue_final_message: bool = False, parallel_tool_calls: bool = True, open_objects: bool = False,
                  max_tokens: int | None = None, stop: str | Sequence[str] = (), sampler: Sampler | None = None,
                  logprobs: int | None = None, adapters: Adapters = (), speculate: str | Engine | None = None,
                  ignore_end: bool = False, salt: bytes = b"", weight: int = 1, priority: int = 0,
                  context_shift: int | None = None, image_tokens: int | None = None,
                  **sampling: Unpack[SamplerOptions]) -> Job:
        own = self._sampler("chat", ChatOptions, sampler, sampling)
        texts, images = (messages, []) if isinstance(messages, str) else take_images(
            sequence("messages", messages, "dicts, or a str"))
        pictures = Pictures(self.model, images, image_tokens, content("salt", salt))
        turn = Turn(self.model, conversation_of(texts, tools, tool_choice, template,
                                                flag("continue_final_message", continue_final_message)), pictures.array)
        form = form_of(self.model, schema, flag("open_objects", open_objects))
        job = Job(self, turn.tokens(), own, sink, max_tokens=max_tokens, stop=stop, turn=turn, is_text=False,
                  logprobs=logprobs, adapters=with_scales(adapters), salt=salt, weight=weight, priority=priority,
                  speculate=speculation(speculate, self), ignore_end=ignore_end, shift=context_shift,
                  pictures=pictures if images else None)
        job.turn_grammar = turn.grammar(form, not flag("parallel_tool_calls", parallel_tool_calls), open_objects)
        job.schema = schema
        return job

    def _set_grammar(self, job: Job) -> bool:
        """Gives the sampler the job's grammar. False: the answer is free, as the sampler has no grammar of its own
        either."""
        handle = job.turn_grammar.value if job.turn_grammar else job.grammar._handle if job.grammar else None
        if handle is not None:
            check(lib.frit_sampler_set_grammar(job.sampler._handle, handle))
        return handle is not None or job.sampler.has_grammar

    # ------------------------------------------------------------------ embeddings and scores

    def embed(self, texts: str | Sequence[Prompt], *, pooling: str | None = None, normalize: str | None = None,
              n_dims: int = 0, prompt_name: str | None = None) -> Tensor:
        """Returns vectors of texts: a tensor [n_texts, n], or [n] for a single text.

        pooling: "mean", "cls", "last", "max", "mean_sqrt_len", "weighted_mean", several joined by "+", "splade" or
            "rank"; None: the pooling that the model's files name.
        normalize: "l1", "l2", "max" or "none"; None: "l2", or "none" for scores and splade.
        n_dims: the number of first numbers that are kept of each vector; 0: what the model's files say, mostly all.
        prompt_name: the model's prompt that is put before each text, such as "query"; None: its default prompt.
        Raises InvalidError for a text that has no tokens or is longer than the context, and for unknown prompts.
        """
        return self._core.call(self._embed, texts, pooling, normalize, n_dims, prompt_name)  # type: ignore[no-any-return]

    def embed_sparse(self, texts: Sequence[Prompt], *, pooling: str = "splade",
                     prompt_name: str | None = None) -> list[dict[int, float]]:
        """Returns sparse vectors of texts, for models with a masked-LM head: the weights of the tokens whose weight is
        not 0, by token id. pooling: "splade" or "splade_sum". Raises UnsupportedError without such a head."""
        rows = self.embed(list(texts), pooling=pooling, prompt_name=prompt_name).tolist()
        return [{token: weight for token, weight in enumerate(row) if weight != 0} for row in rows]

    async def aembed(self, texts: str | Sequence[Prompt], *, pooling: str | None = None, normalize: str | None = None,
                     n_dims: int = 0, prompt_name: str | None = None) -> Tensor:
        """Returns vectors of texts, for asyncio. The arguments are those of `embed`."""
        import asyncio

        future = self._core.submit(lambda: self._embed(texts, pooling, normalize, n_dims, prompt_name))
        return await asyncio.wrap_future(future)  # type: ignore[no-any-return, unused-ignore]

    def _embed(self, texts: str | Sequence[Prompt], pooling: str | None, normalize: str | None, n_dims: int,
               prompt_name: str | None) -> Tensor:
        if pooling == "none":
            raise InvalidError("pooling: found 'none'; Session.hidden_states gives a vector for each token")
        one = isinstance(texts, str)
        items: Sequence[Prompt] = [texts] if isinstance(texts, str) else sequence("texts", texts, "texts")
        array, keep = embed_items("texts", items)
        width = self.model.embedding_width(pooling, n_dims)
        out = Tensor.zeros((len(items), width))
        options = options_of(c.frit_embed_options, pooling=pooling, normalize=normalize, n_dims=n_dims,
                             prompt_name=prompt_name)

        def row(_ctx: Any, item: int, _i: int, values: Any, n: int) -> None:
            ctypes.memmove(out.address + 4 * width * item, values, 4 * n)

        check(lib.frit_embed_texts(self._core.handle, array, len(items), byref(options), callback(c.frit_embed_fn, row), None))
        del keep
        return out[0] if one else out  # type: ignore[no-any-return, unused-ignore]

    def rerank(self, query: str, documents: Sequence[str], *, raw_scores: bool = False) -> list[float]:
        """Returns a score for each document: higher means that it answers the query better. Scores are 0 to 1 unless
        raw_scores is true. Raises UnsupportedError if the model has no classification head."""
        return self._core.call(self._rerank, query, documents, raw_scores)  # type: ignore[no-any-return]

    async def arerank(self, query: str, documents: Sequence[str], *, raw_scores: bool = False) -> list[float]:
        """Returns a score for each document, for asyncio. The arguments are those of `rerank`."""
        import asyncio

        return await asyncio.wrap_future(self._core.submit(lambda: self._rerank(query, documents, raw_scores)))  # type: ignore[no-any-return, unused-ignore]

    def _rerank(self, query: str, documents: Sequence[str], raw_scores: bool) -> list[float]:
        data = content("query", query)
        array, keep = embed_items("documents", sequence("documents", documents, "texts"))
        scores = (ctypes.c_float * len(documents))()
        options = options_of(c.frit_rerank_options, raw_scores=raw_scores)
        check(lib.frit_rerank_texts(self._core.handle, data, len(data), array, len(documents), byref(options), scores))
        del keep
        return list(scores)


def _as_keywords(sentence: str) -> str:
    """Replaces the name of an option in a sentence of the library by the name of the keyword: "threads" by
    "n_threads"."""
    found = re.match("(?:option )?([a-z-]+): ", sentence)
    if found is None:
        return sentence
    word = found[1].replace("-", "_")
    name = next((name for name in (word, f"n_{word}") if name in EngineOptions.__annotations__), None)
    return f"{name}: {sentence[found.end():]}" if name else sentence


def tokens_of(model: Model, name: str, prompt: Prompt, special: bool = True) -> list[int]:
    """Returns a prompt's tokens. A prompt of tokens is returned unchanged."""
    if isinstance(prompt, str):
        return model.tokenize(prompt, special=special)
    return token_array(name, prompt, "a str or a sequence of ints")[:]  # type: ignore[no-any-return]


def grammar_of(grammar: Any) -> Grammar | None:
    """Returns a grammar, or None. Raises TypeError for an object of another type."""
    return None if grammar is None else instance("grammar", grammar, Grammar)


def embed_items(name: str, items: Sequence[Prompt]) -> tuple[Any, list[Any]]:
    """Returns texts or tokens in the library's form, and the objects that must live as long as this form."""
    array, keep = (c.frit_embed_item * len(items))(), []
    for i, (slot, item) in enumerate(zip(array, items)):
        if isinstance(item, str):
            data = item.encode("utf-8", "surrogatepass")
            slot.text, slot.n_bytes = data, len(data)
            keep.append(data)
        else:
            tokens = token_array(f"{name}[{i}]", item)
            slot.tokens, slot.n_tokens = tokens, len(tokens)
            keep.append(tokens)
    return array, keep


def with_scales(adapters: Adapters) -> list[tuple[Adapter, float]]:
    """Returns pairs of adapter and scale. The scale is 1 if none is given."""
    pairs = [item if isinstance(item, tuple) else (item, 1.0) for item in sequence("adapters", adapters, "frit.Adapter")]
    for i, pair in enumerate(pairs):
        if len(pair) != 2 or not isinstance(pair[0], Adapter):
            raise TypeError(f"adapters[{i}]: found {show(pair)}, expected a frit.Adapter, or one with its scale")
        number(f"adapters[{i}]", pair[1])
    return pairs


def speculation(kind: str | Engine | None, engine: Engine) -> Any:
    """Returns the library's options of speculation. `kind` is a method's name, or the engine of a draft model."""
    if kind is None or kind == "none":
        return None
    if isinstance(kind, Engine):
        if kind is engine:
            raise InvalidError("a draft model needs an engine of its own")
        kind._core.check_open()
        options = c.frit_speculate_options(draft=kind._core.handle)
        options._frit_owner, options._frit_core = kind, kind._core
        return options
    if not isinstance(kind, str):
        raise TypeError(f"speculate: found {show(kind)}, expected 'ngram' or a frit.Engine")
    return options_of(c.frit_speculate_options, kind=chosen("speculate", kind, ("ngram", "auto", "mtp", "none")))


def load(path: Path, *, progress: Progress | None = None, **options: Unpack[EngineOptions]) -> Engine:
    """Opens a model and loads it on this machine, as `Engine(Model(path), **options)` does. `path` is a file or a name
    ("hf:ORG/REPO:Q4_K_M")."""
    check_names("load", options, EngineOptions.__annotations__)
    return Engine(Model(path, progress=progress), progress=progress, **options)
