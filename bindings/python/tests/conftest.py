# SPDX-License-Identifier: MIT
"""Fixtures of the tests: the bundled model, its engines, and the command that FRIT_COMMAND names."""

from __future__ import annotations

import json
import os
import shutil
import struct
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bindings" / "python"))

import frit  # noqa: E402

PROMPT = "Once upon a time"
HEAD_WIDTH = 64   # width of the reranker's hidden states

# A chat template that writes tools into the prompt.
TOOLS_TEMPLATE = """{%- if tools %}<tools>{% for tool in tools %}{{ tool | tojson }}{% endfor %}</tools>
For each call write <tool_call>
{"name": <name>, "arguments": <arguments>}
</tool_call>{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.tool_calls %}{% for call in message.tool_calls %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}{% elif message.role == "tool" %}<tool_response>{{ message.content }}</tool_response>
{%- else %}{{ message.content }}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


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


def write_safetensors(path: Path, tensors: dict[str, tuple[tuple[int, ...], list[float]]]) -> None:
    header: dict[str, Any] = {}
    data = b""
    for name, (shape, values) in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.fixture(scope="session")
def reranker_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small BERT with a classification head: the body is from tests/goldens, and a second file of weights has the
    head."""
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
        "classifier.weight": ((1, HEAD_WIDTH), [(k * 17 % 23 - 11) / 16 for k in range(HEAD_WIDTH)]), "classifier.bias": ((1,), [-1.0])})
    return folder
