// SPDX-License-Identifier: MIT
// Layers that sentence-transformers applies to a pooled vector: y = f(w x + b), the tensors dense_2, dense_3, and so
// on.
#include "engine/session/classifier.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double none(double x)
{
    return x;
}
static double gelu(double x)
{
    return x * (1 + erf(x * 0.70710678118654752)) / 2;
}
static double relu(double x)
{
    return x > 0 ? x : 0;
}
static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double silu(double x)
{
    return x * sigmoid(x);
}

static const struct {
    const char *name;
    double (*act)(double x);
} acts[] = {{"none", none}, {"tanh", tanh}, {"gelu", gelu}, {"relu", relu}, {"silu", silu}, {"sigmoid", sigmoid}};

// Files of others have no activations: Dense of these models is linear.
static frit_status find_act(const frit_model *model, int i, frit_dense *dense)
{
    static const char key[] = "frit.embed.dense_acts";
    const frit_value *list = frit_meta_find(&model->ckpt->meta, key);
    dense->act = none;
    if (!list) return FRIT_OK;
    if (list->type != FRIT_VALUE_ARRAY || list->array.type != FRIT_VALUE_TEXT || list->array.n <= (uint64_t)i)
        return frit_fail(FRIT_E_FORMAT, "%s is not a list with a name for each dense layer", key);
    const frit_str name = frit_value_item_text(list, (uint64_t)i);
    for (size_t k = 0; k < FRIT_COUNT(acts); k++) {
        dense->act = acts[k].act;
        if (frit_str_is(name, acts[k].name)) return FRIT_OK;
    }
    return frit_fail(FRIT_E_FORMAT, "%s has '%.*s', expected none, tanh, gelu, relu, silu or sigmoid", key,
                     (int)(name.len < 40 ? name.len : 40), name.ptr);
}

static frit_status find_layer(const frit_model *model, int i, frit_dense *dense, bool *found)
{
    char name[64], shape[96];
    snprintf(name, sizeof name, "dense_%d.weight", i + 2);
    dense->w = frit_checkpoint_find(model->ckpt, name);
    *found = dense->w != NULL;
    if (!*found) return FRIT_OK;
    snprintf(name, sizeof name, "dense_%d.bias", i + 2);
    dense->b = frit_checkpoint_find(model->ckpt, name);
    if (dense->w->n_dims != 2 || (dense->b && (dense->b->n_dims != 1 || dense->b->shape[0] != dense->w->shape[0])))
        return frit_fail(FRIT_E_FORMAT,
                         "tensor 'dense_%d.weight' has the shape %s, expected a matrix with as many rows "
                         "as its bias",
                         i + 2, frit_tensor_shape_text(dense->w, shape));
    return find_act(model, i, dense);
}

frit_status frit_dense_find(frit_dense_list *list, const frit_model *model, size_t n_in)
{
    *list = (frit_dense_list){.n_most = n_in};
    const size_t n_pooled = n_in;
    for (bool found = true; list->n < FRIT_DENSE_MOST; list->n++) {
        frit_dense *dense = &list->layers[list->n];
        FRIT_TRY(find_layer(model, list->n, dense, &found));
        if (!found) break;
        if ((size_t)dense->w->shape[1] != n_in && list->n == 0)
            return frit_fail(FRIT_E_INVALID, "pooling gives %zu numbers, but the model's dense layer reads %lld",
                             n_pooled, (long long)dense->w->shape[1]);
        if ((size_t)dense->w->shape[1] != n_in)
            return frit_fail(FRIT_E_FORMAT, "tensor '%s' has rows of %lld numbers, expected %zu", dense->w->name,
                             (long long)dense->w->shape[1], n_in);
        n_in = (size_t)dense->w->shape[0];
        if (n_in > list->n_most) list->n_most = n_in;
    }
    list->n_out = n_in;
    return FRIT_OK;
}

frit_status frit_dense_run(const frit_dense_list *list, const float *x, float *y, float *scratch)
{
    size_t n = list->n > 0 ? (size_t)list->layers[0].w->shape[1] : list->n_out;
    memcpy(y, x, n * sizeof *x);
    for (int i = 0; i < list->n; i++) {
        const frit_dense *dense = &list->layers[i];
        const size_t n_out = (size_t)dense->w->shape[0];
        FRIT_TRY(frit_apply_matrix(scratch, dense->w, dense->b, y, (int64_t)n, scratch + list->n_most));
        for (size_t k = 0; k < n_out; k++) y[k] = (float)dense->act(scratch[k]);
        n = n_out;
    }
    return FRIT_OK;
}
