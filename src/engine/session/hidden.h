// SPDX-License-Identifier: MIT
// engine/session/hidden.h: the last hidden states of a session's tokens, which layers for multi-token prediction read.
#pragma once
#include "frit.h"

typedef struct frit_hidden {
    float *rows;       // [capacity, width]
    size_t first, n;   // of tokens [first, first + n)
    size_t capacity, width;
    int32_t n_users;
} frit_hidden;

// In a session of a multi-token prediction layer: the session whose hidden states it reads.
typedef struct frit_mtp_text {
    frit_session *of;   // NULL: none
    size_t base;        // token i of the layer's session is token base + 1 + i of `of`
    size_t n_true;      // the layer's first n_true tokens read states of `of`, later ones read its own
} frit_mtp_text;

// From now on the session's steps store hidden states, until each caller of acquire has called release.
frit_status frit_hidden_acquire(frit_session *session);
void frit_hidden_release(frit_session *session);
// Stores the states of tokens [at, at + n), which have run.
void frit_hidden_store(frit_hidden *hidden, size_t at, const float *rows, size_t n);
const float *frit_hidden_row(const frit_hidden *hidden, size_t at);   // NULL: not stored
// Follows a context shift: the n_drop tokens after n_keep have left the session. `hidden` may be NULL.
void frit_hidden_shift(frit_hidden *hidden, size_t n_keep, size_t n_drop);
// Copies the state that token i of a multi-token prediction layer's session reads to `row`; zeros if it is not stored.
void frit_hidden_copy(const frit_session *session, size_t i, float *row);
