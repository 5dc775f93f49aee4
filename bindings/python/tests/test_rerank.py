# SPDX-License-Identifier: MIT
"""Scores of documents, from a small BERT with a classification head."""

from __future__ import annotations

import asyncio
import json
import math
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any, Iterator

import pytest

import frit
from conftest import ROOT

QUERY = "the king of the sea"
DOCUMENTS = ["a fish swims", "the queen", "the king of the sea is old", "[SEP] [CLS]"]
WIDTH = 64


def write_safetensors(path: Path, tensors: dict[str, tuple[tuple[int, ...], list[float]]]) -> None:
    header: dict[str, Any] = {}
    data = b""
    for name, (shape, values) in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The body of tests/goldens, and a second file of weights with the head."""
    body, folder = ROOT / "tests" / "goldens" / "hf" / "bert", tmp_path_factory.mktemp("reranker")
    config = json.loads((body / "config.json").read_text())
    config["architectures"] = ["BertForSequenceClassification"]
    (folder / "config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(body / name, folder)
    shutil.copy(body / "model.safetensors", folder / "body.safetensors")
    weights = (folder / "body.safetensors").read_bytes()
    names = json.loads(weights[8: 8 + struct.unpack("<Q", weights[:8])[0]])
    where = {name: "body.safetensors" for name in names if name != "__metadata__"}
    where |= {"classifier.weight": "head.safetensors", "classifier.bias": "head.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    write_safetensors(folder / "head.safetensors", {
        "classifier.weight": ((1, WIDTH), [(k * 17 % 23 - 11) / 16 for k in range(WIDTH)]), "classifier.bias": ((1,), [-1.0])})
    return folder


@pytest.fixture(scope="module")
def reranker(folder: Path) -> Iterator[frit.Engine]:
    with frit.load(folder, n_ctx=64, cache_type_k="f32", cache_type_v="f32") as engine:
        yield engine


def test_scores_are_the_commands(reranker: frit.Engine, folder: Path, command: str) -> None:
    said = subprocess.run([command, "rerank", str(folder), QUERY, *DOCUMENTS, "--raw-scores", "--json", "-c", "64",
                           "-ctk", "f32", "-ctv", "f32"],
                          check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    results = json.loads(said.stdout)["results"]
    expected = [score for _, score in sorted((item["index"], item["relevance_score"]) for item in results)]
    found = reranker.rerank(QUERY, DOCUMENTS, raw_scores=True)
    assert found == pytest.approx(expected, abs=1e-4)
    assert max(found) - min(found) > 1e-3   # documents make a difference


def test_scores_are_probabilities(reranker: frit.Engine) -> None:
    raw = reranker.rerank(QUERY, DOCUMENTS, raw_scores=True)
    scores = reranker.rerank(QUERY, DOCUMENTS)
    assert scores == pytest.approx([1 / (1 + math.exp(-x)) for x in raw], abs=1e-6)
    assert [reranker.rerank(QUERY, [document])[0] for document in DOCUMENTS] == pytest.approx(scores, abs=1e-4)
    assert asyncio.run(reranker.arerank(QUERY, DOCUMENTS)) == pytest.approx(scores, abs=1e-6)


def test_a_document_without_room_is_refused(reranker: frit.Engine) -> None:
    with pytest.raises(frit.FritError, match="64"):
        reranker.rerank(QUERY, ["the queen " * 100])
