// SPDX-License-Identifier: MIT
// support/tiny_model.h: a whole model of a few kilobytes: architecture llama, random f32 weights, a vocabulary of
// letters.
//
//     const char *path = tiny_model("a.gguf", &(tiny_options){.n_layer = 3});
//
// Options of zero give 64 tokens, 32 wide, 2 layers, 4 heads of 8 (2 for keys and values), feed-forward 48, context
// 256.
#pragma once
#include "support/gguf_builder.h"

enum { TINY_VOCAB = 64, TINY_CTX = 256, TINY_EMBD = 32 };

typedef struct tiny_options {
    int32_t n_vocab, n_layer, n_ctx;
    uint64_t seed;
    const char *arch;
    const char *without;      // this key or tensor is left out
    const char *transposed;   // this tensor's shape is reversed, so that it does not fit
    const char *damaged;      // this tensor holds a NaN
    int32_t n_pieces;         // of the vocabulary; 0: n_vocab; -1: the file has no vocabulary
    bool no_tensors;
    const char *chat_template;
    bool adds_eos;              // texts end with the EOS
    const char *rope_scaling;   // by factor 4
    enum {
        TINY_NO_NEXT,
        TINY_NEXT,        // has a layer for multi-token prediction, with a head and embeddings of its own
        TINY_NEXT_TIED,   // it shares the model's
    } next;
    bool chain;      // the next token follows from the last one, and that layer says which
    int32_t times;   // as wide, its heads and feed-forward too; 0: 1
} tiny_options;

// Writes the file into the test's temporary folder; the path is valid as that of temp_path is.
const char *tiny_model(const char *name, const tiny_options *options);
