// SPDX-License-Identifier: MIT
// Words to tokens, through a cache with one word per bucket: a newer word replaces the older.
#include "text/tokenizer/scratch.h"

#include <stdlib.h>

enum {
    MIN_WORDS = 64,   // fewer words do not justify a cache
    MAX_BUCKETS = 1 << 15,
    MAX_CACHED_BYTES = 64,   // longer words rarely occur twice
};

frit_status frit_scratch_init(frit_scratch *scratch, const frit_encoding *how)
{
    *scratch = (frit_scratch){.halt = {how->max_tokens, how->cancelled, how->cancel_ctx, 0}};
    FRIT_TRY(frit_flow_init(&scratch->flow));
    scratch->flow.halt = scratch->merger.halt = &scratch->halt;
    return FRIT_OK;
}

void frit_scratch_deinit(frit_scratch *scratch)
{
    frit_flow_deinit(&scratch->flow);
    frit_merger_free(&scratch->merger);
    free(scratch->cells);
    free(scratch->cache);
}

void *frit_scratch_cells(frit_scratch *scratch, size_t n_bytes)
{
    if (scratch->n_cell_bytes >= n_bytes) return scratch->cells;
    free(scratch->cells);
    scratch->cells = malloc(n_bytes * 2);
    scratch->n_cell_bytes = scratch->cells ? n_bytes * 2 : 0;
    return scratch->cells;
}

// Allocates a cache for the number of words. If memory is short, encoding works without it.
static void alloc_cache(frit_scratch *scratch, size_t n_words)
{
    free(scratch->cache);
    scratch->cache = NULL;
    size_t n = MIN_WORDS;
    if (n_words < n) return;
    while (n < n_words && n < MAX_BUCKETS) n *= 2;
    scratch->cache = calloc(n, sizeof *scratch->cache);
    scratch->cache_mask = n - 1;
}

static void append_again(frit_ids *out, size_t from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) frit_ids_push(out, out->items[from + i]);
}

static frit_status encode_word(frit_scratch *scratch, const frit_tokenizer *tokenizer, frit_str word, frit_ids *out)
{
    if (!scratch->cache || word.len > MAX_CACHED_BYTES) return tokenizer->kind->encode(tokenizer, word, scratch, out);
    uint64_t hash = frit_hash_bytes(tokenizer->vocab->ids.seed, word);
    frit_cached_word *bucket = &scratch->cache[hash & scratch->cache_mask];
    if (bucket->hash == hash && bucket->len == word.len && bucket->word &&
        memcmp(bucket->word, word.ptr, word.len) == 0) {
        append_again(out, bucket->ids, bucket->n_ids);
        return FRIT_OK;
    }
    size_t before = out->n;
    FRIT_TRY(tokenizer->kind->encode(tokenizer, word, scratch, out));
    if (!out->failed)
        *bucket = (frit_cached_word){hash, word.ptr, (uint32_t)word.len, (uint32_t)(out->n - before), before};
    return FRIT_OK;
}

frit_status frit_scratch_encode(frit_scratch *scratch, const frit_tokenizer *tokenizer, const frit_words *words,
                                frit_ids *out)
{
    alloc_cache(scratch, words->n);
    for (size_t i = 0; i < words->n; i++) {
        frit_word word = words->items[i];
        if (word.start == word.end) continue;
        FRIT_TRY(frit_halt_check(&scratch->halt, out->n));
        FRIT_TRY(encode_word(scratch, tokenizer, (frit_str){words->text.ptr + word.start, word.end - word.start}, out));
    }
    return out->failed ? frit_fail_memory(out->n * sizeof *out->items, "the tokens of the text") : FRIT_OK;
}
