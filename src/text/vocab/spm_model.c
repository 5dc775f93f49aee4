// SPDX-License-Identifier: MIT
// SentencePiece .model files: a protocol buffer.
//
//     1  piece, repeated    1 text   2 score (float)   3 kind, numbered as in GGUF
//     2  trainer            3 kind of model   24 space after words   35 byte fallback   40-43 ids   44 unknown's text
//     3  normalizer         2 charsmap   3 space before the text   4 trims spaces   5 escapes spaces
//
// A field is a varint (number << 3 | wire type) and a value; unknown fields are skipped.
#include "text/vocab/vocab_file.h"

#include <math.h>
#include <stdlib.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

typedef struct field {
    uint32_t number;
    unsigned wire;
    uint64_t value;   // of a varint or fixed number
    frit_str bytes;
} field;

static bool read_varint(frit_str *in, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && in->len > 0; shift += 7) {
        unsigned char byte = (unsigned char)*in->ptr++;
        in->len--;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

static bool read_fixed(frit_str *in, size_t n, uint64_t *out)
{
    if (in->len < n) return false;
    *out = 0;
    for (size_t i = 0; i < n; i++) *out |= (uint64_t)(unsigned char)in->ptr[i] << 8 * i;
    in->ptr += n;
    in->len -= n;
    return true;
}

static bool read_field(frit_str *in, field *out)
{
    uint64_t tag, n;
    if (!read_varint(in, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX) return false;
    *out = (field){.number = (uint32_t)(tag >> 3), .wire = (unsigned)tag & 7};
    switch (out->wire) {
    case WIRE_VARINT:
        return read_varint(in, &out->value);
    case WIRE_64:
        return read_fixed(in, 8, &out->value);
    case WIRE_32:
        return read_fixed(in, 4, &out->value);
    case WIRE_BYTES:
        if (!read_varint(in, &n) || n > in->len) return false;
        out->bytes = (frit_str){in->ptr, (size_t)n};
        in->ptr += n;
        in->len -= (size_t)n;
        return true;
    default:
        return false;
    }
}

// ------------------------------------------------------------------------------------- messages

enum { MODEL_UNIGRAM = 1, MODEL_BPE = 2 };

typedef struct reading {
    frit_vocab *vocab;
    const char *path;
    frit_arena *arena;
    const frit_log *log;
    frit_vocab_list list;
    uint64_t model;
    int32_t unk, bos, eos, pad;
    bool space_behind, byte_fallback, prefix, trim, escape;
    frit_str charsmap, unknown;
} reading;

static frit_status fail_cut(const reading *r, const char *what)
{
    return frit_fail_file(FRIT_E_FORMAT, "%s: not a SentencePiece model, or damaged: %s", r->path, what);
}

static frit_status read_piece(reading *r, frit_str in)
{
    frit_str piece = {"", 0};
    uint64_t kind = FRIT_TOKEN_NORMAL;
    float score = 0;
    field f;
    while (in.len > 0) {
        if (!read_field(&in, &f)) return fail_cut(r, "a piece ends too early");
        uint32_t bits = (uint32_t)f.value;
        if (f.number == 1 && f.wire == WIRE_BYTES) piece = f.bytes;
        if (f.number == 2 && f.wire == WIRE_32) memcpy(&score, &bits, sizeof score);
        if (f.number == 3 && f.wire == WIRE_VARINT) kind = f.value;
    }
    if (kind < FRIT_TOKEN_NORMAL || kind > FRIT_TOKEN_BYTE)
        return frit_fail_file(FRIT_E_FORMAT, "%s: token %zu has type %llu, 1 to 6 are known", r->path, r->list.n,
                              (unsigned long long)kind);
    if (isnan(score))
        return frit_fail_file(FRIT_E_FORMAT, "%s: the score of token %zu is not a number", r->path, r->list.n);
    if (piece.len == 0) return frit_fail_file(FRIT_E_FORMAT, "%s: token %zu is empty", r->path, r->list.n);
    return frit_vocab_list_add(&r->list, piece, (double)r->list.n, score, (frit_token_kind)kind);
}

static frit_status read_trainer(reading *r, frit_str in)
{
    field f;
    while (in.len > 0) {
        if (!read_field(&in, &f)) return fail_cut(r, "the trainer's settings end too early");
        if (f.number == 44 && f.wire == WIRE_BYTES) r->unknown = f.bytes;
        if (f.wire != WIRE_VARINT) continue;
        if (f.number == 3) r->model = f.value;
        if (f.number == 24) r->space_behind = f.value;
        if (f.number == 35) r->byte_fallback = f.value;
        if (f.number == 40) r->unk = (int32_t)f.value;
        if (f.number == 41) r->bos = (int32_t)f.value;
        if (f.number == 42) r->eos = (int32_t)f.value;
        if (f.number == 43) r->pad = (int32_t)f.value;
    }
    return FRIT_OK;
}

static frit_status read_normalizer(reading *r, frit_str in)
{
    field f;
    while (in.len > 0) {
        if (!read_field(&in, &f)) return fail_cut(r, "the normalizer's settings end too early");
        if (f.number == 2 && f.wire == WIRE_BYTES) r->charsmap = f.bytes;
        if (f.wire != WIRE_VARINT) continue;
        if (f.number == 3) r->prefix = f.value;
        if (f.number == 4) r->trim = f.value;
        if (f.number == 5) r->escape = f.value;
    }
    return FRIT_OK;
}

static frit_status read_messages(reading *r, frit_str in)
{
    field f;
    while (in.len > 0) {
        if (!read_field(&in, &f)) return fail_cut(r, "it ends too early");
        if (f.wire != WIRE_BYTES) continue;
        if (f.number == 1) FRIT_TRY(read_piece(r, f.bytes));
        if (f.number == 2) FRIT_TRY(read_trainer(r, f.bytes));
        if (f.number == 3) FRIT_TRY(read_normalizer(r, f.bytes));
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- building

static frit_status list_symbols(frit_vocab *vocab, frit_arena *arena)
{
    frit_trie_item *items = calloc((size_t)vocab->n, sizeof *items);
    if (!items) return frit_fail_memory((size_t)vocab->n * sizeof *items, "the user-defined symbols");
    size_t n = 0;
    for (frit_token id = 0; id < vocab->n; id++)
        if (vocab->entries[id].kind == FRIT_TOKEN_USER) items[n++] = (frit_trie_item){vocab->entries[id].piece, id};
    frit_status status = FRIT_OK;
    if (n > 0) {
        vocab->symbols = frit_arena_new(arena, frit_trie, 1);
        status = vocab->symbols ? frit_trie_init(vocab->symbols, items, n, arena)
                                : frit_fail_memory(sizeof *vocab->symbols, "the user-defined symbols");
    }
    free(items);
    return status;
}

static frit_status use_id(const reading *r, const char *name, int32_t value, frit_token *id)
{
    if (value >= r->vocab->n)
        return frit_fail_file(FRIT_E_FORMAT, "%s: %s is %d, but there are %d tokens", r->path, name, (int)value,
                              (int)r->vocab->n);
    *id = value < 0 ? -1 : value;
    return FRIT_OK;
}

static frit_status build_pipeline(const reading *r)
{
    frit_vocab *vocab = r->vocab;
    frit_pipeline *pipeline = &vocab->pipeline;
    frit_normalizer *norm = pipeline->norms = frit_arena_new(r->arena, frit_normalizer, 1);
    if (!norm) return frit_fail_memory(sizeof *norm, "the normalizer");
    pipeline->n_norms = 1;
    *norm = (frit_normalizer){
        .apply = frit_normalizer_spm,
        .flags = (r->prefix && !r->space_behind ? FRIT_SPM_PREFIX : 0u) | (r->trim ? FRIT_SPM_TRIM : 0u) |
                 (r->escape ? FRIT_SPM_ESCAPE : 0u) | (r->prefix && r->space_behind ? FRIT_SPM_SUFFIX : 0u),
        .symbols = vocab->symbols,
    };
    FRIT_TRY(frit_charsmap_init(&norm->charsmap, r->charsmap));
    frit_decoding *rules = &pipeline->decoding;
    rules->escaped = true;
    rules->strip_start = r->trim ? INT32_MAX : r->prefix ? 1 : 0;
    rules->strip_again = true;
    rules->unknown = r->unknown;
    return FRIT_OK;
}

static frit_status build(reading *r)
{
    frit_vocab *vocab = r->vocab;
    if (r->model != MODEL_UNIGRAM && r->model != MODEL_BPE)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: models of type %llu are not known, only Unigram (1) and BPE (2)",
                              r->path, (unsigned long long)r->model);
    FRIT_TRY(frit_vocab_list_finish(&r->list, r->path, vocab, r->arena));
    FRIT_TRY(frit_vocab_index(vocab, r->log));
    vocab->model = r->model == MODEL_BPE ? "spm" : "unigram";
    vocab->by_score = vocab->fuse_unknown = vocab->single_precision = true;
    vocab->byte_fallback = r->byte_fallback;
    FRIT_TRY(use_id(r, "unk_id", r->unk, &vocab->unk));
    FRIT_TRY(use_id(r, "bos_id", r->bos, &vocab->bos));
    FRIT_TRY(use_id(r, "eos_id", r->eos, &vocab->eos));
    FRIT_TRY(use_id(r, "pad_id", r->pad, &vocab->pad));
    // The file does not have these flags. Models that have a BOS begin with it; the others (T5) end with an EOS.
    vocab->add_bos = vocab->bos >= 0;
    vocab->add_eos = vocab->bos < 0 && vocab->eos >= 0;
    FRIT_TRY(list_symbols(vocab, r->arena));
    return build_pipeline(r);
}

// True for files whose first field is a piece that begins with its text.
static bool recognises(frit_str start)
{
    field f, inner;
    frit_str in = start;
    if (start.len < 8 || start.ptr[0] != 0x0a || !read_field(&in, &f)) return false;
    return read_field(&f.bytes, &inner) && inner.number == 1 && inner.wire == WIRE_BYTES;
}

static frit_status read(frit_vocab *vocab, frit_str text, const char *path, frit_arena *arena, const frit_log *log)
{
    // Defaults of the format.
    reading r = {.vocab = vocab,
                 .path = path,
                 .arena = arena,
                 .log = log,
                 .model = MODEL_UNIGRAM,
                 .unk = 0,
                 .bos = 1,
                 .eos = 2,
                 .pad = -1,
                 .prefix = true,
                 .trim = true,
                 .escape = true,
                 .unknown = frit_str_of(" \xe2\x81\x87 ")};
    frit_status status = read_messages(&r, text);
    if (status == FRIT_OK) status = build(&r);
    frit_vocab_list_free(&r.list);
    return status;
}

const frit_vocab_source frit_vocab_spm = {"SentencePiece model", recognises, read};
