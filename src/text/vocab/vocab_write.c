// SPDX-License-Identifier: MIT
// Writes tokenizer.ggml.*:
//
//     published as                      GGUF's model   merges and scores
//     byte-level BPE                    gpt2           merges; the pre-tokenizer is the row that cuts texts alike
//     lists of ranks (tiktoken, tekken) gpt2           merges that follow from the ranks
//     BPE over characters               llama          scores that follow from the order of merges
//     SentencePiece BPE                 llama          its scores
//     Unigram                           t5             its scores
//     WordPiece                         bert           neither; pieces change their marks
//
// GGUF has flags for some properties that files express as steps (a space before the text, ...). Their values are found
// by trying.
#include "text/vocab/vocab_write.h"

#include "text/tokenizer/pretok.h"
#include "text/tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>

#define SPACE "\xe2\x96\x81"   // U+2581

static const char *const probes[] = {
    "Hello, world! It's  the   1st of 12345678 tests; don't we'll I'M THEY'RE you've.",
    " leading and trailing spaces  \n\n\n  new\tlines\r\n\r\n and tabs\t\t.",
    "CamelCase snake_case kebab-case foo.bar(x, y)->z[0] == {\"a\": 1.5e-10, 'b': null}; // comment\n    return;",
    "na\xc3\xafve caf\xc3\xa9 \xc3\x9c"
    "ber stra\xc3\x9f"
    "e \xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c"
    "\xe3\x80\x82 2024\xe5\xb9\xb4 \xe3\x81\x93\xe3\x82\x93\xe3\x81\xab\xe3\x81\xa1\xe3\x81\xaf "
    "\xec\x95\x88\xeb\x85\x95",
    "\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82 \xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7 "
    "\xe0\xa4\xa8\xe0\xa4\xae\xe0\xa4\xb8\xe0\xa5\x8d\xe0\xa4\xa4\xe0\xa5\x87 1,234.56 \xc2\xbd "
    "\xf0\x9f\x98\x80\xf0\x9f\x91\x8d"
    "\xf0\x9f\x8f\xbd e\xcc\x81",
    "",
    " ",
    "a",
    "x = 3;\n\n  if (x > 2) {\n\treturn \"yes\";  }\n",
};

typedef struct form {          // one way to write a vocabulary
    const char *model, *pre;   // pre: NULL but for gpt2
    bool space_prefix, trim, lowercase, strip_accents;
} form;

typedef struct writing {
    const frit_vocab *vocab;
    frit_meta *meta;
    frit_arena *arena;   // of `meta`
} writing;

// ------------------------------------------------------------------------------------- values

static frit_status add_texts(const writing *w, const char *key, const frit_str *texts, uint64_t n)
{
    return frit_meta_add(w->meta, frit_str_of(key),
                         (frit_value){.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_TEXT, n, texts}});
}

static frit_status add_numbers(const writing *w, const char *key, frit_value_type type, const void *items)
{
    return frit_meta_add(w->meta, frit_str_of(key),
                         (frit_value){.type = FRIT_VALUE_ARRAY, .array = {type, (uint64_t)w->vocab->n, items}});
}

static frit_status add_id(const writing *w, const char *key, frit_token id)
{
    if (id < 0) return FRIT_OK;
    return frit_meta_add(w->meta, frit_str_of(key), (frit_value){.type = FRIT_VALUE_U32, .u = (uint64_t)id});
}

static frit_str joined(const writing *w, frit_str a, const char *between, frit_str b)
{
    const size_t n = strlen(between);
    char *text = frit_arena_alloc(w->arena, a.len + n + b.len + 1, 1);
    if (!text) return (frit_str){"", 0};
    memcpy(text, a.ptr, a.len);
    memcpy(text + a.len, between, n);
    memcpy(text + a.len + n, b.ptr, b.len);
    return (frit_str){text, a.len + n + b.len};
}

static bool is_plain(const frit_vocab_entry *entry)
{
    return entry->kind == FRIT_TOKEN_NORMAL;
}

// ------------------------------------------------------------------------------------- pieces

// The text of a token in letters, as GGUF needs it; lists of ranks have bytes.
static frit_str spelled(const writing *w, frit_str bytes)
{
    frit_buf letters = {0};
    frit_letters_spell(bytes, &letters);
    frit_str text = {letters.failed ? NULL : frit_arena_text(w->arena, letters.data, letters.len), letters.len};
    frit_buf_free(&letters);
    return text.ptr ? text : (frit_str){"", 0};
}

static bool has_bytes_of_ranks(const frit_vocab *vocab)
{
    return vocab->pipeline.bytes && vocab->by_score;
}

// Writes "ing" for "##ing" within a word, and a mark before the first piece of a word, which has no prefix in
// WordPiece.
static frit_str bert_piece(const writing *w, frit_str piece)
{
    const frit_str prefix = w->vocab->inner_prefix;
    if (prefix.len > 0 && piece.len > prefix.len && memcmp(piece.ptr, prefix.ptr, prefix.len) == 0)
        return (frit_str){piece.ptr + prefix.len, piece.len - prefix.len};
    return joined(w, frit_str_of(SPACE), "", piece);
}

static frit_str piece_of(const writing *w, const form *f, frit_token id)
{
    const frit_vocab_entry *entry = &w->vocab->entries[id];
    if (entry->piece.len == 0) {   // GGUF needs a piece for every id
        char text[32];
        const int n = snprintf(text, sizeof text, "[PAD%d]", (int)id);
        const char *copy = frit_arena_text(w->arena, text, (size_t)n);
        return copy ? (frit_str){copy, (size_t)n} : (frit_str){"", 0};
    }
    if (!is_plain(entry)) return entry->piece;
    if (strcmp(f->model, "bert") == 0) return bert_piece(w, entry->piece);
    return has_bytes_of_ranks(w->vocab) ? spelled(w, entry->piece) : entry->piece;
}

static frit_status add_pieces(const writing *w, const form *f)
{
    const frit_vocab *vocab = w->vocab;
    frit_str *pieces = frit_arena_new(w->arena, frit_str, (size_t)vocab->n);
    int32_t *kinds = frit_arena_new(w->arena, int32_t, (size_t)vocab->n);
    if (!pieces || !kinds) return frit_fail_memory((size_t)vocab->n * sizeof *pieces, "the vocabulary");
    for (int32_t i = 0; i < vocab->n; i++) {
        pieces[i] = piece_of(w, f, i);
        kinds[i] = vocab->entries[i].kind;
    }
    if (frit_arena_failed(w->arena)) return frit_fail_memory((size_t)vocab->n, "the vocabulary");
    FRIT_TRY(add_texts(w, "tokenizer.ggml.tokens", pieces, (uint64_t)vocab->n));
    return add_numbers(w, "tokenizer.ggml.token_type", FRIT_VALUE_I32, kinds);
}

// ------------------------------------------------------------------------------------- merges and scores

enum { MAX_PARTS = 256 };   // bytes of a token for which merges are computed; longer tokens get no merge

typedef struct parts {
    frit_str text;
    size_t ends[MAX_PARTS];
    size_t n;
} parts;

static frit_token token_of(const frit_vocab *vocab, const parts *p, size_t first, size_t last)
{
    const size_t begin = first > 0 ? p->ends[first - 1] : 0;
    return frit_vocab_find_text(vocab, (frit_str){p->text.ptr + begin, p->ends[last] - begin});
}

// Finds the merge of a token of a list of ranks: merges of lower rank than its own leave two parts of it, which its
// merge joins.
static bool split_token(const frit_vocab *vocab, frit_token id, frit_token *left, frit_token *right)
{
    parts p = {.text = vocab->entries[id].piece, .n = vocab->entries[id].piece.len};
    if (p.n < 2 || p.n > MAX_PARTS) return false;
    for (size_t i = 0; i < p.n; i++) p.ends[i] = i + 1;
    while (p.n > 2) {
        size_t best = SIZE_MAX;
        double top = vocab->entries[id].score;
        for (size_t i = 0; i + 1 < p.n; i++) {
            const frit_token merged = token_of(vocab, &p, i, i + 1);
            if (merged < 0 || vocab->entries[merged].score <= top) continue;
            best = i;
            top = vocab->entries[merged].score;
        }
        if (best == SIZE_MAX) return false;
        memmove(p.ends + best, p.ends + best + 1, (p.n - best - 1) * sizeof *p.ends);
        p.n--;
    }
    *left = token_of(vocab, &p, 0, 0);
    *right = token_of(vocab, &p, 1, 1);
    return *left >= 0 && *right >= 0;
}

typedef struct ranked {
    double score;
    frit_token id;
} ranked;

static int by_rank(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static frit_status list_ranked(const writing *w, frit_str *merges, uint64_t *n_merges)
{
    const frit_vocab *vocab = w->vocab;
    ranked *order = calloc((size_t)vocab->n, sizeof *order);
    if (!order) return frit_fail_memory((size_t)vocab->n * sizeof *order, "the order of merges");
    for (int32_t i = 0; i < vocab->n; i++) order[i] = (ranked){vocab->entries[i].score, i};
    qsort(order, (size_t)vocab->n, sizeof *order, by_rank);
    for (int32_t i = 0; i < vocab->n; i++) {
        frit_token left, right;
        if (!is_plain(&vocab->entries[order[i].id]) || !split_token(vocab, order[i].id, &left, &right)) continue;
        merges[(*n_merges)++] =
            joined(w, spelled(w, vocab->entries[left].piece), " ", spelled(w, vocab->entries[right].piece));
    }
    free(order);
    return FRIT_OK;
}

static frit_status add_merges(const writing *w)
{
    const frit_vocab *vocab = w->vocab;
    const uint64_t room = vocab->n_merges > 0 ? vocab->n_merges : (uint64_t)vocab->n;
    frit_str *merges = frit_arena_new(w->arena, frit_str, (size_t)room);
    if (!merges) return frit_fail_memory((size_t)room * sizeof *merges, "the merges");
    uint64_t n = 0;
    for (; n < vocab->n_merges; n++) {
        const frit_merge *merge = &vocab->merges[n];
        merges[n] = joined(w, vocab->entries[merge->left].piece, " ", vocab->entries[merge->right].piece);
    }
    if (has_bytes_of_ranks(vocab)) FRIT_TRY(list_ranked(w, merges, &n));
    if (frit_arena_failed(w->arena)) return frit_fail_memory((size_t)room, "the merges");
    return add_texts(w, "tokenizer.ggml.merges", merges, n);
}

// Adds scores. If merges have an order, tokens get scores in this order.
static frit_status add_scores(const writing *w)
{
    const frit_vocab *vocab = w->vocab;
    float *scores = frit_arena_new(w->arena, float, (size_t)vocab->n);
    if (!scores) return frit_fail_memory((size_t)vocab->n * sizeof *scores, "the scores");
    for (int32_t i = 0; i < vocab->n; i++) scores[i] = (float)vocab->entries[i].score;
    for (uint64_t i = vocab->n_merges; i-- > 0;) scores[vocab->merges[i].merged] = -(float)i;
    return add_numbers(w, "tokenizer.ggml.scores", FRIT_VALUE_F32, scores);
}

static frit_status add_charsmap(const writing *w)
{
    const frit_pipeline *pipeline = &w->vocab->pipeline;
    for (size_t i = 0; i < pipeline->n_norms; i++) {
        const frit_charsmap *map = &pipeline->norms[i].charsmap;
        if (map->n_units == 0) continue;
        const uint64_t n = 4 + 4 * (uint64_t)map->n_units + map->replacements.len;   // the two are adjacent
        return frit_meta_add(w->meta, frit_str_of("tokenizer.ggml.precompiled_charsmap"),
                             (frit_value){.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_U8, n, map->units - 4}});
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- ids and flags

// Finds another token that ends an answer, because generation_config.json may name two.
static frit_token other_end(const frit_vocab *vocab, frit_token eos)
{
    for (int32_t i = 0; i < vocab->n; i++)
        if (vocab->entries[i].is_end && i != eos) return i;
    return -1;
}

static frit_status add_ids(const writing *w, const form *f)
{
    const frit_vocab *vocab = w->vocab;
    const bool bert = strcmp(f->model, "bert") == 0;
    const frit_token first = vocab->n_prefix > 0 ? vocab->prefix[0] : -1;
    const frit_token last = vocab->n_suffix > 0 ? vocab->suffix[vocab->n_suffix - 1] : -1;
    const frit_token bos = first >= 0 ? first : vocab->bos, eos = bert || last < 0 ? vocab->eos : last;
    if (bert) FRIT_TRY(add_id(w, "tokenizer.ggml.cls_token_id", bos));
    FRIT_TRY(add_id(w, "tokenizer.ggml.bos_token_id", bos));
    FRIT_TRY(add_id(w, "tokenizer.ggml.eos_token_id", eos));
    FRIT_TRY(add_id(w, "tokenizer.ggml.eot_token_id", vocab->eot >= 0 ? vocab->eot : other_end(vocab, eos)));
    FRIT_TRY(add_id(w, "tokenizer.ggml.unknown_token_id", vocab->unk));
    FRIT_TRY(add_id(w, "tokenizer.ggml.seperator_token_id", bert && last >= 0 ? last : vocab->sep));   // spelled so
    FRIT_TRY(add_id(w, "tokenizer.ggml.padding_token_id", vocab->pad));
    FRIT_TRY(add_id(w, "tokenizer.ggml.mask_token_id", vocab->mask));
    FRIT_TRY(frit_meta_add_bool(w->meta, "tokenizer.ggml.add_bos_token", first >= 0));
    FRIT_TRY(frit_meta_add_bool(w->meta, "tokenizer.ggml.add_eos_token", last >= 0 && !bert));
    return bert ? frit_meta_add_bool(w->meta, "tokenizer.ggml.add_sep_token", last >= 0) : FRIT_OK;
}

static frit_status write_form(const writing *w, const form *f)
{
    FRIT_TRY(frit_meta_add_text(w->meta, "tokenizer.ggml.model", f->model));
    if (f->pre) FRIT_TRY(frit_meta_add_text(w->meta, "tokenizer.ggml.pre", f->pre));
    FRIT_TRY(add_pieces(w, f));
    if (f->pre) {
        FRIT_TRY(add_merges(w));
    } else if (strcmp(f->model, "bert") == 0) {
        FRIT_TRY(frit_meta_add_bool(w->meta, "tokenizer.ggml.normalizer.lowercase", f->lowercase));
        FRIT_TRY(frit_meta_add_bool(w->meta, "tokenizer.ggml.normalizer.strip_accents", f->strip_accents));
    } else {
        FRIT_TRY(add_scores(w));
        FRIT_TRY(frit_meta_add_bool(w->meta, "tokenizer.ggml.add_space_prefix", f->space_prefix));
        if (strcmp(f->model, "t5") == 0) {
            FRIT_TRY(frit_meta_add_bool(w->meta, "tokenizer.ggml.remove_extra_whitespaces", f->trim));
            FRIT_TRY(add_charsmap(w));
        }
    }
    return add_ids(w, f);
}

static frit_status remove_form(frit_meta *meta)
{
    for (size_t i = meta->n; i-- > 0;) {
        const frit_str key = meta->pairs[i].key;
        char name[64];
        if (!frit_str_starts(key, "tokenizer.ggml.") || key.len >= sizeof name) continue;
        memcpy(name, key.ptr, key.len);
        name[key.len] = 0;
        FRIT_TRY(frit_meta_remove(meta, name));
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- comparing

static bool same_ids(const frit_tokenizer *a, const frit_tokenizer *b, const char *text, unsigned flags)
{
    frit_ids x = {0}, y = {0};
    bool same = frit_tokenizer_encode(a, frit_str_of(text), flags, &x) == FRIT_OK &&
                frit_tokenizer_encode(b, frit_str_of(text), flags, &y) == FRIT_OK;
    same = same && x.n == y.n && (x.n == 0 || memcmp(x.items, y.items, x.n * sizeof *x.items) == 0);
    frit_ids_free(&x);
    frit_ids_free(&y);
    return same;
}

static bool encodes_alike(const frit_tokenizer *a, const frit_tokenizer *b)
{
    for (size_t i = 0; i < FRIT_COUNT(probes); i++)
        if (!same_ids(a, b, probes[i], 0) || !same_ids(a, b, probes[i], FRIT_TEXT_SPECIAL)) return false;
    return true;
}

// Compares the written keys with the original. *is_same is false if they cut text differently or cannot be read back.
static frit_status compare(const writing *w, const frit_tokenizer *original, bool *is_same)
{
    frit_arena arena = {0};
    frit_vocab vocab = {0};
    frit_tokenizer *tokenizer = NULL;
    *is_same = false;
    frit_status status = frit_vocab_read(&vocab, w->meta, w->vocab->n, &arena, NULL);
    const bool is_read = status == FRIT_OK;
    if (is_read) status = frit_tokenizer_new(&tokenizer, &vocab, NULL);
    if (status == FRIT_OK && tokenizer) *is_same = encodes_alike(original, tokenizer);
    frit_tokenizer_free(tokenizer);
    if (is_read) frit_vocab_deinit(&vocab);
    frit_arena_free(&arena);
    return status == FRIT_E_MEMORY ? status : FRIT_OK;
}

// ------------------------------------------------------------------------------------- the pre-tokenizer

static bool same_cuts(const frit_pipeline *a, bool a_spells, const frit_pipeline *b, const char *text, frit_flow *flows)
{
    const frit_words *x, *y;
    if (frit_pipeline_cut(a, frit_str_of(text), true, &flows[0], &x) != FRIT_OK ||
        frit_pipeline_cut(b, frit_str_of(text), true, &flows[1], &y) != FRIT_OK || x->n != y->n)
        return false;
    frit_letters letters;
    frit_letters_init(&letters);
    frit_buf bytes = {0};
    bool same = true;
    for (size_t i = 0; same && i < x->n; i++) {
        frit_str word = {x->text.ptr + x->items[i].start, x->items[i].end - x->items[i].start};
        const frit_str other = {y->text.ptr + y->items[i].start, y->items[i].end - y->items[i].start};
        if (a_spells) {
            frit_buf_clear(&bytes);
            frit_letters_read(&letters, word, &bytes);
            word = (frit_str){bytes.data, bytes.len};
        }
        same = word.len == other.len && memcmp(word.ptr, other.ptr, word.len) == 0;
    }
    frit_buf_free(&bytes);
    return same;
}

static bool cuts_alike(const frit_vocab *vocab, const frit_pretok_row *row, frit_flow *flows)
{
    const unsigned meaning = FRIT_PRETOK_IGNORE_MERGES | FRIT_PRETOK_RAW | FRIT_PRETOK_ESCAPE_SPACES;
    if ((row->flags & meaning) != (vocab->whole_words ? FRIT_PRETOK_IGNORE_MERGES : 0u)) return false;
    frit_cut cuts[FRIT_PRETOK_MAX_REGEXES] = {{0}};
    frit_pipeline pipeline = {.cuts = cuts};
    bool spells = false, same = frit_pretok_add(row, &pipeline) == FRIT_OK;
    for (size_t i = 0; i < vocab->pipeline.n_cuts; i++) spells |= vocab->pipeline.cuts[i].spell;
    for (size_t i = 0; same && i < FRIT_COUNT(probes); i++)
        same = same_cuts(&vocab->pipeline, spells, &pipeline, probes[i], flows);
    for (size_t i = 0; i < pipeline.n_cuts; i++) frit_regex_free(pipeline.cuts[i].regex);
    return same;
}

// Finds the first name of the row that cuts text as the vocabulary does, or "default".
static frit_status find_pretok(const writing *w, const char **name)
{
    frit_flow flows[2];
    *name = "default";
    FRIT_TRY(frit_flow_init(&flows[0]));
    frit_status status = frit_flow_init(&flows[1]);
    if (status == FRIT_OK) {
        for (size_t i = 0; i < frit_pretok_n_rows; i++) {
            const frit_pretok_row *row = &frit_pretok_rows[i];
            if (!cuts_alike(w->vocab, row, flows)) continue;
            *name = frit_arena_text(w->arena, row->names, strcspn(row->names, " "));
            if (!*name) status = frit_fail_memory(64, "the pre-tokenizer's name");
            break;
        }
        frit_flow_deinit(&flows[1]);
    }
    frit_flow_deinit(&flows[0]);
    return status;
}

// ------------------------------------------------------------------------------------- the whole

// clang-format off
static const form characters[] = {{"llama", NULL, true, false, false, false}, {"llama", NULL, false, false, false, false}};
static const form unigram[] = {
    {"t5", NULL, true, true, false, false}, {"t5", NULL, true, false, false, false},
    {"t5", NULL, false, true, false, false}, {"t5", NULL, false, false, false, false},
};
static const form wordpiece[] = {
    {"bert", NULL, false, false, true, true}, {"bert", NULL, false, false, false, false},
    {"bert", NULL, false, false, true, false}, {"bert", NULL, false, false, false, true},
};
// clang-format on

// Tries the forms; keeps the first that is exact, or the first of all.
static frit_status try_forms(const writing *w, const form *forms, size_t n, bool *is_exact)
{
    frit_tokenizer *original;
    FRIT_TRY(frit_tokenizer_new(&original, w->vocab, NULL));
    frit_status status = FRIT_OK;
    *is_exact = false;
    for (size_t i = 0; status == FRIT_OK && i < n && !*is_exact; i++) {
        status = write_form(w, &forms[i]);
        if (status == FRIT_OK) status = compare(w, original, is_exact);
        if (status == FRIT_OK && !*is_exact) status = remove_form(w->meta);
    }
    frit_tokenizer_free(original);
    return status == FRIT_OK && !*is_exact ? write_form(w, &forms[0]) : status;
}

static frit_status write_model(const writing *w, bool *is_exact)
{
    const char *model = w->vocab->model;
    if (w->vocab->pipeline.bytes) {
        form f = {.model = "gpt2"};
        FRIT_TRY(find_pretok(w, &f.pre));
        return try_forms(w, &f, 1, is_exact);
    }
    if (strcmp(model, "bpe") == 0 || strcmp(model, "spm") == 0)
        return try_forms(w, characters, FRIT_COUNT(characters), is_exact);
    if (strcmp(model, "unigram") == 0) return try_forms(w, unigram, FRIT_COUNT(unigram), is_exact);
    if (strcmp(model, "wordpiece") == 0) return try_forms(w, wordpiece, FRIT_COUNT(wordpiece), is_exact);
    return frit_fail(FRIT_E_UNSUPPORTED, "a tokenizer of kind '%s' has no form in GGUF", model);
}

frit_status frit_vocab_write(const frit_vocab *vocab, frit_meta *meta, bool *is_exact)
{
    const writing w = {vocab, meta, meta->arena};
    return write_model(&w, is_exact);
}
