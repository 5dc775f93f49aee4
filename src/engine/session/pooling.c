// SPDX-License-Identifier: MIT
// Pooling: the modes of sentence-transformers, their concatenation, and SPLADE.
#include "engine/session/pooling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names_of[FRIT_POOLING_COUNT] = {
    "none", "mean", "cls", "last", "rank", "max", "mean_sqrt_len", "weighted_mean", "splade", "splade_sum"};

// ------------------------------------------------------------------------------- names

static frit_status find_kind(const char *name, size_t n, frit_pooling *out)
{
    for (int i = 0; i < FRIT_POOLING_COUNT; i++) {
        *out = (frit_pooling)i;
        if (strlen(names_of[i]) == n && memcmp(names_of[i], name, n) == 0) return FRIT_OK;
    }
    frit_buf all = {0};
    for (int i = 0; i < FRIT_POOLING_COUNT; i++)
        frit_buf_printf(&all, "%s%s", i == 0 ? "" : i == FRIT_POOLING_COUNT - 1 ? " or " : ", ", names_of[i]);
    const frit_status status = frit_fail(FRIT_E_INVALID, "pooling is '%.*s', expected %s", (int)(n < 40 ? n : 40), name,
                                         all.failed ? "another name" : all.data);
    frit_buf_free(&all);
    return status;
}

static bool can_join(frit_pooling kind)
{
    return kind != FRIT_POOLING_NONE && kind != FRIT_POOLING_RANK && kind != FRIT_POOLING_SPLADE &&
           kind != FRIT_POOLING_SPLADE_SUM;
}

static frit_status parse(frit_pooling_list *list, const char *names)
{
    *list = (frit_pooling_list){0};
    for (const char *at = names;; at += *at == '+') {
        const size_t n = strcspn(at, "+");
        if (list->n == FRIT_POOLING_MOST)
            return frit_fail(FRIT_E_INVALID, "pooling is '%.80s', expected at most %d kinds", names, FRIT_POOLING_MOST);
        FRIT_TRY(find_kind(at, n, &list->kinds[list->n++]));
        at += n;
        if (!*at) break;
    }
    for (int i = 0; i < list->n && list->n > 1; i++)
        if (!can_join(list->kinds[i]))
            return frit_fail(FRIT_E_INVALID, "pooling is '%.80s', but '%s' cannot be joined with others", names,
                             names_of[list->kinds[i]]);
    return FRIT_OK;
}

static const char *default_name(const frit_model *model)
{
    const frit_arch *arch = model->arch;
    if (model->hp.pooling >= 0 && model->hp.pooling <= FRIT_POOLING_RANK) return names_of[model->hp.pooling];
    return arch && (arch->is_encoder || arch->is_encoder_decoder) ? "mean" : "last";
}

frit_status frit_model_pooling(const frit_model *model, char names[96])
{
    static const char key[] = "frit.embed.pooling";
    frit_str text = {0};
    bool found;
    frit_pooling_list list;
    FRIT_TRY(frit_meta_get_text(&model->ckpt->meta, key, &text, &found));
    if (!found) text = frit_str_of(default_name(model));
    if (text.len >= 96) return frit_fail(FRIT_E_FORMAT, "%s has %zu bytes, expected at most 95", key, text.len);
    memcpy(names, text.ptr, text.len);
    names[text.len] = 0;
    return parse(&list, names);
}

frit_status frit_pooling_of(frit_pooling_list *list, const frit_model *model, const char *names)
{
    char by_default[96];
    if (!names) FRIT_TRY(frit_model_pooling(model, by_default));
    FRIT_TRY(parse(list, names ? names : by_default));
    if (!frit_pooling_is_sparse(list)) return FRIT_OK;
    if (model->arch->is_encoder && frit_arch_has_logits(model->arch, &model->weights)) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: has no masked-LM head, which pooling by splade reads",
                          model->info.path);
}

// ------------------------------------------------------------------------------- rows

frit_status frit_pooler_init(frit_pooler *pooler, const frit_pooling_list *list, const frit_model *model)
{
    const size_t width = (size_t)(frit_pooling_is_sparse(list) ? model->hp.n_vocab : frit_hidden_width(&model->hp));
    const size_t n = (size_t)list->n * width;
    *pooler = (frit_pooler){.list = *list,
                            .width = width,
                            .sums = calloc(n, sizeof *pooler->sums),
                            .values = calloc(n, sizeof *pooler->values)};
    frit_status status = frit_meta_get_bool(&model->ckpt->meta, "frit.embed.log_twice", &pooler->log_twice, NULL);
    if (!pooler->sums || !pooler->values) status = frit_fail_memory(n * sizeof *pooler->sums, "an embedding");
    if (status != FRIT_OK) frit_pooler_deinit(pooler);
    return status;
}

void frit_pooler_deinit(frit_pooler *pooler)
{
    free(pooler->sums);
    free(pooler->values);
    *pooler = (frit_pooler){0};
}

void frit_pooler_reset(frit_pooler *pooler)
{
    memset(pooler->sums, 0, (size_t)pooler->list.n * pooler->width * sizeof *pooler->sums);
}

static double splade(const frit_pooler *pooler, float x)
{
    const double y = log1p(x > 0 ? x : 0);
    return pooler->log_twice ? log1p(y) : y;
}

static void add_kind(const frit_pooler *pooler, frit_pooling kind, double *sums, size_t i, const float *row)
{
    const size_t n = pooler->width;
    switch (kind) {
    case FRIT_POOLING_MEAN:
    case FRIT_POOLING_MEAN_SQRT_LEN:
        for (size_t k = 0; k < n; k++) sums[k] += row[k];
        break;
    case FRIT_POOLING_WEIGHTED_MEAN:
        for (size_t k = 0; k < n; k++) sums[k] += (double)(i + 1) * row[k];
        break;
    case FRIT_POOLING_MAX:
        for (size_t k = 0; k < n; k++) sums[k] = i == 0 ? row[k] : fmax(sums[k], row[k]);
        break;
    case FRIT_POOLING_SPLADE:
        for (size_t k = 0; k < n; k++) sums[k] = fmax(sums[k], splade(pooler, row[k]));
        break;
    case FRIT_POOLING_SPLADE_SUM:
        for (size_t k = 0; k < n; k++) sums[k] += splade(pooler, row[k]);
        break;
    default:   // of one row: the first, or the last one that comes
        for (size_t k = 0; k < n && (i == 0 || kind != FRIT_POOLING_CLS); k++) sums[k] = row[k];
        break;
    }
}

void frit_pooler_add(frit_pooler *pooler, size_t i, const float *row)
{
    for (int k = 0; k < pooler->list.n; k++)
        add_kind(pooler, pooler->list.kinds[k], pooler->sums + (size_t)k * pooler->width, i, row);
}

static double divisor_of(frit_pooling kind, size_t n_rows)
{
    const double n = (double)n_rows;
    if (kind == FRIT_POOLING_MEAN) return n;
    if (kind == FRIT_POOLING_MEAN_SQRT_LEN) return sqrt(n);
    return kind == FRIT_POOLING_WEIGHTED_MEAN ? n * (n + 1) / 2 : 1;
}

void frit_pooler_finish(frit_pooler *pooler, size_t n_rows)
{
    for (int k = 0; k < pooler->list.n; k++) {
        const double divisor = divisor_of(pooler->list.kinds[k], n_rows);
        const size_t first = (size_t)k * pooler->width;
        for (size_t i = first; i < first + pooler->width; i++) pooler->values[i] = (float)(pooler->sums[i] / divisor);
    }
}
