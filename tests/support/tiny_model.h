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
    const char *without;      // a key or tensor to leave out
    const char *transposed;   // a tensor whose shape is reversed, so that it does not fit
    const char *damaged;      // a tensor with a NaN
    int32_t n_pieces;         // of the vocabulary; 0: n_vocab; -1: the file has no vocabulary
    bool no_tensors;
    const char *chat_template;
    bool adds_eos;              // texts end with the EOS
    const char *rope_scaling;   // with factor 4
    enum {
        TINY_NO_NEXT,
        TINY_NEXT,        // has a layer for multi-token prediction, with a head and embeddings of its own
        TINY_NEXT_TIED,   // the layer for multi-token prediction shares the model's head and embeddings
    } next;
    bool chain;      // the next token depends on the last one only, and the layer for multi-token prediction predicts
                     // it
    int32_t times;   // factor of the width, of heads and of the feed-forward; 0: 1
} tiny_options;

// Writes the file into the test's temporary folder; the path is valid as that of temp_path is.
const char *tiny_model(const char *name, const tiny_options *options);
