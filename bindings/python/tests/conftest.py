# SPDX-License-Identifier: MIT
"""What the tests share: the bundled model, engines of it, and the command, which FRIT_COMMAND names."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Iterator

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bindings" / "python"))

import frit  # noqa: E402

PROMPT = "Once upon a time"


@pytest.fixture(scope="session")
def model_path() -> str:
    return str(ROOT / "models" / "fable.gguf")


@pytest.fixture(scope="session")
def model(model_path: str) -> frit.Model:
    return frit.Model(model_path)


@pytest.fixture(scope="session")
def engine(model: frit.Model) -> Iterator[frit.Engine]:
    with frit.Engine(model, n_ctx=512, n_sessions=4) as engine:
        yield engine


@pytest.fixture(scope="session")
def command() -> str:
    found = os.environ.get("FRIT_COMMAND")
    if not found:
        pytest.skip("FRIT_COMMAND names no command to compare with")
    return found
