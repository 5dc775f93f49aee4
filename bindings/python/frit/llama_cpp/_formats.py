# SPDX-License-Identifier: MIT
"""Chat templates of llama-cpp-python's named formats. A model whose file has a template needs none of them."""

from __future__ import annotations

import atexit
import tempfile
from pathlib import Path

_TURNS = "{% for message in messages %}"
_CALL = '<tool_call>\\n{"name": <name of the tool>, "arguments": <object of arguments>}\\n</tool_call>'

FORMATS = {
    "chatml": _TURNS + "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    # ChatML with tools, for models that were not trained with a form of tool calls.
    "chatml-function-calling": "{% set ns = namespace(system='') %}{% for message in messages %}"
    "{% if message.role == 'system' %}{% set ns.system = ns.system + message.content + '\n' %}{% endif %}{% endfor %}"
    "{% if tools %}{% set ns.system = ns.system + '\nThese tools can be called, each described by a JSON schema:\n<tools>\n' %}"
    "{% for tool in tools %}{% set ns.system = ns.system + (tool | tojson) + '\n' %}{% endfor %}"
    "{% set ns.system = ns.system + '</tools>\nTo call one, write:\n" + _CALL + "\n' %}{% endif %}"
    "{% if ns.system %}<|im_start|>system\n{{ ns.system | trim }}<|im_end|>\n{% endif %}"
    "{% for message in messages %}{% if message.role != 'system' %}<|im_start|>{{ message.role }}\n"
    "{% if message.content %}{{ message.content }}{% endif %}"
    "{% for call in message.tool_calls or [] %}<tool_call>\n"
    '{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}\n</tool_call>{% endfor %}'
    "<|im_end|>\n{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    "llama-2": "{% set ns = namespace(system='') %}" + _TURNS + "{% if message.role == 'system' %}"
    "{% set ns.system = '<<SYS>>\n' + message.content + '\n<</SYS>>\n\n' %}{% elif message.role == 'user' %}"
    "{{ bos_token }}[INST] {{ ns.system }}{% set ns.system = '' %}{{ message.content }} [/INST]"
    "{% else %} {{ message.content }} {{ eos_token }}{% endif %}{% endfor %}",
    "llama-3": _TURNS + "<|start_header_id|>{{ message.role }}<|end_header_id|>\n\n{{ message.content }}<|eot_id|>"
    "{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}",
    "gemma": _TURNS + "<start_of_turn>{{ 'model' if message.role == 'assistant' else message.role }}\n"
    "{{ message.content }}<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}",
    "mistral-instruct": "{{ bos_token }}" + _TURNS + "{% if message.role == 'user' %}[INST] {{ message.content }}"
    "{% else %} [/INST]{{ message.content }}{{ eos_token }}{% endif %}{% endfor %} [/INST]",
    "zephyr": _TURNS + "<|{{ message.role }}|>\n{{ message.content }}{{ eos_token }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}",
    "alpaca": _TURNS + "{% if message.role == 'system' %}{{ message.content }}{% else %}### "
    "{{ 'Instruction' if message.role == 'user' else 'Response' }}:\n{{ message.content }}{% endif %}\n\n{% endfor %}"
    "{% if add_generation_prompt %}### Response:\n{% endif %}",
    "vicuna": _TURNS + "{% if message.role == 'system' %}{{ message.content }} {% else %}"
    "{{ 'USER' if message.role == 'user' else 'ASSISTANT' }}: {{ message.content }}"
    "{{ ' ' if message.role == 'user' else '</s>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}ASSISTANT:{% endif %}",
}


def template_file(name: str | None) -> str | None:
    """Returns the path of a file with a format's template, or None if the model's own template is used."""
    if name is None or name.startswith("chat_template."):
        return None
    if name not in FORMATS:
        raise ValueError(f"chat_format '{name}': expected one of {', '.join(FORMATS)}, or None for the model's own template")
    with tempfile.NamedTemporaryFile("w", suffix=".jinja", delete=False, encoding="utf-8") as file:
        file.write(FORMATS[name])
    atexit.register(Path(file.name).unlink, missing_ok=True)
    return file.name
