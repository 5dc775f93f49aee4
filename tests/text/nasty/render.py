# SPDX-License-Identifier: MIT
"""Renders the templates of this folder with Python's Jinja, set up like transformers, and writes expected.json.

    pip install jinja2 && python3 tests/text/nasty/render.py

This script wrote expected.json with Jinja2 3.1.6 under Python 3.11. frit wrote no part of it.
"""
import datetime
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

HERE = pathlib.Path(__file__).parent


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_pass"), [], [], body).set_lineno(line)

    def _pass(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    now = datetime.datetime(2026, 1, 2, 3, 4, 5)
    env.globals["strftime_now"] = lambda form: now.strftime(form)
    return env


def main():
    variables = json.loads((HERE / "variables.json").read_text(encoding="utf-8"))
    expected = {}
    for path in sorted(HERE.glob("*.jinja")):
        row = {}
        for name, values in variables.items():
            try:
                row[name] = {"output": environment().from_string(path.read_text(encoding="utf-8")).render(**values)}
            except jinja2.exceptions.TemplateError as error:
                row[name] = {"raises": str(error)}
        expected[path.name] = row
    text = json.dumps(expected, ensure_ascii=False, indent=1, sort_keys=True)
    (HERE / "expected.json").write_text(text + "\n", encoding="utf-8")


main()
