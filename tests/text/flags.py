#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes small tokenizers with random flags: byte_fallback, unk_token, fuse_unk, ignore_merges, and the flags of added
tokens, for BPE, Unigram and WordPiece.

    flags.py > flags.json      writes the goldens of file_test.c: tokenizers, texts, and ids from the tokenizers package

agreement.py compares many more of them. One combination is left out, because no published file has it: special tokens
that are pieces of the model and that added_tokens does not find in a text (single_word, or normalized beside a prefix).
"""
import json
import random

NORMALIZERS = [None, None, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, {"type": "Lowercase"},
               {"type": "NFC"},
               {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
                                                    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}]
CUTS = [None, {"type": "WhitespaceSplit"},
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}]
DECODER = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                                            {"type": "ByteFallback"}, {"type": "Fuse"}]}
PARTS = ["a", "b", "Th", "mi", "миr", "мир", "日", "日本", "é", "<unk>", "<s>", "</s>", "[X]", "snake", " ", "  ", "\n",
         "ſ", "🎉", "x", "Z", "abc", "e\u0301", "a\u0301", "▁", "\t", "ТH", "un", "k", "<", ">"]


def bytes_of(rng):
    """Returns the bytes that have tokens: all, none, some, or all but two."""
    some = [0xe6, 0x97, 0xa5, 0xe2] + rng.sample(range(256), 20)
    most = [b for b in range(256) if b not in (0x0a, 0xf0)]
    return ["<0x%02X>" % b for b in dict.fromkeys(rng.choice([range(256), [], some, some, most]))]


def bpe(rng, vocab, pieces):
    merges = []
    byte_pieces = [piece for piece in vocab if piece.startswith("<0x")]
    joined = [pieces] * 25 + [byte_pieces] * (4 if len(byte_pieces) > 2 and rng.random() < 0.3 else 0)
    for parts in joined:
        a, b = rng.choice(parts), rng.choice(parts)
        if a + b not in pieces and a + b not in vocab:
            pieces.append(a + b)
            merges.append([a, b])
    vocab += [piece for piece in pieces if piece not in vocab]
    return dict(dropout=None, unk_token=rng.choice([None, "<unk>", "<unk>", "<unk>"]), continuing_subword_prefix=None,
                end_of_word_suffix=None, fuse_unk=rng.choice([True, False]),
                byte_fallback=rng.choice([True, True, False]), ignore_merges=rng.choice([False, False, True]),
                vocab={piece: i for i, piece in enumerate(vocab)}, merges=merges)


def unigram(rng, vocab, pieces):
    for _ in range(25):
        pieces.append("".join(rng.choice(pieces) for _ in range(rng.randint(2, 3))))
    vocab += [piece for piece in dict.fromkeys(pieces) if piece not in vocab]
    scores = [0.0 if len(piece) > 2 and piece[0] == "<" else round(-rng.random() * 10, 4) for piece in vocab]
    return dict(unk_id=rng.choice([None, 0, 0, 0]), byte_fallback=rng.choice([True, True, False]),
                vocab=[[piece, score] for piece, score in zip(vocab, scores)])


def wordpiece(rng, vocab, pieces):
    for _ in range(25):
        pieces.append(rng.choice(["", "##"]) + "".join(rng.choice(pieces) for _ in range(rng.randint(1, 3))))
    vocab += [piece for piece in dict.fromkeys(pieces) if piece not in vocab]
    return dict(unk_token="<unk>", continuing_subword_prefix="##", max_input_chars_per_word=rng.choice([100, 4]),
                vocab={piece: i for i, piece in enumerate(vocab)})


def added_tokens(rng, vocab, only_plain):
    added = []
    for content in ["<unk>", "<s>", "</s>"] + rng.sample(["Th", "mi", "мир", "[X]", "snake", "日本", "abc", " b", "a\u0301"], 4):
        marked = content in ("<unk>", "<s>", "</s>")
        flags = {flag: rng.random() < 0.3 for flag in ("single_word", "lstrip", "rstrip", "normalized")}
        if marked:
            flags["single_word"] = False
            flags["normalized"] &= not only_plain
        if (content in vocab) != marked or (content in ("Th", "<unk>") and rng.random() < 0.3):
            continue
        new = len(vocab) + sum(token["id"] >= len(vocab) for token in added)
        added.append(dict(id=vocab.index(content) if marked else new, content=content,
                          special=content == "</s>" or rng.random() < (0.8 if marked else 0.4), **flags))
    return added


def made_up(rng, kind=None):
    """Returns a tokenizer.json as a dictionary."""
    kind = kind or rng.choice(["BPE", "BPE", "Unigram", "WordPiece"])
    vocab = ["<unk>", "<s>", "</s>"] + bytes_of(rng)
    pieces = [c for c in dict.fromkeys("abcdeTh é日ſ▁<>unk/smiх") if rng.random() < 0.8]
    model = dict(type=kind, **{"BPE": bpe, "Unigram": unigram, "WordPiece": wordpiece}[kind](rng, vocab, pieces))
    return dict(version="1.0", truncation=None, padding=None,
                added_tokens=added_tokens(rng, vocab, kind != "BPE" or model["ignore_merges"]),
                normalizer=rng.choice(NORMALIZERS), pre_tokenizer=CUTS[1] if kind == "WordPiece" else rng.choice(CUTS),
                post_processor=None, decoder=DECODER, model=model)


def text(rng):
    return "".join(rng.choice(PARTS) for _ in range(rng.randint(0, 10)))


def golden(rng, kind):
    from tokenizers import Tokenizer
    description = made_up(rng, kind)
    tokenizer = Tokenizer.from_str(json.dumps(description))
    hidden = {i for i, token in tokenizer.get_added_tokens_decoder().items() if token.normalized}
    items = []
    while len(items) < 20:
        string = text(rng)
        try:
            ids = tokenizer.encode(string).ids
        except Exception:   # the package refuses a Unigram model without an unknown token
            continue
        decoded = tokenizer.decode(ids, skip_special_tokens=False)
        # The package shows normalized tokens after their normalization, and broken bytes one by one.
        shown = not hidden & set(ids) and "\ufffd" not in decoded
        items.append(dict(text=string, ids=ids, **({"decoded": decoded} if shown else {})))
    return dict(tokenizer=description, items=items)


if __name__ == "__main__":
    rows = [golden(random.Random(seed), kind) for seed, kind in enumerate(
        ["BPE"] * 12 + ["Unigram"] * 6 + ["WordPiece"] * 4)]
    print("[" + ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows) + "]")
