# SPDX-License-Identifier: MIT
"""Caches, where llama-cpp-python has them."""

# By its whole name: as a part of llama_cpp, relative names would make second classes of the same.
from frit.llama_cpp import BaseLlamaCache, LlamaCache, LlamaDiskCache, LlamaRAMCache

__all__ = ["BaseLlamaCache", "LlamaCache", "LlamaDiskCache", "LlamaRAMCache"]
