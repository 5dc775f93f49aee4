# SPDX-License-Identifier: MIT
"""Runs every command of docs/api.md with bash and curl, and compares the answer with that below it
(tests/server/clients/clients.sh).

    python3 tests/server/clients/clients_curl.py build/release/frit --write     writes the answers into docs/api.md

In the document, the server on port 8080 has the bundled model, the one on port 8081 that of tests/support/tool_model.h,
and the one on port 8082 the bundled model twice. Values that differ between runs (ids, times) are compared by their kind. A text that ends
with "..." may continue, and so may a list whose last element is such a text.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from clients_server import Server, ToolServer

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
DOCUMENT, MODEL = os.path.join(ROOT, "docs", "api.md"), os.path.join(ROOT, "models", "fable.gguf")
EXAMPLE = re.compile(r"```sh\n(.*?)```\n\n```(json|text)\n(.*?)```", re.S)
VARYING = re.compile(r"(^|_)(id|created|created_at|modified_at|completed_at|expires_at|seed|digest|size|size_vram|path|model_path|"
                     r"fingerprint|version|duration|build_info)$|_(ms|per_second)$|_prediction_tokens$")
LONGEST_TEXT, LONGEST_LIST = 200, 3


def matches(expected, found, key=""):
    if expected == "..." or VARYING.search(key):
        return expected == "..." or type(expected) is type(found)
    if isinstance(expected, str) and expected.endswith("..."):
        return isinstance(found, str) and found.startswith(expected[:-3])
    if isinstance(expected, dict):
        return isinstance(found, dict) and expected.keys() == found.keys() and all(
            matches(expected[name], found[name], name) for name in expected)
    if isinstance(expected, list):
        if expected and expected[-1] == "...":
            expected, found = expected[:-1], found[:len(expected) - 1]
        return len(expected) == len(found) and all(matches(e, f, key) for e, f in zip(expected, found))
    if isinstance(expected, float) or isinstance(found, float):
        return abs(expected - found) <= 0.02 + 0.02 * abs(expected)
    return expected == found


def abridged(value):
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return value[:LONGEST_TEXT * 2 // 3] + "..."
    if isinstance(value, dict):
        return {key: abridged(item) for key, item in value.items()}
    if isinstance(value, list):
        return [abridged(item) for item in value[:LONGEST_LIST]] + (["..."] if len(value) > LONGEST_LIST else [])
    return value if not isinstance(value, float) else float(f"{value:.4g}")


def laid_out(value, indent=0, width=110):
    """Returns JSON text. An array or object that fits into a line is on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= width or not isinstance(value, (dict, list)) or not value:
        return line
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {laid_out(item, indent + 2, width)}" for key, item in value.items()]
    else:
        parts = [laid_out(item, indent + 2, width) for item in value]
    lines = [parts[0]]
    for part in parts[1:]:   # short members share a line
        if "\n" not in part and "\n" not in lines[-1] and len(lines[-1]) + len(part) + indent + 4 <= width:
            lines[-1] += ", " + part
        else:
            lines.append(part)
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return opening + "\n" + ",\n".join(pad + line for line in lines) + "\n" + " " * indent + closing


def parsed(line):
    """Splits a line of a stream into the text before its JSON, and the JSON."""
    at = line.find("{")
    try:
        return (line[:at], json.loads(line[at:])) if at >= 0 else (line, None)
    except ValueError:
        return line, None


def run(command):
    for port, server in (("8080", bundled), ("8081", scripted), ("8082", double)):
        command = command.replace(f"127.0.0.1:{port}", server.url.split("//")[1])
    done = subprocess.run(["bash", "-euc", command], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{command}\n{done.stderr}")
    return done.stdout


def written(kind, output):
    if kind == "json":
        return laid_out(abridged(json.loads(output))) + "\n"
    lines = []
    for line in output.rstrip("\n").split("\n"):
        before, value = parsed(line)
        lines.append(line if value is None else before + json.dumps(abridged(value), ensure_ascii=False))
    return "\n".join(lines) + "\n"


def setUpModule():
    global bundled, scripted, double, saved
    saved = tempfile.TemporaryDirectory()
    bundled, scripted = Server("--max-queue", "64", key=None), ToolServer(key=None)
    double = Server(MODEL, f"second={MODEL}", "--slot-save-path", saved.name, key=None)


def tearDownModule():
    for server in (bundled, scripted, double):
        server.stop()
    saved.cleanup()


class Document(unittest.TestCase):
    def test_each_command_gives_its_answer(self):
        with open(DOCUMENT) as file:
            examples = EXAMPLE.findall(file.read())
        self.assertGreater(len(examples), 20)
        for command, kind, answer in examples:
            output = run(command)
            with self.subTest(command=command, output=output):
                if kind == "json":
                    self.assertTrue(matches(json.loads(answer), json.loads(output)))
                    continue
                expected, found = answer.rstrip("\n").split("\n"), output.rstrip("\n").split("\n")
                self.assertEqual(len(expected), len(found))
                for e, f in zip(map(parsed, expected), map(parsed, found)):
                    self.assertEqual(e[0], f[0])
                    self.assertTrue(e[1] is None or matches(e[1], f[1]), (e, f))

    def test_each_route_is_there(self):
        with open(DOCUMENT) as file:
            commands = " ".join(re.findall(r"```sh\n(.*?)```", file.read(), re.S))
        with urllib.request.urlopen(bundled.url + "/openapi.json") as reply:
            paths = json.load(reply)["paths"]
        for path in paths.keys() - {"/assets/{id}"}:   # the names of these files depend on their contents
            pattern = re.escape(path).replace(r"\{id\}", r"[^/\s]+") + r"(?![\w/-])"
            self.assertRegex(commands, r"127\.0\.0\.1:\d+" + pattern)


def write():
    setUpModule()
    with open(DOCUMENT) as file:
        text = file.read()
    text = EXAMPLE.sub(lambda found: f"```sh\n{found[1]}```\n\n```{found[2]}\n{written(found[2], run(found[1]))}```", text)
    with open(DOCUMENT, "w") as file:
        file.write(text)
    tearDownModule()


if __name__ == "__main__":
    write() if sys.argv[1:] == ["--write"] else unittest.main(verbosity=2)
