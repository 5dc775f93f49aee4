# SPDX-License-Identifier: MIT
"""Runs the unmodified pydantic-ai package with `frit serve` (tests/server/clients/clients.sh)."""
import asyncio
import unittest
from typing import Literal

from pydantic import BaseModel, Field
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from clients_server import KEY, Server, ToolServer


class Book(BaseModel):
    tale: Literal["Rapunzel", "Cinderella"]
    pages: int = Field(ge=1, le=99)
    illustrated: bool


class Sum(BaseModel):
    a: int


def setUpModule():
    global bundled, scripted
    bundled, scripted = Server(), ToolServer()


def tearDownModule():
    bundled.stop()
    scripted.stop()


def provider(server):
    return OpenAIProvider(base_url=server.url + "/v1", api_key=KEY)


class Agents(unittest.TestCase):
    def test_a_tool_loop(self):
        for model in (OpenAIChatModel("scripted", provider=provider(scripted)),
                      OpenAIResponsesModel("scripted", provider=provider(scripted)),
                      AnthropicModel("scripted", provider=AnthropicProvider(base_url=scripted.url, api_key=KEY))):
            with self.subTest(model=type(model).__name__):
                agent = Agent(model)
                asked = []

                @agent.tool_plain
                def get_weather(city: str) -> str:
                    """Weather of a city"""
                    asked.append(city)
                    return "21"

                self.assertEqual(agent.run_sync("weather").output, "It is 21 degrees.")
                self.assertEqual(asked, ["Paris"])

    def test_streams(self):
        async def ask():
            agent = Agent(OpenAIChatModel("default", provider=provider(bundled)))
            settings = {"temperature": 0, "max_tokens": 20}
            async with agent.run_stream("Tell me the tale of Rapunzel.", model_settings=settings) as run:
                return [text async for text in run.stream_text(delta=True)]

        self.assertIn("There were once a man and a woman", "".join(asyncio.run(ask())))

    def test_outputs_have_their_type(self):
        agent = Agent(OpenAIChatModel("default", provider=provider(bundled)), output_type=NativeOutput(Book))
        run = agent.run_sync("Name a book of tales.", model_settings={"temperature": 0, "max_tokens": 300})
        self.assertIsInstance(run.output, Book)
        agent = Agent(OpenAIChatModel("scripted", provider=provider(scripted)), output_type=ToolOutput(Sum, name="add"))
        self.assertEqual(agent.run_sync("five").output, Sum(a=5))


if __name__ == "__main__":
    unittest.main(verbosity=2)
