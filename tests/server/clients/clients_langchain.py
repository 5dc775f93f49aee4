# SPDX-License-Identifier: MIT
"""Runs the unmodified LangChain packages for OpenAI, Anthropic and Ollama with `frit serve`
(tests/server/clients/clients.sh)."""
import os
import unittest
from typing import Literal

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, Field

from clients_server import KEY, PictureServer, Server, ToolServer

TALES = ["Rapunzel", "Hansel and Gretel", "the Frog King", "Snow White", "Rumpelstiltskin", "Cinderella"]
os.environ["LANGSMITH_TRACING"] = "false"


class Book(BaseModel):
    """A book of tales"""
    tale: Literal["Rapunzel", "Cinderella"]
    pages: int = Field(ge=1, le=99)
    illustrated: bool


class add(BaseModel):
    """Adds"""
    a: int


@tool
def get_weather(city: str) -> str:
    """Weather of a city"""
    return "21" if city == "Paris" else "unknown"


def setUpModule():
    global bundled, scripted
    bundled, scripted = Server(), ToolServer()


def tearDownModule():
    bundled.stop()
    scripted.stop()


def openai_chat(server, **fields):
    return ChatOpenAI(base_url=server.url + "/v1", api_key=KEY, model="default", temperature=0, max_retries=0, **fields)


class OpenAI(unittest.TestCase):
    def test_answers_streams_and_batches_agree(self):
        chat = openai_chat(bundled, max_tokens=24, stream_usage=True)
        prompts = [f"Tell me the tale of {tale}." for tale in TALES]
        together = [answer.content for answer in chat.batch(prompts, config={"max_concurrency": 6})]
        self.assertEqual(together, [chat.invoke(prompt).content for prompt in prompts])
        self.assertEqual(len(set(together)), len(TALES))
        chunks = list(chat.stream(prompts[0]))
        self.assertEqual("".join(chunk.content for chunk in chunks), together[0])
        usage = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
        self.assertEqual([u["output_tokens"] for u in usage], [24])

    def test_structured_output(self):
        book = openai_chat(bundled, max_tokens=300).with_structured_output(Book).invoke("Name a book of tales.")
        self.assertIsInstance(book, Book)
        chat = openai_chat(scripted)
        self.assertEqual(chat.with_structured_output(add, method="function_calling").invoke("five"), add(a=5))
        self.assertEqual(chat.with_structured_output(add, method="json_mode").invoke("json"), add(a=5))

    def test_a_tool_loop(self):
        tool_loop(self, openai_chat(scripted).bind_tools([get_weather]))
        tool_loop(self, openai_chat(scripted, use_responses_api=True).bind_tools([get_weather]))

    def test_streams_of_calls(self):
        whole = None
        for chunk in openai_chat(scripted).bind_tools([get_weather]).stream("weather"):
            whole = chunk if whole is None else whole + chunk
        self.assertEqual(whole.content, "Let me look.")
        self.assertEqual([(c["name"], c["args"]) for c in whole.tool_calls], [("get_weather", {"city": "Paris"})])

    def test_embeddings(self):
        embed = OpenAIEmbeddings(base_url=bundled.url + "/v1", api_key=KEY, model="default",
                                 check_embedding_ctx_length=False)
        vectors = embed.embed_documents(["a king", "a queen"])
        self.assertEqual(len(vectors), 2)
        self.assertEqual(embed.embed_query("a king"), vectors[0])


def tool_loop(test, chat):
    messages = [HumanMessage("weather")]
    answer = chat.invoke(messages)
    test.assertEqual([(c["name"], c["args"]) for c in answer.tool_calls], [("get_weather", {"city": "Paris"})])
    test.assertEqual(answer.text if isinstance(answer.text, str) else answer.text(), "Let me look.")
    call = answer.tool_calls[0]
    result = get_weather.invoke(call["args"])
    again = chat.invoke([*messages, answer, ToolMessage(result, tool_call_id=call["id"])])
    test.assertEqual(again.text if isinstance(again.text, str) else again.text(), "It is 21 degrees.")


class Others(unittest.TestCase):
    def test_anthropic(self):
        chat = ChatAnthropic(base_url=scripted.url, api_key=KEY, model="scripted", max_tokens=200, max_retries=0)
        tool_loop(self, chat.bind_tools([get_weather]))

    def test_ollama(self):
        headers = {"headers": {"Authorization": f"Bearer {KEY}"}}
        chat = ChatOllama(base_url=scripted.url, model="scripted", client_kwargs=headers)
        tool_loop(self, chat.bind_tools([get_weather]))
        chat = ChatOllama(base_url=bundled.url, model="default", client_kwargs=headers, temperature=0, num_predict=300)
        self.assertIsInstance(chat.with_structured_output(Book).invoke("Name a book of tales."), Book)


class Pictures(unittest.TestCase):
    def test_each_interface_has_pictures(self):
        pictures = PictureServer()
        headers = {"headers": {"Authorization": f"Bearer {KEY}"}}
        question = HumanMessage([
            {"type": "image", "base64": pictures.data, "mime_type": "image/jpeg"},
            {"type": "text", "text": pictures.question}])
        for chat in [
            ChatOpenAI(base_url=pictures.url + "/v1", api_key=KEY, model="pictures", max_tokens=6, temperature=0),
            ChatAnthropic(base_url=pictures.url, api_key=KEY, model="pictures", max_tokens=6, temperature=0),
            ChatOllama(base_url=pictures.url, model="pictures", client_kwargs=headers, num_predict=6, temperature=0),
        ]:
            with self.subTest(chat=type(chat).__name__):
                answer = chat.invoke([question])
                text = answer.text if isinstance(answer.text, str) else answer.text()
                self.assertGreater(answer.usage_metadata["input_tokens"], 30)   # the picture has 14 of them
                if not isinstance(chat, ChatOllama):   # which puts a newline before the text
                    self.assertEqual(text, pictures.answer)
        pictures.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)
