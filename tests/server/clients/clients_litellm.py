# SPDX-License-Identifier: MIT
"""Runs the unmodified litellm package with `frit serve`, with its providers for OpenAI, Anthropic and Ollama
(tests/server/clients/clients.sh)."""
import os
import unittest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"   # without it the package fetches a list of prices
import litellm

from clients_server import KEY, ToolServer

WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
QUESTION = [{"role": "user", "content": "weather"}]


def setUpModule():
    global server
    server = ToolServer()


def tearDownModule():
    server.stop()


def ask(provider="openai", **fields):
    base = server.url + ("/v1" if provider == "openai" else "")
    asked = {"model": f"{provider}/scripted", "messages": QUESTION, "tools": [WEATHER], "max_tokens": 200, **fields}
    return litellm.completion(api_base=base, api_key=fields.pop("api_key", KEY), num_retries=0, **{
        key: value for key, value in asked.items() if key != "api_key"})


class Completion(unittest.TestCase):
    def test_a_tool_loop_with_each_provider(self):
        for provider in ("openai", "anthropic", "ollama_chat"):
            with self.subTest(provider=provider):
                message = ask(provider).choices[0].message
                self.assertEqual(message.content, "Let me look.")
                self.assertEqual(message.reasoning_content, "Hm, weather.")
                call = message.tool_calls[0]
                self.assertEqual((call.function.name, call.function.arguments.replace(" ", "")),
                                 ("get_weather", '{"city":"Paris"}'))
                result = {"role": "tool", "tool_call_id": call.id, "name": "get_weather", "content": "21"}
                again = ask(provider, messages=[*QUESTION, message.model_dump(), result])
                self.assertEqual(again.choices[0].message.content, "It is 21 degrees.")

    def test_streams(self):
        chunks = list(ask(stream=True, stream_options={"include_usage": True}))
        whole = litellm.stream_chunk_builder(chunks)
        self.assertEqual(whole.choices[0].message.content, "Let me look.")
        self.assertEqual(whole.choices[0].finish_reason, "tool_calls")
        self.assertEqual(whole.choices[0].message.tool_calls[0].function.name, "get_weather")
        self.assertEqual(whole.usage.completion_tokens, ask().usage.completion_tokens)

    def test_texts_and_vectors(self):
        text = litellm.text_completion(model="openai/scripted", prompt="<|after|>", api_base=server.url + "/v1",
                                       api_key=KEY, max_tokens=20, temperature=0)
        self.assertEqual(text.choices[0].text, "It is 21 degrees.")
        vectors = litellm.embedding(model="openai/scripted", input=["a", "b"], api_base=server.url + "/v1", api_key=KEY,
                                    encoding_format="float")
        self.assertEqual(len(vectors.data), 2)

    def test_errors_have_their_classes(self):
        for fields, kind in [({"temperature": -1}, litellm.BadRequestError),
                             ({"model": "openai/gpt-4"}, litellm.NotFoundError),
                             ({"api_key": "wrong"}, litellm.AuthenticationError),
                             ({"messages": [{"role": "user", "content": "long " * 600}]},
                              litellm.ContextWindowExceededError)]:
            with self.subTest(fields=str(fields)[:40]), self.assertRaises(kind):
                ask(**fields)


if __name__ == "__main__":
    unittest.main(verbosity=2)
