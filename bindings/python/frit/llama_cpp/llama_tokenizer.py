# SPDX-License-Identifier: MIT
"""The tokenizer, where llama-cpp-python has it."""

# By its whole name: as a part of llama_cpp, relative names would make second classes of the same.
from frit.llama_cpp import LlamaTokenizer

__all__ = ["LlamaTokenizer"]
