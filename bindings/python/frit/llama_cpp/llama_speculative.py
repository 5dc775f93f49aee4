# SPDX-License-Identifier: MIT
"""Draft models, where llama-cpp-python has them."""

# By its whole name: as a part of llama_cpp, relative names would make second classes of the same.
from frit.llama_cpp import LlamaDraftModel, LlamaPromptLookupDecoding

__all__ = ["LlamaDraftModel", "LlamaPromptLookupDecoding"]
