// SPDX-License-Identifier: MIT
// Sets the types of a file's tensors and the importance of their columns. Tensors are encoded when they are read.
#include "convert/convert.h"
#include "format/rows.h"

#include <stdlib.h>
#include <string.h>

typedef struct encoding {
    frit_checkpoint *ckpt;
    const frit_convert_types *types;
    const frit_dtype *from;
    bool is_gguf;
    frit_dtype *wanted, *natives;   // [n_tensors]
    frit_fallbacks fallbacks;
    size_t n_quantized, n_again, n_important, n_native;   // numbers of matrices
    size_t n_partial, n_unread;   // matrices that no token reached: with some experts, or as a whole
    frit_buf unimportant;         // names of the first matrices without importance
} encoding;

static int64_t matrices_of(const frit_tensor *tensor)
{
    return tensor->n_dims > 2 ? tensor->shape[tensor->n_dims - 3] : 1;
}

// Returns the type of tensor i. Tensors that a mix does not quantize get the type that they have without a mix.
static frit_dtype type_of(encoding *e, size_t i)
{
    const frit_tensor *tensor = &e->ckpt->tensors[i];
    const bool is_mixed = e->types->mix.mix != NULL;
    frit_tensor source = *tensor;
    source.dtype = e->from[i];
    if (!is_mixed || !frit_convert_is_mixed(&source)) {
        const frit_dtype type = frit_convert_type(&source, is_mixed ? FRIT_DTYPE_COUNT : e->types->wanted, e->is_gguf);
        const bool stays = e->types->wanted == FRIT_DTYPE_FP8_128 && type == source.dtype;
        if (frit_convert_changes(e->types) && !is_mixed && !stays && frit_convert_is_matrix(&source))
            frit_fallbacks_add(&e->fallbacks, tensor->name, e->types->wanted, type);
        return type;
    }
    const frit_dtype type = frit_convert_fit(e->wanted[i], frit_tensor_width(tensor), true);
    frit_fallbacks_add(&e->fallbacks, tensor->name, e->wanted[i], type);
    return type;
}

// ------------------------------------------------------------------------------------- importance

static bool is_table(const char *name)
{
    return strcmp(name, "token_embd.weight") == 0 || strcmp(name, "per_layer_token_embd.weight") == 0;
}

// Counts matrices that no token reached. A matrix without experts has one count.
static void count_unread(encoding *e, const frit_importance_entry *entry)
{
    size_t n_zero = 0;
    for (size_t i = 0; i < entry->n_counts; i++) n_zero += entry->counts[i] == 0;
    e->n_unread += n_zero == entry->n_counts;
    e->n_partial += n_zero > 0 && n_zero < entry->n_counts;
}

// Finds the means for a tensor's matrices; NULL: unknown.
static frit_status find_importance(encoding *e, const frit_tensor *tensor, const float **means)
{
    const frit_importance *importance = e->types->importance;
    const frit_importance_entry *entry = importance ? frit_importance_find(importance, tensor->name) : NULL;
    const size_t n = (size_t)(frit_tensor_width(tensor) * matrices_of(tensor));
    *means = NULL;
    if (entry && entry->n_values != n && !is_table(tensor->name))
        return frit_fail(FRIT_E_INVALID,
                         "importance of '%s' has %zu values, expected %zu: the file is of another model", tensor->name,
                         entry->n_values, n);
    if (!entry || entry->n_values != n) return FRIT_OK;
    float *values = frit_arena_new(&e->ckpt->arena, float, n);
    if (!values) return frit_fail_memory(n * sizeof *values, tensor->name);
    frit_importance_means(importance, entry, values);
    count_unread(e, entry);
    *means = values;
    return FRIT_OK;
}

static frit_status count_important(encoding *e, const frit_tensor *tensor, bool has_importance, bool needs_importance)
{
    e->n_important += has_importance;
    if (has_importance) return FRIT_OK;
    if (e->n_quantized - e->n_important <= 3)
        frit_buf_printf(&e->unimportant, "%s%s", e->unimportant.len > 0 ? ", " : "", tensor->name);
    if (!needs_importance || e->types->planned) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID,
                     "'%s' becomes %s, which needs the importance of its columns; "
                     "expected a file of 'frit imatrix' or llama-imatrix as importance",
                     tensor->name, frit_dtype_get(tensor->dtype)->name);
}

// ------------------------------------------------------------------------------------- tensors

static frit_status encode_one(encoding *e, size_t i)
{
    frit_tensor *tensor = &e->ckpt->tensors[i];
    const frit_type_mix *mix = e->types->mix.mix;
    const frit_dtype type = type_of(e, i);
    const bool is_quantized = type != e->from[i] && frit_dtype_get(type)->block_elems > 1;
    const bool needs_importance = mix && is_quantized && frit_mix_needs_importance(mix, tensor->name, type);
    const float *means = NULL;
    const bool is_native = e->natives && type == e->natives[i];
    e->n_native += is_native;
    if (is_quantized && !is_native) FRIT_TRY(find_importance(e, tensor, &means));
    if (frit_tensor_n_elems(tensor) > 0)
        FRIT_TRY(frit_encode_weighted(&e->ckpt->arena, tensor, type, means, matrices_of(tensor)));
    e->n_quantized += is_quantized && !is_native;
    e->n_again += is_quantized && frit_dtype_get(e->from[i])->block_elems > 1;
    if (is_quantized && !is_native) FRIT_TRY(count_important(e, tensor, means != NULL, needs_importance));
    if (e->types->planned)
        e->types->planned(e->types->planned_ctx, tensor, e->from[i], needs_importance, means != NULL);
    return FRIT_OK;
}

static frit_status say_importance(const encoding *e, const frit_log *log)
{
    if (!e->types->importance || e->n_quantized == 0) return FRIT_OK;
    if (2 * e->n_important < e->n_quantized)
        return frit_fail(FRIT_E_INVALID, "importance is known of %zu of %zu matrices: the file is of another model",
                         e->n_important, e->n_quantized);
    const size_t n_none = e->n_quantized - e->n_important;
    frit_log_say(log, FRIT_LOG_INFO, "importance is known of %zu of %zu matrices%s%s%s", e->n_important, e->n_quantized,
                 n_none > 0 ? ", not of " : "", e->unimportant.data ? e->unimportant.data : "",
                 n_none > 3 ? " ..." : "");
    if (e->n_partial > 0)
        frit_log_say(log, FRIT_LOG_WARNING, "no token of the importance file reached some experts of %zu %s",
                     e->n_partial, e->n_partial == 1 ? "matrix" : "matrices");
    if (e->n_unread > 0)
        frit_log_say(log, FRIT_LOG_WARNING, "no token of the importance file reached %zu %s", e->n_unread,
                     e->n_unread == 1 ? "matrix" : "matrices");
    return FRIT_OK;
}

static void say_native(const encoding *e, const frit_log *log)
{
    if (e->n_native > 0)
        frit_log_say(log, FRIT_LOG_INFO,
                     "%s: %zu matrices were made for four bits (mxfp4, nvfp4, q4_0) and are copied without loss",
                     e->ckpt->path, e->n_native);
}

// Types that were chosen by measured errors need no native types.
static frit_status find_natives(encoding *e)
{
    const size_t n = e->ckpt->n_tensors;
    if (e->types->mix.chosen || e->types->mix.is_pure) return FRIT_OK;
    e->natives = calloc(n + 1, sizeof *e->natives);
    if (!e->natives) return frit_fail_memory(n * sizeof *e->natives, "the types of tensors");
    for (size_t i = 0; i < n; i++) {
        e->natives[i] = FRIT_DTYPE_COUNT;
        if (frit_convert_is_mixed(&e->ckpt->tensors[i]))
            FRIT_TRY(frit_convert_native(&e->ckpt->tensors[i], &e->natives[i]));
    }
    return FRIT_OK;
}

static frit_status choose_mixed(encoding *e)
{
    frit_checkpoint sources = *e->ckpt;   // with the source's types
    if (!e->types->mix.mix) return FRIT_OK;
    sources.tensors = calloc(e->ckpt->n_tensors + 1, sizeof *sources.tensors);
    e->wanted = calloc(e->ckpt->n_tensors + 1, sizeof *e->wanted);
    frit_status status = sources.tensors && e->wanted
                             ? FRIT_OK
                             : frit_fail_memory(e->ckpt->n_tensors * sizeof *sources.tensors, "the types of tensors");
    for (size_t i = 0; status == FRIT_OK && i < e->ckpt->n_tensors; i++) {
        sources.tensors[i] = e->ckpt->tensors[i];
        sources.tensors[i].dtype = e->from[i];
    }
    if (status == FRIT_OK) status = find_natives(e);
    frit_mix_options options = e->types->mix;
    options.natives = e->natives;
    options.has_importance = options.has_importance || e->types->importance;
    if (status == FRIT_OK) status = frit_mix_types(&sources, &options, e->wanted);
    free(sources.tensors);
    return status;
}

frit_status frit_convert_encode(frit_checkpoint *ckpt, const frit_convert_types *types, const frit_dtype *from,
                                bool is_gguf, const frit_log *log)
{
    encoding e = {.ckpt = ckpt, .types = types, .from = from, .is_gguf = is_gguf};
    frit_status status = choose_mixed(&e);
    for (size_t i = 0; i < ckpt->n_tensors && status == FRIT_OK; i++) status = encode_one(&e, i);
    if (status == FRIT_OK) status = say_importance(&e, log);
    if (e.n_again > 0 && types->mix.mix && status == FRIT_OK)
        frit_log_say(log, FRIT_LOG_WARNING,
                     "%s: %zu matrices were quantized before, and lose more than from a file in bf16 or f16",
                     ckpt->path, e.n_again);
    if (status == FRIT_OK) say_native(&e, log);
    frit_fallbacks_say(&e.fallbacks, log, ckpt->path);
    frit_buf_free(&e.unimportant);
    free(e.wanted);
    free(e.natives);
    return status;
}
