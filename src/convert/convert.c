// SPDX-License-Identifier: MIT
// Conversion: what the files hold, and writing them.
#include "convert/convert.h"

#include "base/option.h"
#include "text/vocab_file.h"
#include "text/vocab_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct source_rows {
    const frit_tensor *tensor;
    frit_row_order order;
} source_rows;

typedef struct conversion {
    const char *source, *target;
    const frit_convert_options *options;
    frit_log log;
    frit_dtype wanted;   // FRIT_DTYPE_COUNT: as they are
    uint64_t max_bytes;
    frit_checkpoint *ckpt;
    bool is_gguf;
    frit_arena arena;
    frit_vocab vocab;
    bool has_vocab;
    const frit_arch *arch;   // NULL: rows stay where they are
    frit_hparams hp;
    frit_meta meta;         // of the target
    frit_tensor *tensors;   // likewise, without data: [n_tensors]
    source_rows *sources;   // likewise: what each is made of
    size_t n_tensors;
    frit_pool *pool;
    uint64_t n_bytes, n_done;   // of the source's tensors
    size_t first;               // tensor of the file that is being written
} conversion;

// ------------------------------------------------------------------------------------- options

// clang-format off
#define ROW(field, ...) FRIT_OPTION(frit_convert_options, field, __VA_ARGS__)
static const frit_option rows[] = {
    ROW(type, .name = "type", .type = FRIT_OPTION_TEXT, .metavar = "TYPE",
        .help = "type of the matrices: f32, f16, bf16, q8_0, q6_k, ...; by default the one that they have"),
    ROW(split_max_size, .name = "split-max-size", .type = FRIT_OPTION_TEXT, .metavar = "SIZE",
        .help = "start another file when one would exceed SIZE bytes (500M, 4G)"),
    ROW(n_threads, .name = "threads", .letter = 't', .type = FRIT_OPTION_INT, .min = 0, .max = 1024, .metavar = "N",
        .help = "threads; 0: one for each core that this process may use"),
};
// clang-format on

const frit_option *frit_convert_option_rows(size_t *n_rows)
{
    *n_rows = FRIT_COUNT(rows);
    return rows;
}

// "500M" -> 500000000, as in names of files; "4096" are bytes.
static frit_status read_size(const char *text, uint64_t *out)
{
    *out = UINT64_MAX;
    if (!text) return FRIT_OK;
    char *end;
    const double n = strtod(text, &end);
    const double unit = *end == 'K' ? 1e3 : *end == 'M' ? 1e6 : *end == 'G' ? 1e9 : 1;
    if (end == text || !(n > 0) || n * unit > 1e18 || (*end && (!strchr("KMG", *end) || end[1])))
        return frit_fail(FRIT_E_INVALID, "split-max-size is '%.40s', expected a number of bytes like 500M or 4G", text);
    *out = n * unit < 1 ? 1 : (uint64_t)(n * unit);
    return FRIT_OK;
}

static frit_status read_options(conversion *c)
{
    const char *type = c->options->type;
    c->wanted = FRIT_DTYPE_COUNT;
    if (type && (!frit_dtype_from_name(type, &c->wanted) || frit_file_type_id(c->wanted) < 0))
        return frit_fail(FRIT_E_INVALID,
                         "type is '%.40s', expected f32, f16, bf16, q8_0, q6_k or another of the types "
                         "that can be written",
                         type);
    FRIT_TRY(read_size(c->options->split_max_size, &c->max_bytes));
    const size_t n = strlen(c->target);
    if (n <= 5 || strcmp(c->target + n - 5, ".gguf") != 0)
        return frit_fail(FRIT_E_INVALID, "%s: the name of the file to write should end in .gguf", c->target);
    return FRIT_OK;
}

static frit_status say_progress(const conversion *c, double done)
{
    const frit_convert_options *o = c->options;
    if (!o->progress || o->progress(o->progress_ctx, done)) return FRIT_OK;
    return frit_fail(FRIT_E_CANCELLED, "%s: conversion was cancelled", c->source);
}

// ------------------------------------------------------------------------------------- metadata

// What a folder says in files of its own.
static frit_status add_vocab(conversion *c)
{
    const char *kind = frit_vocab_file_kind(c->source);
    if (!kind) return frit_meta_add_text(&c->meta, "tokenizer.ggml.model", "none");
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
    if (is_exact) return FRIT_OK;
    frit_log_say(&c->log, FRIT_LOG_WARNING, "%s: no tokenizer of GGUF cuts text exactly like this model's%s", c->source,
                 has_json ? "; tokenizer.json goes into the file too, which other engines may not read" : "");
    return has_json ? frit_meta_add_text(&c->meta, FRIT_KEY_TOKENIZER_JSON, c->vocab.text) : FRIT_OK;
}

static bool is_replaced(const conversion *c, frit_str key)
{
    if (frit_str_is(key, "general.file_type") || frit_str_is(key, "general.quantization_version"))
        return !c->is_gguf || c->wanted != FRIT_DTYPE_COUNT;
    return !c->is_gguf && (frit_str_is(key, "tokenizer.ggml.model") || frit_str_is(key, "frit.rope.style"));
}

static frit_dtype most_frequent(const conversion *c)
{
    uint64_t n_bytes[FRIT_DTYPE_COUNT] = {0};
    frit_dtype best = FRIT_DTYPE_F32;
    for (size_t i = 0; i < c->n_tensors; i++) n_bytes[c->tensors[i].dtype] += c->tensors[i].n_bytes;
    for (int type = 0; type < FRIT_DTYPE_COUNT; type++)
        if (n_bytes[type] > n_bytes[best]) best = (frit_dtype)type;
    return best;
}

static frit_status add_meta(conversion *c)
{
    const frit_meta *from = &c->ckpt->meta;
    for (size_t i = 0; i < from->n; i++)
        if (!is_replaced(c, from->pairs[i].key))
            FRIT_TRY(frit_meta_add(&c->meta, from->pairs[i].key, from->pairs[i].value));
    if (!c->is_gguf || c->wanted != FRIT_DTYPE_COUNT) {
        const int id = frit_file_type_id(most_frequent(c));
        const frit_value version = {.type = FRIT_VALUE_U32, .u = 2}, type = {.type = FRIT_VALUE_U32, .u = (uint64_t)id};
        FRIT_TRY(frit_meta_add(&c->meta, frit_str_of("general.quantization_version"), version));
        if (id >= 0) FRIT_TRY(frit_meta_add(&c->meta, frit_str_of("general.file_type"), type));
    }
    if (c->is_gguf) return FRIT_OK;
    FRIT_TRY(frit_convert_add_keys(&c->meta, &c->hp, c->arch));
    return add_vocab(c);
}

// ------------------------------------------------------------------------------------- tensors

// Convolutions along time have one row for each channel; folders say [channels, 1, kernel]. What a head of Mamba 2 has
// one number of, in layers with ssm_a and ssm_d, is a column.
static void reshape(const conversion *c, frit_tensor *tensor)
{
    const bool is_conv = strstr(tensor->name, "ssm_conv1d") || strstr(tensor->name, "shortconv.conv");
    const char *part = strstr(tensor->name, ".ssm_a");
    if (is_conv && tensor->n_dims == 3 && tensor->shape[1] == 1) {
        tensor->shape[1] = tensor->shape[2];
        tensor->shape[2] = 1;
        tensor->n_dims = 2;
    }
    if (!part) part = strstr(tensor->name, ".ssm_d");
    if (!part || part[6] || tensor->n_dims != 1) return;
    char name[64];
    const frit_tensor *both[2];
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%.*s.ssm_%c", (int)(part - tensor->name), tensor->name, "ad"[i]);
        both[i] = frit_checkpoint_find(c->ckpt, name);
    }
    if (both[0] && both[1] && both[0]->n_dims == 1) tensor->n_dims = 2;   // [heads, 1]
}

// A tensor of the target, made of the rows that `order` takes.
static void add_tensor(conversion *c, const char *name, const frit_tensor *from, frit_row_order order)
{
    frit_tensor *to = &c->tensors[c->n_tensors];
    *to = *from;
    to->name = name;
    to->dtype = frit_convert_type(from, c->wanted, c->is_gguf);
    to->data = NULL;
    if (!c->is_gguf) reshape(c, to);
    if (order.take > 0) to->shape[to->n_dims - (order.of_numbers ? 1 : 2)] = order.take;
    const int64_t n = frit_tensor_n_elems(to), width = to->shape[to->n_dims > 0 ? to->n_dims - 1 : 0];
    if (n > 0) to->n_bytes = frit_dtype_row_bytes(to->dtype, width) * (uint64_t)(n / width);
    c->sources[c->n_tensors++] = (source_rows){from, order};
    if (n > 0) c->n_bytes += frit_dtype_row_bytes(from->dtype, width) * (uint64_t)(n / width);
}

// "blk.0.ffn_gate_up_exps.weight" and ".bias" become two tensors each. False if it is another.
static frit_status add_halves(conversion *c, const frit_tensor *from, bool *is_fused)
{
    static const char *const names[] = {"gate_exps", "up_exps"};
    const char *at = strstr(from->name, "gate_up_exps.");
    const bool is_bias = at && strcmp(strchr(at, '.'), ".bias") == 0;
    const int64_t n = at ? from->shape[1] : 0;   // [n_expert, gate and up, in], a bias [n_expert, gate and up]
    *is_fused = at && from->n_dims == (is_bias ? 2 : 3) && n % 2 == 0;
    for (int i = 0; *is_fused && i < 2; i++) {
        char name[128];
        snprintf(name, sizeof name, "%.*s%s%s", (int)(at - from->name), from->name, names[i], strchr(at, '.'));
        const char *copy = frit_arena_text(&c->arena, name, strlen(name));
        if (!copy) return frit_fail_memory(strlen(name), "the name of a tensor");
        const frit_row_order order = {.of = n, .take = n / 2, .offset = i * (n / 2), .of_numbers = is_bias};
        add_tensor(c, copy, from, order);
    }
    return FRIT_OK;
}

static frit_status add_rope_factors(conversion *c)
{
    const float *factors;
    FRIT_TRY(frit_convert_rope_factors(&c->hp, &c->arena, &factors));
    frit_tensor *tensor = frit_arena_new(&c->arena, frit_tensor, 1);
    if (!tensor) return frit_fail_memory(sizeof *tensor, "a tensor");
    if (!factors || frit_checkpoint_find(c->ckpt, "rope_freqs.weight")) return FRIT_OK;
    const int64_t n = c->hp.rope.dim / 2;
    *tensor = (frit_tensor){.name = "rope_freqs.weight",
                            .dtype = FRIT_DTYPE_F32,
                            .n_dims = 1,
                            .shape = {n, 1, 1, 1},
                            .data = factors,
                            .n_bytes = (uint64_t)n * sizeof *factors};
    add_tensor(c, tensor->name, tensor, (frit_row_order){0});
    return FRIT_OK;
}

static frit_status list_tensors(conversion *c)
{
    const size_t n = c->ckpt->n_tensors, room = 2 * n + 1;
    c->tensors = frit_arena_new(&c->arena, frit_tensor, room);
    c->sources = frit_arena_new(&c->arena, source_rows, room);
    if (!c->tensors || !c->sources) return frit_fail_memory(room * sizeof *c->tensors, "the list of tensors");
    if (!c->is_gguf) FRIT_TRY(add_rope_factors(c));
    for (size_t i = 0; i < n; i++) {
        const frit_tensor *from = &c->ckpt->tensors[i];
        bool is_fused = false;
        if (!c->is_gguf) FRIT_TRY(add_halves(c, from, &is_fused));
        if (is_fused) continue;
        const frit_row_order order = c->arch ? frit_row_order_of(&c->hp, c->arch, from->name) : (frit_row_order){0};
        const int64_t n_rows = from->n_dims < 2 ? from->shape[0] : from->shape[from->n_dims - 2];
        if (order.turned > 0 && n_rows % order.head != 0)
            return frit_fail(FRIT_E_FORMAT, "%s: tensor '%s' has %" PRId64 " rows, expected a multiple of %" PRId64,
                             c->source, from->name, n_rows, order.head);
        add_tensor(c, from->name, from, order);
    }
    return FRIT_OK;
}

static frit_status report_bytes(void *ctx, uint64_t n_bytes)
{
    conversion *c = ctx;
    c->n_done += n_bytes;
    return say_progress(c, c->n_bytes > 0 ? (double)c->n_done / (double)c->n_bytes : 1);
}

// Pages of the source that were read need not stay.
static frit_status write_tensor(void *ctx, size_t i, frit_file_writer *writer)
{
    conversion *c = ctx;
    const source_rows *from = &c->sources[c->first + i];
    FRIT_TRY(
        frit_convert_rows(from->tensor, &c->tensors[c->first + i], &from->order, c->pool, writer, report_bytes, c));
    if (!frit_checkpoint_is_intact(c->ckpt))
        return frit_fail(FRIT_E_IO, "%s: a file shrank while it was read", c->source);
    for (size_t k = 0; k < c->ckpt->n_files; k++) frit_file_drop_pages(c->ckpt->files[k]);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- files

// Tensors of the file that begins with tensor `first`: as many as fit, at least one.
static size_t count_tensors(const conversion *c, size_t first)
{
    uint64_t n_bytes = 0;
    size_t n = 0;
    for (; first + n < c->n_tensors; n++) {
        n_bytes += c->tensors[first + n].n_bytes;
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

static frit_status write_part(conversion *c, int no, int count, size_t n, const char *path)
{
    frit_meta own;
    frit_meta_init(&own, &c->arena);
    frit_meta *meta = no == 0 ? &c->meta : &own;
    frit_status status = count > 1 ? add_split(meta, no, count, c->n_tensors) : FRIT_OK;
    const frit_gguf_contents contents = {meta, c->tensors + c->first, n, write_tensor, c};
    if (status == FRIT_OK) status = frit_gguf_write_contents(&contents, path);
    frit_meta_deinit(&own);
    return status;
}

static frit_status write_parts(conversion *c)
{
    int count = 0, no = 0;
    for (size_t first = 0; first < c->n_tensors || count == 0; count++) first += count_tensors(c, first);
    if (count > 65535)
        return frit_fail(FRIT_E_LIMIT, "split-max-size: %d files would be written, at most 65535 are possible", count);
    frit_status status = FRIT_OK;
    for (; no < count && status == FRIT_OK; no++) {
        const size_t n = count_tensors(c, c->first);
        const char *path = count > 1 ? frit_gguf_part_path(&c->arena, c->target, no, count) : c->target;
        status = path ? write_part(c, no, count, n, path) : frit_fail_memory(strlen(c->target), "a path");
        c->first += n;
    }
    if (status == FRIT_OK || count == 1) return status;
    // A set that lacks a part is of no use. The part that failed left nothing.
    for (int i = 0; i + 1 < no; i++) {
        const char *path = frit_gguf_part_path(&c->arena, c->target, i, count);
        if (path) remove(path);
    }
    return status;
}

static bool is_target_a_source(const conversion *c)
{
    for (size_t i = 0; i < c->ckpt->n_files; i++)
        if (frit_path_is_same(frit_file_path(c->ckpt->files[i]), c->target)) return true;
    return false;
}

static frit_status convert(conversion *c)
{
    FRIT_TRY(read_options(c));
    FRIT_TRY(frit_checkpoint_open(&c->ckpt, c->source, &(frit_checkpoint_options){.log = &c->log}));
    c->is_gguf = strncmp(c->ckpt->format, "GGUF", 4) == 0;
    if (is_target_a_source(c))
        return frit_fail(FRIT_E_INVALID, "%s: the file to write is the one that is read", c->target);
    if (!c->is_gguf) {
        FRIT_TRY(frit_arch_of(&c->arch, c->ckpt));
        FRIT_TRY(frit_hparams_read(&c->hp, c->arch, c->ckpt, &c->arena));
        frit_weights weights;   // bound only to be checked
        FRIT_TRY(frit_weights_bind(&weights, c->arch, &c->hp, c->ckpt, &c->arena));
    }
    FRIT_TRY(frit_pool_new(&c->pool, c->options->n_threads));
    FRIT_TRY(list_tensors(c));
    FRIT_TRY(add_meta(c));
    return write_parts(c);
}

frit_status frit_convert(const char *source, const char *target, const frit_convert_options *options)
{
    static const frit_convert_options defaults;
    conversion c = {.source = source, .target = target, .options = options ? options : &defaults};
    c.log = (frit_log){c.options->log, c.options->log_ctx};
    frit_meta_init(&c.meta, &c.arena);
    frit_status status = convert(&c);
    if (status != FRIT_OK && !strstr(frit_error(), source) && !strstr(frit_error(), target) && c.ckpt)
        status = frit_fail(status, "%s: %s", source, frit_error());
    if (c.has_vocab) frit_vocab_deinit(&c.vocab);
    frit_meta_deinit(&c.meta);
    frit_pool_free(c.pool);
    frit_checkpoint_close(c.ckpt);
    frit_arena_free(&c.arena);
    return status;
}
