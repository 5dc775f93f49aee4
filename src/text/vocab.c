// SPDX-License-Identifier: MIT
// Reads tokenizer.ggml.* into a vocabulary, in this order:
//
//     model and pre-tokenizer -> defaults of the kind -> pieces, kinds, scores -> piece map -> ids with a meaning
//     -> merges -> roles that only the spelling tells (ends of answers) -> white space that specials take -> specials
#include "text/vocab.h"

#include "base/check.h"
#include "text/pretok.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ------------------------------------------------------------------------------------- kinds

// What holds where the file is silent. Ids that turn out not to be special tokens of the file are dropped again.
typedef struct kind_defaults {
    const char *model;
    frit_token bos, eos, unk, sep, pad, mask;
    bool add_bos, add_eos, add_sep, add_space_prefix, escape_spaces;
    bool has_merges, has_scores;
} kind_defaults;

// clang-format off
static const kind_defaults kinds[] = {
    // model     bos  eos  unk  sep  pad  mask   +bos   +eos   +sep   space  escape merges scores
    {"gpt2",      11,  11,  -1,  -1,  -1,  -1,  false, false, false, false, false, true,  false},
    {"gemma4",    -1,  -1,  -1,  -1,  -1,  -1,  true,  false, false, false, true,  true,  false},
    {"llama",      1,   2,   0,  -1,  -1,  -1,  true,  false, false, true,  true,  false, true},
    {"bert",     101,  -1, 100, 102,   0, 103,  true,  false, true,  true,  false, false, false},
};
// clang-format on

static const kind_defaults *find_kind(const char *model)
{
    for (size_t i = 0; i < FRIT_COUNT(kinds); i++)
        if (strcmp(kinds[i].model, model) == 0) return &kinds[i];
    return NULL;
}

static frit_status read_pretok(frit_vocab *vocab, const frit_meta *meta, frit_arena *arena, const frit_log *log)
{
    frit_str pre = {"", 0};
    bool found = false;
    FRIT_TRY(frit_meta_get_text(meta, "tokenizer.ggml.pre", &pre, &found));
    vocab->pre = frit_arena_text(arena, pre.ptr, pre.len);
    if (!vocab->pre) return frit_fail_memory(pre.len, "the pre-tokenizer's name");
    if (strcmp(vocab->model, "gemma4") == 0) vocab->pre = "gemma4";
    if (strcmp(vocab->model, "gpt2") != 0 && strcmp(vocab->model, "gemma4") != 0) return FRIT_OK;
    if (!vocab->pre[0]) {
        frit_log_say(log, FRIT_LOG_WARNING,
                     "the file names no pre-tokenizer (tokenizer.ggml.pre): 'default' is used, which may "
                     "cut text otherwise than the model was trained with");
        vocab->pre = "default";
    }
    vocab->pretok = frit_pretok_find(vocab->pre);
    if (!vocab->pretok)
        return frit_fail(FRIT_E_UNSUPPORTED, "tokenizer.ggml.pre is '%s', a pre-tokenizer that is not known",
                         vocab->pre);
    return FRIT_OK;
}

static void apply_defaults(frit_vocab *vocab, const kind_defaults *kind)
{
    vocab->bos = kind->bos, vocab->eos = kind->eos, vocab->unk = kind->unk;
    vocab->sep = kind->sep, vocab->pad = kind->pad, vocab->mask = kind->mask;
    vocab->eot = vocab->nl = -1;
    vocab->lowercase = true;
    vocab->add_bos = kind->add_bos, vocab->add_eos = kind->add_eos, vocab->add_sep = kind->add_sep;
    vocab->add_space_prefix = kind->add_space_prefix;
    vocab->escape_spaces = kind->escape_spaces;
    unsigned flags = vocab->pretok ? vocab->pretok->flags : 0;
    if (flags & FRIT_PRETOK_ADD_BOS) vocab->add_bos = true;
    if (flags & FRIT_PRETOK_ADD_SEP) vocab->add_sep = true;
    if (flags & FRIT_PRETOK_ESCAPE_SPACES) vocab->escape_spaces = true;
    if (flags & FRIT_PRETOK_NO_BOS) vocab->bos = -1;
}

// ------------------------------------------------------------------------------------- arrays

static bool is_integer(frit_value_type type)
{
    return type != FRIT_VALUE_F32 && type != FRIT_VALUE_F64 && type != FRIT_VALUE_BOOL && type != FRIT_VALUE_TEXT &&
           type != FRIT_VALUE_ARRAY;
}

static bool is_number(frit_value_type type)
{
    return is_integer(type) || type == FRIT_VALUE_F32 || type == FRIT_VALUE_F64;
}

static bool is_text(frit_value_type type)
{
    return type == FRIT_VALUE_TEXT;
}

// *out = NULL if the key is absent. `n`: how many items there must be, or UINT64_MAX.
static frit_status get_array(const frit_meta *meta, const char *key, bool (*fits)(frit_value_type), const char *what,
                             uint64_t n, const frit_value **out)
{
    const frit_value *value = frit_meta_find(meta, key);
    *out = value;
    if (!value) return FRIT_OK;
    if (value->type != FRIT_VALUE_ARRAY)
        return frit_fail(FRIT_E_FORMAT, "%s is of type %s, an array of %s is expected", key,
                         frit_value_type_name(value->type), what);
    if (!fits(value->array.type))
        return frit_fail(FRIT_E_FORMAT, "%s is an array of %s, an array of %s is expected", key,
                         frit_value_type_name(value->array.type), what);
    if (n != UINT64_MAX && value->array.n != n)
        return frit_fail(FRIT_E_FORMAT, "%s has %llu items, but there are %llu tokens", key,
                         (unsigned long long)value->array.n, (unsigned long long)n);
    return FRIT_OK;
}

static frit_status read_pieces(frit_vocab *vocab, const frit_meta *meta, int64_t expected, frit_arena *arena)
{
    const frit_value *tokens;
    FRIT_TRY(get_array(meta, "tokenizer.ggml.tokens", is_text, "texts", UINT64_MAX, &tokens));
    if (!tokens)
        return frit_fail(FRIT_E_FORMAT, "tokenizer.ggml.tokens is missing, but tokenizer.ggml.model is '%s'",
                         vocab->model);
    uint64_t n = tokens->array.n;
    if (n == 0) return frit_fail(FRIT_E_FORMAT, "tokenizer.ggml.tokens is empty: a vocabulary has at least one token");
    if (n > INT32_MAX)
        return frit_fail(FRIT_E_FORMAT, "tokenizer.ggml.tokens has %llu items, at most %d are possible",
                         (unsigned long long)n, INT32_MAX);
    if (expected > 0 && n != (uint64_t)expected)
        return frit_fail(FRIT_E_FORMAT, "tokenizer.ggml.tokens has %llu items, but the embedding table has %lld rows",
                         (unsigned long long)n, (long long)expected);
    vocab->entries = frit_arena_new(arena, frit_vocab_entry, n);
    if (!vocab->entries) return frit_fail_memory((size_t)n * sizeof *vocab->entries, "the vocabulary");
    vocab->n = (int32_t)n;
    for (int32_t i = 0; i < vocab->n; i++) {
        frit_str piece = frit_value_item_text(tokens, (uint64_t)i);
        if (piece.len > INT32_MAX)
            return frit_fail(FRIT_E_FORMAT,
                             "tokenizer.ggml.tokens: token %d is %zu bytes long, at most %d are possible", (int)i,
                             piece.len, INT32_MAX);
        vocab->entries[i] = (frit_vocab_entry){.piece = piece, .kind = FRIT_TOKEN_NORMAL};
    }
    return FRIT_OK;
}

static frit_status read_kinds(frit_vocab *vocab, const frit_meta *meta)
{
    const frit_value *types;
    FRIT_TRY(get_array(meta, "tokenizer.ggml.token_type", is_integer, "integers", (uint64_t)vocab->n, &types));
    if (!types) return FRIT_OK;
    for (int32_t i = 0; i < vocab->n; i++) {
        int64_t type = frit_value_item_i64(types, (uint64_t)i);
        if (type < FRIT_TOKEN_NORMAL || type > FRIT_TOKEN_BYTE)
            return frit_fail(FRIT_E_FORMAT, "tokenizer.ggml.token_type: token %d has type %lld, 1 to 6 are known",
                             (int)i, (long long)type);
        vocab->entries[i].kind = (frit_token_kind)type;
    }
    return FRIT_OK;
}

static frit_status read_scores(frit_vocab *vocab, const frit_meta *meta, bool needed)
{
    const frit_value *scores;
    FRIT_TRY(get_array(meta, "tokenizer.ggml.scores", is_number, "numbers", (uint64_t)vocab->n, &scores));
    if (!scores && needed)
        return frit_fail(FRIT_E_FORMAT, "tokenizer.ggml.scores is missing, a '%s' tokenizer merges by them",
                         vocab->model);
    for (int32_t i = 0; scores && i < vocab->n; i++) {
        bool integer = is_integer(scores->array.type);
        double score =
            integer ? (double)frit_value_item_i64(scores, (uint64_t)i) : frit_value_item_f64(scores, (uint64_t)i);
        if (isnan(score))
            return frit_fail(FRIT_E_FORMAT, "tokenizer.ggml.scores: the score of token %d is not a number", (int)i);
        vocab->entries[i].score = (float)score;
    }
    return FRIT_OK;
}

static frit_status index_pieces(frit_vocab *vocab, const frit_log *log)
{
    if (!frit_map_reserve(&vocab->ids, (size_t)vocab->n))
        return frit_fail_memory((size_t)vocab->n, "the index of the vocabulary");
    int64_t n_equal = 0, first = 0, other;
    for (int32_t i = 0; i < vocab->n; i++) {
        if (frit_map_get(&vocab->ids, vocab->entries[i].piece, &other)) {
            if (n_equal++ == 0) first = i;
        } else if (!frit_map_put(&vocab->ids, vocab->entries[i].piece, i)) {
            return frit_fail_memory((size_t)vocab->n, "the index of the vocabulary");
        }
    }
    if (n_equal > 0)
        frit_log_say(
            log, FRIT_LOG_WARNING,
            "%lld tokens of the vocabulary have the text of an earlier one (the first is token %lld): text becomes "
            "the earlier one",
            (long long)n_equal, (long long)first);
    return FRIT_OK;
}

frit_token frit_vocab_find(const frit_vocab *vocab, frit_str piece)
{
    int64_t id;
    return frit_map_get(&vocab->ids, piece, &id) ? (frit_token)id : -1;
}

frit_token frit_vocab_find_text(const frit_vocab *vocab, frit_str piece)
{
    frit_token id = frit_vocab_find(vocab, piece);
    if (id < 0) return -1;
    frit_token_kind kind = vocab->entries[id].kind;
    return kind == FRIT_TOKEN_CONTROL || kind == FRIT_TOKEN_UNKNOWN || kind == FRIT_TOKEN_BYTE ? -1 : id;
}

frit_token frit_vocab_find_byte(const frit_vocab *vocab, unsigned char byte)
{
    const char *hex = "0123456789ABCDEF";
    char piece[6] = {'<', '0', 'x', hex[byte >> 4], hex[byte & 15], '>'};
    return frit_vocab_find(vocab, (frit_str){piece, sizeof piece});
}

// ------------------------------------------------------------------------------------- ids with a meaning

// `optional`: nothing depends on the token, and published files carry ids outside the vocabulary.
static frit_status read_id(const frit_vocab *vocab, const frit_meta *meta, const char *key, bool optional,
                           frit_token *id, const frit_log *log)
{
    int64_t value = 0;
    bool found = false;
    FRIT_TRY(frit_meta_get_i64(meta, key, &value, &found));
    if (!found) {
        // Few byte-level vocabularies have a BOS or EOS where the default says.
        bool ordinary = *id >= 0 && *id < vocab->n && vocab->pretok && vocab->entries[*id].kind == FRIT_TOKEN_NORMAL;
        if (*id >= vocab->n || ordinary) *id = -1;
    } else if (value == -1 || value == UINT32_MAX) {
        *id = -1;
    } else if (value >= 0 && value < vocab->n) {
        *id = (frit_token)value;
    } else if (optional) {
        frit_log_say(log, FRIT_LOG_WARNING, "%s is %lld, but there are %d tokens: ignored", key, (long long)value,
                     (int)vocab->n);
        *id = -1;
    } else {
        return frit_fail(FRIT_E_FORMAT, "%s is %lld, but there are %d tokens", key, (long long)value, (int)vocab->n);
    }
    return FRIT_OK;
}

static frit_status read_flag(const frit_meta *meta, const char *key, bool *flag)
{
    bool found = false;
    return frit_meta_get_bool(meta, key, flag, &found);
}

static frit_status read_ids(frit_vocab *vocab, const frit_meta *meta, const frit_log *log)
{
    if (frit_meta_find(meta, "tokenizer.ggml.cls_token_id"))   // what BERT begins with
        FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.cls_token_id", false, &vocab->bos, log));
    FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.bos_token_id", false, &vocab->bos, log));
    FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.eos_token_id", false, &vocab->eos, log));
    FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.eot_token_id", false, &vocab->eot, log));
    FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.unknown_token_id", false, &vocab->unk, log));
    FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.seperator_token_id", false, &vocab->sep, log));   // spelled so
    FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.padding_token_id", true, &vocab->pad, log));
    FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.mask_token_id", true, &vocab->mask, log));
    FRIT_TRY(read_flag(meta, "tokenizer.ggml.add_bos_token", &vocab->add_bos));
    FRIT_TRY(read_flag(meta, "tokenizer.ggml.add_eos_token", &vocab->add_eos));
    FRIT_TRY(read_flag(meta, "tokenizer.ggml.add_sep_token", &vocab->add_sep));
    FRIT_TRY(read_flag(meta, "tokenizer.ggml.add_space_prefix", &vocab->add_space_prefix));
    FRIT_TRY(read_flag(meta, "tokenizer.ggml.remove_extra_whitespaces", &vocab->remove_extra_spaces));
    FRIT_TRY(read_flag(meta, "tokenizer.ggml.normalizer.lowercase", &vocab->lowercase));
    vocab->strip_accents = vocab->lowercase;
    FRIT_TRY(read_flag(meta, "tokenizer.ggml.normalizer.strip_accents", &vocab->strip_accents));
    const struct {
        const char *key, *id_key;
        bool *add;
        frit_token id;
    } adds[] = {{"add_bos_token", "bos_token_id", &vocab->add_bos, vocab->bos},
                {"add_eos_token", "eos_token_id", &vocab->add_eos, vocab->eos},
                {"add_sep_token", "seperator_token_id", &vocab->add_sep, vocab->sep}};
    for (size_t i = 0; i < FRIT_COUNT(adds); i++) {
        if (!*adds[i].add || adds[i].id >= 0) continue;
        char key[64];
        snprintf(key, sizeof key, "tokenizer.ggml.%s", adds[i].key);
        if (frit_meta_find(meta, key))
            return frit_fail(FRIT_E_FORMAT, "%s is true, but tokenizer.ggml.%s names no token", key, adds[i].id_key);
        *adds[i].add = false;
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- merges

// Names the side of a merge that is no token.
static frit_status fail_merge(uint64_t rank, frit_str merge, frit_str absent)
{
    return frit_fail(FRIT_E_FORMAT,
                     "tokenizer.ggml.merges: merge %llu, '%.*s', needs the token '%.*s', which is absent",
                     (unsigned long long)rank, (int)(merge.len < 200 ? merge.len : 200), merge.ptr,
                     (int)(absent.len < 200 ? absent.len : 200), absent.ptr);
}

static frit_status read_merge(frit_vocab *vocab, uint64_t rank, frit_str text, frit_buf *joined)
{
    const char *space =
        text.len > 1 ? memchr(text.ptr + 1, ' ', text.len - 1) : NULL;   // a piece may start with a space
    if (!space)
        return frit_fail(FRIT_E_FORMAT, "tokenizer.ggml.merges: merge %llu, '%.*s', lacks the space between two tokens",
                         (unsigned long long)rank, (int)(text.len < 200 ? text.len : 200), text.ptr);
    frit_str left = {text.ptr, (size_t)(space - text.ptr)};
    frit_str right = {space + 1, text.len - left.len - 1};
    frit_buf_clear(joined);
    frit_buf_append(joined, left.ptr, left.len);
    frit_buf_append(joined, right.ptr, right.len);
    if (joined->failed) return frit_fail_memory(text.len, "a merge");
    frit_str both = {joined->data, joined->len};
    frit_merge *merge = &vocab->merges[rank];
    *merge = (frit_merge){frit_vocab_find(vocab, left), frit_vocab_find(vocab, right), frit_vocab_find(vocab, both)};
    if (merge->left < 0) return fail_merge(rank, text, left);
    if (merge->right < 0) return fail_merge(rank, text, right);
    if (merge->merged < 0) return fail_merge(rank, text, both);
    return FRIT_OK;
}

static frit_status read_merges(frit_vocab *vocab, const frit_meta *meta, frit_arena *arena)
{
    const frit_value *merges;
    FRIT_TRY(get_array(meta, "tokenizer.ggml.merges", is_text, "texts", UINT64_MAX, &merges));
    if (!merges)
        return frit_fail(FRIT_E_FORMAT, "tokenizer.ggml.merges is missing, a '%s' tokenizer needs it", vocab->model);
    if (merges->array.n > INT32_MAX)
        return frit_fail(FRIT_E_FORMAT, "tokenizer.ggml.merges has %llu items, at most %d are possible",
                         (unsigned long long)merges->array.n, INT32_MAX);
    vocab->merges = frit_arena_new(arena, frit_merge, merges->array.n);
    if (!vocab->merges) return frit_fail_memory(merges->array.n * sizeof *vocab->merges, "the merges");
    vocab->n_merges = merges->array.n;
    frit_buf joined = {0};
    frit_status status = FRIT_OK;
    for (uint64_t i = 0; i < vocab->n_merges && status == FRIT_OK; i++)
        status = read_merge(vocab, i, frit_value_item_text(merges, i), &joined);
    frit_buf_free(&joined);
    return status;
}

// ------------------------------------------------------------------------------------- roles by spelling

enum { ENDS = 1, TURN = 2, SHOWN = 4 };   // ends an answer; is the end-of-turn token if none is named; is ordinary text

// Files say little about these tokens, and some mark them as ordinary ones.
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
    // In formats with channels <|end|> closes one message of several; the answer ends with the others.
    bool channels = ends(vocab, "<|return|>") && (ends(vocab, "<|call|>") || ends(vocab, "<|calls|>"));
    bool flushes = ends(vocab, "<|flush|>") && (ends(vocab, "<|call|>") || ends(vocab, "<|calls|>"));
    if ((channels || flushes) && ends(vocab, "<|end|>")) {
        find_entry(vocab, "<|end|>")->is_end = false;
        find_entry(vocab, "<|end|>")->kind = FRIT_TOKEN_USER;
    }
    // Where tool responses have their own token, </s> is text (an HTML tag).
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

// ------------------------------------------------------------------------------------- white space

static bool name_contains(const frit_meta *meta, const char *key, const char *part)
{
    const frit_value *value = frit_meta_find(meta, key);
    if (!value || value->type != FRIT_VALUE_TEXT) return false;
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= value->text.len; i++) {
        size_t k = 0;
        while (k < n && tolower((unsigned char)value->text.ptr[i + k]) == part[k]) k++;
        if (k == n) return true;
    }
    return false;
}

// Files do not carry these attributes, so they follow the model's name.
static void infer_strips(frit_vocab *vocab, const frit_meta *meta)
{
    const char *mask = NULL;
    if (strstr(vocab->pre, "jina-v2-") || name_contains(meta, "general.architecture", "nomic-bert-moe") ||
        name_contains(meta, "general.architecture", "jina-bert-v3"))
        mask = "<mask>";
    else if (name_contains(meta, "general.name", "modern-bert"))
        mask = "[MASK]";
    if (mask && find_entry(vocab, mask)) find_entry(vocab, mask)->strip_left = true;
    if (!name_contains(meta, "general.name", "phi-3") && !name_contains(meta, "general.name", "phi3")) return;
    for (int32_t i = 0; i < vocab->n; i++) {
        frit_vocab_entry *entry = &vocab->entries[i];
        bool special =
            entry->kind == FRIT_TOKEN_CONTROL || entry->kind == FRIT_TOKEN_USER || entry->kind == FRIT_TOKEN_UNKNOWN;
        bool bare = frit_str_is(entry->piece, "<unk>") || frit_str_is(entry->piece, "<s>") ||
                    frit_str_is(entry->piece, "<|endoftext|>");
        entry->strip_right = special && !bare;
    }
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

static bool is_special(frit_token_kind kind)
{
    return kind == FRIT_TOKEN_CONTROL || kind == FRIT_TOKEN_USER || kind == FRIT_TOKEN_UNKNOWN;
}

static frit_status list_specials(frit_vocab *vocab, frit_arena *arena)
{
    for (int32_t i = 0; i < vocab->n; i++) {
        if (!is_special(vocab->entries[i].kind)) continue;
        vocab->n_specials++;
        if (vocab->entries[i].piece.len > FRIT_SPECIAL_PIECE_BYTES)
            return frit_fail(FRIT_E_FORMAT,
                             "tokenizer.ggml.tokens: special token %d is %zu bytes long, at most %d are possible",
                             (int)i, vocab->entries[i].piece.len, FRIT_SPECIAL_PIECE_BYTES);
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

// ------------------------------------------------------------------------------------- the whole

static frit_status read_without_text(frit_vocab *vocab, int64_t expected)
{
    if (expected < 0 || expected > INT32_MAX)
        return frit_fail(FRIT_E_FORMAT, "the embedding table has %lld rows, at most %d tokens are possible",
                         (long long)expected, INT32_MAX);
    vocab->model = "none";
    vocab->n = (int32_t)expected;
    return FRIT_OK;
}

static frit_status read_with_text(frit_vocab *vocab, const kind_defaults *kind, const frit_meta *meta, int64_t expected,
                                  frit_arena *arena, const frit_log *log)
{
    FRIT_TRY(read_pretok(vocab, meta, arena, log));
    apply_defaults(vocab, kind);
    FRIT_TRY(read_pieces(vocab, meta, expected, arena));
    FRIT_TRY(read_kinds(vocab, meta));
    FRIT_TRY(read_scores(vocab, meta, kind->has_scores));
    FRIT_TRY(index_pieces(vocab, log));
    FRIT_TRY(read_ids(vocab, meta, log));
    if (kind->has_merges) FRIT_TRY(read_merges(vocab, meta, arena));
    infer_ends(vocab);
    infer_newline(vocab);
    infer_strips(vocab, meta);
    return list_specials(vocab, arena);
}

frit_status frit_vocab_read(frit_vocab *vocab, const frit_meta *meta, int64_t expected, frit_arena *arena,
                            const frit_log *log)
{
    *vocab = (frit_vocab){.model = "none",
                          .pre = "",
                          .bos = -1,
                          .eos = -1,
                          .eot = -1,
                          .unk = -1,
                          .sep = -1,
                          .pad = -1,
                          .mask = -1,
                          .nl = -1};
    frit_str model = {0};
    bool found = false;
    FRIT_TRY(frit_meta_get_text(meta, "tokenizer.ggml.model", &model, &found));
    if (!found) {
        if (frit_meta_find(meta, "tokenizer.ggml.tokens"))
            return frit_fail(FRIT_E_FORMAT, "tokenizer.ggml.model is missing, but there is tokenizer.ggml.tokens");
        return read_without_text(vocab, expected);
    }
    if (frit_str_is(model, "none") || frit_str_is(model, "no_vocab")) return read_without_text(vocab, expected);
    vocab->model = frit_arena_text(arena, model.ptr, model.len);
    if (!vocab->model) return frit_fail_memory(model.len, "the tokenizer's name");
    const kind_defaults *kind = find_kind(vocab->model);
    if (!kind)
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "tokenizer.ggml.model is '%s'; gpt2, gemma4, llama, bert and none are known", vocab->model);
    frit_status status = read_with_text(vocab, kind, meta, expected, arena, log);
    if (status != FRIT_OK) frit_vocab_deinit(vocab);
    return status;
}

void frit_vocab_deinit(frit_vocab *vocab)
{
    frit_map_free(&vocab->ids);
}
