# SPDX-License-Identifier: MIT
"""Texts whose steps are submitted before the tokens of the step before are read: on a device with a queue."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT


def test_texts_run_ahead_on_a_device_with_a_queue(model_path: str) -> None:
    library = os.environ.get("FRIT_LIBRARY", "")
    emulator = Path(library).parent / "tests" / "emulator"
    if not (emulator / "libcuda.so.1").exists() or "LD_PRELOAD" in os.environ:
        pytest.skip("the build has no emulated GPU")
    if "FRIT_TEST_AHEAD" not in os.environ:
        pytest.skip("it takes minutes; FRIT_TEST_AHEAD=1 runs it, as make nightly does")
    program = ROOT / "bindings" / "python" / "tests" / "ahead_program.py"
    env = {**os.environ, "LD_LIBRARY_PATH": str(emulator), "PYTHONPATH": str(ROOT / "bindings" / "python")}
    done = subprocess.run([sys.executable, str(program), model_path], env=env, capture_output=True, text=True,
                          timeout=1200)
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert got["backend"] == "cuda"
    assert all(len(tokens) == 10 for tokens in got["alone"])
    assert got["together"] == got["alone"]
    assert got["plain_steps"] == 0
    # One step for the prompts, one for each token after the first, and no session misses every second step.
    assert got["steps"] <= 14
    assert got["of_sessions"] == got["alone"][1:]
    for length, n_prompt in list(zip(got["lengths"], got["prompts"]))[1:]:
        assert length == n_prompt + 10
    assert got["prompts"][0] <= got["lengths"][0] <= got["prompts"][0] + 10
    assert got["first"] == got["alone"][0][:len(got["first"])]
    assert got["more"]
