# SPDX-License-Identifier: MIT
"""Runs the unmodified openai package with `frit serve`, with the bundled model and with a model that calls tools.

    tests/server/clients/clients.sh build/release/frit
"""
import asyncio
import json
import unittest
import urllib.request

import openai

from clients_server import KEY, PictureServer, Server, ToolServer

QUESTION = [{"role": "user", "content": "Tell me the tale of Rapunzel."}]


def setUpModule():
    global server, client
    server = Server()
    client = openai.OpenAI(base_url=server.url + "/v1", api_key=KEY, max_retries=0, timeout=300)


def tearDownModule():
    client.close()
    server.stop()


class Chat(unittest.TestCase):
    def test_an_answer_is_parsed(self):
        answer = client.chat.completions.create(model="fable", messages=QUESTION, max_tokens=20, temperature=0)
        self.assertEqual(answer.object, "chat.completion")
        self.assertEqual(answer.model, "fable")
        choice = answer.choices[0]
        self.assertEqual(choice.message.role, "assistant")
        self.assertIn("There were once a man and a woman", choice.message.content)
        self.assertEqual(choice.finish_reason, "length")
        self.assertEqual(answer.usage.completion_tokens, 20)
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + 20)
        self.assertIsNotNone(answer.usage.prompt_tokens_details.cached_tokens)

    def test_a_stream_is_the_answer(self):
        whole = client.chat.completions.create(model="fable", messages=QUESTION, max_tokens=20, temperature=0)
        chunks = list(
            client.chat.completions.create(
                model="fable", messages=QUESTION, max_tokens=20, temperature=0, stream=True,
                stream_options={"include_usage": True},
            )
        )
        self.assertEqual(len({chunk.id for chunk in chunks}), 1)
        self.assertEqual(len({chunk.created for chunk in chunks}), 1)
        self.assertEqual([c.choices[0].delta.role for c in chunks if c.choices].count("assistant"), 1)
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[-2].choices[0].finish_reason, "length")
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, 20)
        self.assertTrue(all(chunk.usage is None for chunk in chunks[:-1]))

    def test_the_stream_helper_accumulates(self):
        with client.chat.completions.stream(model="fable", messages=QUESTION, max_tokens=400, temperature=0,
                                            stop=["long in vain"]) as stream:
            deltas = [event.delta for event in stream if event.type == "content.delta"]
            final = stream.get_final_completion()
        self.assertEqual(final.choices[0].message.content, "".join(deltas))
        self.assertEqual(final.choices[0].message.role, "assistant")
        self.assertEqual(final.choices[0].finish_reason, "stop")
        self.assertTrue(final.choices[0].message.content.endswith("who had "))

    def test_every_sampling_field_is_taken(self):
        answer = client.chat.completions.create(
            model="default", messages=[{"role": "developer", "content": "Be brief."}, *QUESTION], max_completion_tokens=4,
            temperature=0.7, top_p=0.9, frequency_penalty=0.5, presence_penalty=0.5, seed=1, logit_bias={"5": -100},
            stop=["\n"], n=1, user="me", store=False, metadata={"a": "b"}, extra_body={"top_k": 5, "min_p": 0.1},
        )
        self.assertTrue(answer.choices[0].message.content)

    def test_log_probabilities(self):
        answer = client.chat.completions.create(model="fable", messages=QUESTION, max_tokens=8, temperature=0,
                                                logprobs=True, top_logprobs=2)
        content = answer.choices[0].logprobs.content
        self.assertEqual(b"".join(bytes(token.bytes) for token in content).decode(), answer.choices[0].message.content)
        for token in content:
            self.assertEqual(token.token, token.top_logprobs[0].token)
            self.assertGreaterEqual(token.top_logprobs[0].logprob, token.top_logprobs[1].logprob)

    def test_parts_of_text_are_joined(self):
        parts = [{"role": "user", "content": [{"type": "text", "text": "Tell me the tale "},
                                              {"type": "text", "text": "of Rapunzel."}]}]
        whole = client.chat.completions.create(model="fable", messages=QUESTION, max_tokens=8, temperature=0)
        joined = client.chat.completions.create(model="fable", messages=parts, max_tokens=8, temperature=0)
        self.assertEqual(whole.choices[0].message.content, joined.choices[0].message.content)

    def test_a_second_turn_reuses_the_first(self):
        first = client.chat.completions.create(model="fable", messages=QUESTION, max_tokens=12, temperature=0)
        turns = [*QUESTION, {"role": "assistant", "content": first.choices[0].message.content},
                 {"role": "user", "content": "Go on."}]
        second = client.chat.completions.create(model="fable", messages=turns, max_tokens=2, temperature=0)
        self.assertGreaterEqual(second.usage.prompt_tokens_details.cached_tokens, first.usage.prompt_tokens)

    def test_eight_clients_at_once_get_the_text_of_one_alone(self):
        tales = ["Rapunzel", "Hansel and Gretel", "the Frog King", "Snow White", "Rumpelstiltskin", "Cinderella",
                 "Little Red Cap", "the golden goose"]

        def ask(client, tale):
            messages = [{"role": "user", "content": f"Tell me the tale of {tale}."}]
            return client.chat.completions.create(model="fable", messages=messages, max_tokens=48, temperature=0)

        async def ask_all():
            async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key=KEY, max_retries=0) as client:
                return await asyncio.gather(*[ask(client, tale) for tale in tales])

        together = [answer.choices[0].message.content for answer in asyncio.run(ask_all())]
        alone = [ask(client, tale).choices[0].message.content for tale in tales]
        self.assertEqual(together, alone)
        self.assertEqual(len(set(alone)), len(tales))


class Completions(unittest.TestCase):
    def test_an_answer_and_its_stream(self):
        asked = dict(model="fable", prompt="Once upon a time", max_tokens=16, temperature=0)
        whole = client.completions.create(**asked)
        self.assertEqual(whole.object, "text_completion")
        self.assertEqual(whole.choices[0].finish_reason, "length")
        chunks = list(client.completions.create(**asked, stream=True))
        self.assertEqual("".join(c.choices[0].text for c in chunks), whole.choices[0].text)
        self.assertEqual(chunks[-1].choices[0].finish_reason, "length")

    def test_token_prompts(self):
        ids = json.loads(ask_raw("/tokenize", {"content": "Once upon a time", "add_special": True}))["tokens"]
        by_text = client.completions.create(model="fable", prompt="Once upon a time", max_tokens=8, temperature=0)
        by_ids = client.completions.create(model="fable", prompt=ids, max_tokens=8, temperature=0)
        self.assertEqual(by_text.choices[0].text, by_ids.choices[0].text)
        self.assertEqual(by_text.usage.prompt_tokens, len(ids))


def ask_raw(path, body):
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"X-Api-Key": KEY})
    with urllib.request.urlopen(request) as reply:
        return reply.read()


WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


class Tools(unittest.TestCase):
    """The server has the model of tests/support/tool_model.h, which answers "weather" by a tool call."""

    @classmethod
    def setUpClass(cls):
        cls.server = ToolServer()
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key=KEY, max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.stop()

    def ask(self, messages, **fields):
        return self.client.chat.completions.create(model="scripted", messages=messages, tools=[WEATHER], **fields)

    def test_a_tool_loop(self):
        messages = [{"role": "user", "content": "weather"}]
        answer = self.ask(messages)
        choice = answer.choices[0]
        self.assertEqual(choice.finish_reason, "tool_calls")
        self.assertEqual(choice.message.content, "Let me look.")
        self.assertEqual(choice.message.reasoning_content, "Hm, weather.")
        call = choice.message.tool_calls[0]
        self.assertEqual((call.type, call.function.name), ("function", "get_weather"))
        self.assertEqual(json.loads(call.function.arguments), {"city": "Paris"})
        messages += [choice.message, {"role": "tool", "tool_call_id": call.id, "content": "21"}]
        self.assertEqual(self.ask(messages).choices[0].message.content, "It is 21 degrees.")

    def test_the_stream_helper_accumulates_calls(self):
        messages = [{"role": "user", "content": "weather"}]
        with self.client.chat.completions.stream(model="scripted", messages=messages, tools=[WEATHER]) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_completion().choices[0]
        self.assertIn("tool_calls.function.arguments.done", kinds)
        self.assertEqual(final.finish_reason, "tool_calls")
        self.assertEqual(json.loads(final.message.tool_calls[0].function.arguments), {"city": "Paris"})
        self.assertEqual(final.message.content, "Let me look.")

    def test_wrong_tools_are_refused(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.ask([{"role": "user", "content": "weather"}], tool_choice={"type": "function", "function": {"name": "x"}})
        self.assertEqual((raised.exception.param, raised.exception.code), ("tool_choice", "invalid_value"))


class Responses(unittest.TestCase):
    """The server has the model of tests/support/tool_model.h."""

    TOOL = {"type": "function", **WEATHER["function"], "strict": False}

    @classmethod
    def setUpClass(cls):
        cls.server = ToolServer()
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key=KEY, max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.stop()

    def ask(self, **fields):
        return self.client.responses.create(model="scripted", tools=[self.TOOL], **fields)

    def test_a_tool_loop_by_id(self):
        answer = self.ask(input="weather", instructions="Be brief.")
        self.assertEqual([item.type for item in answer.output], ["reasoning", "message", "function_call"])
        self.assertEqual(answer.output_text, "Let me look.")
        call = answer.output[2]
        self.assertEqual(json.loads(call.arguments), {"city": "Paris"})
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "21"}
        again = self.ask(input=[result], previous_response_id=answer.id)
        self.assertEqual(again.output_text, "It is 21 degrees.")
        whole = self.ask(input=[{"role": "user", "content": "weather"}, *answer.output, result])
        self.assertEqual(whole.output_text, "It is 21 degrees.")
        self.assertEqual(self.client.responses.retrieve(answer.id).output, answer.output)
        self.client.responses.delete(answer.id)
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(answer.id)

    def test_the_stream_helper_accumulates(self):
        with self.client.responses.stream(model="scripted", input="weather", tools=[self.TOOL]) as stream:
            events = list(stream)
            final = stream.get_final_response()
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        self.assertEqual(events[0].type, "response.created")
        self.assertEqual(events[-1].type, "response.completed")
        text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        self.assertEqual(text, "Let me look.")
        self.assertEqual(final.output_text, text)
        self.assertEqual(final.output[2].name, "get_weather")

    def test_errors(self):
        for fields, code in [({"input": "a", "temperature": -1}, "invalid_value"),
                             ({"input": "a", "previous_response_id": "resp_0"}, "previous_response_not_found"),
                             ({"input": [{"type": "item_reference", "id": "x"}]}, "unsupported_parameter")]:
            with self.subTest(fields=fields), self.assertRaises(openai.BadRequestError) as raised:
                self.ask(**fields)
            self.assertEqual(raised.exception.code, code)


class Models(unittest.TestCase):
    def test_models_are_listed_and_found(self):
        self.assertEqual([model.id for model in client.models.list()], ["fable"])
        self.assertEqual(client.models.retrieve("fable").owned_by, "frit")


class Errors(unittest.TestCase):
    def ask(self, **fields):
        return client.chat.completions.create(**{"model": "fable", "messages": QUESTION, "max_tokens": 4, **fields})

    def test_types_fields_and_codes(self):
        for fields, kind, param, code in [
            ({"temperature": -1}, openai.BadRequestError, "temperature", "invalid_value"),
            ({"n": 0}, openai.BadRequestError, "n", "invalid_value"),
            ({"messages": []}, openai.BadRequestError, "messages", "invalid_value"),
            ({"model": "gpt-4"}, openai.NotFoundError, "model", "model_not_found"),
            ({"messages": [{"role": "user", "content": "long " * 600}]}, openai.BadRequestError, "messages",
             "context_length_exceeded"),
            ({"temperature": -1, "stream": True}, openai.BadRequestError, "temperature", "invalid_value"),
        ]:
            with self.subTest(fields=str(fields)[:60]), self.assertRaises(kind) as raised:
                self.ask(**fields)
            self.assertEqual(raised.exception.param, param)
            self.assertEqual(raised.exception.code, code)
            self.assertEqual(raised.exception.type, "invalid_request_error")
            self.assertTrue(raised.exception.request_id)

    def test_a_wrong_key(self):
        with openai.OpenAI(base_url=server.url + "/v1", api_key="wrong", max_retries=0) as other:
            with self.assertRaises(openai.AuthenticationError) as raised:
                other.models.list()
        self.assertEqual(raised.exception.code, "invalid_api_key")

    def test_a_crowd_is_told_to_come_back_and_does(self):
        async def ask_all(retries):
            async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key=KEY, max_retries=retries) as client:
                asked = [client.chat.completions.create(model="fable", messages=QUESTION, max_tokens=64, temperature=0)
                         for _ in range(20)]
                return await asyncio.gather(*asked, return_exceptions=True)

        answers = asyncio.run(ask_all(0))
        refused = [a for a in answers if isinstance(a, openai.RateLimitError)]
        self.assertTrue(refused)
        self.assertEqual(refused[0].code, "queue_full")
        self.assertGreaterEqual(int(refused[0].response.headers["retry-after"]), 1)
        self.assertEqual(len(refused) + sum(not isinstance(a, Exception) for a in answers), 20)
        again = asyncio.run(ask_all(50))
        self.assertEqual(len({a.choices[0].message.content for a in again}), 1)

    def test_an_abandoned_stream_frees_its_session(self):
        stream = self.ask(stream=True, max_tokens=None)
        next(iter(stream))
        stream.close()
        for _ in range(200):
            with urllib.request.urlopen(server.url + "/health") as reply:
                if json.load(reply)["running"] == 0:
                    return
        self.fail("the session is still busy")


class Pictures(unittest.TestCase):
    def test_chats_and_responses_have_pictures(self):
        pictures = PictureServer()
        url = f"data:image/jpeg;base64,{pictures.data}"
        with openai.OpenAI(base_url=pictures.url + "/v1", api_key=KEY, max_retries=0) as own:
            answer = own.chat.completions.create(model="pictures", max_tokens=6, messages=[{"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": url, "detail": "high"}},
                {"type": "text", "text": pictures.question}]}])
            self.assertEqual(answer.choices[0].message.content, pictures.answer)
            self.assertGreater(answer.usage.prompt_tokens_details.image_tokens, 0)
            answer = own.responses.create(model="pictures", max_output_tokens=6, input=[{"role": "user", "content": [
                {"type": "input_image", "image_url": url, "detail": "auto"},
                {"type": "input_text", "text": pictures.question}]}])
            self.assertEqual(answer.output_text, pictures.answer)
            with self.assertRaises(openai.BadRequestError) as raised:
                own.chat.completions.create(model="pictures", messages=[{"role": "user", "content": [
                    {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}])
            self.assertEqual(raised.exception.param, "messages[0].content[0]")
        pictures.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)
