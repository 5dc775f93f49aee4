# SPDX-License-Identifier: MIT
"""The class Llama, where llama-cpp-python has it."""

# By its whole name: as a part of llama_cpp, relative names would make second classes of the same.
from frit.llama_cpp import (
    Llama,
    LlamaGrammar,
    LlamaState,
    LlamaTokenizer,
    LogitsProcessor,
    LogitsProcessorList,
    MinTokensLogitsProcessor,
    StoppingCriteria,
    StoppingCriteriaList,
)

__all__ = ["Llama", "LlamaGrammar", "LlamaState", "LlamaTokenizer", "LogitsProcessor", "LogitsProcessorList",
           "MinTokensLogitsProcessor", "StoppingCriteria", "StoppingCriteriaList"]
