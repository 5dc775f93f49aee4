# SPDX-License-Identifier: MIT
"""Runs the unmodified instructor package with `frit serve` (tests/server/clients/clients.sh)."""
import unittest
from typing import Literal

import instructor
import openai
from pydantic import BaseModel, Field

from clients_server import KEY, Server, ToolServer


class Book(BaseModel):
    tale: Literal["Rapunzel", "Cinderella"]
    pages: int = Field(ge=1, le=99)
    illustrated: bool


class add(BaseModel):
    """Adds"""
    a: int


def setUpModule():
    global bundled, scripted
    bundled, scripted = Server(), ToolServer("-c", "2048")   # a schema is long where tokens are single letters


def tearDownModule():
    bundled.stop()
    scripted.stop()


def ask(server, mode, kind, text, **fields):
    with openai.OpenAI(base_url=server.url + "/v1", api_key=KEY, max_retries=0) as client:
        asked = instructor.from_openai(client, mode=mode).chat.completions
        return asked.create(model="default", response_model=kind, max_retries=0, temperature=0,
                            messages=[{"role": "user", "content": text}], **fields)


class Answers(unittest.TestCase):
    def test_a_schema_holds(self):
        book = ask(bundled, instructor.Mode.JSON_SCHEMA, Book, "Name a book of tales.", max_tokens=300)
        self.assertIsInstance(book, Book)

    def test_json_is_read(self):
        self.assertEqual(ask(scripted, instructor.Mode.JSON, add, "json").a, 5)

    def test_calls_are_read(self):
        self.assertEqual(ask(scripted, instructor.Mode.TOOLS, add, "five").a, 5)
        self.assertEqual(ask(scripted, instructor.Mode.TOOLS_STRICT, add, "five").a, 5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
