# SPDX-License-Identifier: MIT
"""Has the class Llama under the module name that llama-cpp-python uses."""

# The import is absolute: when the package is loaded as llama_cpp, a relative import would make second classes.
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
