// SPDX-License-Identifier: MIT
// The tries of special tokens, and the search in them.
#include "text/vocab/special.h"

#include "base/utf8.h"

#include <stdlib.h>

// The specials that are collected.
typedef enum special_set {
    IN_ORIGINAL,         // those searched in the original text
    IN_NORMALIZED,       // those searched in normalized text, with normalized pieces
    IN_NORMALIZED_RAW,   // those searched in normalized text, as they are spelled in the original text
} special_set;

static bool is_wanted(const frit_vocab *vocab, const frit_vocab_entry *entry, bool normalized)
{
    bool kept_by_model = vocab->symbols && entry->kind == FRIT_TOKEN_USER;
    return entry->normalized == normalized && !kept_by_model && entry->piece.len > 0;
}

static frit_status normalized_piece(const frit_vocab *vocab, frit_flow *flow, frit_arena *arena, frit_str *piece)
{
    frit_str text;
    FRIT_TRY(frit_pipeline_normalize(&vocab->pipeline, *piece, flow, &text));
    *piece = (frit_str){frit_arena_text(arena, text.ptr, text.len), text.len};
    return piece->ptr ? FRIT_OK : frit_fail_memory(text.len, "a special token");
}

static frit_status collect(frit_special *special, special_set set, frit_arena *arena, frit_trie_item *all,
                           frit_trie_item *user)
{
    const frit_vocab *vocab = special->vocab;
    frit_flow flow;
    FRIT_TRY(frit_flow_init(&flow));
    frit_status status = FRIT_OK;
    for (int32_t i = 0; i < vocab->n_specials && status == FRIT_OK; i++) {
        frit_token id = vocab->specials[i];
        const frit_vocab_entry *entry = &vocab->entries[id];
        if (!is_wanted(vocab, entry, set != IN_ORIGINAL)) continue;
        frit_str piece = entry->piece;
        if (set == IN_NORMALIZED) status = normalized_piece(vocab, &flow, arena, &piece);
        all[special->n++] = (frit_trie_item){piece, id};
        if (entry->kind == FRIT_TOKEN_USER) user[special->n_user++] = (frit_trie_item){piece, id};
    }
    frit_flow_deinit(&flow);
    return status;
}

static frit_status init(frit_special *special, const frit_vocab *vocab, special_set set, frit_arena *arena)
{
    *special = (frit_special){.vocab = vocab};
    size_t n = (size_t)vocab->n_specials + 1;
    frit_trie_item *items = calloc(2 * n, sizeof *items);
    if (!items) return frit_fail_memory(2 * n * sizeof *items, "the index of special tokens");
    frit_status status = collect(special, set, arena, items, items + n);
    if (status == FRIT_OK && special->n > 0) status = frit_trie_init(&special->trie, items, special->n, arena);
    if (status == FRIT_OK && special->n_user > 0)
        status = frit_trie_init(&special->user, items + n, special->n_user, arena);
    free(items);
    return status;
}

frit_status frit_special_init(frit_special *special, const frit_vocab *vocab, bool normalized, frit_arena *arena)
{
    return init(special, vocab, normalized ? IN_NORMALIZED : IN_ORIGINAL, arena);
}

frit_status frit_special_init_raw(frit_special *special, const frit_vocab *vocab, frit_arena *arena)
{
    return init(special, vocab, IN_NORMALIZED_RAW, arena);
}

// True if no letter or digit touches text[start, end).
static bool stands_alone(frit_str text, size_t start, size_t end)
{
    uint32_t c;
    size_t before = start;
    while (before > 0 && ((unsigned char)text.ptr[--before] & 0xc0) == 0x80) {   // continues a character
    }
    if (start > 0 && frit_utf8_decode(text.ptr + before, start - before, &c) > 0 && frit_unicode_is_word(c))
        return false;
    return end == text.len || frit_utf8_decode(text.ptr + end, text.len - end, &c) <= 0 || !frit_unicode_is_word(c);
}

// The number of bytes from text[at] on that are not in an untrusted range.
static size_t trusted_bytes(const frit_special_scope *scope, frit_str text, size_t at)
{
    if (!scope->parse_control) return 0;
    if (!scope->untrusted) return text.len - at;
    const size_t place = scope->offset + at, i = frit_spans_find(scope->untrusted, place);
    if (i == scope->untrusted->n) return text.len - at;
    const size_t begin = scope->untrusted->items[i].begin, n = begin > place ? begin - place : 0;
    return n < text.len - at ? n : text.len - at;
}

// The length of the longest special at text[at], or 0.
static size_t find_at(const frit_special *special, frit_str text, size_t at, const frit_special_scope *scope,
                      frit_token *id)
{
    const frit_str rest = {text.ptr + at, text.len - at};
    const size_t room = trusted_bytes(scope, text, at);
    size_t n = room > 0 ? frit_trie_longest(&special->trie, (frit_str){rest.ptr, room}, id) : 0;
    if (room == rest.len || special->n_user == 0) return n;
    frit_token user = -1;
    const size_t n_user = frit_trie_longest(&special->user, rest, &user);
    if (n_user <= n) return n;
    *id = user;
    return n_user;
}

bool frit_special_find(const frit_special *special, frit_str text, size_t from, const frit_special_scope *scope,
                       frit_special_match *match)
{
    if ((scope->parse_control ? special->n : special->n_user) == 0) return false;
    const frit_trie *trie = scope->parse_control ? &special->trie : &special->user;
    for (size_t i = from; i < text.len; i++) {
        if (trie->first[(unsigned char)text.ptr[i]] == 0) continue;
        frit_token id = -1;
        const size_t n = find_at(special, text, i, scope, &id);
        if (n == 0) continue;
        if (special->vocab->entries[id].single_word && !stands_alone(text, i, i + n)) {
            i += n - 1;
            continue;
        }
        *match = (frit_special_match){i, i + n, id};
        return true;
    }
    return false;
}
