// SPDX-License-Identifier: MIT
// frit/eval/kl.h: files of log-probabilities, which compare a model with another one that was run on the same text.
//
// The format is that of llama.cpp's llama-perplexity, so either program reads what the other wrote. Numbers are little
// endian:
//
//     "_logits_"  n_ctx u32  n_vocab i32  n_windows i32  tokens i32[n_windows][n_ctx]
//     then for every scored position of every window (positions n_ctx/2 ... n_ctx-2):
//     scale f32  least f32  codes u16[n_vocab, made even]       log p = least + scale * code, at most 16 below the best
#pragma once
#include "frit/eval/divergence.h"   // KL_DEEPEST: the floor that less likely tokens are written with

typedef struct kl_file {
    FILE *file;      // that is read
    cli_file made;   // that is written
    const char *path;
    int32_t n_ctx, n_vocab, n_windows;
    int32_t *tokens;   // [n_windows][n_ctx]
    uint16_t *row;     // of one position: 4 for scale and least, then the codes
    size_t row_items;
} kl_file;

// Opens a file that is there, or makes one for these tokens. Exit codes; says what failed.
int kl_open(kl_file *kl, const char *path);
int kl_create(kl_file *kl, const char *path, const frit_token *tokens, int32_t n_ctx, int32_t n_windows,
              int32_t n_vocab);
// Closes what is open. A file that was made is kept if `code` is CLI_DONE and everything could be written. Returns
// `code`, or CLI_FAILED having said why.
int kl_close(kl_file *kl, int code);

void kl_write_row(kl_file *kl, const float *logits);
bool kl_read_row(kl_file *kl, float *log_probs);   // [n_vocab]; false at the end of a file that is too short
