# SPDX-License-Identifier: MIT
"""Models by name, from a server that answers like the Hugging Face hub and ollama's registry (tests/hub/replay.py)."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator

import pytest

import frit
from conftest import PROMPT, ROOT

sys.path.insert(0, str(ROOT / "tests" / "hub"))

from replay import Hub, noise  # noqa: E402

FABLE = ROOT / "models" / "fable.gguf"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> Iterator[Any]:
    hub = Hub()
    for name in os.environ:
        if name.startswith(("HF_", "OLLAMA_", "XDG_")) or name.lower() in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
            monkeypatch.delenv(name)
    for name, value in (("HOME", str(tmp_path)), ("HF_ENDPOINT", hub.url), ("FRIT_OLLAMA_REGISTRY", hub.url)):
        monkeypatch.setenv(name, value)
    yield hub
    hub.close()


def leftovers(home: Path, pattern: str) -> list[Path]:
    return [path for path in home.rglob(pattern) if path.is_file()]


def test_load_takes_names(hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add("org/tale", {"fable-Q4_K_M.gguf": FABLE.read_bytes(), "fable-Q8_0.gguf": noise(100_000, 1)})
    hub.add_ollama("library/tale", "30m", FABLE.read_bytes())
    seen: list[float] = []
    with frit.load("hf:org/tale:Q4_K_M", n_ctx=128, progress=seen.append) as engine:
        text = engine.generate(PROMPT, max_tokens=4, temperature=0).text()
    assert all(0 <= part <= 1 for part in seen) and len(seen) > 2 and str(tmp_path) in engine.model.info.path
    n = len(hub.requests)
    with frit.load("hf:org/tale:Q4_K_M", n_ctx=128) as engine:
        assert engine.generate(PROMPT, max_tokens=4, temperature=0).text() == text
    assert len(hub.requests) == n   # no request for a model that is on this machine
    assert frit.Model("ollama:tale:30m").info.n_vocab == 8192
    names = tmp_path / "names.conf"
    names.write_text("tale = hf:org/tale\n")
    monkeypatch.setenv("FRIT_NAMES", str(names))
    assert frit.Model("tale:Q4_K_M").info.n_vocab == 8192
    frit.llama_cpp.Llama("hf:org/tale:Q4_K_M", n_ctx=64, verbose=False).close()


def test_a_path_that_exists_goes_before_a_name(hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hf:org").mkdir()
    (tmp_path / "hf:org" / "tale").symlink_to(FABLE)
    monkeypatch.chdir(tmp_path)
    assert frit.Model("hf:org/tale").info.n_vocab == 8192 and hub.requests == []


def test_pull_tells_how_far_it_is(hub: Any) -> None:
    data = noise(3_000_000, 7)
    hub.add("org/m", {"m-Q4_0.gguf": data})
    seen: list[frit.Fetching] = []
    path = frit.pull("hf:org/m:Q4_0", progress=seen.append)
    assert Path(path).read_bytes() == data
    last = [event for event in seen if event.name.endswith("m-Q4_0.gguf") and not event.checks][-1]
    assert last.total == last.done == len(data)
    asked = len(hub.requests)
    assert frit.pull("hf:org/m:Q4_0", update=False, progress=False) == path and len(hub.requests) == asked
    assert frit.pull("hf:org/m:Q4_0") == path and len(hub.requests) > asked


@pytest.mark.parametrize(("name", "kind", "sentence"), [
    ("hf:org/nothing", frit.NotFoundError, "org/nothing"),
    ("hf:org/m:Q8_0", frit.NotFoundError, "Q8_0"),
    ("hf:noslash", frit.NotFoundError, "noslash"),
    ("hf:a/b/c", frit.InvalidError, "is not the name of a repository"),
    ("ollama:nothing", frit.NotFoundError, "nothing"),
    ("lmstudio:someone/nothing:x.gguf", frit.NotFoundError, "nothing"),
    ("nosuch://thing", frit.InvalidError, "nosuch://thing' is no name of a model"),
    ("org/m", frit.NotFoundError, "org/m: there is no such file; the repository of the Hugging Face hub is called hf:org/m"),
    ("tale:1b", frit.NotFoundError, "the model of ollama is called ollama:tale:1b"),
    ("nothing.gguf", frit.NotFoundError, "nothing.gguf: cannot be opened"),
    ("folder/nothing.gguf", frit.NotFoundError, "folder/nothing.gguf"),
])
def test_what_is_not_there_is_said(name: str, kind: type[Exception], sentence: str, hub: Any) -> None:
    hub.add("org/m", {"m-Q4_0.gguf": noise(10_000, 7)})
    with pytest.raises(kind, match=re.escape(sentence)):
        frit.load(name)


def test_a_refusal_names_the_token(hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add("org/m", {"m-Q4_0.gguf": noise(10_000, 7)})
    hub.token = "hf_right"
    with pytest.raises(frit.DeniedError, match="HF_TOKEN") as raised:
        frit.load("hf:org/m")
    assert isinstance(raised.value, PermissionError)
    monkeypatch.setenv("HF_TOKEN", "hf_right")
    assert frit.pull("hf:org/m").endswith("m-Q4_0.gguf")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(frit.NetworkError):
        frit.pull("hf:org/other")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(frit.FritError, match="HF_HUB_OFFLINE"):
        frit.pull("hf:org/other")


def test_arguments_of_pull(hub: Any) -> None:
    for call, kind, sentence in (
            (lambda: frit.pull(3), TypeError, "name: found 3"),
            (lambda: frit.pull("hf:org/m", memory="much"), frit.InvalidError, "'much' is no size"),
            (lambda: frit.pull("hf:org/m", connections=99), frit.InvalidError, "connections: found 99, expected 1 to 16"),
            (lambda: frit.pull("hf:org/m", sha256="x"), frit.InvalidError, "64 hexadecimal digits"),
            (lambda: frit.pull("--help"), frit.InvalidError, "no name of a model"),
            (lambda: frit.pull("a\nb"), frit.InvalidError, "no name of a model")):
        with pytest.raises(kind, match=sentence):
            call()


def test_a_progress_function_cancels_and_the_next_call_continues(hub: Any, tmp_path: Path) -> None:
    data = noise(8_000_000, 7)
    hub.add("org/m", {"m-Q4_0.gguf": data})
    hub.block, hub.hold_after = 16384, 2_000_000   # a download that is not stopped waits
    with pytest.raises(frit.CancelledError, match="continues"):
        frit.pull("hf:org/m:Q4_0", progress=lambda event: event.done < 500_000)
    with pytest.raises(ZeroDivisionError):
        frit.pull("hf:org/m:Q4_0", progress=lambda event: 1 / 0)
    assert leftovers(tmp_path, "*.part")
    hub.hold_after = None
    hub.released.set()
    assert Path(frit.pull("hf:org/m:Q4_0")).read_bytes() == data and not leftovers(tmp_path, "*.part")


@pytest.mark.parametrize("whom", ["program", "group"])
def test_ctrl_c_stops_a_download(whom: str, hub: Any, tmp_path: Path) -> None:
    """The kernel of a notebook alone gets the signal; a terminal also sends it to the command."""
    hub.add("org/m", {"m-Q4_0.gguf": noise(8_000_000, 7)})
    hub.block, hub.hold_after = 16384, 2_000_000   # it does not end by itself
    program = subprocess.Popen(
        [sys.executable, "-c", "import frit\ntry:\n frit.load('hf:org/m:Q4_0')\nexcept KeyboardInterrupt:\n print('interrupted')"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "bindings" / "python")}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True)
    while not leftovers(tmp_path, "*.part") and program.poll() is None:
        time.sleep(0.05)
    (os.kill if whom == "program" else os.killpg)(program.pid, signal.SIGINT)
    out, err = program.communicate(timeout=60)
    hub.released.set()
    assert out == "interrupted\n" and program.returncode == 0, err
    assert leftovers(tmp_path, "*.part")


def test_a_terminal_shows_a_bar_unless_it_is_off(hub: Any, tmp_path: Path) -> None:
    hub.add("org/m", {"m-Q4_0.gguf": noise(3_000_000, 7)})
    hub.block, hub.pause = 16384, 0.2
    for progress, shown in (("False", False), ("None", True)):
        main, terminal = pty.openpty()
        program = subprocess.Popen([sys.executable, "-c", f"import frit; print(frit.pull('hf:org/m:Q4_0', progress={progress}))"],
                                   env={**os.environ, "PYTHONPATH": str(ROOT / "bindings" / "python")}, stdout=subprocess.PIPE,
                                   stderr=terminal, stdin=subprocess.DEVNULL)
        os.close(terminal)
        said = b""
        while True:
            try:
                piece = os.read(main, 4096)
            except OSError:
                break
            if not piece:
                break
            said += piece
        os.close(main)
        assert program.wait(60) == 0 and program.stdout is not None
        path = Path(program.stdout.read().decode().strip())
        assert path.name == "m-Q4_0.gguf" and (b"% [" in said) == shown, said
        program.stdout.close()
        for left in leftovers(tmp_path, "*"):
            left.unlink()


@pytest.mark.parametrize(("name", "kind", "is_quiet"), [("nothing.gguf", "NotFoundError", True), ("hf:a/b/c", "InvalidError", False)])
def test_on_a_terminal_exceptions_have_the_sentence_too(name: str, kind: str, is_quiet: bool, hub: Any) -> None:
    main, terminal = pty.openpty()
    program = f"import frit\ntry:\n frit.load({name!r})\nexcept frit.FritError as failure:\n print(type(failure).__name__, failure)"
    ran = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT / "bindings" / "python")},
                         stdout=subprocess.PIPE, stderr=terminal, stdin=subprocess.DEVNULL, text=True)
    os.set_blocking(main, False)
    try:
        said = os.read(main, 4096)
    except BlockingIOError:
        said = b""
    os.close(main)
    os.close(terminal)
    assert ran.stdout.startswith(kind) and ("nothing.gguf" in ran.stdout or "is not the name of a repository" in ran.stdout)
    assert (said == b"") == is_quiet, said


def test_without_the_command_names_say_so(hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FRIT_COMMAND")
    with pytest.raises(frit.UnsupportedError, match="need the command frit"):
        frit.load("hf:org/m")
    with pytest.raises(frit.NotFoundError, match="nothing.gguf"):
        frit.load("nothing.gguf")


def test_adapters_have_names_too(hub: Any, model: frit.Model) -> None:
    values = [0.1] * (4 * 512)
    shapes = {f"base_model.model.model.layers.0.self_attn.o_proj.lora_{x}.weight": shape for x, shape in (("A", [4, 512]), ("B", [512, 4]))}
    header, data = {}, b""
    for key, shape in shapes.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        header[key] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    config = {"peft_type": "LORA", "r": 4, "lora_alpha": 4, "target_modules": ["o_proj"]}
    hub.add("org/pirate", {"adapter_config.json": json.dumps(config).encode(),
                           "adapter_model.safetensors": struct.pack("<Q", len(text)) + text + data})
    assert frit.Adapter(model, "hf:org/pirate").info["rank"] == 4
