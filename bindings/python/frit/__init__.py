# SPDX-License-Identifier: MIT
"""frit runs large language models (GGUF, safetensors) on this machine.

    import frit

    engine = frit.load("model.gguf")
    for chunk in engine.generate("Once upon a time", max_tokens=100):
        print(chunk, end="", flush=True)
    print(engine.chat("Why is the sky blue?").text)

A `Model` is an opened file, an `Engine` a model that is loaded on this machine, a `Session` a timeline of tokens.
"""

from __future__ import annotations

from ._library import lib
from ._tensor import Tensor
from .engine import Engine, EngineInfo, load
from ._options import ChatOptions, EngineOptions, GenerateOptions, SamplerOptions
from .errors import (
    AnswerError,
    CancelledError,
    DeniedError,
    FormatError,
    FritError,
    InputOutputError,
    InternalError,
    InvalidError,
    LimitError,
    NetworkError,
    NotFoundError,
    OutOfMemoryError,
    TimedOutError,
    UnsupportedError,
)
from .image import Image
from .model import Adapter, Model, ModelInfo
from .names import Fetching, pull
from .results import Answer, Chunk, TokenLogprob, ToolCall, Usage
from .sampling import Candidates, Grammar, Sampler, sampler_option_names
from .session import Session
from ._sinks import AsyncStream, Stream

__version__: str = lib.version

__all__ = [
    "Adapter", "Answer", "AnswerError", "AsyncStream", "CancelledError", "Candidates", "ChatOptions", "Chunk", "DeniedError",
    "Engine", "EngineInfo", "EngineOptions", "Fetching", "FormatError", "FritError", "GenerateOptions", "Grammar", "Image", "InputOutputError",
    "InternalError", "InvalidError", "LimitError", "Model", "ModelInfo", "NetworkError", "NotFoundError", "OutOfMemoryError", "Sampler",
    "SamplerOptions", "Session", "Stream", "Tensor", "TimedOutError", "TokenLogprob", "ToolCall", "UnsupportedError",
    "Usage", "load", "pull", "sampler_option_names",
]
