// SPDX-License-Identifier: MIT
// From a model and a size to a file: importance, prices, errors, choice, conversion.
#include "quantize/type_choice.h"
#include "base/number.h"
#include "quantize/refine_file.h"
#include "format/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void frit_type_choice_begin(const frit_type_choice *a, const char *phase)
{
    if (a->options->phase) a->options->phase(a->options->phase_ctx, phase);
}

frit_status frit_type_choice_report(const frit_type_choice *a, double done)
{
    const frit_convert_options *o = a->convert;
    if (!o->progress || o->progress(o->progress_ctx, done)) return FRIT_OK;
    return frit_fail_file(FRIT_E_CANCELLED, "%s: quantization was cancelled", a->source);
}

// ------------------------------------------------------------------------------------- the source

// Opens the tensors of the file to write, in the types of the source, and the model in floats, with the same tensors.
static frit_status open_source(frit_type_choice *a)
{
    FRIT_TRY(frit_checkpoint_open(&a->ckpt, a->source, &(frit_checkpoint_options){.log = &a->log}));
    const bool is_gguf = strncmp(a->ckpt->format, "GGUF", 4) == 0;
    const frit_dtype main = frit_convert_main_type(a->ckpt);
    const bool is_float = frit_dtype_get(main)->block_elems == 1;
    if (!is_gguf) {
        const frit_arch *arch;
        frit_convert_types unchanged;
        FRIT_TRY(frit_convert_find_types(NULL, &unchanged));
        FRIT_TRY(frit_arch_of(&arch, a->ckpt));
        FRIT_TRY(frit_hparams_read(&a->hp, arch, a->ckpt, &a->arena));
        FRIT_TRY(frit_convert_checkpoint(a->ckpt, arch, &a->hp, &unchanged, &a->log));
    }
    const frit_model_options options = {
        .type = is_gguf && is_float ? NULL
                : is_float          ? frit_dtype_get(main)->name
                                    : "bf16",
    };   // warnings come when the file is written
    FRIT_TRY(frit_model_open(&a->model, a->source, &options));
    a->model->floats_in_place = a->model->loads_late = true;   // one engine per price
    if (a->model->info.kind == FRIT_KIND_DECODER) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED,
                          "%s: is not a decoder, so it has no predictions to measure; expected a mix", a->source);
}

static frit_status read_importance(frit_type_choice *a)
{
    if (!a->quantize.importance) return FRIT_OK;
    FRIT_TRY(frit_importance_open(&a->read, a->quantize.importance));
    a->importance = &a->read;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- size

static frit_status file_bytes(frit_type_choice *a, const frit_meta *labels, uint64_t *n_bytes)
{
    const frit_convert_choice choice = {&a->types, a->importance, labels, n_bytes, NULL};
    frit_convert_options options = *a->convert;
    const frit_quantize_options quantize = {.importance = a->quantize.importance};
    options.quantize = &quantize;
    options.progress = NULL;
    options.log = NULL;   // messages come when the file is written
    options.type = NULL;
    return frit_convert_chosen(a->source, NULL, &options, &choice);
}

// Reads the requested size in bytes.
static frit_status read_size(const frit_type_choice *a, uint64_t *n_bytes)
{
    const frit_allocate_options *o = a->options;
    double n_elems = 0;
    if (o->size && o->bits > 0)
        return frit_fail(FRIT_E_INVALID, "size is '%.40s' and bits is %g, expected one of them", o->size,
                         (double)o->bits);
    if (!o->size && !(o->bits > 0 && o->bits <= 32))
        return frit_fail(FRIT_E_INVALID, "bits is %g, expected a number above 0 and up to 32", (double)o->bits);
    if (o->size && !frit_parse_size(o->size, n_bytes))
        return frit_fail(FRIT_E_INVALID, "size is '%.40s', expected a number of bytes like 300M or 4.5G", o->size);
    if (o->size) return FRIT_OK;
    for (size_t i = 0; i < a->ckpt->n_tensors; i++) n_elems += (double)frit_tensor_n_elems(&a->ckpt->tensors[i]);
    *n_bytes = (uint64_t)(n_elems * (double)o->bits / 8);
    return FRIT_OK;
}

// Computes the size of a file without its matrices, from a file with the smallest types: header, padding, and tensors
// that are not quantized. If the size is given in bits, only tensors count.
static frit_status bytes_of_rest(frit_type_choice *a, const frit_meta *labels, uint64_t *n_rest)
{
    uint64_t n_bytes, n_matrices = 0;
    for (size_t k = 0; k < a->n; k++) {
        n_matrices += a->list[k].types[0].n_bytes;
        if (!frit_map_put(&a->types, frit_str_of(a->list[k].name), (int64_t)a->list[k].types[0].type))
            return frit_fail_memory(a->n * sizeof *a->list, "the types of matrices");
    }
    FRIT_TRY(file_bytes(a, labels, &n_bytes));
    *n_rest = n_bytes - n_matrices;
    if (a->options->size) {
        *n_rest += (uint64_t)a->n * 31;       // padding that other types may need
        *n_rest += FRIT_REFINE_LABEL_BYTES;   // labels of a refined file
        return FRIT_OK;
    }
    *n_rest = 0;
    for (size_t i = 0; i < a->ckpt->n_tensors; i++) {
        const frit_tensor *tensor = &a->ckpt->tensors[i];
        int64_t type = (int64_t)tensor->dtype;
        frit_map_get(&a->types, frit_str_of(tensor->name), &type);
        *n_rest +=
            (uint64_t)frit_tensor_n_rows(tensor) * frit_dtype_row_bytes((frit_dtype)type, frit_tensor_width(tensor));
    }
    *n_rest -= n_matrices;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- labels

static frit_status add_labels(frit_type_choice *a, uint64_t target, frit_meta *labels)
{
    char hash[2 * sizeof a->sha256 + 1];
    for (size_t i = 0; i < sizeof a->sha256; i++) frit_format(hash + 2 * i, 3, "%02x", a->sha256[i]);
    FRIT_TRY(frit_meta_add_text(labels, "quantize.method", "prices"));
    FRIT_TRY(frit_meta_add_u64(labels, "quantize.target_bytes", target));
    FRIT_TRY(frit_meta_add_text(labels, "quantize.calibration.name", a->has_text ? "text" : "own samples"));
    FRIT_TRY(frit_meta_add_text(labels, "quantize.calibration.sha256", hash));
    return frit_meta_add_u64(labels, "quantize.calibration.tokens", a->n_windows * a->n_ctx);
}

// ------------------------------------------------------------------------------------- plans and files

static void plan_tensor(const frit_type_choice *a, const frit_tensor *tensor)
{
    int64_t type = (int64_t)tensor->dtype;
    frit_map_get(&a->types, frit_str_of(tensor->name), &type);
    const int64_t width = frit_tensor_width(tensor);
    frit_planned_tensor planned = {.name = tensor->name,
                                   .from = frit_dtype_get(tensor->dtype)->name,
                                   .to = frit_dtype_get((frit_dtype)type)->name,
                                   .n_dims = tensor->n_dims,
                                   .n_bytes = (uint64_t)frit_tensor_n_rows(tensor) *
                                              frit_dtype_row_bytes((frit_dtype)type, width)};
    planned.has_importance = frit_convert_is_mixed(tensor) && frit_importance_find(a->importance, tensor->name) != NULL;
    memcpy(planned.shape, tensor->shape, sizeof planned.shape);
    double kl = 0;
    for (size_t k = 0; k < a->n; k++)
        if (a->list[k].name == tensor->name) kl = a->list[k].types[a->list[k].chosen].kl;
    a->options->plan(a->options->plan_ctx, &planned, kl);
}

static frit_status write_file(frit_type_choice *a, const char *target, const frit_meta *labels)
{
    const frit_convert_choice choice = {&a->types, a->importance, labels, NULL, a->options->reuse};
    const frit_quantize_options quantize = {.importance = a->quantize.importance};
    frit_convert_options options = *a->convert;
    options.quantize = &quantize;
    options.type = NULL;
    frit_model_free(a->model);
    a->model = NULL;
    frit_type_choice_begin(a, "quantizing");
    return frit_convert_chosen(a->source, target, &options, &choice);
}

static void say_prediction(const frit_type_choice *a)
{
    char error[32] = "";
    if (a->kl_error > 0) frit_format(error, sizeof error, " +- %.5f", a->kl_error);
    frit_log_say(
        &a->log, FRIT_LOG_INFO,
        "the predicted KL divergence is %.5f%s on text like the one that was measured with, before matrices are "
        "rounded again",
        a->kl, error);
}

static void say_unchanged(const frit_type_choice *a)
{
    for (size_t i = 0; i < a->ckpt->n_tensors; i++) {
        int64_t type;
        if (frit_map_get(&a->types, frit_str_of(a->ckpt->tensors[i].name), &type) &&
            type != (int64_t)a->ckpt->tensors[i].dtype)
            return;
    }
    frit_log_say(&a->log, FRIT_LOG_INFO, "no matrix needs quantizing: all of them fit unchanged");
}

static frit_status plan_file(frit_type_choice *a, const frit_meta *labels, uint64_t n_target)
{
    uint64_t n_bytes;
    for (size_t i = 0; i < a->ckpt->n_tensors; i++) plan_tensor(a, &a->ckpt->tensors[i]);
    FRIT_TRY(file_bytes(a, labels, &n_bytes));
    const unsigned long long has = n_bytes, wanted = n_target;
    if (a->options->size)
        frit_log_say(&a->log, FRIT_LOG_INFO, "the file would have %llu bytes, at most %llu are allowed", has, wanted);
    else
        frit_log_say(&a->log, FRIT_LOG_INFO, "the file would have %llu bytes, its tensors may have %llu", has, wanted);
    return FRIT_OK;
}

static frit_status write_chosen(frit_type_choice *a, const char *target)
{
    uint64_t n_target, n_rest;
    frit_meta labels;
    frit_meta_init(&labels, &a->arena);
    frit_status status = read_size(a, &n_target);
    if (status == FRIT_OK) status = add_labels(a, n_target, &labels);
    if (status == FRIT_OK) status = bytes_of_rest(a, &labels, &n_rest);
    if (status == FRIT_OK) status = frit_type_choice_search(a, n_target > n_rest ? n_target - n_rest : 0);
    if (status == FRIT_OK) status = a->options->plan ? plan_file(a, &labels, n_target) : write_file(a, target, &labels);
    if (status == FRIT_OK) say_prediction(a);
    if (status == FRIT_OK) say_unchanged(a);
    frit_meta_deinit(&labels);
    return status;
}

static frit_status measure_all(frit_type_choice *a)
{
    FRIT_TRY(read_importance(a));
    FRIT_TRY(frit_type_choice_set_windows(a));
    FRIT_TRY(frit_type_choice_save(a));
    if (!a->importance) FRIT_TRY(frit_type_choice_measure_importance(a));
    FRIT_TRY(frit_type_choice_save(a));
    FRIT_TRY(frit_type_choice_measure_prices(a));
    FRIT_TRY(frit_type_choice_save(a));
    return frit_type_choice_measure_errors(a);
}

// Checks the earlier file before the long measurement.
static frit_status check_reuse(const frit_type_choice *a)
{
    frit_checkpoint *earlier;
    if (!a->options->reuse) return FRIT_OK;
    FRIT_TRY(frit_reuse_open(&earlier, a->options->reuse));
    frit_checkpoint_close(earlier);
    return FRIT_OK;
}

// Checks all weights first. With a NaN the measurement takes hours and the file is refused at the end.
static frit_status check_numbers(const frit_type_choice *a)
{
    for (size_t i = 0; i < a->ckpt->n_tensors; i++) {
        const frit_status status = frit_convert_check_finite(&a->ckpt->tensors[i], a->pool);
        if (status != FRIT_OK) return frit_fail_in(a->source, status);
        FRIT_TRY(frit_type_choice_report(a, 0));
    }
    return FRIT_OK;
}

static frit_status choose_types(frit_type_choice *a, const char *target)
{
    uint64_t n_target;
    FRIT_TRY(check_reuse(a));
    FRIT_TRY(frit_pool_new(&a->pool, a->convert->n_threads));
    FRIT_TRY(open_source(a));
    if (target && frit_checkpoint_reads(a->ckpt, target))   // before the long measurement
        return frit_fail_file(FRIT_E_INVALID, "%s: the target is the source file, expected another name", target);
    FRIT_TRY(read_size(a, &n_target));
    FRIT_TRY(frit_type_choice_list(a));
    FRIT_TRY(frit_type_choice_check_size(a, n_target));   // before the long measurement; the rest of a file is small
    FRIT_TRY(check_numbers(a));
    frit_status status = measure_all(a);
    if (a->tokens && (status == FRIT_OK || status == FRIT_E_CANCELLED)) {
        const frit_status saved = frit_type_choice_save(a);
        if (status == FRIT_OK) status = saved;
    }
    const frit_allocate_options *o = a->options;
    if (status == FRIT_OK && o->tokens) o->tokens(o->tokens_ctx, a->tokens, a->n_windows * a->n_ctx);
    return status == FRIT_OK ? write_chosen(a, target) : status;
}

static void free_choice(frit_type_choice *a)
{
    frit_model_free(a->model);
    frit_importance_deinit(&a->read);
    frit_importance_deinit(&a->measured);
    frit_map_free(&a->types);
    frit_pool_free(a->pool);
    frit_checkpoint_close(a->ckpt);
    free(a->tokens);
    frit_arena_free(&a->arena);
}

frit_status frit_allocate(const char *source, const char *target, const frit_convert_options *convert,
                          const frit_allocate_options *options)
{
    FRIT_REQUIRE(source);
    FRIT_REQUIRE(options);
    static const frit_convert_options defaults;
    if (!convert) convert = &defaults;
    if (!options->plan) FRIT_REQUIRE(target);
    FRIT_REQUIRE_UNUSED(convert);
    FRIT_REQUIRE_UNUSED(options);
    if (convert->type || (convert->quantize && (convert->quantize->mix || convert->quantize->pure)))
        return frit_fail(FRIT_E_INVALID, "type, mix and pure choose types, expected none of them beside a size");
    frit_type_choice a = {.source = source, .convert = convert, .options = options, .has_text = options->text != NULL};
    a.log = (frit_log){convert->log, convert->log_ctx};
    if (convert->quantize) a.quantize = *convert->quantize;
    const frit_status status = choose_types(&a, target);
    free_choice(&a);
    return status;
}
