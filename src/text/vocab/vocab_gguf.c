// SPDX-License-Identifier: MIT
// Reads tokenizer.ggml.* into a vocabulary, in this order:
//
//     model and pre-tokenizer -> defaults of the kind -> pieces, kinds, scores -> index -> ids with a meaning
// -> merges -> white space that specials absorb -> the steps of the pipeline -> inferred properties (vocab.c)
#include "text/vocab/vocab.h"

#include "text/tokenizer/pretok.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ------------------------------------------------------------------------------------- kinds

// Values used if the file has none. Ids that are not special tokens of the file are then removed.
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
    {"t5",        -1,   1,   2,  -1,   0,  -1,  false, true,  false, true,  true,  false, true},
    {"rwkv",      -1,  -1,  -1,  -1,  -1,  -1,  false, false, false, false, false, false, false},
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

static bool is_byte(frit_value_type type)
{
    return type == FRIT_VALUE_U8 || type == FRIT_VALUE_I8;
}

static bool is_number(frit_value_type type)
{
    return is_integer(type) || type == FRIT_VALUE_F32 || type == FRIT_VALUE_F64;
}

static bool is_text(frit_value_type type)
{
    return type == FRIT_VALUE_TEXT;
}

// Reads an array; *out = NULL if the key is absent. `n` is the expected number of items, or UINT64_MAX.
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

// ------------------------------------------------------------------------------------- ids with a meaning

// Reads an id. `optional`: nothing depends on the token, and published files have ids outside the vocabulary.
static frit_status read_id(const frit_vocab *vocab, const frit_meta *meta, const char *key, bool optional,
                           frit_token *id, const frit_log *log)
{
    int64_t value = 0;
    bool found = false;
    FRIT_TRY(frit_meta_get_i64(meta, key, &value, &found));
    if (!found) {
        // The default ids of BOS and EOS are wrong for many byte-level vocabularies.
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

// Reads the fill-in-the-middle tokens, under present keys and those of 2024. Tokens that begin another text end an
// answer.
static frit_status read_fill(frit_vocab *vocab, const frit_meta *meta, const frit_log *log)
{
    const struct {
        const char *keys[2];
        frit_token *id;
        bool ends;
    } rows[] = {{{"fim_pre", "prefix"}, &vocab->fill.prefix, false},
                {{"fim_suf", "suffix"}, &vocab->fill.suffix, false},
                {{"fim_mid", "middle"}, &vocab->fill.middle, false},
                {{"fim_pad"}, &vocab->fill.pad, true},
                {{"fim_rep"}, &vocab->fill.repo, true},
                {{"fim_sep"}, &vocab->fill.separator, true}};
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        for (size_t k = 0; k < FRIT_COUNT(rows[i].keys) && rows[i].keys[k] && *rows[i].id < 0; k++) {
            char key[64];
            snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", rows[i].keys[k]);
            FRIT_TRY(read_id(vocab, meta, key, true, rows[i].id, log));
        }
        if (rows[i].ends && *rows[i].id >= 0) vocab->entries[*rows[i].id].is_end = true;
    }
    return FRIT_OK;
}

// Reads ends of an answer other than EOS and EOT.
static frit_status read_ends(frit_vocab *vocab, const frit_meta *meta, const frit_log *log)
{
    frit_token eom = -1;
    const frit_value *more;
    FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.eom_token_id", true, &eom, log));
    if (eom >= 0) vocab->entries[eom].is_end = true;
    FRIT_TRY(get_array(meta, "tokenizer.ggml.eos_token_ids", is_integer, "integers", UINT64_MAX, &more));
    for (uint64_t i = 0; more && i < more->array.n; i++) {
        const int64_t id = frit_value_item_i64(more, i);
        if (id >= 0 && id < vocab->n) vocab->entries[id].is_end = true;
    }
    return FRIT_OK;
}

static frit_status read_ids(frit_vocab *vocab, const frit_meta *meta, const frit_log *log)
{
    if (frit_meta_find(meta, "tokenizer.ggml.cls_token_id"))   // the token that BERT's texts begin with
        FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.cls_token_id", false, &vocab->bos, log));
    FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.bos_token_id", false, &vocab->bos, log));
    FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.eos_token_id", false, &vocab->eos, log));
    FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.eot_token_id", false, &vocab->eot, log));
    FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.unknown_token_id", false, &vocab->unk, log));
    FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.seperator_token_id", false, &vocab->sep, log));   // the key has this
                                                                                                    // spelling
    FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.padding_token_id", true, &vocab->pad, log));
    FRIT_TRY(read_id(vocab, meta, "tokenizer.ggml.mask_token_id", true, &vocab->mask, log));
    FRIT_TRY(read_fill(vocab, meta, log));
    FRIT_TRY(read_ends(vocab, meta, log));
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

static frit_status split_merge(uint64_t rank, frit_str text, frit_merge_text *out)
{
    const char *space =
        text.len > 1 ? memchr(text.ptr + 1, ' ', text.len - 1) : NULL;   // a piece may start with a space
    if (!space)
        return frit_fail(FRIT_E_FORMAT, "tokenizer.ggml.merges: merge %llu, '%.*s', lacks the space between two tokens",
                         (unsigned long long)rank, (int)(text.len < 200 ? text.len : 200), text.ptr);
    out->left = (frit_str){text.ptr, (size_t)(space - text.ptr)};
    out->right = (frit_str){space + 1, text.len - out->left.len - 1};
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
    frit_merge_text batch[FRIT_MERGE_BATCH];
    for (uint64_t i = 0, n; i < merges->array.n; i += n) {
        for (n = 0; n < FRIT_MERGE_BATCH && i + n < merges->array.n; n++)
            FRIT_TRY(split_merge(i + n, frit_value_item_text(merges, i + n), &batch[n]));
        frit_status status = frit_vocab_add_merges(vocab, batch, (size_t)n);
        if (status == FRIT_E_FORMAT) return frit_fail(status, "tokenizer.ggml.merges: %s", frit_error());
        FRIT_TRY(status);
    }
    return FRIT_OK;
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

// Sets the attributes lstrip and rstrip, which files do not have, by the model's name.
static void infer_strips(frit_vocab *vocab, const frit_meta *meta)
{
    const char *mask = NULL;
    if (strstr(vocab->pre, "jina-v2-") || name_contains(meta, "general.architecture", "nomic-bert-moe") ||
        name_contains(meta, "general.architecture", "jina-bert-v3"))
        mask = "<mask>";
    else if (name_contains(meta, "general.name", "modern-bert"))
        mask = "[MASK]";
    frit_token id = mask ? frit_vocab_find(vocab, frit_str_of(mask)) : -1;
    if (id >= 0) vocab->entries[id].strip_left = true;
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

// ------------------------------------------------------------------------------------- the pipeline

// Sets the rules of llama.cpp, which published GGUF files are made for.
static void set_rules(frit_vocab *vocab, unsigned flags)
{
    frit_pipeline *pipeline = &vocab->pipeline;
    bool bpe = vocab->pretok != NULL;
    vocab->by_score = !bpe;
    vocab->byte_fallback = vocab->unknown_parts = true;
    vocab->whole_words = flags & FRIT_PRETOK_IGNORE_MERGES;
    vocab->whole_newlines = flags & FRIT_PRETOK_NEWLINES;
    pipeline->bytes = bpe && !(flags & FRIT_PRETOK_RAW);
    pipeline->repair = bpe ? FRIT_REPAIR_BYTES : FRIT_REPAIR_NONE;
    pipeline->letters = pipeline->decoding.letters = bpe && !vocab->escape_spaces;
    pipeline->decoding.escaped = !pipeline->decoding.letters && strcmp(vocab->model, "rwkv") != 0;
    if (vocab->add_space_prefix) pipeline->decoding.strip_start = 1;
    pipeline->decoding.strip_again = true;
}

static frit_status add_bert(frit_vocab *vocab, frit_normalizer *norm)
{
    norm->apply = frit_normalizer_bert;
    norm->flags =
        FRIT_BERT_GGUF | (vocab->lowercase ? FRIT_BERT_LOWER : 0) | (vocab->strip_accents ? FRIT_BERT_STRIP : 0);
    vocab->word_prefix = frit_str_of("\xe2\x96\x81");
    return frit_cut_add_bert(&vocab->pipeline);
}

static frit_status add_unigram(frit_vocab *vocab, const frit_meta *meta, frit_normalizer *norm)
{
    const frit_value *map;
    FRIT_TRY(get_array(meta, "tokenizer.ggml.precompiled_charsmap", is_byte, "bytes", UINT64_MAX, &map));
    if (map) FRIT_TRY(frit_charsmap_init(&norm->charsmap, (frit_str){map->array.items, (size_t)map->array.n}));
    norm->apply = frit_normalizer_spm;
    norm->flags = FRIT_SPM_ESCAPE | (vocab->add_space_prefix ? FRIT_SPM_PREFIX : 0) |
                  (vocab->remove_extra_spaces ? FRIT_SPM_TRIM : 0);
    return FRIT_OK;
}

static frit_status build_pipeline(frit_vocab *vocab, const frit_meta *meta, frit_arena *arena)
{
    frit_pipeline *pipeline = &vocab->pipeline;
    set_rules(vocab, vocab->pretok ? vocab->pretok->flags : 0);
    frit_normalizer *norms = pipeline->norms = frit_arena_new(arena, frit_normalizer, 2);
    pipeline->cuts = frit_arena_new(arena, frit_cut, FRIT_PRETOK_MAX_REGEXES);
    if (!norms || !pipeline->cuts) return frit_fail_memory(2 * sizeof *norms, "the steps of the tokenizer");
    if (vocab->pretok) FRIT_TRY(frit_pretok_add(vocab->pretok, pipeline));
    if (strcmp(vocab->model, "bert") == 0) {
        pipeline->n_norms = 1;
        return add_bert(vocab, &norms[0]);
    }
    if (strcmp(vocab->model, "t5") == 0) {
        pipeline->n_norms = 1;
        return add_unigram(vocab, meta, &norms[0]);
    }
    if (!vocab->pretok && vocab->add_space_prefix)
        norms[pipeline->n_norms++] = (frit_normalizer){.apply = frit_normalizer_prepend, .content = frit_str_of(" ")};
    if (vocab->escape_spaces) norms[pipeline->n_norms++] = (frit_normalizer){.apply = frit_normalizer_escape};
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
    FRIT_TRY(frit_vocab_index(vocab, log));
    FRIT_TRY(read_ids(vocab, meta, log));
    if (kind->has_merges) FRIT_TRY(read_merges(vocab, meta, arena));
    infer_strips(vocab, meta);
    FRIT_TRY(build_pipeline(vocab, meta, arena));
    return frit_vocab_finish(vocab, arena);
}

frit_status frit_vocab_read(frit_vocab *vocab, const frit_meta *meta, int64_t expected, frit_arena *arena,
                            const frit_log *log)
{
    frit_vocab_start(vocab);
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
                         "tokenizer.ggml.model is '%s'; gpt2, gemma4, llama, bert, t5, rwkv and none are known",
                         vocab->model);
    frit_status status = read_with_text(vocab, kind, meta, expected, arena, log);
    if (status != FRIT_OK) frit_vocab_deinit(vocab);
    return status;
}
