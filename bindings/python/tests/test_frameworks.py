# SPDX-License-Identifier: MIT
"""Unmodified classes of LangChain and LlamaIndex for llama-cpp-python run on frit (make test-frameworks)."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import pytest

import frit.llama_cpp
from conftest import PROMPT


@pytest.fixture(autouse=True)
def alias(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", frit.llama_cpp)


def need(name: str) -> Any:
    """Imports a module. The test is skipped without it, unless the environment requires it."""
    return importlib.import_module(name) if os.environ.get("FRIT_FRAMEWORKS") else pytest.importorskip(name)


def test_langchain(model_path: str) -> None:
    llms = need("langchain_community.llms")
    from langchain_community.chat_models import ChatLlamaCpp
    from langchain_community.embeddings import LlamaCppEmbeddings

    llm = llms.LlamaCpp(model_path=model_path, temperature=0, max_tokens=12, n_ctx=512, verbose=False)
    text = llm.invoke(PROMPT)
    own = frit.llama_cpp.Llama(model_path, n_ctx=512, verbose=False)
    assert text == own(PROMPT, max_tokens=12, temperature=0)["choices"][0]["text"]
    assert "".join(llm.stream(PROMPT)) == text and llm.get_num_tokens(PROMPT) == 5
    chat = ChatLlamaCpp(model_path=model_path, temperature=0.0, max_tokens=12, n_ctx=512, verbose=False)
    answer = chat.invoke("Tell me a tale.").content
    assert len(answer) > 10 and "".join(c.content for c in chat.stream("Tell me a tale.")) == answer
    vectors = LlamaCppEmbeddings(model_path=model_path, verbose=False)
    assert len(vectors.embed_query("a")) == 512 and len(vectors.embed_documents(["a", "b"])) == 2


def test_llama_index(model_path: str) -> None:
    package = need("llama_index.llms.llama_cpp")
    from llama_index.core.llms import ChatMessage

    llm = package.LlamaCPP(model_path=model_path, temperature=0.0, max_new_tokens=12, context_window=512, verbose=False)
    text = llm.complete(PROMPT).text
    assert len(text) > 10 and "".join(piece.delta for piece in llm.stream_complete(PROMPT)) == text
    assert llm.chat([ChatMessage(role="user", content="Tell me a tale.")]).message.content
