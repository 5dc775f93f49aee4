# SPDX-License-Identifier: MIT
"""Has the interface of llama-cpp-python on frit: `from frit.llama_cpp import Llama`.

Keywords that are unknown, or that frit does not support, raise an exception with the reason. Packages that import
llama_cpp work after `import sys, frit.llama_cpp; sys.modules["llama_cpp"] = frit.llama_cpp`.
"""

from __future__ import annotations

from ._llama import Llama
from ._types import (
    GGML_TYPE_BF16,
    GGML_TYPE_F16,
    GGML_TYPE_F32,
    GGML_TYPE_IQ4_NL,
    GGML_TYPE_Q4_0,
    GGML_TYPE_Q4_1,
    GGML_TYPE_Q5_0,
    GGML_TYPE_Q5_1,
    GGML_TYPE_Q8_0,
    LLAMA_ATTENTION_TYPE_UNSPECIFIED,
    LLAMA_DEFAULT_SEED,
    LLAMA_POOLING_TYPE_CLS,
    LLAMA_POOLING_TYPE_LAST,
    LLAMA_POOLING_TYPE_MEAN,
    LLAMA_POOLING_TYPE_NONE,
    LLAMA_POOLING_TYPE_RANK,
    LLAMA_POOLING_TYPE_UNSPECIFIED,
    LLAMA_ROPE_SCALING_TYPE_LINEAR,
    LLAMA_ROPE_SCALING_TYPE_NONE,
    LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED,
    LLAMA_ROPE_SCALING_TYPE_YARN,
    LLAMA_SPLIT_MODE_LAYER,
    LLAMA_SPLIT_MODE_NONE,
    LLAMA_SPLIT_MODE_ROW,
    BaseLlamaCache,
    LlamaCache,
    LlamaDiskCache,
    LlamaDraftModel,
    LlamaGrammar,
    LlamaPromptLookupDecoding,
    LlamaRAMCache,
    LlamaState,
    LlamaTokenizer,
    LogitsProcessor,
    LogitsProcessorList,
    MinTokensLogitsProcessor,
    StoppingCriteria,
    StoppingCriteriaList,
)

__version__ = "0.3.36"   # the version of llama-cpp-python with this interface

__all__ = [
    "BaseLlamaCache", "GGML_TYPE_BF16", "GGML_TYPE_F16", "GGML_TYPE_F32", "GGML_TYPE_IQ4_NL", "GGML_TYPE_Q4_0",
    "GGML_TYPE_Q4_1", "GGML_TYPE_Q5_0", "GGML_TYPE_Q5_1", "GGML_TYPE_Q8_0", "LLAMA_ATTENTION_TYPE_UNSPECIFIED",
    "LLAMA_DEFAULT_SEED", "LLAMA_POOLING_TYPE_CLS", "LLAMA_POOLING_TYPE_LAST", "LLAMA_POOLING_TYPE_MEAN",
    "LLAMA_POOLING_TYPE_NONE", "LLAMA_POOLING_TYPE_RANK", "LLAMA_POOLING_TYPE_UNSPECIFIED",
    "LLAMA_ROPE_SCALING_TYPE_LINEAR", "LLAMA_ROPE_SCALING_TYPE_NONE", "LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED",
    "LLAMA_ROPE_SCALING_TYPE_YARN", "LLAMA_SPLIT_MODE_LAYER", "LLAMA_SPLIT_MODE_NONE", "LLAMA_SPLIT_MODE_ROW", "Llama",
    "LlamaCache", "LlamaDiskCache", "LlamaDraftModel", "LlamaGrammar", "LlamaPromptLookupDecoding", "LlamaRAMCache",
    "LlamaState", "LlamaTokenizer", "LogitsProcessor", "LogitsProcessorList", "MinTokensLogitsProcessor",
    "StoppingCriteria", "StoppingCriteriaList",
]
