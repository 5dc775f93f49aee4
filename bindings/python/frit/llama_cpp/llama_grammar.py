# SPDX-License-Identifier: MIT
"""Has the class LlamaGrammar under the module name that llama-cpp-python uses."""

# The import is absolute: when the package is loaded as llama_cpp, a relative import would make second classes.
from frit.llama_cpp import LlamaGrammar

__all__ = ["LlamaGrammar"]
