// SPDX-License-Identifier: MIT
// text/json_reader.h: reads JSON piece by piece, for the long lists of vocabulary files, without building values. Short
// parts are read as a span and passed to Jansson.
//
//     for (bool more = frit_pull_open(pull, '{'); more; more = frit_pull_more(pull, '}')) {
//         frit_str key;
//         if (frit_pull_key(pull, &key) && frit_str_is(key, "vocab")) ... else frit_pull_skip(pull, NULL);
//     }
//     if (pull->status != FRIT_OK) ...
//
// The first failure is stored in `status`; after it, all functions return false.
#pragma once
#include "base/arena.h"
#include "base/buf.h"

typedef struct frit_pull {
    const char *begin, *at, *end;   // zero-terminated
    const char *path;               // for errors
    frit_arena *arena;              // for strings with escapes; other strings point into the text
    frit_status status;
} frit_pull;

bool frit_pull_open(frit_pull *pull, char bracket);   // true if there is an item
bool frit_pull_more(frit_pull *pull, char bracket);
bool frit_pull_key(frit_pull *pull, frit_str *key);
bool frit_pull_text(frit_pull *pull, frit_str *text);
// Reads a string of two texts with a space between them: "a b". The first text may begin with a space.
bool frit_pull_two(frit_pull *pull, frit_str *left, frit_str *right);
bool frit_pull_number(frit_pull *pull, double *number);
// Skips one value of any type. Inside it only brackets and strings are checked.
bool frit_pull_skip(frit_pull *pull, frit_str *span);
char frit_pull_peek(frit_pull *pull);   // the first byte of the next value
// Fails with "PATH: line 12: why".
void frit_pull_fail(frit_pull *pull, const char *why);
