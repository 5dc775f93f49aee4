# SPDX-License-Identifier: MIT
"""llama-cpp-python's interface: published programs that use it, and its details."""

from __future__ import annotations

import pickle
import sys
import threading
from typing import Any

import pytest

import frit.llama_cpp
from conftest import PROMPT
from frit.llama_cpp import (
    Llama,
    LlamaCache,
    LlamaGrammar,
    LlamaPromptLookupDecoding,
    LogitsProcessorList,
    MinTokensLogitsProcessor,
    StoppingCriteriaList,
)

np = pytest.importorskip("numpy")


@pytest.fixture(scope="module")
def llm(model_path: str) -> Any:
    with Llama(model_path=model_path, n_ctx=512, verbose=False, seed=1) as llm:
        yield llm


# Programs that follow llama-cpp-python's README, its examples and articles about it. MODEL stands for the model's
# path, and frit.llama_cpp for llama_cpp.
SNIPPETS = {
    "readme_completion": '''
from llama_cpp import Llama
llm = Llama(
      model_path=MODEL,
      # n_gpu_layers=-1, # Uncomment to use GPU acceleration
      seed=1337, # Uncomment to set a specific seed
      n_ctx=512, # Uncomment to increase the context window
)
output = llm(
      "Q: Name the planets in the solar system? A: ", # Prompt
      max_tokens=32, # Generate up to 32 tokens
      stop=["Q:", "\\n"], # Stop generating just before the model would generate a new question
      echo=True # Echo the prompt back in the output
) # Generate a completion, can also call create_completion
print(output)
assert output["choices"][0]["text"].startswith("Q: Name the planets in the solar system? A: ")
assert output["usage"]["total_tokens"] == output["usage"]["prompt_tokens"] + output["usage"]["completion_tokens"]
''',
    "readme_chat": '''
from llama_cpp import Llama
llm = Llama(
      model_path=MODEL,
      chat_format="llama-2"
)
reply = llm.create_chat_completion(
      messages = [
          {"role": "system", "content": "You are an assistant who perfectly describes images."},
          {
              "role": "user",
              "content": "Describe this image in detail please."
          }
      ],
      max_tokens=16
)
assert isinstance(reply["choices"][0]["message"]["content"], str)
''',
    "readme_json_mode": '''
from llama_cpp import Llama
import json
llm = Llama(model_path=MODEL, chat_format="chatml")
reply = llm.create_chat_completion(
    messages=[
        {
            "role": "system",
            "content": "You are a helpful assistant that outputs in JSON.",
        },
        {"role": "user", "content": "Who won the world series in 2020"},
    ],
    response_format={
        "type": "json_object",
    },
    temperature=0.7, max_tokens=200, seed=4,
)
if reply["choices"][0]["finish_reason"] == "stop":
    json.loads(reply["choices"][0]["message"]["content"])
else:
    assert reply["choices"][0]["message"]["content"].startswith("{")
''',
    "readme_json_schema": '''
from llama_cpp import Llama
import json
llm = Llama(model_path=MODEL, chat_format="chatml")
reply = llm.create_chat_completion(
    messages=[
        {"role": "user", "content": "Who won the world series in 2020"},
    ],
    response_format={
        "type": "json_object",
        "schema": {
            "type": "object",
            "properties": {"team_name": {"type": "string", "maxLength": 20}},
            "required": ["team_name"],
        },
    },
    temperature=0.7, max_tokens=200,
)
if reply["choices"][0]["finish_reason"] == "stop":
    assert "team_name" in json.loads(reply["choices"][0]["message"]["content"])
else:
    assert reply["choices"][0]["message"]["content"].startswith("{")
''',
    "readme_speculation": '''
from llama_cpp import Llama
from llama_cpp import LlamaPromptLookupDecoding
llama = Llama(
    model_path=MODEL,
    draft_model=LlamaPromptLookupDecoding(num_pred_tokens=10) # num_pred_tokens is the number of tokens to predict
)
plain = Llama(model_path=MODEL)
prompt = "the fox and the cat and the fox and the cat and the fox"
assert llama(prompt, temperature=0)["choices"][0]["text"] == plain(prompt, temperature=0)["choices"][0]["text"]
''',
    "readme_speculation_by_module": '''
from llama_cpp import Llama
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

llama = Llama(
    model_path=MODEL,
    draft_model=LlamaPromptLookupDecoding(num_pred_tokens=10) # num_pred_tokens is the number of tokens to predict 10 is the default and generally good for gpu, 2 performs better for cpu-only machines.
)
output = llama.create_completion("the fox and the cat and the fox", max_tokens=16)
assert output["usage"]["completion_tokens"] == 16
''',
    "readme_function_calling": '''
from llama_cpp import Llama
import json
llm = Llama(model_path=MODEL, chat_format="chatml-function-calling", n_ctx=1024)
response = llm.create_chat_completion(
      messages = [
        {
          "role": "system",
          "content": "A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, detailed, and polite answers to the user's questions. The assistant calls functions with appropriate input when necessary"

        },
        {
          "role": "user",
          "content": "Extract Jason is 25 years old"
        }
      ],
      tools=[{
        "type": "function",
        "function": {
          "name": "UserDetail",
          "parameters": {
            "type": "object",
            "title": "UserDetail",
            "properties": {
              "name": {
                "title": "Name",
                "type": "string",
                "maxLength": 20
              },
              "age": {
                "title": "Age",
                "type": "integer",
                "maximum": 200
              }
            },
            "required": [ "name", "age" ]
          }
        }
      }],
      tool_choice={
        "type": "function",
        "function": {
          "name": "UserDetail"
        }
      }
)
choice = response["choices"][0]
assert choice["finish_reason"] == "tool_calls"
for call in (choice["message"]["tool_calls"][0]["function"], choice["message"]["function_call"]):
    assert call["name"] == "UserDetail" and set(json.loads(call["arguments"])) >= {"name", "age"}
again = llm.create_chat_completion(messages=[{"role": "user", "content": "?"}, choice["message"],
    {"role": "tool", "tool_call_id": choice["message"]["tool_calls"][0]["id"], "content": "done"}], max_tokens=4)
assert again["choices"][0]["message"]["content"]
''',
    "readme_embeddings": '''
import llama_cpp
llm = llama_cpp.Llama(model_path=MODEL, embedding=True)
embeddings = llm.create_embedding("Hello, world!")
# or create multiple embeddings at once
embeddings = llm.create_embedding(["Hello, world!", "Goodbye, world!"])
assert [len(item["embedding"]) for item in embeddings["data"]] == [llm.n_embd()] * 2
''',
    "readme_context_window": '''
from llama_cpp import Llama
llm = Llama(model_path=MODEL, n_ctx=256)
assert llm.n_ctx() == 256
try:
    llm("word " * 400)
except ValueError as e:
    assert "exceed context window of 256" in str(e)
else:
    raise AssertionError
''',
    "example_streaming": '''
import json
from llama_cpp import Llama
llm = Llama(model_path=MODEL)
stream = llm(
    "Question: What are the names of the planets in the solar system? Answer: ",
    max_tokens=24,
    stop=["Q:", "\\n"],
    stream=True,
)
for output in stream:
    print(json.dumps(output, indent=2))
assert output["choices"][0]["finish_reason"] in ("stop", "length")
''',
    "article_streaming_chat": '''
from llama_cpp import Llama
llm = Llama(model_path=MODEL, n_ctx=512, n_threads=2, n_batch=128, verbose=False)
history = [{"role": "system", "content": "You tell tales."}]
history.append({"role": "user", "content": "Tell me the tale of Rapunzel."})
text = ""
for chunk in llm.create_chat_completion(messages=history, stream=True, temperature=0.7, top_p=0.9, max_tokens=20):
    delta = chunk["choices"][0]["delta"]
    if "content" in delta:
        text += delta["content"]
        print(delta["content"], end="", flush=True)
history.append({"role": "assistant", "content": text})
assert len(text) > 10
''',
    "docstring_generate": '''
from llama_cpp import Llama
llama = Llama(MODEL)
tokens = llama.tokenize(b"Hello, world!")
n = 0
for token in llama.generate(tokens, top_k=40, top_p=0.95, temp=1.0, repeat_penalty=1.0):
    print(llama.detokenize([token]))
    n += 1
    if n == 8 or token == llama.token_eos():
        break
''',
    "example_grammar": '''
from llama_cpp import Llama, LlamaGrammar
grammar = LlamaGrammar.from_string(r"""
root ::= answer
answer ::= ("yes" | "no")
""")
llm = Llama(MODEL)
response = llm("Is the sky blue? Answer: ", grammar=grammar, max_tokens=10)
assert response["choices"][0]["text"] in ("yes", "no")
''',
    "discussion_state": '''
from llama_cpp import Llama
llm = Llama(model_path=MODEL, n_ctx=512, logits_all=True)
llm.eval(llm.tokenize(b"Once upon a time"))
state = llm.save_state()
first = [llm.sample(temp=0)]
llm.eval(first)
first.append(llm.sample(temp=0))
llm.load_state(state)
second = [llm.sample(temp=0)]
llm.eval(second)
second.append(llm.sample(temp=0))
assert first == second
print(llm.n_tokens, llm.eval_tokens, len(llm.eval_logits))
''',
    "docs_logits_processor": '''
import numpy as np
from llama_cpp import Llama, LogitsProcessorList
llm = Llama(model_path=MODEL)
banned = llm.tokenize(b" there", add_bos=False)
def ban(input_ids, scores):
    scores[banned] = -np.inf
    return scores
output = llm.create_completion("Once upon a time", temperature=0.0, max_tokens=8, logits_processor=LogitsProcessorList([ban]))
assert " there" not in output["choices"][0]["text"]
''',
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_published_program_runs_unchanged(name: str, model_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", frit.llama_cpp)
    exec(compile(SNIPPETS[name], name, "exec"), {"MODEL": model_path})


def test_published_program_runs_with_one_import_changed(model_path: str) -> None:
    program = SNIPPETS["readme_completion"].replace("from llama_cpp import", "from frit.llama_cpp import")
    exec(compile(program, "readme_completion", "exec"), {"MODEL": model_path})


def test_keywords_that_cannot_be_had_raise(model_path: str) -> None:
    with pytest.raises(TypeError, match="did you mean 'n_ctx'"):
        Llama(model_path, n_ctxx=3)
    with pytest.raises(NotImplementedError, match="use_mlock=True cannot be had: frit does not lock"):
        Llama(model_path, use_mlock=True)
    with pytest.raises(NotImplementedError, match="type_k"):
        Llama(model_path, type_k=99)
    with pytest.raises(ValueError, match="expected one of chatml, chatml-function-calling"):
        Llama(model_path, chat_format="functionary-v2")
    with pytest.raises(ValueError, match="does not exist"):
        Llama("nothing.gguf")
    Llama(model_path, n_parts=-1, f16_kv=True, vocab_only=True)   # as LangChain calls it


@pytest.mark.parametrize("name, value, expected", [
    ("max_tokens", "2", "an integer"), ("temperature", None, "a number"), ("temperature", "hot", "a number"),
    ("top_k", None, "an integer"), ("grammar", 'root ::= "a"', "a LlamaGrammar")])
def test_a_wrong_keyword_is_named(name: str, value: Any, expected: str, llm: Any) -> None:
    for call in (llm.create_completion, lambda prompt, **kw: llm.create_chat_completion([{"role": "user", "content": prompt}], **kw)):
        with pytest.raises(TypeError, match=f"{name}: found {value!r}, expected {expected}"):
            call("x", **{name: value})


def test_logprobs(llm: Any) -> None:
    found = llm(PROMPT, max_tokens=3, logprobs=2, echo=True, temperature=0)["choices"][0]["logprobs"]
    assert found["token_logprobs"][0] is None and found["top_logprobs"][0] is None
    assert "".join(found["tokens"]).startswith(PROMPT) and len(found["tokens"]) == len(found["text_offset"])
    plain = llm(PROMPT, max_tokens=3, logprobs=2, temperature=0)["choices"][0]["logprobs"]
    assert plain["token_logprobs"] == pytest.approx(found["token_logprobs"][-3:], abs=1e-3)
    whole = np.array(llm.logits_to_logprobs(np.zeros(4)))
    assert whole == pytest.approx([-1.386294] * 4)


def test_echoed_logprobs_are_those_of_the_prompt(llm: Any, engine: frit.Engine) -> None:
    tokens = llm.tokenize(PROMPT.encode())
    rows = np.asarray(engine.session().all_logits(tokens))
    expected = llm.logits_to_logprobs(rows)
    found = llm(PROMPT, max_tokens=1, logprobs=1, echo=True, temperature=0)["choices"][0]["logprobs"]
    assert tokens[0] == llm.token_bos()   # BOS is left out of token_logprobs, and the first word's entry is null
    for i, token in enumerate(tokens[2:], 1):
        assert found["token_logprobs"][i] == pytest.approx(expected[i][token], abs=2e-2)


def test_ends_of_answers(llm: Any) -> None:
    plain = llm(PROMPT, max_tokens=12, temperature=0)["choices"][0]
    assert plain["finish_reason"] == "length"
    stopped = llm(PROMPT, max_tokens=12, temperature=0, stop=plain["text"][10:14])["choices"][0]
    assert stopped["finish_reason"] == "stop" and stopped["text"] == plain["text"][: len(stopped["text"])]
    lengths: list[int] = []

    def criterion(ids: Any, logits: Any) -> bool:
        lengths.append(len(ids))
        return len(ids) >= lengths[0] + 4 and bool(np.isfinite(logits).any())

    few = llm(PROMPT, max_tokens=12, temperature=0, stopping_criteria=StoppingCriteriaList([criterion]))
    assert few["usage"]["completion_tokens"] == 4 and few["choices"][0]["finish_reason"] == "stop"
    least = LogitsProcessorList([MinTokensLogitsProcessor(5, llm.token_eos())])
    assert llm(PROMPT, max_tokens=5, logits_processor=least)["usage"]["completion_tokens"] == 5


def test_completions_are_frits(llm: Any, engine: frit.Engine) -> None:
    answer = engine.generate(llm.tokenize(PROMPT.encode()), max_tokens=12, temperature=0).result()
    assert llm(PROMPT, max_tokens=12, temperature=0)["choices"][0]["text"] == answer.text
    texts = [llm(PROMPT, max_tokens=12, temperature=1, seed=seed)["choices"][0]["text"] for seed in (3, 3, 4)]
    assert texts[0] == texts[1] != texts[2]
    pieces = [piece["choices"][0]["text"] for piece in llm(PROMPT, max_tokens=12, temperature=0, stream=True)]
    assert "".join(pieces) == answer.text


def test_threads_share_one_llama(llm: Any) -> None:
    expected = llm(PROMPT, max_tokens=10, temperature=0)["choices"][0]["text"]
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(llm(PROMPT, max_tokens=10, temperature=0)["choices"][0]["text"]))
               for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [expected] * 6


def test_token_by_token(llm: Any) -> None:
    llm.reset()
    tokens = llm.tokenize(PROMPT.encode())
    found = []
    for token in llm.generate(tokens, temp=0):
        found.append(token)
        if len(found) == 6:
            break
    assert llm.detokenize(found, prev_tokens=tokens).decode() == llm(PROMPT, max_tokens=6, temperature=0)["choices"][0]["text"]
    assert list(llm.input_ids[: len(tokens)]) == tokens and llm.scores.shape == (llm.n_tokens, llm.n_vocab())
    generator = llm.generate(tokens, temp=0)
    next(generator)
    generator.send([5, 6])
    assert llm.eval_tokens[-2:] == [5, 6]


def test_others(llm: Any, model_path: str) -> None:
    llm.set_cache(LlamaCache(1 << 20))
    assert llm.tokenizer().decode(llm.tokenizer().encode("A fox")) == "A fox"
    assert llm.metadata["general.architecture"] == "llama"
    with pytest.raises(RuntimeError, match="embedding=True"):
        llm.embed("x")
    again = pickle.loads(pickle.dumps(Llama(model_path, n_ctx=256, draft_model=LlamaPromptLookupDecoding())))
    assert again.n_ctx() == 256
    schema = LlamaGrammar.from_json_schema('{"enum": ["yes", "no"]}')
    chat = again.create_chat_completion([{"role": "user", "content": "?"}], grammar=schema)
    assert chat["choices"][0]["message"]["content"] in ('"yes"', '"no"')


def test_modules_have_the_same_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    monkeypatch.setitem(sys.modules, "llama_cpp", frit.llama_cpp)
    for module, name in (("llama", "Llama"), ("llama_speculative", "LlamaPromptLookupDecoding"), ("llama_grammar", "LlamaGrammar"),
                         ("llama_cache", "LlamaRAMCache"), ("llama_tokenizer", "LlamaTokenizer")):
        for package in ("llama_cpp", "frit.llama_cpp"):
            assert getattr(importlib.import_module(f"{package}.{module}"), name) is getattr(frit.llama_cpp, name)


def test_calls_in_the_form_of_functions_go_back(model_path: str) -> None:
    function = {"name": "weather", "parameters": {"type": "object", "properties": {"warm": {"type": "boolean"}}, "required": ["warm"]}}
    ask = {"role": "user", "content": "Rain?"}
    with Llama(model_path, chat_format="chatml-function-calling", n_ctx=1024, verbose=False) as llm:
        message = llm.create_chat_completion([ask], functions=[function], function_call={"name": "weather"})["choices"][0]["message"]
        assert message["function_call"]["name"] == "weather"
        again = llm.create_chat_completion([ask, message, {"role": "function", "name": "weather", "content": "sun"}],
                                           functions=[function], max_tokens=3)
    assert again["usage"]["completion_tokens"] > 0


def test_prompt_lookup_guesses_what_followed() -> None:
    lookup = LlamaPromptLookupDecoding(max_ngram_size=2, num_pred_tokens=3)
    assert lookup(np.array([1, 2, 3, 4, 5, 1, 2])).tolist() == [3, 4, 5]
    assert lookup(np.array([9, 2, 3, 1, 2])).tolist() == [3, 1, 2] and lookup(np.array([1, 2])).tolist() == []


def test_tools_without_a_choice_are_told_to_the_model(model_path: str) -> None:
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
    with Llama(model_path, chat_format="chatml-function-calling", n_ctx=1024, verbose=False) as llm:
        prompt = llm._model.chat_prompt([{"role": "system", "content": "Be short."}, {"role": "user", "content": "Rain?"}],
                                        tools=[tool], add_generation_prompt=True)
        plain = llm._model.chat_prompt([{"role": "user", "content": "Rain?"}], add_generation_prompt=True)
    assert prompt.startswith("<|im_start|>system\nBe short.") and '"name": "weather"' in prompt and "<tool_call>" in prompt
    assert plain == "<|im_start|>user\nRain?<|im_end|>\n<|im_start|>assistant\n"
