#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares frit's tokenizers with the tokenizers and sentencepiece packages on random strings.

    agreement.py LIBRARY SHARED [--strings N] [--seed S] [--only NAME]

LIBRARY is libfrit.so, SHARED the folder of reference data. The packages are installed into a virtual environment beside
LIBRARY. The tokenizers are those of the reference data, and small ones that the script trains, one for each kind of
step. Prints the seed; ends with 1 if a result differs.
"""
import argparse
import ctypes
import json
import os
import random
import subprocess
import sys
import time
import unicodedata

import flags as made_up_flags

SPECIAL, PARSE_SPECIAL = 1, 2
LIMIT = -7


def with_packages(folder):
    """Restarts the script in a virtual environment with the packages, unless they are installed."""
    try:
        import sentencepiece  # noqa: F401
        import tokenizers  # noqa: F401
        return
    except ImportError:
        pass
    venv = os.path.join(folder, "agreement-venv")
    python = os.path.join(venv, "bin", "python")
    if os.path.realpath(sys.executable) == os.path.realpath(python) and os.environ.get("FRIT_AGREEMENT"):
        sys.exit("the packages cannot be installed")
    subprocess.check_call([sys.executable, "-m", "venv", venv])
    subprocess.check_call([python, "-m", "pip", "install", "-q", "tokenizers", "sentencepiece"])
    os.environ["FRIT_AGREEMENT"] = "1"
    os.execv(python, [python] + sys.argv)


class ModelOptions(ctypes.Structure):
    # Other members stay NULL, and the struct may have more.
    _fields_ = [("no_mmap", ctypes.c_bool), ("vocab_only", ctypes.c_bool), ("others", ctypes.c_void_p * 16)]


class Frit:
    """A tokenizer of frit, used through the public interface."""

    def __init__(self, library, path):
        self.lib = ctypes.CDLL(library)
        self.lib.frit_error.restype = ctypes.c_char_p
        self.model = ctypes.c_void_p()
        options = ModelOptions(vocab_only=True)
        if self.lib.frit_model_open(ctypes.byref(self.model), path.encode(), ctypes.byref(options)) != 0:
            raise RuntimeError(self.lib.frit_error().decode())
        self.ids = (ctypes.c_int32 * (1 << 16))()
        self.text = ctypes.create_string_buffer(1 << 20)
        self.n = ctypes.c_size_t()

    def encode(self, text, flags):
        status = self.lib.frit_tokenize(self.model, text, ctypes.c_size_t(len(text)), flags, self.ids,
                                        ctypes.c_size_t(len(self.ids)), ctypes.byref(self.n))
        if status != 0:
            raise RuntimeError(self.lib.frit_error().decode())
        return self.ids[:self.n.value]

    def decode(self, ids, flags):
        array = (ctypes.c_int32 * max(1, len(ids)))(*ids)
        status = self.lib.frit_detokenize(self.model, array, ctypes.c_size_t(len(ids)), flags, self.text,
                                          ctypes.c_size_t(len(self.text)), ctypes.byref(self.n))
        if status != 0:
            raise RuntimeError(self.lib.frit_error().decode())
        return self.text.raw[:self.n.value]


# ------------------------------------------------------------------------------------------ random strings

WORDS = ["the", "Hello", "world", "don't", "I'll", "naïve", "façade", "Straße", "ſ", "İstanbul", "ΑΣ", "Привет", "мир",
         "日本語", "中文字符", "한국어", "พูดไทย", "हिन्दी", "שלום", "مرحبا", "ﬁ", "½", "Ⅷ", "①", "e\u0301", "A\u030a",
         "\u1100\u1161\u11a8", "q\u0307\u0323", "x=y+z*(a-b)", "http://a.b/c?d=e", "1234567890", "3.14159", "snake_case",
         "CamelCase", "<s>", "</s>", "[SEP]", "<unk>", "▁", "▁a", "\u180e", "\ufeff", "\u200b", "\u00ad"]
EMOJI = ["😀", "👩\u200d👩\u200d👧", "🏳️\u200d🌈", "👍🏽", "🇩🇪🇫🇷", "❤️", "1️⃣", "☺"]
SPACES = [" ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", "\u00a0", "\u2003", "\u3000", "\u2028", "\x85", "\x0b", "\x0c"]


def code_point(rng, low, high):
    """Returns a character that is equal in all versions of Unicode, since each library has its own version."""
    while True:
        c = rng.randint(low, high)
        if 0xd800 <= c <= 0xdfff:
            continue
        category = unicodedata.category(chr(c))
        if category == "Cn":   # unassigned in every version
            if 0x40000 <= c < 0xe0000 or c in (0x378, 0x379, 0x380, 0x530, 0x2fe0, 0x2fef, 0xfffe, 0xffff):
                return chr(c)
        elif category == unicodedata.ucd_3_2_0.category(chr(c)) or c > 0x1ffff:
            return chr(c)


def random_text(rng):
    """Returns random bytes, mostly UTF-8."""
    parts = []
    for _ in range(rng.randint(0, 12)):
        kind = rng.randint(0, 11)
        if kind <= 3:
            parts.append(rng.choice(WORDS))
        elif kind == 4:
            parts.append("".join(chr(rng.randint(32, 126)) for _ in range(rng.randint(1, 12))))
        elif kind == 5:
            parts.append("".join(code_point(rng, 0x80, 0x24ff) for _ in range(rng.randint(1, 6))))
        elif kind == 6:
            parts.append("".join(code_point(rng, 0x2500, 0xffff) for _ in range(rng.randint(1, 4))))
        elif kind == 7:
            parts.append("".join(rng.choice(EMOJI) for _ in range(rng.randint(1, 3))))
        elif kind == 8:
            parts.append(chr(rng.randint(0, 31)))
        elif kind == 9:
            parts.append(code_point(rng, 0x10000, 0x10ffff))
        elif kind == 10:
            parts.append(rng.choice("abAB1 .'-é日") * rng.randint(1, 40))
        if rng.random() < 0.6:
            parts.append(rng.choice(SPACES))
    text = "".join(parts).encode()
    if rng.random() < 0.1 and text:
        at = rng.randint(0, len(text))
        text = text[:at] + bytes(rng.choice((0xc0, 0xc1, 0xf5, 0xfe, 0xff)) for _ in range(rng.randint(1, 3))) + text[at:]
    return text


# ------------------------------------------------------------------------------------------ the tokenizers

def trained(folder):
    """Trains small tokenizers of every kind: [(name, path)]."""
    from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers as n, pre_tokenizers as p,
                            processors, trainers)
    rng = random.Random(1)
    corpus = [random_text(rng).decode("utf-8", "replace") for _ in range(3000)]
    corpus = [text.replace("<unk>", "").replace("</s>", "") for text in corpus]   # no piece may be a special token
    letters = p.ByteLevel.alphabet()
    bpe = dict(vocab_size=1500, limit_alphabet=400, show_progress=False, special_tokens=["<unk>", "<s>", "</s>"])
    rows = [
        ("llama2", models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True),
         n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")]), None,
         decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                            decoders.Strip(" ", 1, 0)]),
         trainers.BpeTrainer(**dict(bpe, special_tokens=bpe["special_tokens"] + ["<0x%02X>" % b for b in range(256)]),
                             max_token_length=8)),
        ("gemma", models.BPE(unk_token="<unk>", fuse_unk=True), n.Replace(" ", "▁"),
         p.Split(" ", "merged_with_previous"), decoders.Replace("▁", " "), trainers.BpeTrainer(**bpe)),
        ("metaspace", models.BPE(unk_token="<unk>"), n.NFKC(), p.Metaspace(prepend_scheme="first"),
         decoders.Metaspace(prepend_scheme="first"), trainers.BpeTrainer(**bpe)),
        ("gpt2", models.BPE(), n.NFC(), p.ByteLevel(add_prefix_space=True), decoders.ByteLevel(),
         trainers.BpeTrainer(initial_alphabet=letters, **bpe)),
        ("falcon", models.BPE(), None,
         p.Sequence([p.Punctuation("contiguous"), p.ByteLevel(add_prefix_space=False), p.Digits(),
                     p.Split(Regex("[0-9][0-9][0-9]"), "isolated")]), decoders.ByteLevel(),
         trainers.BpeTrainer(initial_alphabet=letters, **bpe)),
        ("regex", models.BPE(), n.NFD(),
         p.Sequence([p.Split(Regex(r"[\p{L}&&[^\p{Han}]]+|\h{2,3}+|\p{Han}"), "contiguous"),
                     p.Split(Regex(r"\w+$"), "merged_with_next"), p.ByteLevel(False, use_regex=False)]),
         decoders.ByteLevel(), trainers.BpeTrainer(initial_alphabet=letters, **bpe)),
        ("suffix", models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), n.Lowercase(), p.BertPreTokenizer(),
         decoders.BPEDecoder(), trainers.BpeTrainer(end_of_word_suffix="</w>", **bpe)),
        ("inner", models.BPE(unk_token="<unk>", continuing_subword_prefix="##"), n.StripAccents(), p.Whitespace(),
         None, trainers.BpeTrainer(continuing_subword_prefix="##", **bpe)),
        ("unigram", models.Unigram(), n.Sequence([n.Nmt(), n.NFKC(), n.Replace(Regex(" {2,}"), " ")]), p.Metaspace(),
         decoders.Metaspace(), trainers.UnigramTrainer(vocab_size=12000, show_progress=False, unk_token="<unk>", special_tokens=["<unk>", "</s>"])),
        ("bert", models.WordPiece(unk_token="[UNK]"), n.BertNormalizer(), p.BertPreTokenizer(), decoders.WordPiece(),
         trainers.WordPieceTrainer(vocab_size=1500, limit_alphabet=400, show_progress=False, special_tokens=["[UNK]", "[CLS]", "[SEP]"])),
        ("bert-cased", models.WordPiece(unk_token="[UNK]"), n.BertNormalizer(lowercase=False), p.BertPreTokenizer(),
         decoders.WordPiece(cleanup=False),
         trainers.WordPieceTrainer(vocab_size=1500, limit_alphabet=400, show_progress=False, special_tokens=["[UNK]", "[CLS]", "[SEP]"])),
        ("words", models.WordLevel(unk_token="<unk>"), n.Sequence([n.Strip(), n.NFKD()]),
         p.Sequence([p.WhitespaceSplit(), p.Digits(True), p.Punctuation("merged_with_previous")]), None,
         trainers.WordLevelTrainer(vocab_size=900, show_progress=False, special_tokens=["<unk>"])),
    ]
    for name, model, normalizer, cuts, decoder, trainer in rows:
        tokenizer = Tokenizer(model)
        if normalizer:
            tokenizer.normalizer = normalizer
        if cuts:
            tokenizer.pre_tokenizer = cuts
        if decoder:
            tokenizer.decoder = decoder
        tokenizer.train_from_iterator(corpus, trainer)
        tokenizer.add_tokens([AddedToken("Camel", single_word=True, normalized=True),
                              AddedToken("мир", lstrip=True, normalized=False), AddedToken("snake", rstrip=True, normalized=True)])
        if name == "bert":
            tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
        path = os.path.join(folder, name + ".json")
        tokenizer.save(path)
        yield name, path


class Package:
    def __init__(self, path):
        from tokenizers import Tokenizer
        self.tokenizer = Tokenizer.from_file(path)
        self.hidden = {i for i, token in self.tokenizer.get_added_tokens_decoder().items() if token.normalized}

    def encode(self, text):
        return self.tokenizer.encode(text.decode("utf-8", "replace")).ids

    def decode(self, ids):
        return self.tokenizer.decode(ids, skip_special_tokens=False)


class SentencePiece:
    def __init__(self, path):
        import sentencepiece
        self.tokenizer = sentencepiece.SentencePieceProcessor(model_file=path)
        self.hidden = set()

    def encode(self, text):
        return self.tokenizer.encode(text)

    def decode(self, ids):
        return self.tokenizer.decode(ids)


# ------------------------------------------------------------------------------------------ comparing

def compare(name, frit, package, flags, texts):
    """Returns the number of texts that differ, and prints the first ones."""
    n_ids = n_texts = 0
    for text in texts:
        want = package.encode(text)
        got = frit.encode(text, flags)
        if want != got:
            n_ids += 1
            if n_ids <= 3:
                print(f"  {name}: {text!r}\n    wanted {want}\n    got    {got}")
            continue
        if package.hidden & set(want):
            continue   # the package shows normalized tokens after their normalization
        decoded = frit.decode(want, SPECIAL if flags & SPECIAL else 0).decode("utf-8", "replace")
        wanted = package.decode(want)
        # For a run of broken byte tokens the package gives a U+FFFD for each byte, and frit one for each part of a
        # character.
        if decoded != wanted and "\ufffd" not in wanted:
            n_texts += 1
            if n_texts <= 3:
                print(f"  {name}: {want}\n    wanted {wanted!r}\n    got    {decoded!r}")
    print(f"{name}: {len(texts)} texts, {n_ids} with other ids, {n_texts} decoded otherwise", flush=True)
    return n_ids + n_texts


def compare_flags(library, folder, rng, n):
    """Compares small tokenizers with all combinations of flags on a few texts each."""
    n_bad = n_texts = 0
    for i in range(n):
        path = os.path.join(folder, "flags.json")
        with open(path, "w") as file:
            json.dump(made_up_flags.made_up(rng), file)
        package, frit = Package(path), Frit(library, path)
        for _ in range(100):
            text = made_up_flags.text(rng).encode()
            try:
                want = package.encode(text)
            except Exception:   # the package refuses a Unigram model without an unknown token
                continue
            n_texts += 1
            if frit.encode(text, SPECIAL | PARSE_SPECIAL) != want:
                n_bad += 1
                if n_bad <= 3:
                    os.replace(path, os.path.join(folder, f"flags-{i}.json"))
                    print(f"  flags-{i}.json: {text!r}\n    wanted {want}")
                break
    print(f"flags: {n} tokenizers, {n_texts} texts, {n_bad} tokenizers with other ids", flush=True)
    return n_bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("shared")
    parser.add_argument("--strings", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only")
    args = parser.parse_args()
    library = os.path.abspath(args.library)
    with_packages(os.path.dirname(library))
    print(f"seed {args.seed}, {args.strings} strings", flush=True)
    rng = random.Random(args.seed)
    texts = [random_text(rng) for _ in range(args.strings)]
    folder = os.path.join(os.path.dirname(library), "agreement")
    os.makedirs(folder, exist_ok=True)
    goldens = os.path.join(args.shared, "goldens", "tokenizer")
    subjects = [(name, Package, path) for name, path in trained(folder)]
    subjects += [(name, Package, os.path.join(goldens, path)) for name, path in (
        ("llama3", "real/llama3/tokenizer.json"), ("deepseek_v3", "real/deepseek_v3/tokenizer.json"),
        ("wordpiece", "wordpiece.json"))]
    subjects += [(name, SentencePiece, os.path.join(goldens, path)) for name, path in (
        ("mistral_v3", "real/mistral_v3/tokenizer.model"), ("spm-bpe", "spm-bpe.model"),
        ("spm-unigram", "spm-unigram.model"))]
    n_bad = 0 if args.only else compare_flags(library, folder, rng, max(10, args.strings // 200))
    for name, package, path in subjects:
        if args.only and args.only != name:
            continue
        if not os.path.exists(path):
            print(f"{name}: {path} is absent: skipped")
            continue
        flags = SPECIAL | PARSE_SPECIAL if package is Package else 0
        n_bad += compare(name, Frit(library, path), package(path), flags, texts)
    sys.exit(1 if n_bad else 0)


if __name__ == "__main__":
    main()
