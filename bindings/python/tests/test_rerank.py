# SPDX-License-Identifier: MIT
"""Scores of documents by a small BERT with a classification head."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
from pathlib import Path
from typing import Iterator

import pytest

import frit

QUERY = "the king of the sea"
DOCUMENTS = ["a fish swims", "the queen", "the king of the sea is old", "[SEP] [CLS]"]


@pytest.fixture(scope="module")
def reranker(reranker_folder: Path) -> Iterator[frit.Engine]:
    with frit.load(reranker_folder, n_ctx=64, cache_type_k="f32", cache_type_v="f32") as engine:
        yield engine


def test_scores_are_the_commands(reranker: frit.Engine, reranker_folder: Path, command: str) -> None:
    said = subprocess.run([command, "rerank", str(reranker_folder), QUERY, *DOCUMENTS, "--raw-scores", "--json", "-c", "64",
                           "-ctk", "f32", "-ctv", "f32"],
                          check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    results = json.loads(said.stdout)["results"]
    expected = [score for _, score in sorted((item["index"], item["relevance_score"]) for item in results)]
    found = reranker.rerank(QUERY, DOCUMENTS, raw_scores=True)
    assert found == pytest.approx(expected, abs=1e-4)
    assert max(found) - min(found) > 1e-3   # the scores depend on the documents


def test_scores_are_probabilities(reranker: frit.Engine) -> None:
    raw = reranker.rerank(QUERY, DOCUMENTS, raw_scores=True)
    scores = reranker.rerank(QUERY, DOCUMENTS)
    assert scores == pytest.approx([1 / (1 + math.exp(-x)) for x in raw], abs=1e-6)
    assert [reranker.rerank(QUERY, [document])[0] for document in DOCUMENTS] == pytest.approx(scores, abs=1e-4)
    assert asyncio.run(reranker.arerank(QUERY, DOCUMENTS)) == pytest.approx(scores, abs=1e-6)


def test_a_document_without_room_is_refused(reranker: frit.Engine) -> None:
    with pytest.raises(frit.FritError, match="64"):
        reranker.rerank(QUERY, ["the queen " * 100])
