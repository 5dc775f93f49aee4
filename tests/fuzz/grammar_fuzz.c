// SPDX-License-Identifier: MIT
// Any bytes as a grammar in GBNF, followed by a zero and a text. What compiles never comes to a dead end: as long as a
// text fits, some byte may follow or the text may end.
#include "grammar/match.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void require(bool good)
{
    if (!good) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    const uint8_t *zero = n_bytes > 0 ? memchr(bytes, 0, n_bytes) : NULL;
    const size_t n_grammar = zero ? (size_t)(zero - bytes) : n_bytes;
    frit_automaton *a;
    if (frit_gbnf_compile(&a, (frit_str){(const char *)bytes, n_grammar}) != FRIT_OK) {
        require(frit_error()[0] != 0 && a == NULL);
        return 0;
    }
    frit_match match;
    require(frit_match_init(&match, a, 2) == FRIT_OK);
    for (size_t i = n_grammar + 1; i < n_bytes; i++) {
        size_t n_read;
        uint64_t next[4];
        frit_match_bytes(&match, next);
        require(frit_match_is_final(&match) || (next[0] | next[1] | next[2] | next[3]) != 0);
        if (frit_match_push(&match, (const char *)bytes + i, 1, &n_read) != FRIT_OK) break;
        require((n_read == 1) == ((next[bytes[i] / 64] >> (bytes[i] % 64) & 1) != 0));
        if (n_read == 1 && bytes[i] == 'p') require(frit_match_pop(&match, 1) == FRIT_OK);
    }
    frit_match_deinit(&match);
    frit_automaton_free(a);
    return 0;
}
