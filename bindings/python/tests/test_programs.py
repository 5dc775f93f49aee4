# SPDX-License-Identifier: MIT
"""The package's programs, and the modules that importing it loads."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request

import pytest

from conftest import ROOT

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "bindings" / "python")}


def test_module_is_the_command(command: str) -> None:
    said = subprocess.run([sys.executable, "-m", "frit", "--version"], env=ENVIRONMENT, check=True, capture_output=True)
    assert said.stdout == subprocess.run([command, "--version"], check=True, capture_output=True).stdout
    failed = subprocess.run([sys.executable, "-m", "frit", "info", "nothing.gguf"], env=ENVIRONMENT, capture_output=True)
    assert failed.returncode == 3 and b"nothing.gguf" in failed.stderr


def test_server_is_the_servers(command: str, model_path: str) -> None:
    server = subprocess.Popen([sys.executable, "-m", "frit.server", "-m", model_path, "--port", "0", "-c", "256"],
                              env=ENVIRONMENT, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        said = ""
        for line in server.stderr:
            said += line
            if address := re.search(r"http://127\.0\.0\.1:\d+", line):
                break
        else:
            if "this build has no server" in said:
                pytest.skip("this build has no server")
            raise AssertionError(said)
        request = urllib.request.Request(address[0] + "/v1/completions", headers={"Content-Type": "application/json"},
                                         data=json.dumps({"prompt": "Once", "max_tokens": 4}).encode())
        with urllib.request.urlopen(request, timeout=120) as reply:
            assert json.load(reply)["usage"]["completion_tokens"] == 4
    finally:
        server.terminate()
        server.stderr.read()
        server.stderr.close()
    assert server.wait(60) in (0, 143)


def test_importing_brings_little() -> None:
    program = "import sys; before = set(sys.modules); import frit; print(*sorted(set(sys.modules) - before))"
    said = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, check=True, capture_output=True, text=True)
    found = set(said.stdout.split())
    assert "frit.engine" in found
    for name in ("numpy", "pydantic", "asyncio", "torch", "concurrent.futures", "subprocess", "frit.llama_cpp"):
        assert name not in found, name
