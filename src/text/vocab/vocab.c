// SPDX-License-Identifier: MIT
// Functions for all vocabularies: the index of pieces, merges, and properties inferred from the spelling of tokens.
#include "text/vocab/vocab.h"

#include <ctype.h>
#include <stdlib.h>

void frit_vocab_start(frit_vocab *vocab)
{
    *vocab = (frit_vocab){.model = "none", .pre = ""};
    vocab->bos = vocab->eos = vocab->eot = vocab->unk = vocab->sep = vocab->pad = vocab->mask = vocab->nl = -1;
    vocab->pair_sep = -1;
    vocab->fill = (frit_fill){-1, -1, -1, -1, -1, -1};
}

void frit_vocab_deinit(frit_vocab *vocab)
{
    frit_index_deinit(&vocab->ids);
    frit_pipeline_deinit(&vocab->pipeline);
    free(vocab->text);
    vocab->text = NULL;
}

// ------------------------------------------------------------------------------------- pieces

frit_status frit_vocab_index(frit_vocab *vocab, const frit_log *log)
{
    if (!frit_index_init(&vocab->ids, (size_t)vocab->n, &vocab->entries[0].piece, sizeof *vocab->entries))
        return frit_fail_memory((size_t)vocab->n, "the index of the vocabulary");
    int32_t first = 0;
    vocab->n_equal = frit_index_add_all(&vocab->ids, vocab->n, NULL, NULL, &first);
    if (vocab->n_equal > 0)
        frit_log_say(
            log, FRIT_LOG_WARNING,
            "%zu tokens of the vocabulary have the text of an earlier one (the first is token %d): text becomes "
            "the earlier one",
            vocab->n_equal, (int)first);
    return FRIT_OK;
}

frit_token frit_vocab_find(const frit_vocab *vocab, frit_str piece)
{
    return frit_index_find(&vocab->ids, piece);
}

frit_token frit_vocab_find_text(const frit_vocab *vocab, frit_str piece)
{
    frit_token id = frit_vocab_find(vocab, piece);
    if (id < 0) return -1;
    unsigned char kind = vocab->entries[id].kind;
    bool is_text = kind != FRIT_TOKEN_CONTROL && kind != FRIT_TOKEN_UNKNOWN && kind != FRIT_TOKEN_BYTE;
    return is_text && !vocab->entries[id].is_added ? id : -1;
}

frit_token frit_vocab_find_byte(const frit_vocab *vocab, unsigned char byte)
{
    const char *hex = "0123456789ABCDEF";
    char piece[6] = {'<', '0', 'x', hex[byte >> 4], hex[byte & 15], '>'};
    return frit_vocab_find(vocab, (frit_str){piece, sizeof piece});
}

int frit_vocab_byte_of(frit_str piece)
{
    if (piece.len != 6 || memcmp(piece.ptr, "<0x", 3) != 0 || piece.ptr[5] != '>') return -1;
    int value = 0;
    for (int i = 3; i < 5; i++) {
        unsigned char c = (unsigned char)piece.ptr[i];
        if (!isxdigit(c)) return -1;
        value = value * 16 + (isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
    }
    return value;
}

// ------------------------------------------------------------------------------------- merges

enum { SHOWN_BYTES = 100 };   // of a piece in an error

static int shown(frit_str piece)
{
    return piece.len < SHOWN_BYTES ? (int)piece.len : SHOWN_BYTES;
}

// Fails and names the side of a merge that is no token.
static frit_status fail_merge(uint64_t rank, frit_str left, frit_str right, frit_str absent)
{
    return frit_fail(FRIT_E_FORMAT, "merge %llu, '%.*s %.*s', needs the token '%.*s', which is absent",
                     (unsigned long long)rank, shown(left), left.ptr, shown(right), right.ptr, shown(absent),
                     absent.ptr);
}

static bool is_joined(frit_str piece, frit_str left, frit_str tail)
{
    return piece.len == left.len + tail.len && memcmp(piece.ptr, left.ptr, left.len) == 0 &&
           memcmp(piece.ptr + left.len, tail.ptr, tail.len) == 0;
}

static frit_status add_merge(frit_vocab *vocab, uint64_t rank, frit_str left, frit_str right, const frit_token ids[2])
{
    frit_str tail = right;
    size_t n_inner = vocab->inner_prefix.len;
    if (n_inner > 0 && right.len >= n_inner && memcmp(right.ptr, vocab->inner_prefix.ptr, n_inner) == 0)
        tail = (frit_str){right.ptr + n_inner, right.len - n_inner};
    if (left.len == 0 || tail.len == 0)
        return frit_fail(FRIT_E_FORMAT, "merge %llu, '%.*s %.*s', joins nothing to a token: it would go on for ever",
                         (unsigned long long)rank, shown(left), left.ptr, shown(right), right.ptr);
    frit_merge *merge = &vocab->merges[rank];
    *merge = (frit_merge){ids[0], ids[1], -1};
    if (merge->left < 0) return fail_merge(rank, left, right, left);
    if (merge->right < 0) return fail_merge(rank, left, right, right);
    // Tokens are mostly in the order of the merges that make them.
    for (int step = 0; rank > 0 && step < 2 && merge->merged < 0; step++) {
        frit_token guess = merge[-1].merged + step;
        if (guess < vocab->n && is_joined(vocab->entries[guess].piece, left, tail)) merge->merged = guess;
    }
    if (merge->merged >= 0) return FRIT_OK;
    char small[256];
    size_t n = left.len + tail.len;
    char *joined = n <= sizeof small ? small : malloc(n);
    if (!joined) return frit_fail_memory(n, "a merge");
    memcpy(joined, left.ptr, left.len);
    memcpy(joined + left.len, tail.ptr, tail.len);
    merge->merged = frit_vocab_find(vocab, (frit_str){joined, n});
    frit_status status = merge->merged >= 0 ? FRIT_OK : fail_merge(rank, left, right, (frit_str){joined, n});
    if (joined != small) free(joined);
    return status;
}

frit_status frit_vocab_add_merges(frit_vocab *vocab, const frit_merge_text *texts, size_t n)
{
    for (size_t begin = 0; begin < n; begin += FRIT_MERGE_BATCH) {
        frit_str keys[2 * FRIT_MERGE_BATCH];
        frit_token ids[2 * FRIT_MERGE_BATCH];
        size_t n_now = n - begin < FRIT_MERGE_BATCH ? n - begin : FRIT_MERGE_BATCH;
        for (size_t i = 0; i < n_now; i++) {
            keys[2 * i] = texts[begin + i].left;
            keys[2 * i + 1] = texts[begin + i].right;
        }
        frit_index_find_all(&vocab->ids, keys, 2 * n_now, ids);
        for (size_t i = 0; i < n_now; i++, vocab->n_merges++)
            FRIT_TRY(add_merge(vocab, vocab->n_merges, keys[2 * i], keys[2 * i + 1], &ids[2 * i]));
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- roles by spelling

enum { ENDS = 1, TURN = 2, SHOWN = 4 };   // ends an answer; is the end-of-turn token if none is named; is ordinary text

// Tokens that files describe incompletely; some files mark them as ordinary tokens.
static const struct {
    const char *piece;
    unsigned role;
} spellings[] = {
    {"<|eot_id|>", ENDS | TURN},
    {"<|im_end|>", ENDS | TURN},
    {"<|end|>", ENDS | TURN},
    {"<end_of_turn>", ENDS | TURN},
    {"<|endoftext|>", ENDS | TURN},
    {"<|end_of_text|>", ENDS | TURN},
    {"<EOT>", ENDS | TURN},
    {"_<EOT>", ENDS | TURN},
    {"[EOT]", ENDS | TURN},
    {"<\xef\xbd\x9c"
     "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
     ENDS | TURN},
    {"<end_of_utterance>", ENDS | TURN},
    {"<|eom_id|>", ENDS},
    {"<|return|>", ENDS},
    {"<|call|>", ENDS},
    {"<|flush|>", ENDS},
    {"<|calls|>", ENDS},
    {"</s>", ENDS},
    {"[EOS]", ENDS},
    {"<eos>", ENDS},
    {"<turn|>", ENDS},
    {"<|tool_response>", ENDS},
    {"[e~[", ENDS},
    {"<|fim_pad|>", ENDS},
    {"<fim-pad>", ENDS},
    {"<fim_pad>", ENDS},
    {"<PAD>", ENDS},
    {"[PAD]", ENDS},
    {"<|fim_repo|>", ENDS},
    {"<|repo_name|>", ENDS},
    {"<fim-repo>", ENDS},
    {"<REPO>", ENDS},
    {"<reponame>", ENDS},
    {"<|file_sep|>", ENDS},
    {"<|channel|>", SHOWN},
    {"<|message|>", SHOWN},
    {"<|start|>", SHOWN},
    {"<|constrain|>", SHOWN},
};

static frit_vocab_entry *find_entry(const frit_vocab *vocab, const char *piece)
{
    frit_token id = frit_vocab_find(vocab, frit_str_of(piece));
    return id < 0 ? NULL : &vocab->entries[id];
}

static bool ends(const frit_vocab *vocab, const char *piece)
{
    const frit_vocab_entry *entry = find_entry(vocab, piece);
    return entry && entry->is_end;
}

static void infer_ends(frit_vocab *vocab)
{
    for (size_t i = 0; i < FRIT_COUNT(spellings); i++) {
        frit_vocab_entry *entry = find_entry(vocab, spellings[i].piece);
        if (!entry) continue;
        if (spellings[i].role & SHOWN) {
            entry->kind = FRIT_TOKEN_USER;
            continue;
        }
        entry->is_end = true;
        entry->kind = FRIT_TOKEN_CONTROL;
        if ((spellings[i].role & TURN) && vocab->eot < 0) vocab->eot = (frit_token)(entry - vocab->entries);
    }
    if (vocab->eos >= 0) vocab->entries[vocab->eos].is_end = true;
    if (vocab->eot >= 0) vocab->entries[vocab->eot].is_end = true;
    // In formats with channels <|end|> closes one message of several; the other two tokens end the answer.
    bool channels = ends(vocab, "<|return|>") && (ends(vocab, "<|call|>") || ends(vocab, "<|calls|>"));
    bool flushes = ends(vocab, "<|flush|>") && (ends(vocab, "<|call|>") || ends(vocab, "<|calls|>"));
    if ((channels || flushes) && ends(vocab, "<|end|>")) {
        find_entry(vocab, "<|end|>")->is_end = false;
        find_entry(vocab, "<|end|>")->kind = FRIT_TOKEN_USER;
    }
    // If tool responses have a token of their own, </s> is text (an HTML tag).
    if (ends(vocab, "<|tool_response>") && ends(vocab, "</s>")) {
        find_entry(vocab, "</s>")->is_end = false;
        find_entry(vocab, "</s>")->kind = FRIT_TOKEN_NORMAL;
    }
}

static void infer_newline(frit_vocab *vocab)
{
    vocab->nl = frit_vocab_find_text(vocab, frit_str_of("\xc4\x8a"));   // the byte letter of \n
    if (strcmp(vocab->model, "gpt2") != 0 || vocab->nl < 0) {
        frit_token byte = frit_vocab_find_byte(vocab, '\n');
        vocab->nl = byte >= 0 ? byte : frit_vocab_find_text(vocab, frit_str_of("\n"));
    }
}

// ------------------------------------------------------------------------------------- fill-in-the-middle

static void infer_fill(frit_vocab *vocab)
{
    // clang-format off
    const struct { frit_token *id; const char *spellings[8]; } rows[] = {
        {&vocab->fill.prefix, {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<\xef\xbd\x9c" "fim\xe2\x96\x81" "begin\xef\xbd\x9c>",
                               "<PRE>", "\xe2\x96\x81<PRE>", "<|code_prefix|>", "[PREFIX]"}},
        {&vocab->fill.suffix, {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<\xef\xbd\x9c" "fim\xe2\x96\x81hole\xef\xbd\x9c>",
                               "<SUF>", "\xe2\x96\x81<SUF>", "<|code_suffix|>", "[SUFFIX]"}},
        {&vocab->fill.middle, {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<\xef\xbd\x9c" "fim\xe2\x96\x81" "end\xef\xbd\x9c>",
                               "<MID>", "\xe2\x96\x81<MID>", "<|code_middle|>", "[MIDDLE]"}},
        {&vocab->fill.pad, {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
        {&vocab->fill.repo, {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", "<repo_name>"}},
        {&vocab->fill.separator, {"<|file_sep|>", "<file_sep>"}},
    };
    // clang-format on
    for (size_t i = 0; i < FRIT_COUNT(rows); i++)
        for (size_t k = 0; k < FRIT_COUNT(rows[i].spellings) && *rows[i].id < 0 && rows[i].spellings[k]; k++)
            *rows[i].id = frit_vocab_find(vocab, frit_str_of(rows[i].spellings[k]));
}

// ------------------------------------------------------------------------------------- specials

typedef struct by_length {
    size_t len;
    frit_token id;
} by_length;

static int compare_lengths(const void *a, const void *b)
{
    const by_length *x = a, *y = b;
    if (x->len != y->len) return x->len > y->len ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool is_special(unsigned char kind)
{
    return kind == FRIT_TOKEN_CONTROL || kind == FRIT_TOKEN_USER || kind == FRIT_TOKEN_UNKNOWN;
}

static frit_status list_specials(frit_vocab *vocab, frit_arena *arena)
{
    for (int32_t i = 0; i < vocab->n; i++) {
        if (!is_special(vocab->entries[i].kind)) continue;
        vocab->n_specials++;
        if (vocab->entries[i].piece.len > FRIT_SPECIAL_PIECE_BYTES)
            return frit_fail(FRIT_E_FORMAT, "special token %d is %zu bytes long, expected at most %d", (int)i,
                             vocab->entries[i].piece.len, FRIT_SPECIAL_PIECE_BYTES);
    }
    vocab->specials = frit_arena_new(arena, frit_token, (size_t)vocab->n_specials);
    by_length *sorted = calloc((size_t)vocab->n_specials + 1, sizeof *sorted);
    if (!vocab->specials || !sorted) {
        free(sorted);
        return frit_fail_memory((size_t)vocab->n_specials * sizeof *sorted, "the list of special tokens");
    }
    size_t n = 0;
    for (int32_t i = 0; i < vocab->n; i++)
        if (is_special(vocab->entries[i].kind)) sorted[n++] = (by_length){vocab->entries[i].piece.len, i};
    qsort(sorted, n, sizeof *sorted, compare_lengths);
    for (size_t i = 0; i < n; i++) vocab->specials[i] = sorted[i].id;
    free(sorted);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- around a text

static frit_status list_one(frit_token id, frit_token **list, int32_t *n, frit_arena *arena)
{
    *list = frit_arena_new(arena, frit_token, 1);
    if (!*list) return frit_fail_memory(sizeof id, "a list of tokens");
    (*list)[(*n)++] = id;
    return FRIT_OK;
}

static frit_status list_around(frit_vocab *vocab, frit_arena *arena)
{
    const bool is_bert = strcmp(vocab->model, "bert") == 0;
    if (vocab->n_suffix == 0 && vocab->add_sep && !is_bert) vocab->pair_sep = vocab->sep;
    if (vocab->n_prefix == 0 && vocab->add_bos && vocab->bos >= 0)
        FRIT_TRY(list_one(vocab->bos, &vocab->prefix, &vocab->n_prefix, arena));
    if (vocab->n_suffix == 0 && vocab->add_eos && vocab->eos >= 0)
        FRIT_TRY(list_one(vocab->eos, &vocab->suffix, &vocab->n_suffix, arena));
    // Only BERT puts the separator after a single text; other models put it only between two texts.
    if (vocab->n_suffix == 0 && vocab->add_sep && vocab->sep >= 0 && is_bert)
        FRIT_TRY(list_one(vocab->sep, &vocab->suffix, &vocab->n_suffix, arena));
    return FRIT_OK;
}

frit_status frit_vocab_finish(frit_vocab *vocab, frit_arena *arena)
{
    infer_ends(vocab);
    infer_fill(vocab);
    infer_newline(vocab);
    FRIT_TRY(list_around(vocab, arena));
    return list_specials(vocab, arena);
}
