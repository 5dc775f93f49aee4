// SPDX-License-Identifier: MIT
// Any bytes as a JSON schema, or after a first byte of 'r' as a regular expression, of 't' as structural tags, followed
// by a zero and a text. A grammar that compiles has no dead ends.
#include "grammar/match.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void require(bool good)
{
    if (!good) abort();
}

// With sanitizers the whole budget would be too slow for one input.
static bool is_enough(void *ctx)
{
    int *n = ctx;
    return --*n < 0;
}

static frit_status compile(frit_automaton **a, char kind, frit_str grammar, const frit_schema_options *options)
{
    int n_looks = 200, rule;
    frit_rule_builder builder = {.budget = {.cancelled = is_enough, .ctx = &n_looks}};
    frit_status status = kind == 'r' ? frit_regex_add(&builder, grammar, &rule)
                         : kind == 't'
                             ? frit_tags_add_text(&builder, grammar, &(frit_tags_options){.schema = *options}, &rule)
                             : frit_schema_add_text(&builder, grammar, options, NULL, &rule);
    *a = NULL;
    if (status == FRIT_OK) status = frit_automaton_compile(a, &builder, rule);
    frit_builder_free(&builder);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes == 0) return 0;
    const bool has_kind = bytes[0] == 'r' || bytes[0] == 't';
    const char *text = (const char *)bytes + has_kind;
    const size_t n = n_bytes - has_kind;
    const char *zero = n > 0 ? memchr(text, 0, n) : NULL;
    const size_t n_grammar = zero ? (size_t)(zero - text) : n;
    const frit_schema_options options = {
        .any_order = n_bytes % 2, .open_objects = n_bytes % 5 == 0, .complete = n_bytes % 3 == 0};
    frit_automaton *a;
    const frit_status status = compile(&a, (char)bytes[0], (frit_str){text, n_grammar}, &options);
    if (status != FRIT_OK) {
        require(frit_error()[0] != 0 && a == NULL);
        return 0;
    }
    frit_match match;
    require(frit_match_init(&match, a, 0) == FRIT_OK);
    for (size_t i = n_grammar + 1; i < n; i++) {
        size_t n_read;
        uint64_t next[4];
        frit_match_bytes(&match, next);
        require(frit_match_is_final(&match) || (next[0] | next[1] | next[2] | next[3]) != 0);
        const unsigned char byte = (unsigned char)text[i];
        if (frit_match_push(&match, text + i, 1, &n_read) != FRIT_OK) break;
        require((n_read == 1) == ((next[byte / 64] >> (byte % 64) & 1) != 0));
    }
    frit_match_deinit(&match);
    frit_automaton_free(a);
    return 0;
}
