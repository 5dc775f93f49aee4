// SPDX-License-Identifier: MIT
// Conversion: the contents of the files, and writing them.
#include "convert/convert.h"

#include "base/number.h"
#include "base/option.h"
#include "base/sha256.h"
#include "format/adapter.h"
#include "text/vocab/vocab_file.h"
#include "text/vocab/vocab_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct conversion {
    const char *source, *target;
    const frit_convert_options *options;
    const frit_convert_choice *choice;   // NULL: none
    frit_log log;
    frit_convert_types types;
    frit_importance importance;
    frit_type_mix one_type;   // the mix of one type, for options that change a type
    uint64_t max_bytes;
    frit_checkpoint *ckpt;
    bool is_gguf;
    frit_arena arena;
    frit_vocab vocab;
    bool has_vocab;
    const frit_arch *arch;   // NULL: rows keep their order
    frit_hparams hp;
    frit_meta meta;             // of the target
    frit_origin *origins;       // of its tensors; NULL: not stored
    frit_checkpoint *earlier;   // earlier file that tensors are copied from
    frit_pool *pool;
    uint64_t n_bytes, n_done;   // of the tensors
    size_t first;               // first tensor of the current file
} conversion;

// ------------------------------------------------------------------------------------- options

// clang-format off
#define ROW(field, ...) FRIT_OPTION(frit_convert_options, field, __VA_ARGS__)
static const frit_option rows[] = {
    ROW(type, .name = "type", .type = FRIT_OPTION_TEXT, .metavar = "TYPE",
        .help = "type of the matrices (f32, f16, bf16, q8_0, q6_k, ...) or a mix (q4_k_m, ...); by default unchanged"),
    ROW(split_max_size, .name = "split-max-size", .type = FRIT_OPTION_TEXT, .metavar = "SIZE",
        .help = "start another file when one would exceed SIZE bytes (500M, 4G)"),
    ROW(base, .name = "base", .type = FRIT_OPTION_TEXT, .metavar = "MODEL",
        .help = "the model of a PEFT adapter: a folder or GGUF file"),
    ROW(n_threads, .name = "threads", .letter = 't', .type = FRIT_OPTION_INT, .min = 0, .max = 1024, .metavar = "N",
        .help = "threads; 0: one for each core that this process may use"),
};
// clang-format on

#undef ROW
#define ROW(field, ...) FRIT_OPTION(frit_quantize_options, field, __VA_ARGS__)
// clang-format off
static const frit_option quantize_rows[] = {
    ROW(mix, .name = "mix", .type = FRIT_OPTION_TEXT, .metavar = "MIX",
        .help = "q4_k_m, q5_k_m, q6_k, q8_0, q3_k_m, q2_k, iq4_xs, iq3_m, iq2_xs, ...; f16, bf16, f32; by default q4_k_m"),
    ROW(importance, .name = "importance", .type = FRIT_OPTION_TEXT, .metavar = "FILE",
        .help = "which columns matter: a file of frit imatrix or llama-imatrix", .aliases = "imatrix"),
    ROW(keep, .name = "keep", .type = FRIT_OPTION_LIST, .metavar = "REGEX=TYPE",
        .help = "type of the matrices whose names match; may be repeated, the first match counts",
        .aliases = "tensor-type"),
    ROW(output_type, .name = "output-type", .type = FRIT_OPTION_TEXT, .metavar = "TYPE",
        .help = "type of the output matrix", .aliases = "output-tensor-type"),
    ROW(embedding_type, .name = "embedding-type", .type = FRIT_OPTION_TEXT, .metavar = "TYPE",
        .help = "type of the token table", .aliases = "token-embedding-type"),
    ROW(pure, .name = "pure", .type = FRIT_OPTION_FLAG, .help = "the mix's main type for all matrices"),
};
#undef ROW
// clang-format on

const frit_option *frit_quantize_option_rows(size_t *n_rows)
{
    FRIT_REQUIRE_OR(NULL, n_rows);
    *n_rows = FRIT_COUNT(quantize_rows);
    return quantize_rows;
}

const frit_option *frit_convert_option_rows(size_t *n_rows)
{
    FRIT_REQUIRE_OR(NULL, n_rows);
    *n_rows = FRIT_COUNT(rows);
    return rows;
}

// Reads a size: "500M" -> 500000000, as in names of files; "4096" are bytes.
static frit_status read_size(const char *text, uint64_t *out)
{
    *out = UINT64_MAX;
    if (!text) return FRIT_OK;
    if (frit_parse_size(text, out)) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "split-max-size is '%.40s', expected a number of bytes like 500M or 4G", text);
}

static frit_status read_type(const char *option, const char *name, frit_dtype *type)
{
    *type = FRIT_DTYPE_COUNT;
    if (!name || (frit_dtype_from_name(name, type) && frit_file_type_id(*type) >= 0)) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "%s is '%.40s', expected a type like q6_k or f16", option, name);
}

static void report_plan(void *ctx, const frit_tensor *tensor, frit_dtype from, bool needs_importance,
                        bool has_importance)
{
    const frit_quantize_options *o = ((const conversion *)ctx)->options->quantize;
    frit_planned_tensor planned = {.name = tensor->name,
                                   .from = frit_dtype_get(from)->name,
                                   .to = frit_dtype_get(tensor->dtype)->name,
                                   .n_dims = tensor->n_dims,
                                   .n_bytes = tensor->n_bytes,
                                   .needs_importance = needs_importance,
                                   .has_importance = has_importance};
    memcpy(planned.shape, tensor->shape, sizeof planned.shape);
    o->plan(o->plan_ctx, &planned);
}

static frit_status read_quantize_options(conversion *c, const frit_quantize_options *o)
{
    FRIT_REQUIRE_UNUSED(o);
    if (o->mix && c->options->type)
        return frit_fail(FRIT_E_INVALID, "type is '%.40s' and mix is '%.40s', expected one of them", c->options->type,
                         o->mix);
    frit_mix_options *mix = &c->types.mix;
    if (o->mix) mix->mix = frit_mix_find(o->mix);
    if (o->mix && !mix->mix) return frit_mix_fail_unknown("mix", o->mix);
    FRIT_TRY(read_type("output-type", o->output_type, &mix->output));
    FRIT_TRY(read_type("embedding-type", o->embedding_type, &mix->table));
    const bool changes_some = o->pure || o->keep.n > 0 || o->output_type || o->embedding_type;
    if (changes_some && c->types.wanted != FRIT_DTYPE_COUNT) {
        c->one_type = (frit_type_mix){frit_dtype_get(c->types.wanted)->name, FRIT_MIX_COUNT, c->types.wanted,
                                      frit_file_type_id(c->types.wanted)};
        c->types.wanted = FRIT_DTYPE_COUNT;
        mix->mix = &c->one_type;
    }
    if (!mix->mix && changes_some)
        return frit_fail(FRIT_E_INVALID,
                         "pure, keep, output-type and embedding-type change a mix or a type, expected one");
    mix->is_pure = o->pure;
    mix->keep = &o->keep;
    if (o->plan) c->types.planned = report_plan;
    c->types.planned_ctx = c;
    if (!o->importance) return FRIT_OK;
    FRIT_TRY(frit_importance_open(&c->importance, o->importance));
    c->types.importance = &c->importance;
    return FRIT_OK;
}

static frit_status read_options(conversion *c)
{
    FRIT_TRY(frit_convert_find_types(c->options->type, &c->types));
    if (c->options->quantize) FRIT_TRY(read_quantize_options(c, c->options->quantize));
    if (c->choice) {
        c->types.mix.mix = &frit_mix_chosen;
        c->types.mix.chosen = c->choice->types;
        c->types.importance = c->choice->importance;
    }
    FRIT_TRY(read_size(c->options->split_max_size, &c->max_bytes));
    if (c->types.planned || (c->choice && c->choice->n_bytes)) return FRIT_OK;
    const size_t n = strlen(c->target);
    if (n <= 5 || strcmp(c->target + n - 5, ".gguf") != 0)
        return frit_fail_file(FRIT_E_INVALID, "%s: the name of the file to write should end in .gguf", c->target);
    return FRIT_OK;
}

static frit_status say_progress(const conversion *c, double done)
{
    const frit_convert_options *o = c->options;
    if (!o->progress || o->progress(o->progress_ctx, done)) return FRIT_OK;
    return frit_fail_file(FRIT_E_CANCELLED, "%s: conversion was cancelled", c->source);
}

// ------------------------------------------------------------------------------------- metadata

// Adds keys from the folder's tokenizer files.
static frit_status add_vocab(conversion *c)
{
    const char *kind = frit_vocab_file_kind(c->source);
    if (!kind) {
        frit_log_say(&c->log, FRIT_LOG_WARNING,
                     "%s: has no tokenizer.json or other file of a tokenizer, so the result has no vocabulary",
                     c->source);
        return frit_meta_add_text(&c->meta, "tokenizer.ggml.model", "none");
    }
    FRIT_TRY(frit_vocab_open(&c->vocab, c->source, c->hp.n_vocab, &c->arena, &c->log));
    c->has_vocab = true;
    bool is_exact;
    frit_status status = frit_vocab_write(&c->vocab, &c->meta, &is_exact);
    const bool has_json = strcmp(kind, frit_vocab_json.name) == 0 && strcmp(c->vocab.model, "tekken") != 0;
    if (status == FRIT_E_UNSUPPORTED && has_json) {
        is_exact = false;
        status = frit_meta_add_text(&c->meta, "tokenizer.ggml.model", "none");
    }
    FRIT_TRY(status);
    FRIT_TRY(frit_chat_sources_write(&c->vocab.chats, &c->meta));
    if (is_exact) return FRIT_OK;
    frit_log_say(&c->log, FRIT_LOG_WARNING, "%s: no GGUF tokenizer splits text exactly like this model's%s", c->source,
                 has_json ? "; tokenizer.json is stored in the file too, which other engines may ignore" : "");
    return has_json ? frit_meta_add_text(&c->meta, FRIT_KEY_TOKENIZER_JSON, c->vocab.text) : FRIT_OK;
}

static bool is_label(frit_str key)
{
    static const char *const labels[] = {"quantize.method", "quantize.target_bytes", "quantize.calibration.",
                                         "quantize.kl.",    "quantize.refine.",      FRIT_ORIGINS_KEY};
    for (size_t i = 0; i < FRIT_COUNT(labels); i++) {
        const size_t n = strlen(labels[i]);
        if (key.len >= n && memcmp(key.ptr, labels[i], n) == 0) return true;
    }
    return false;
}

static bool is_replaced(const conversion *c, frit_str key)
{
    if (frit_str_is(key, "general.file_type") || frit_str_is(key, "general.quantization_version"))
        return !c->is_gguf || frit_convert_changes(&c->types);
    if (c->types.importance && strncmp(key.ptr, "quantize.imatrix.", key.len < 17 ? key.len : 17) == 0) return true;
    if (frit_convert_changes(&c->types) && is_label(key)) return true;   // labels describe how the source was made
    if (frit_str_is(key, "frit.product_inputs")) return true;   // of fp8 folders, whose weights get another type
    return !c->is_gguf && frit_str_is(key, "tokenizer.ggml.model");
}

// Adds llama.cpp's keys. The file's name is written without its folders, which are private.
static frit_status add_importance(conversion *c)
{
    const char *file = c->options->quantize ? c->options->quantize->importance : NULL;
    const frit_value n = {.type = FRIT_VALUE_U32, .u = c->types.importance->n},
                     chunks = {.type = FRIT_VALUE_U32, .u = (uint64_t)c->types.importance->n_chunks};
    if (!file) return FRIT_OK;   // importance was measured in this run
    FRIT_TRY(frit_meta_add_text(&c->meta, "quantize.imatrix.file", frit_importance_file_name(file)));
    if (c->types.importance->dataset)
        FRIT_TRY(frit_meta_add_text(&c->meta, "quantize.imatrix.dataset", c->types.importance->dataset));
    FRIT_TRY(frit_meta_add(&c->meta, frit_str_of("quantize.imatrix.entries_count"), n));
    return frit_meta_add(&c->meta, frit_str_of("quantize.imatrix.chunks_count"), chunks);
}

// Hashes names, sums and counts, which are equal for both formats of a file.
static void hash_importance(const frit_importance *importance, uint8_t hash[FRIT_SHA256_BYTES])
{
    frit_sha256 sum;
    frit_sha256_init(&sum);
    for (size_t i = 0; i < importance->n; i++) {
        const frit_importance_entry *entry = &importance->entries[i];
        frit_sha256_add(&sum, entry->name, strlen(entry->name) + 1);
        frit_sha256_add(&sum, entry->sums, entry->n_values * sizeof *entry->sums);
        frit_sha256_add(&sum, entry->counts, entry->n_counts * sizeof *entry->counts);
    }
    frit_sha256_end(&sum, hash);
}

// Adds labels about a mix. Files of a chosen size have labels of their own.
static frit_status add_method(conversion *c)
{
    const frit_type_mix *mix = c->types.mix.mix;
    const frit_importance *importance = c->types.importance;
    char method[64], hash[2 * FRIT_SHA256_BYTES + 1];
    uint8_t bytes[FRIT_SHA256_BYTES];
    if (c->choice || !mix || !frit_convert_changes(&c->types)) return FRIT_OK;
    frit_format(method, sizeof method, "mix %s%s", mix->name, c->types.mix.is_pure ? ", pure" : "");
    FRIT_TRY(frit_meta_add_text(&c->meta, "quantize.method", method));
    if (!importance) return FRIT_OK;
    hash_importance(importance, bytes);
    for (size_t i = 0; i < sizeof bytes; i++) frit_format(hash + 2 * i, 3, "%02x", bytes[i]);
    FRIT_TRY(frit_meta_add_text(&c->meta, "quantize.calibration.name", "importance"));
    return frit_meta_add_text(&c->meta, "quantize.calibration.sha256", hash);
}

static frit_status add_meta(conversion *c)
{
    const frit_meta *from = &c->ckpt->meta;
    for (size_t i = 0; i < from->n; i++)
        if (!is_replaced(c, from->pairs[i].key))
            FRIT_TRY(frit_meta_add(&c->meta, from->pairs[i].key, from->pairs[i].value));
    if (!c->is_gguf || frit_convert_changes(&c->types)) {
        const frit_type_mix *mix = c->types.mix.mix;
        const int id = mix ? mix->file_type : frit_file_type_id(frit_convert_main_type(c->ckpt));
        const frit_value version = {.type = FRIT_VALUE_U32, .u = 2}, type = {.type = FRIT_VALUE_U32, .u = (uint64_t)id};
        FRIT_TRY(frit_meta_add(&c->meta, frit_str_of("general.quantization_version"), version));
        if (id >= 0) FRIT_TRY(frit_meta_add(&c->meta, frit_str_of("general.file_type"), type));
    }
    if (c->types.importance) FRIT_TRY(add_importance(c));
    FRIT_TRY(add_method(c));
    for (size_t i = 0; c->choice && c->choice->labels && i < c->choice->labels->n; i++)
        FRIT_TRY(frit_meta_add(&c->meta, c->choice->labels->pairs[i].key, c->choice->labels->pairs[i].value));
    if (c->origins) FRIT_TRY(frit_origins_add(&c->meta, c->origins, c->ckpt->n_tensors));
    return c->is_gguf ? FRIT_OK : add_vocab(c);
}

// ------------------------------------------------------------------------------------- tensors

static frit_status report_bytes(void *ctx, uint64_t n_bytes)
{
    conversion *c = ctx;
    c->n_done += n_bytes;
    return say_progress(c, c->n_bytes > 0 ? (double)c->n_done / (double)c->n_bytes : 1);
}

// Writes a tensor, and drops the source's pages afterwards.
static frit_status write_tensor(void *ctx, size_t i, frit_file_writer *writer)
{
    conversion *c = ctx;
    FRIT_TRY(frit_convert_write(&c->ckpt->tensors[c->first + i], c->pool, writer, report_bytes, c));
    if (!frit_checkpoint_is_intact(c->ckpt))
        return frit_fail_file(FRIT_E_IO, "%s: a file shrank while it was read", c->source);
    for (size_t k = 0; k < c->ckpt->n_files; k++) frit_file_drop_pages(c->ckpt->files[k]);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- files

// Returns the number of tensors in the file that begins with tensor `first`: at least one, and no more than fit.
static size_t count_tensors(const conversion *c, size_t first)
{
    uint64_t n_bytes = 0;
    size_t n = 0;
    for (; first + n < c->ckpt->n_tensors; n++) {
        n_bytes += c->ckpt->tensors[first + n].n_bytes;
        if (n > 0 && n_bytes > c->max_bytes) break;
    }
    return n;
}

static frit_status add_split(frit_meta *meta, int no, int count, size_t n_tensors)
{
    const frit_value number = {.type = FRIT_VALUE_U16, .u = (uint64_t)no},
                     of = {.type = FRIT_VALUE_U16, .u = (uint64_t)count},
                     all = {.type = FRIT_VALUE_I32, .i = (int64_t)n_tensors};
    FRIT_TRY(frit_meta_add(meta, frit_str_of("split.no"), number));
    FRIT_TRY(frit_meta_add(meta, frit_str_of("split.count"), of));
    return frit_meta_add(meta, frit_str_of("split.tensors.count"), all);
}

// Hashes the inputs that determine the tensors' bytes, except types and keys: samples of the model's files, and
// importance.
static void hash_origin(const conversion *c, uint8_t hash[FRIT_SHA256_BYTES])
{
    const uint64_t version = 2;
    const frit_importance *importance = c->types.importance;
    frit_sha256 sum;
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, &version, sizeof version);
    frit_checkpoint_hash(c->ckpt, &sum);
    for (size_t i = 0; importance && i < importance->n; i++) {
        const frit_importance_entry *entry = &importance->entries[i];
        frit_sha256_add(&sum, entry->name, strlen(entry->name) + 1);
        frit_sha256_add(&sum, entry->sums, entry->n_values * sizeof *entry->sums);
        frit_sha256_add(&sum, entry->counts, entry->n_counts * sizeof *entry->counts);
    }
    frit_sha256_end(&sum, hash);
}

static void count_kept(void *ctx, size_t n_tensors)
{
    conversion *c = ctx;
    for (size_t i = 0; i < n_tensors; i++) c->n_done += c->ckpt->tensors[i].n_bytes;
    frit_log_say(&c->log, FRIT_LOG_INFO, "%s: continues after %zu of %zu tensors, which an earlier run has written",
                 c->target, n_tensors, c->ckpt->n_tensors);
}

// Writes a file so that a cancelled run can continue, because quantization takes long.
static frit_status write_in_runs(conversion *c, const frit_gguf_contents *contents, const char *path)
{
    uint8_t origin[FRIT_SHA256_BYTES];
    hash_origin(c, origin);
    const frit_status status = frit_gguf_write_in_runs(contents, path, origin, count_kept);
    if (status == FRIT_E_CANCELLED) frit_log_say(&c->log, FRIT_LOG_INFO, "the next run continues from %s.part", path);
    return status;
}

static frit_status write_part(conversion *c, int no, int count, size_t n, const char *path)
{
    const bool in_runs = count == 1 && c->options->quantize && c->types.mix.mix;
    frit_meta own;
    frit_meta_init(&own, &c->arena);
    frit_meta *meta = no == 0 ? &c->meta : &own;
    frit_status status = count > 1 ? add_split(meta, no, count, c->ckpt->n_tensors) : FRIT_OK;
    const frit_gguf_contents contents = {meta, c->ckpt->tensors + c->first, n, write_tensor, c};
    if (status == FRIT_OK)
        status = in_runs ? write_in_runs(c, &contents, path) : frit_gguf_write_contents(&contents, path);
    frit_meta_deinit(&own);
    return status;
}

static void say_written(conversion *c, int count)
{
    const char *first = count > 1 ? frit_gguf_shard_path(&c->arena, c->target, 0, count) : c->target;
    if (count > 1 && first)
        frit_log_say(&c->log, FRIT_LOG_INFO, "%s is written, the first of %d files", first, count);
    else if (first)
        frit_log_say(&c->log, FRIT_LOG_INFO, "%s is written", first);
}

// Fails if the target is a file that is read. Parts of a split target have names of their own.
static frit_status check_target(const conversion *c, const char *path)
{
    const frit_quantize_options *o = c->options->quantize;
    const char *what = frit_checkpoint_reads(c->ckpt, path)                           ? "the source file"
                       : c->earlier && frit_checkpoint_reads(c->earlier, path)        ? "the file to reuse"
                       : o && o->importance && frit_path_is_same(o->importance, path) ? "the importance file"
                                                                                      : NULL;
    if (!what) return FRIT_OK;
    return frit_fail_file(FRIT_E_INVALID, "%s: the target is %s, expected another name", path, what);
}

static frit_status check_parts(conversion *c, int count)
{
    for (int i = 0; i < count && count > 1; i++) {
        const char *path = frit_gguf_shard_path(&c->arena, c->target, i, count);
        FRIT_TRY(path ? check_target(c, path) : frit_fail_memory(strlen(c->target), "a path"));
    }
    return FRIT_OK;
}

static frit_status write_parts(conversion *c)
{
    int count = 0, no = 0;
    for (size_t first = 0; first < c->ckpt->n_tensors || count == 0; count++) first += count_tensors(c, first);
    if (count > 65535) return frit_fail(FRIT_E_LIMIT, "split-max-size: needs %d files, expected at most 65535", count);
    frit_status status = check_parts(c, count);
    for (; no < count && status == FRIT_OK; no++) {
        const size_t n = count_tensors(c, c->first);
        const char *path = count > 1 ? frit_gguf_shard_path(&c->arena, c->target, no, count) : c->target;
        status = path ? write_part(c, no, count, n, path) : frit_fail_memory(strlen(c->target), "a path");
        c->first += n;
    }
    if (status == FRIT_OK) say_written(c, count);
    if (status == FRIT_OK || count == 1) return status;
    // Removes the parts of an incomplete set. A part that fails leaves no file.
    for (int i = 0; i + 1 < no; i++) {
        const char *path = frit_gguf_shard_path(&c->arena, c->target, i, count);
        if (path) remove(path);
    }
    return status;
}

static bool is_measured(const conversion *c)
{
    return c->choice && c->choice->n_bytes;
}

static const char *file_to_reuse(const conversion *c)
{
    return c->choice ? c->choice->reuse : c->options->quantize ? c->options->quantize->reuse : NULL;
}

// True if hashes are stored. Encoding without importance is quick and reads the source once, so hashes would not save
// time.
static bool has_origins(const conversion *c)
{
    const bool is_mix = c->types.mix.mix && frit_convert_changes(&c->types);
    return c->choice || file_to_reuse(c) || (is_mix && c->types.importance);
}

// If only the size is measured, the hashes stay zero.
static frit_status find_origins(conversion *c)
{
    const size_t n = c->ckpt->n_tensors;
    c->origins = frit_arena_new(&c->arena, frit_origin, n + 1);
    if (!c->origins) return frit_fail_memory(n * sizeof *c->origins, "what tensors are made from");
    memset(c->origins, 0, n * sizeof *c->origins);
    return is_measured(c) ? FRIT_OK : frit_origins_find(c->ckpt, c->pool, c->origins);
}

static frit_status copy_earlier(conversion *c)
{
    size_t n_taken, n_quantized;
    const char *path = file_to_reuse(c);
    if (!path || is_measured(c)) return FRIT_OK;
    FRIT_TRY(frit_reuse_open(&c->earlier, path));
    FRIT_TRY(check_target(c, c->target));
    FRIT_TRY(frit_reuse_take(c->ckpt, c->origins, c->earlier, c->pool, &n_taken, &n_quantized));
    frit_log_say(&c->log, FRIT_LOG_INFO, "%zu of %zu quantized tensors are taken from %s", n_taken, n_quantized, path);
    return FRIT_OK;
}

static frit_status convert_adapter(conversion *c)
{
    if (c->types.mix.mix || c->types.planned || c->types.importance)
        return frit_fail_file(FRIT_E_INVALID, "%s: mixes are for models, expected one type for an adapter", c->source);
    return frit_convert_adapter(c->source, c->target, c->options->base, c->types.wanted, &c->log);
}

static frit_status convert_checkpoint(conversion *c)
{
    FRIT_TRY(read_options(c));
    if (frit_adapter_is_peft(c->source) && frit_adapter_has_config(c->source)) return convert_adapter(c);
    if (c->options->base)
        return frit_fail_file(FRIT_E_INVALID, "%s: base is given, expected only for an adapter's folder", c->source);
    FRIT_TRY(frit_checkpoint_open(&c->ckpt, c->source, &(frit_checkpoint_options){.log = &c->log}));
    c->is_gguf = strncmp(c->ckpt->format, "GGUF", 4) == 0;
    if (c->target) FRIT_TRY(check_target(c, c->target));
    if (!c->is_gguf) {
        FRIT_TRY(frit_arch_of(&c->arch, c->ckpt));
        FRIT_TRY(frit_hparams_read(&c->hp, c->arch, c->ckpt, &c->arena));
        frit_weights weights;   // bound as a check
        FRIT_TRY(frit_weights_bind(&weights, c->arch, &c->hp, c->ckpt, &c->arena));
    }
    FRIT_TRY(frit_pool_new(&c->pool, c->options->n_threads));
    FRIT_TRY(frit_convert_checkpoint(c->ckpt, c->arch, &c->hp, &c->types, &c->log));
    if (c->types.planned) return FRIT_OK;
    for (size_t i = 0; i < c->ckpt->n_tensors; i++) c->n_bytes += c->ckpt->tensors[i].n_bytes;
    if (has_origins(c)) FRIT_TRY(find_origins(c));
    FRIT_TRY(copy_earlier(c));
    FRIT_TRY(add_meta(c));
    const frit_gguf_contents contents = {
        .meta = &c->meta, .tensors = c->ckpt->tensors, .n_tensors = c->ckpt->n_tensors};
    return is_measured(c) ? frit_gguf_measure(&contents, c->source, c->choice->n_bytes) : write_parts(c);
}

frit_status frit_convert(const char *source, const char *target, const frit_convert_options *options)
{
    FRIT_REQUIRE(source);
    if (!options || !options->quantize || !options->quantize->plan) FRIT_REQUIRE(target);
    FRIT_REQUIRE_UNUSED(options);
    return frit_convert_chosen(source, target, options, NULL);
}

frit_status frit_convert_chosen(const char *source, const char *target, const frit_convert_options *options,
                                const frit_convert_choice *choice)
{
    static const frit_convert_options defaults;
    conversion c = {.source = source, .target = target, .options = options ? options : &defaults, .choice = choice};
    c.log = (frit_log){c.options->log, c.options->log_ctx};
    frit_meta_init(&c.meta, &c.arena);
    frit_status status = convert_checkpoint(&c);
    if (c.ckpt) status = frit_fail_in(source, status);
    if (c.has_vocab) frit_vocab_deinit(&c.vocab);
    frit_importance_deinit(&c.importance);
    frit_meta_deinit(&c.meta);
    frit_pool_free(c.pool);
    frit_checkpoint_close(c.ckpt);
    frit_checkpoint_close(c.earlier);
    frit_arena_free(&c.arena);
    return status;
}
