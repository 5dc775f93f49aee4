# SPDX-License-Identifier: MIT
"""Runs the unmodified lm-evaluation-harness with `frit serve`, and compares its results with those computed from `frit
logits` (tests/server/clients/clients.sh)."""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

import gguf
import numpy
import tokenizers
import transformers
from tokenizers import decoders, models, pre_tokenizers

from clients_server import FRIT, KEY, Server

MODEL = os.path.join(os.path.dirname(__file__), "..", "..", "..", "models", "fable.gguf")
# The pre-tokenizer of Llama 3.
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
         r"\s+(?!\S)|\s+")
CHOICES = [
    ("Once upon a", [" time", " spacecraft"]),
    ("There was once a king who had a beautiful", [" daughter", " computer"]),
    ("The old woman sat by the", [" fire", " module"]),
    ("He took his sword and cut off the dragon's", [" head", " program"]),
    ("The two brothers went into the", [" forest", " integer"]),
    ("And they lived happily ever", [" after", " before"]),
    ("Rapunzel, Rapunzel, let down your", [" hair", " king"]),
    ("The wolf knocked at the", [" door", " time"]),
    ("She was so beautiful that the sun itself was", [" astonished", " printed"]),
    ("The frog jumped into the", [" water", " said"]),
    ("Hansel and", [" Gretel", " water"]),
    ("The princess fell into a deep", [" sleep", " and"]),
    ("The miller had three", [" sons", " went"]),
    ("Early in the", [" morning", " castle"]),
    ("The tailor sewed with needle and", [" thread", " said"]),
    ("He gave her a ring of pure", [" gold", " went"]),
    ("The queen looked into the", [" mirror", " had"]),
    ("The children were so hungry that they could not", [" sleep", " was"]),
    ("When it was night the moon", [" shone", " of"]),
    ("I will give you half of my", [" kingdom", " was"]),
]
BEGINNINGS = ["Once upon a time", "There was once a king who", "The old woman", "Rapunzel had", "In the forest"]
TASKS = {
    "choices": ("output_type: multiple_choice\ndoc_to_choice: '{{choices}}'\ndoc_to_target: label\n"
                "metric_list:\n  - metric: acc\n", [{"text": t, "choices": c, "label": 0} for t, c in CHOICES]),
    "texts": ("output_type: generate_until\ndoc_to_target: text\ngeneration_kwargs:\n  until: ['.']\n"
              "  max_gen_toks: 24\n  temperature: 0\nmetric_list:\n  - metric: exact_match\n",
              [{"text": t} for t in BEGINNINGS]),
}


def write_tokenizer(folder):
    """Writes the model's vocabulary for the harness, which counts the tokens of contexts itself."""
    fields = gguf.GGUFReader(MODEL).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    made = tokenizers.Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges, ignore_merges=True))
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<|begin_of_text|>", eos_token="<|end_of_text|>").save_pretrained(folder)
    return made


def log_likelihood(ids, n_context):
    """Returns the log-likelihood of the tokens after the context, and True if each of them is the likeliest."""
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run([FRIT, "logits", MODEL, "--ids", ",".join(map(str, ids)), "-o", out.name, "-q"], check=True)
        logits = numpy.fromfile(out.name, numpy.float32).reshape(len(ids), -1).astype(numpy.float64)
    logits -= logits.max(axis=1, keepdims=True)
    logits -= numpy.log(numpy.exp(logits).sum(axis=1, keepdims=True))
    rows = range(n_context - 1, len(ids) - 1)
    return sum(logits[i, ids[i + 1]] for i in rows), all(logits[i].argmax() == ids[i + 1] for i in rows)


def write_task(folder, name):
    kind, documents = TASKS[name]
    data = os.path.join(folder, name + ".jsonl")
    with open(data, "w") as out:
        out.writelines(json.dumps(document) + "\n" for document in documents)
    with open(os.path.join(folder, name + ".yaml"), "w") as out:
        out.write(f"task: {name}\ndataset_path: json\ndataset_kwargs:\n  data_files:\n    test: {data}\n"
                  f"test_split: test\ndoc_to_text: '{{{{text}}}}'\ntarget_delimiter: ''\n{kind}")


def evaluate(server, folder):
    """Runs the tasks. The harness writes its requests and the answers into folder/out."""
    arguments = (f"model=default,base_url={server.url}/v1/completions,tokenizer={folder}/tokenizer,"
                 "tokenizer_backend=huggingface,num_concurrent=4,max_length=512")
    environment = {**os.environ, "OPENAI_API_KEY": KEY, "HF_HOME": os.path.join(folder, "cache"), "HF_HUB_OFFLINE": "1",
                   "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    run = subprocess.run([os.path.join(os.path.dirname(sys.executable), "lm_eval"), "run", "--model",
                          "local-completions", "--model_args", arguments, "--tasks", *TASKS, "--include_path", folder,
                          "--output_path", os.path.join(folder, "out"), "--log_samples"],
                         env=environment, capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr[-3000:])


class Harness(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.folder = tempfile.TemporaryDirectory()
        cls.tokenizer = write_tokenizer(os.path.join(cls.folder.name, "tokenizer"))
        for name in TASKS:
            write_task(cls.folder.name, name)
        evaluate(cls.server, cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.folder.cleanup()

    def samples(self, task):
        found = glob.glob(os.path.join(self.folder.name, "out", "**", f"samples_{task}_*.jsonl"), recursive=True)
        with open(found[0]) as lines:
            samples = list(map(json.loads, lines))
        self.assertEqual(len(samples), len(TASKS[task][1]))
        return samples

    def test_loglikelihoods_are_those_of_the_logits(self):
        for sample in self.samples("choices"):
            context = self.tokenizer.encode(sample["doc"]["text"]).ids
            for choice, response in zip(sample["doc"]["choices"], sample["filtered_resps"]):
                ids = self.tokenizer.encode(sample["doc"]["text"] + choice).ids
                self.assertEqual(ids[:len(context)], context)
                expected, greedy = log_likelihood(ids, len(context))
                self.assertAlmostEqual(float(response[0]), expected, delta=0.02, msg=sample["doc"]["text"] + choice)
                self.assertEqual(str(response[1]), str(greedy))
            likely, unlikely = [float(response[0]) for response in sample["filtered_resps"]]
            self.assertEqual(sample["acc"], float(likely > unlikely))

    def test_texts_end_where_they_shall(self):
        for sample in self.samples("texts"):
            text = sample["filtered_resps"][0]
            ids = self.tokenizer.encode(sample["doc"]["text"]).ids
            answer = self.tokenizer.encode(text).ids
            self.assertTrue(0 < len(answer) <= 24)
            self.assertNotIn(".", text)
            # Each token is the likeliest, except where the text was cut at the end.
            self.assertTrue(log_likelihood(ids + answer[:-1], len(ids))[1], sample["doc"]["text"] + text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
