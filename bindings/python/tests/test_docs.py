# SPDX-License-Identifier: MIT
"""Runs the programs of docs/python.md in order, as one program."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import frit
from conftest import ROOT, TOOLS_TEMPLATE

PAGE = ROOT / "docs" / "python.md"


def test_programs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reranker_folder: Path) -> None:
    pytest.importorskip("pydantic")
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert len(blocks) >= 6
    shutil.copy(ROOT / "models" / "fable.gguf", tmp_path / "model.gguf")
    (tmp_path / "reranker.gguf").symlink_to(reranker_folder)
    (tmp_path / "tools.jinja").write_text(TOOLS_TEMPLATE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "llama_cpp", sys.modules.get("llama_cpp"))   # the last program sets it
    # The page's model can call tools, and its answers do not change between runs.
    make_model, make_sampler = frit.Model.__init__, frit.Sampler.__init__
    template = {"chat_template": tmp_path / "tools.jinja"}
    monkeypatch.setattr(frit.Model, "__init__", lambda self, path, **options: make_model(self, path, **{**template, **options}))
    monkeypatch.setattr(frit.Sampler, "__init__", lambda self, model, **options: make_sampler(self, model, **{"seed": 5, **options}))
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks:
        line = PAGE.read_text().index(block)
        where = f"{PAGE}, line {PAGE.read_text().count(chr(10), 0, line)}"
        exec(compile(block, where, "exec"), names)
    assert isinstance(names["answers"][0], frit.Answer) and len(names["session"]) > 5
    assert sys.modules["llama_cpp"] is frit.llama_cpp
