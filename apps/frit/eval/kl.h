// SPDX-License-Identifier: MIT
// frit/eval/kl.h: files of log-probabilities, which compare a model with another one on the same text.
//
// The format is that of llama.cpp's llama-perplexity, so either program reads the files of the other. Numbers are
// little endian:
//
//     "_logits_"  n_ctx u32  n_vocab i32  n_windows i32  tokens i32[n_windows][n_ctx]
//     then for every scored position of every window (positions n_ctx/2 ... n_ctx-2):
//     scale f32  least f32  codes u16[n_vocab, made even]       log p = least + scale * code, at most 16 below the best
#pragma once
#include "frit/eval/divergence.h"   // KL_DEEPEST: the floor of less likely tokens

typedef struct kl_file {
    FILE *file;      // file to read
    cli_file made;   // file to write
    const char *path;
    int32_t n_ctx, n_vocab, n_windows;
    int32_t *tokens;   // [n_windows][n_ctx]
    uint16_t *row;     // of one position: 4 for scale and least, then the codes
    size_t row_items;
} kl_file;

// Opens an existing file, or creates one for these tokens. Returns an exit code after printing any error.
int kl_open(kl_file *kl, const char *path);
int kl_create(kl_file *kl, const char *path, const frit_token *tokens, int32_t n_ctx, int32_t n_windows,
              int32_t n_vocab);
// Closes the files. A new file is kept if `code` is CLI_DONE and all writes succeeded. Returns `code`, or CLI_FAILED
// after printing an error.
int kl_close(kl_file *kl, int code);

void kl_write_row(kl_file *kl, const float *logits);
bool kl_read_row(kl_file *kl, float *log_probs);   // [n_vocab]; false if the file ends
