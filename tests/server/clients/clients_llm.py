# SPDX-License-Identifier: MIT
"""Runs the unmodified llm command with `frit serve` (tests/server/clients/clients.sh)."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from clients_server import KEY, Server, ToolServer

MODELS = """
- model_id: tales
  model_name: default
  api_base: {tales}/v1
  api_key_name: frit
  supports_schema: true
- model_id: tools
  model_name: scripted
  api_base: {tools}/v1
  api_key_name: frit
  supports_tools: true
"""
FUNCTIONS = '''
def get_weather(city: str) -> str:
    "Weather of a city"
    return "21" if city == "Paris" else "unknown"
'''


def setUpModule():
    global bundled, scripted, folder
    bundled, scripted = Server(), ToolServer()
    folder = tempfile.TemporaryDirectory()
    with open(os.path.join(folder.name, "extra-openai-models.yaml"), "w") as out:
        out.write(MODELS.format(tales=bundled.url, tools=scripted.url))
    with open(os.path.join(folder.name, "keys.json"), "w") as out:
        json.dump({"frit": KEY}, out)


def tearDownModule():
    bundled.stop()
    scripted.stop()
    folder.cleanup()


def llm(*arguments):
    program = os.path.join(os.path.dirname(sys.executable), "llm")
    environment = {**os.environ, "LLM_USER_PATH": folder.name}
    run = subprocess.run([program, *arguments], capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
    if run.returncode != 0:
        raise AssertionError(run.stderr)
    return run.stdout


class Command(unittest.TestCase):
    def test_an_answer_and_the_next_turn(self):
        options = ["-m", "tales", "-o", "temperature", "0", "-o", "max_tokens", "20"]
        streamed = llm("Tell me the tale of Rapunzel.", *options)
        self.assertIn("There were once a man and a woman", streamed)
        self.assertEqual(llm("Tell me the tale of Rapunzel.", "--no-stream", *options), streamed)
        self.assertTrue(llm("--continue", "Go on.", *options).strip())

    def test_a_schema_holds(self):
        schema = {"type": "object", "properties": {"long": {"type": "boolean"}}, "required": ["long"],
                  "additionalProperties": False}
        answer = llm("Is it long?", "-m", "tales", "--schema", json.dumps(schema), "-o", "temperature", "0")
        self.assertIsInstance(json.loads(answer)["long"], bool)

    def test_tools_are_called(self):
        self.assertIn("It is 21 degrees.", llm("weather", "-m", "tools", "--functions", FUNCTIONS))


if __name__ == "__main__":
    unittest.main(verbosity=2)
