# SPDX-License-Identifier: MIT
"""Starts `frit serve` for the tests of clients. The program's path is the first argument."""
import atexit
import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request

FRIT = sys.argv.pop(1)
KEY = "secret-key"


class Server:
    """A server with 8 sessions, a key and a free port."""

    def __init__(self, *arguments, key=KEY):
        command = [FRIT, "serve", "--port", "0", "--parallel", "8", "--max-queue", "2", "-c", "512", *arguments]
        command += ["--api-key", key] if key else []
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)   # a skipped test does not stop its server
        said = []
        for line in self.process.stderr:
            said.append(line)
            if "http://" in line:
                self.url = line.split(" at ")[1].split()[0]
                return
        raise RuntimeError(f"frit serve ended with {self.process.wait()}: {''.join(said)}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        self.process.stderr.close()
        if code != 0:
            raise RuntimeError(f"frit serve ended with {code}")


PICTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../shared/goldens/media")
TEMPLATE = """{%- for m in messages -%}<|im_start|>{{ m.role }}
{% if m.content is string %}{{ m.content }}{% else %}{% for part in m.content %}{% if part.type == 'image' %}\
<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


class PictureServer(Server):
    """A server with a small model that reads pictures, named pictures; `file` and `data` are a picture in its path and
    in base64, and `question` and `answer` what transformers answers to it in six tokens."""

    question = "What is it?"

    def __init__(self, *arguments, key=KEY):
        model = os.path.join(PICTURES, "qwen2_5_vl")
        if not os.path.isdir(model):
            raise unittest.SkipTest(f"{model} is not there")
        self.folder = tempfile.TemporaryDirectory()
        template = os.path.join(self.folder.name, "template.jinja")
        with open(template, "w", encoding="utf-8") as file:
            file.write(TEMPLATE)
        self.file = os.path.join(PICTURES, "images", "j444.jpg")
        with open(self.file, "rb") as file:
            self.data = base64.b64encode(file.read()).decode()
        super().__init__(model, "--temp", "0", "-ctk", "f32", "-ctv", "f32", "--alias", "pictures", "--chat-template",
                         template, *arguments, key=key)
        with open(os.path.join(model, "golden.json"), encoding="utf-8") as file:
            ids = json.load(file)["cases"][1]["continuation"]
        request = urllib.request.Request(self.url + "/detokenize", json.dumps({"tokens": ids}).encode(),
                                         {"Authorization": f"Bearer {key}"} if key else {})
        with urllib.request.urlopen(request) as reply:
            self.answer = json.load(reply)["content"]

    def stop(self):
        super().stop()
        self.folder.cleanup()


class ToolServer(Server):
    """A server with the model of tests/support/tool_model.h, named scripted."""

    def __init__(self, *arguments, key=KEY):
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "scripted.gguf")
        maker = os.path.join(os.path.dirname(FRIT), "tests", "test_server_tools")
        if not os.path.exists(maker):
            raise unittest.SkipTest(f"{maker} is not built")
        subprocess.run([maker, "--model", path], check=True)
        super().__init__(path, "--temp", "0", *arguments, key=key)

    def stop(self):
        super().stop()
        self.folder.cleanup()
