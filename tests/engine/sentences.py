# SPDX-License-Identifier: MIT
"""Compares embeddings with those of sentence-transformers, on 200 sentences and tiny random folders that it makes.

    make test-sentences

Each folder has other modules: kinds of pooling, dense layers, prompts, dimensions. The limit is a cosine of 0.999999
for every sentence.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers as tf
from sentence_transformers import SentenceTransformer, SparseEncoder
from sentence_transformers.models import Dense, Normalize, Pooling, Transformer
from sentence_transformers.sparse_encoder.modules import MLMTransformer, SpladePooling
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LIMIT = 0.999999
WORDS = (
    "the a river mountain winter summer old small bright quiet runs sings falls builds carries finds never often "
    "again quickly under above beside between people children engines numbers letters water light stone garden city"
).split()
SIZES = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96}
COMMON = {"vocab_size": 400, "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}


def make_sentences(n):
    rng = random.Random(7)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 30))).capitalize() + rng.choice([".", "?", "!", ""]) for _ in range(n)]


def make_tokenizer(sentences):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(sentences, trainers.WordPieceTrainer(vocab_size=400, special_tokens=special))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    return tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def spread(model):
    """Makes random weights large enough that every part of the model shows in its result."""
    torch.manual_seed(1)
    for name, weight in model.named_parameters():
        with torch.no_grad():
            weight.normal_(0, 0.15)
            if "norm" in name.lower() and name.endswith("weight"):
                weight.add_(1)
    return model.eval()


def make_transformer(path, model, tokenizer):
    spread(model).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def random_dense(n_in, n_out, bias, act):
    torch.manual_seed(n_in + n_out)
    dense = Dense(n_in, n_out, bias=bias, activation_function=act)
    torch.nn.init.normal_(dense.linear.weight, 0, 0.2)
    return dense


def cases():
    bert = tf.BertModel(tf.BertConfig(**SIZES, **COMMON))
    mpnet = tf.MPNetModel(tf.MPNetConfig(**SIZES, **COMMON))
    distil = tf.DistilBertModel(tf.DistilBertConfig(dim=64, n_layers=3, n_heads=4, hidden_dim=96, **COMMON))
    modern = tf.ModernBertModel(tf.ModernBertConfig(**SIZES, **COMMON, local_attention=16, cls_token_id=2, sep_token_id=3))
    gemma = tf.Gemma3TextModel(
        tf.Gemma3TextConfig(**SIZES, **COMMON, head_dim=16, num_key_value_heads=2, sliding_window=16, query_pre_attn_scalar=16,
                            use_bidirectional_attention=True)
    )
    two = [random_dense(64, 96, False, torch.nn.Identity()), random_dense(96, 48, False, torch.nn.Identity())]
    query = {"query": "the question: ", "document": "old text: "}
    yield "bert", bert, [Pooling(64, "mean"), Normalize()], {}, [], {}
    yield "mpnet", mpnet, [Pooling(64, ("mean", "max")), random_dense(128, 40, True, torch.nn.Tanh())], {}, [], {}
    yield "distilbert", distil, [Pooling(64, "cls"), random_dense(64, 32, True, torch.nn.GELU())], {}, ["--dimensions", "16"], {"truncate_dim": 16}
    yield "modernbert", modern, [Pooling(64, ("lasttoken", "mean_sqrt_len_tokens", "weightedmean")), Normalize()], {}, [], {}
    yield "gemma", gemma, [Pooling(64, "mean"), *two, Normalize()], {"prompts": query}, ["--prompt-name", "query"], {"prompt_name": "query"}
    yield "default prompt", bert, [Pooling(64, "max")], {"prompts": query, "default_prompt_name": "document"}, [], {}


def run_frit(frit, folder, sentences, options):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(sentences) + "\n")
        file.flush()
        line = [frit, "embed", folder, "-q", "-f", file.name, "--json", "-ctk", "f32", "-ctv", "f32", *options]
        return json.loads(subprocess.run(line, check=True, stdout=subprocess.PIPE).stdout)["embeddings"]


def least_cosine(ours, theirs):
    dots = (ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
    return dots.min()


def compare_sparse(frit, home, tokenizer, sentences):
    folder = make_transformer(os.path.join(home, "mlm"), tf.BertForMaskedLM(tf.BertConfig(**SIZES, **COMMON)), tokenizer)
    model = SparseEncoder(modules=[MLMTransformer(folder), SpladePooling("max")], device="cpu")
    folder = os.path.join(home, "splade")
    model.save(folder)
    theirs = model.encode(sentences, convert_to_sparse_tensor=False).numpy().astype(np.float64)
    ours = np.zeros_like(theirs)
    for row in run_frit(frit, folder, sentences, []):
        ours[row["index"], row["embedding"]["indices"]] = row["embedding"]["values"]
    return least_cosine(ours, theirs)


def main():
    frit, sentences, n_bad = sys.argv[1], make_sentences(200), 0
    tokenizer = make_tokenizer(sentences)
    with tempfile.TemporaryDirectory() as home:
        for name, transformer, modules, settings, options, arguments in cases():
            folder = make_transformer(os.path.join(home, name + " transformer"), transformer, tokenizer)
            model = SentenceTransformer(modules=[Transformer(folder), *modules], device="cpu", **settings)
            folder = os.path.join(home, name)
            model.save(folder)
            theirs = model.encode(sentences, **arguments).astype(np.float64)
            ours = np.array([row["embedding"] for row in run_frit(frit, folder, sentences, options)])
            cosine = least_cosine(ours, theirs)
            n_bad += not cosine >= LIMIT
            print(f"{name:16} {theirs.shape[1]:4} numbers, least cosine {cosine:.9f}")
        cosine = compare_sparse(frit, home, tokenizer, sentences)
        n_bad += not cosine >= LIMIT
        print(f"{'splade':16} least cosine {cosine:.9f}")
    return n_bad > 0


if __name__ == "__main__":
    sys.exit(main())
