// SPDX-License-Identifier: MIT
// base/word_list.h: lists of words in one text, such as "silu|swish".
#pragma once
#include "base/buf.h"

// True if the word is an item of the list, whose items end at one of the characters `ends`. NULL: an empty list.
static inline bool frit_word_list_has(const char *list, const char *ends, frit_str word)
{
    for (const char *at = list; at && *at; at += *at != 0) {
        const size_t n = strcspn(at, ends);
        if (n == word.len && memcmp(at, word.ptr, n) == 0) return true;
        at += n;
    }
    return false;
}
