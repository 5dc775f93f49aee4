// SPDX-License-Identifier: MIT
// Writes a PEFT adapter as a GGUF file, with the names and row order of its model's GGUF files.
//
// A GGUF adapter has one alpha for all pairs and scales each pair by alpha / rank. If PEFT's configuration has other
// scales (patterns, rank-stabilized scales), b is multiplied by the scale and the file has no alpha.
#include "convert/convert.h"
#include "format/adapter.h"
#include "format/rows.h"

#include <stdio.h>
#include <string.h>

typedef struct adapter_conversion {
    const char *target;
    const frit_log *log;
    frit_dtype wanted;   // FRIT_DTYPE_COUNT: unchanged
    frit_checkpoint *base;
    const frit_arch *arch;
    frit_hparams hp;
    frit_adapter_file file;
    bool has_alpha;
    frit_arena arena;
    frit_meta meta;
    frit_tensor *tensors;
    size_t n_tensors;
    frit_fallbacks fallbacks;
} adapter_conversion;

static bool has_one_alpha(const frit_adapter_file *file)
{
    bool one = file->alpha != 0;
    for (size_t i = 0; i < file->n_pairs; i++) {
        const frit_tensor *b = &file->pairs[i].b;
        one = one && file->pairs[i].scale == file->alpha / (float)b->shape[b->n_dims - 1];
    }
    return one;
}

// Adds the rows of `from` in the file's order and type, times a factor.
static frit_status add_side(adapter_conversion *c, const char *name, char side, const frit_tensor *from, float factor,
                            const frit_row_order *order)
{
    frit_tensor *to = &c->tensors[c->n_tensors++];
    const int64_t n = frit_tensor_n_elems(from), width = from->shape[from->n_dims - 1];
    const size_t n_name = strlen(name) + 8;
    char *copy = frit_arena_alloc(&c->arena, n_name, 1);
    float *values = frit_arena_new(&c->arena, float, 2 * (size_t)width);
    *to = *from;
    to->dtype = c->wanted != FRIT_DTYPE_COUNT ? c->wanted : factor != 1 ? FRIT_DTYPE_F32 : from->dtype;
    to->dtype = frit_convert_fit(to->dtype, width, false);
    const frit_dtype_info *type = frit_dtype_get(to->dtype);
    const size_t row_bytes = (size_t)frit_dtype_row_bytes(to->dtype, width);
    to->n_bytes = row_bytes * (uint64_t)(n / width);
    uint8_t *data = frit_arena_alloc(&c->arena, (size_t)to->n_bytes, 1);
    if (!copy || !values || !data) return frit_fail_memory((size_t)to->n_bytes, from->name);
    snprintf(copy, n_name, "%s.lora_%c", name, side);
    if (c->wanted != FRIT_DTYPE_COUNT) frit_fallbacks_add(&c->fallbacks, copy, c->wanted, to->dtype);
    to->name = copy;
    to->data = data;
    for (int64_t i = 0; i < n / width; i++, data += row_bytes) {
        FRIT_TRY(frit_tensor_decode_rows(from, frit_row_order_source(order, i), 1, values));
        for (int64_t k = 0; k < width && factor != 1; k++) values[k] *= factor;
        const int64_t bad = frit_encode_checked(type, values, data, width, NULL, values + width);
        if (bad < width) return frit_tensor_fail_number(copy, i * width + bad, width, values[bad], type);
    }
    return FRIT_OK;
}

static frit_status add_pair(adapter_conversion *c, const frit_adapter_pair *pair)
{
    static const frit_row_order as_is;
    frit_hparams hp = c->hp;
    if (c->file.rope_style)
        hp.rope_style = strcmp(c->file.rope_style, "neox") == 0 ? FRIT_ROPE_NEOX : FRIT_ROPE_INTERLEAVED;
    else
        hp.rope_style = c->arch->rope_style;
    const frit_row_order order = frit_row_order_of(&hp, c->arch, pair->name);
    const int64_t n_rows = pair->b.shape[0];
    if (order.permuted > 0 && n_rows % order.head != 0)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' has %lld rows, expected a multiple of %lld", pair->b.name,
                         (long long)n_rows, (long long)order.head);
    const frit_tensor *column = pair->magnitudes.name ? &pair->magnitudes
                                : pair->factors.name  ? &pair->factors
                                                      : &pair->bias;
    if (column->name)
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "tensor '%s' has magnitudes (DoRA), factors (IA3) or biases, for which GGUF has no form; "
                         "expected the PEFT folder itself with --lora",
                         column->name);
    FRIT_TRY(add_side(c, pair->name, 'a', &pair->a, 1, &as_is));
    return add_side(c, pair->name, 'b', &pair->b, c->has_alpha ? 1 : pair->scale, &order);
}

static frit_status add_keys(adapter_conversion *c)
{
    FRIT_TRY(frit_meta_add_text(&c->meta, "general.architecture", c->arch->name));
    FRIT_TRY(frit_meta_add_text(&c->meta, "general.type", "adapter"));
    FRIT_TRY(frit_meta_add_text(&c->meta, "adapter.type", "lora"));
    if (c->file.name[0]) FRIT_TRY(frit_meta_add_text(&c->meta, "general.name", c->file.name));
    const frit_value alpha = {.type = FRIT_VALUE_F32, .f = c->has_alpha ? (double)c->file.alpha : 0};
    return frit_meta_add(&c->meta, frit_str_of("adapter.lora.alpha"), alpha);
}

static frit_status write_adapter(adapter_conversion *c, const char *source, const char *base)
{
    FRIT_TRY(frit_checkpoint_open(&c->base, base, NULL));
    if (frit_checkpoint_reads(c->base, c->target))
        return frit_fail_file(FRIT_E_INVALID, "%s: the target is the adapter's model, expected another name",
                              c->target);
    FRIT_TRY(frit_arch_of(&c->arch, c->base));
    FRIT_TRY(frit_hparams_read(&c->hp, c->arch, c->base, &c->arena));
    FRIT_TRY(frit_adapter_file_open(&c->file, source, c->base, &(frit_checkpoint_options){.log = c->log}));
    c->has_alpha = has_one_alpha(&c->file);
    c->tensors = frit_arena_new(&c->arena, frit_tensor, 2 * c->file.n_pairs);
    if (!c->tensors) return frit_fail_memory(2 * c->file.n_pairs * sizeof *c->tensors, "the list of tensors");
    FRIT_TRY(add_keys(c));
    for (size_t i = 0; i < c->file.n_pairs; i++) FRIT_TRY(add_pair(c, &c->file.pairs[i]));
    return frit_gguf_write_contents(&(frit_gguf_contents){&c->meta, c->tensors, c->n_tensors, NULL, NULL}, c->target);
}

// Finds the adapter's model: the given one, or the one in its configuration if it is on this machine.
static frit_status find_base(const char *source, const char *named, frit_buf *out)
{
    if (named) {
        frit_buf_text(out, named);
        return out->failed ? frit_fail_memory(strlen(named), "a path") : FRIT_OK;
    }
    FRIT_TRY(frit_adapter_base_of(source, out));
    if (out->len > 0 && frit_path_get_kind(out->data) != FRIT_PATH_NONE) return FRIT_OK;
    return frit_fail_file(
        FRIT_E_INVALID, "%s: converting an adapter needs its model, expected its folder or GGUF file as base%s%.200s%s",
        source, out->len > 0 ? " ('" : "", out->len > 0 ? out->data : "",
        out->len > 0 ? "' is not on this machine)" : "");
}

frit_status frit_convert_adapter(const char *source, const char *target, const char *base, frit_dtype wanted,
                                 const frit_log *log)
{
    adapter_conversion c = {.target = target, .wanted = wanted, .log = log};
    frit_buf path = {0};
    frit_meta_init(&c.meta, &c.arena);
    frit_status status = find_base(source, base, &path);
    if (status == FRIT_OK) status = write_adapter(&c, source, path.data);
    status = frit_fail_in(source, status);
    frit_fallbacks_say(&c.fallbacks, log, source);
    if (status == FRIT_OK) frit_log_say(log, FRIT_LOG_INFO, "%s is written", target);
    frit_adapter_file_close(&c.file);
    frit_checkpoint_close(c.base);
    frit_meta_deinit(&c.meta);
    frit_arena_free(&c.arena);
    frit_buf_free(&path);
    return status;
}
