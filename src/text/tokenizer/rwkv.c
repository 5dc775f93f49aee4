// SPDX-License-Identifier: MIT
// RWKV: greedy longest match from the left. Pieces are bytes, written with escapes in the file.
#include "text/tokenizer/scratch.h"

#include <ctype.h>
#include <stdlib.h>

static frit_status init(frit_tokenizer *tokenizer, const frit_log *log)
{
    (void)log;
    const frit_vocab *vocab = tokenizer->vocab;
    frit_trie *trie = frit_arena_new(&tokenizer->arena, frit_trie, 1);
    frit_trie_item *items = calloc((size_t)vocab->n, sizeof *items);
    frit_status status = trie && items ? FRIT_OK : frit_fail_memory(sizeof *trie, "the tokenizer");
    tokenizer->state = trie;
    size_t n = 0;
    for (frit_token id = 0; status == FRIT_OK && id < vocab->n; id++)
        if (vocab->entries[id].kind == FRIT_TOKEN_NORMAL) items[n++] = (frit_trie_item){tokenizer->pieces[id], id};
    if (status == FRIT_OK) status = frit_trie_init(trie, items, n, &tokenizer->arena);
    free(items);
    return status;
}

static frit_status encode(const frit_tokenizer *tokenizer, frit_str word, frit_scratch *scratch, frit_ids *out)
{
    (void)scratch;
    for (size_t i = 0, n; i < word.len; i += n) {
        frit_token id = tokenizer->vocab->unk;
        n = frit_trie_longest(tokenizer->state, (frit_str){word.ptr + i, word.len - i}, &id);
        if (n == 0) n = 1;
        if (id >= 0) frit_ids_push(out, id);
    }
    return FRIT_OK;
}

const frit_tokenizer_kind frit_tokenizer_rwkv = {"rwkv", "RWKV trie", init, NULL, encode};
