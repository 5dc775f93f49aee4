# SPDX-License-Identifier: MIT
"""The message of `pip install ./bindings/python` on a machine that cannot build."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from conftest import ROOT


@pytest.mark.skipif(os.name == "nt", reason="tools/setup is a shell script")
def test_missing_libraries_are_named_with_their_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hatchling")
    monkeypatch.syspath_prepend(str(ROOT / "bindings" / "python"))
    import hatch_build

    cmake = tmp_path / "cmake"
    cmake.write_text("#!/bin/sh\necho 'cmake version 3.30.0'\n[ \"$1\" = --version ]\n")   # it configures nothing
    cmake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PKG_CONFIG_LIBDIR", str(tmp_path))
    hook = hatch_build.CustomBuildHook.__new__(hatch_build.CustomBuildHook)
    with pytest.raises(SystemExit) as ended:
        hook.build_here(ROOT)
    said = str(ended.value)
    for name in ("libpcre2-8", "libutf8proc", "jansson"):
        assert name in said
    assert "regular expressions of tokenizers" in said and "cmake" not in said.replace("libcurl", "")
    if Path("/usr/bin/apt-get").exists():
        assert "apt-get install" in said and "libpcre2-dev" in said
    assert sys.modules.pop("hatch_build")
