# SPDX-License-Identifier: MIT
"""Runs the unmodified ollama package with `frit serve` (tests/server/clients/clients.sh)."""
import unittest

import ollama

from clients_server import KEY, PictureServer, ToolServer

WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


def setUpModule():
    global server, client
    server = ToolServer()
    client = ollama.Client(host=server.url, headers={"Authorization": f"Bearer {KEY}"})


def tearDownModule():
    server.stop()


class Client(unittest.TestCase):
    def test_a_tool_loop(self):
        messages = [{"role": "user", "content": "weather"}]
        answer = client.chat(model="scripted", messages=messages, tools=[WEATHER], think=True)
        self.assertEqual(answer.message.content, "Let me look.")
        self.assertEqual(answer.message.thinking, "Hm, weather.")
        call = answer.message.tool_calls[0]
        self.assertEqual((call.function.name, call.function.arguments), ("get_weather", {"city": "Paris"}))
        messages += [answer.message, {"role": "tool", "tool_name": "get_weather", "content": "21"}]
        again = client.chat(model="scripted", messages=messages, tools=[WEATHER])
        self.assertEqual(again.message.content, "It is 21 degrees.")
        self.assertEqual(again.done_reason, "stop")

    def test_streams(self):
        chunks = list(client.chat(model="scripted", messages=[{"role": "user", "content": "weather"}], tools=[WEATHER],
                                  stream=True))
        self.assertEqual("".join(chunk.message.content for chunk in chunks), "Let me look.")
        self.assertTrue(chunks[-1].done)
        self.assertGreater(chunks[-1].eval_count, 3)
        chunks = list(client.generate(model="scripted", prompt="<|after|>", raw=True, stream=True))
        self.assertEqual("".join(chunk.response for chunk in chunks), "It is 21 degrees.")

    def test_models_and_vectors(self):
        self.assertEqual([model.model for model in client.list().models], ["scripted"])
        self.assertEqual(client.show("scripted").modelinfo["general.architecture"], "llama")
        self.assertEqual(client.ps().models[0].details.family, "llama")
        self.assertEqual(len(client.embed(model="scripted", input=["a", "b"]).embeddings), 2)

    def test_errors(self):
        with self.assertRaises(ollama.ResponseError) as raised:
            client.chat(model="qwen", messages=[{"role": "user", "content": "a"}])
        self.assertEqual(raised.exception.status_code, 404)
        self.assertIn("does not exist", raised.exception.error)
        with self.assertRaises(ollama.ResponseError) as raised:
            list(client.generate(model="scripted", prompt="a", options={"temperature": -1}, stream=True))
        self.assertEqual(raised.exception.status_code, 400)


class Pictures(unittest.TestCase):
    def test_chats_and_prompts_have_pictures(self):
        pictures = PictureServer()
        own = ollama.Client(host=pictures.url, headers={"Authorization": f"Bearer {KEY}"})
        answer = own.chat(model="pictures", options={"num_predict": 6}, messages=[
            {"role": "user", "content": pictures.question, "images": [pictures.file]}])
        self.assertEqual(answer.message.content, pictures.answer)
        answer = own.generate(model="pictures", prompt=pictures.question, images=[pictures.file],
                              options={"num_predict": 6})
        self.assertEqual(answer.response, pictures.answer)
        self.assertIn("vision", own.show("pictures").capabilities)
        pictures.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)
