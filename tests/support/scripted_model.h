// SPDX-License-Identifier: MIT
// support/scripted_model.h: a model that answers with a given script: after each token it predicts exactly one next
// token.
//
// The layer adds nothing, every token of a script has a direction of its own in the embedding, and the output matrix
// gives the largest logit to the successor of that token. A script begins with a token of the prompt: a special one
// such as "<|weather|>", or a single byte. All other text is tokens of one byte.
#pragma once
#include "support/gguf_builder.h"

enum { SCRIPT_PIECES = 16 };

typedef struct script {
    const char *begin;                   // special token, or one byte
    const char *pieces[SCRIPT_PIECES];   // all pieces of all scripts differ; the answer ends after the last one
} script;

// Writes the file to `path`.
void scripted_model(const char *path, const char *chat_template, const script *scripts, size_t n_scripts);
