# SPDX-License-Identifier: MIT
"""Runs the unmodified anthropic package with `frit serve` (tests/server/clients/clients.sh)."""
import unittest

import anthropic

from clients_server import KEY, PictureServer, ToolServer

WEATHER = {"name": "get_weather", "description": "Weather of a city",
           "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}


def setUpModule():
    global server, client
    server = ToolServer()
    client = anthropic.Anthropic(base_url=server.url, api_key=KEY, max_retries=0)


def tearDownModule():
    client.close()
    server.stop()


class Messages(unittest.TestCase):
    def ask(self, messages, **fields):
        return client.messages.create(**{"model": "scripted", "max_tokens": 200, "messages": messages,
                                         "tools": [WEATHER], **fields})

    def test_a_tool_loop(self):
        messages = [{"role": "user", "content": "weather"}]
        answer = self.ask(messages, system="Be brief.", thinking={"type": "enabled", "budget_tokens": 1024})
        self.assertEqual([block.type for block in answer.content], ["thinking", "text", "tool_use"])
        self.assertEqual(answer.content[0].thinking, "Hm, weather.")
        self.assertEqual(answer.content[2].input, {"city": "Paris"})
        self.assertEqual(answer.stop_reason, "tool_use")
        self.assertGreater(answer.usage.output_tokens, 3)
        messages += [{"role": "assistant", "content": answer.content},
                     {"role": "user", "content": [{"type": "tool_result", "tool_use_id": answer.content[2].id,
                                                   "content": "21"}]}]
        again = self.ask(messages, system="Be brief.")
        self.assertEqual(again.content[0].text, "It is 21 degrees.")
        self.assertEqual(again.stop_reason, "end_turn")
        self.assertGreater(again.usage.cache_read_input_tokens, 0)

    def test_the_stream_helper_accumulates(self):
        messages = [{"role": "user", "content": "weather"}]
        with client.messages.stream(model="scripted", max_tokens=200, messages=messages, tools=[WEATHER]) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_message()
        self.assertEqual(kinds[0], "message_start")
        self.assertEqual(kinds[-1], "message_stop")
        for kind in ("thinking", "text", "input_json"):
            self.assertIn(kind, kinds)
        whole = self.ask(messages)
        self.assertEqual([b.model_dump(exclude={"id"}) for b in final.content],
                         [b.model_dump(exclude={"id"}) for b in whole.content])
        self.assertEqual(final.stop_reason, "tool_use")
        self.assertEqual(final.usage.output_tokens, whole.usage.output_tokens)

    def test_stop_sequences(self):
        answer = self.ask([{"role": "user", "content": "weather"}], stop_sequences=["me l"])
        self.assertEqual((answer.stop_reason, answer.stop_sequence), ("stop_sequence", "me l"))

    def test_tokens_are_counted(self):
        messages = [{"role": "user", "content": "weather"}]
        count = client.messages.count_tokens(model="scripted", messages=messages, tools=[WEATHER])
        usage = self.ask(messages).usage
        self.assertEqual(count.input_tokens, usage.input_tokens + usage.cache_read_input_tokens)

    def test_errors(self):
        for fields, kind in [({"extra_body": {"temperature": -1}}, anthropic.BadRequestError),
                             ({"messages": []}, anthropic.BadRequestError),
                             ({"model": "opus"}, anthropic.NotFoundError)]:
            with self.subTest(fields=fields), self.assertRaises(kind) as raised:
                self.ask(**{"messages": [{"role": "user", "content": "weather"}], **fields})
            self.assertEqual(raised.exception.body["type"], "error")
            self.assertTrue(raised.exception.request_id)
        with anthropic.Anthropic(base_url=server.url, api_key="wrong", max_retries=0) as other:
            with self.assertRaises(anthropic.AuthenticationError):
                other.messages.create(model="scripted", max_tokens=1, messages=[{"role": "user", "content": "a"}])


class Pictures(unittest.TestCase):
    def test_messages_have_pictures(self):
        pictures = PictureServer()
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": pictures.data}}
        with anthropic.Anthropic(base_url=pictures.url, api_key=KEY, max_retries=0) as own:
            messages = [{"role": "user", "content": [image, {"type": "text", "text": pictures.question}]}]
            answer = own.messages.create(model="pictures", max_tokens=6, messages=messages)
            self.assertEqual(answer.content[0].text, pictures.answer)
            count = own.messages.count_tokens(model="pictures", messages=messages)
            usage = answer.usage
            self.assertEqual(count.input_tokens, usage.input_tokens + usage.cache_read_input_tokens)
        pictures.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)
