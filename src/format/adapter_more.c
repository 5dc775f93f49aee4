// SPDX-License-Identifier: MIT
// Adapters of PEFT beside low-rank pairs, as pairs:
//
//     a whole matrix W'    W' - W with the identity
//     rows of a table      the rows' differences, with a matrix that has a 1 for each row
//     factors              a pair of zeros, with factors of the product
//
// Factors of the inputs of a gated feed-forward's last matrix are factors of what the matrix before, up, gives.
#include "format/adapter_peft.h"
#include "format/rows.h"

#include <stdio.h>

static const char table_name[] = "token_embd.weight", head_name[] = "output.weight";

static frit_status new_matrix(const peft *p, const char *name, int64_t n_rows, int64_t width, frit_tensor *out,
                              float **values)
{
    const size_t n = (size_t)(n_rows * width);
    *values = frit_arena_new(&p->file->ckpt->arena, float, n);
    if (!*values) return frit_fail_memory(n * sizeof **values, name);
    *out = (frit_tensor){.name = name,
                         .dtype = FRIT_DTYPE_F32,
                         .n_dims = 2,
                         .shape = {n_rows, width, 1, 1},
                         .data = *values,
                         .n_bytes = n * sizeof **values};
    return FRIT_OK;
}

// Computes row i of `changed` less row `row` of the model's matrix. *own has room for a row.
static frit_status subtract_row(const frit_tensor *changed, int64_t i, const frit_tensor *w, int64_t row, float *own,
                                float *out)
{
    const int64_t width = frit_tensor_width(w);
    FRIT_TRY(frit_tensor_decode_rows(changed, i, 1, out));
    FRIT_TRY(frit_tensor_decode_rows(w, row, 1, own));
    for (int64_t k = 0; k < width; k++) out[k] -= own[k];
    return FRIT_OK;
}

// The model's table of embeddings, or the output matrix, which may be the table too.
static const frit_tensor *find_table(const peft *p, const char *name)
{
    const frit_tensor *w = frit_checkpoint_find(p->base, name);
    return w || strcmp(name, head_name) != 0 ? w : frit_checkpoint_find(p->base, table_name);
}

static frit_status check_table(const peft *p, const peft_module *m, const frit_tensor *w, bool whole)
{
    const frit_tensor *found = whole ? &m->whole : &m->tokens;
    const bool is_known = strcmp(m->matrix.name, table_name) == 0 || strcmp(m->matrix.name, head_name) == 0;
    char shape[96];
    if (!is_known || m->matrix.row->rewrite)
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: module '%s' is replaced, which is supported for embeddings and the output only",
                              p->file->ckpt->path, m->full);
    if (w && w->n_dims == 2 && found->shape[1] == w->shape[1] && (!whole || found->shape[0] == w->shape[0]))
        return FRIT_OK;
    return frit_fail_file(FRIT_E_INVALID, "%s: tensor '%s' has the shape %s, expected %s%lld, %lld]",
                          p->file->ckpt->path, found->name, frit_tensor_shape_text(found, shape),
                          whole ? "[" : "up to [", w ? (long long)w->shape[0] : 0, w ? (long long)w->shape[1] : 0);
}

frit_status frit_peft_add_whole(peft *p, const peft_module *m)
{
    const frit_tensor *w = find_table(p, m->matrix.name);
    FRIT_TRY(check_table(p, m, w, true));
    if (json_is_true(json_object_get(p->config, "ensure_weight_tying")) && !frit_checkpoint_find(p->base, head_name))
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: ensure_weight_tying: a tied output is not supported",
                              p->file->ckpt->path);
    const int64_t n = w->shape[0], width = w->shape[1];
    frit_adapter_pair pair = {.scale = 1};
    float *change, *one, *own = frit_arena_new(&p->file->ckpt->arena, float, (size_t)width);
    if (!own) return frit_fail_memory((size_t)width * sizeof *own, w->name);
    const bool is_table = strcmp(m->matrix.name, table_name) == 0;
    pair.name = is_table ? table_name : head_name;
    FRIT_TRY(new_matrix(p, m->whole.name, n, width, is_table ? &pair.a : &pair.b, &change));
    FRIT_TRY(new_matrix(p, m->whole.name, width, width, is_table ? &pair.b : &pair.a, &one));
    for (int64_t i = 0; i < width; i++) one[i * width + i] = 1;
    for (int64_t i = 0; i < n; i++) FRIT_TRY(subtract_row(&m->whole, i, w, i, own, change + i * width));
    return frit_adapter_add_pair(p->file, p->base, &pair);
}

// The ids of a module's rows: a list, or a list by the names of modules.
static const json_t *ids_of(const peft *p, const peft_module *m)
{
    const json_t *all = json_object_get(p->config, "trainable_token_indices");
    const char *key;
    json_t *value;
    const size_t n = strlen(m->full);
    if (json_is_array(all)) return all;
    json_object_foreach((json_t *)(uintptr_t)all, key, value)
    {
        const size_t n_key = strlen(key);
        if (n >= n_key && strcmp(m->full + n - n_key, key) == 0) return value;
    }
    return NULL;
}

static frit_status add_rows(peft *p, const peft_module *m, const frit_tensor *w, const json_t *ids, const char *name)
{
    const int64_t n = w->shape[0], width = w->shape[1], rank = m->tokens.shape[0];
    const bool is_table = strcmp(name, table_name) == 0;
    frit_adapter_pair pair = {.name = name, .scale = 1};
    float *rows, *places, *own = frit_arena_new(&p->file->ckpt->arena, float, (size_t)(2 * width));
    if (!own) return frit_fail_memory((size_t)(2 * width) * sizeof *own, w->name);
    FRIT_TRY(new_matrix(p, m->tokens.name, is_table ? width : rank, is_table ? rank : width,
                        is_table ? &pair.b : &pair.a, &rows));
    FRIT_TRY(new_matrix(p, m->tokens.name, n, rank, is_table ? &pair.a : &pair.b, &places));
    for (int64_t i = 0; i < rank; i++) {
        const int64_t id = json_integer_value(json_array_get(ids, (size_t)i));
        float *row = own + width;
        FRIT_TRY(subtract_row(&m->tokens, i, w, id, own, row));
        places[id * rank + i] = 1;
        for (int64_t k = 0; k < width; k++) rows[is_table ? k * rank + i : i * width + k] = row[k];
    }
    return frit_adapter_add_pair(p->file, p->base, &pair);
}

frit_status frit_peft_add_tokens(peft *p, const peft_module *m)
{
    const frit_tensor *w = find_table(p, m->matrix.name);
    const json_t *ids = ids_of(p, m), *id;
    size_t i;
    FRIT_TRY(check_table(p, m, w, false));
    if (json_array_size(ids) != (size_t)m->tokens.shape[0])
        return frit_fail_file(
            FRIT_E_FORMAT, "%s: trainable_token_indices of '%s' is a list of %zu ids, expected %lld, one for each row",
            p->file->ckpt->path, m->full, json_array_size(ids), (long long)m->tokens.shape[0]);
    json_array_foreach(ids, i, id)
    {
        if (json_is_integer(id) && json_integer_value(id) >= 0 && json_integer_value(id) < w->shape[0]) continue;
        return frit_fail_file(FRIT_E_FORMAT, "%s: trainable_token_indices of '%s': item %zu is not an id below %lld",
                              p->file->ckpt->path, m->full, i, (long long)w->shape[0]);
    }
    const bool is_tied = strcmp(m->matrix.name, table_name) == 0 && !frit_checkpoint_find(p->base, head_name);
    FRIT_TRY(add_rows(p, m, w, ids, strcmp(m->matrix.name, table_name) == 0 ? table_name : head_name));
    return is_tied ? add_rows(p, m, w, ids, head_name) : FRIT_OK;
}

frit_status frit_peft_empty_pair(peft *p, const char *name, int64_t n_out, int64_t n_in, frit_adapter_pair *out)
{
    float *zeros;
    *out = (frit_adapter_pair){.name = name, .scale = 1};
    FRIT_TRY(new_matrix(p, name, 1, n_in, &out->a, &zeros));
    return new_matrix(p, name, n_out, 1, &out->b, &zeros);
}

// The matrix before the last one of a gated feed-forward, whose rows are the last one's columns.
static const frit_tensor *find_up(const peft *p, const char *down)
{
    static const char suffix[] = ".ffn_down.weight";
    const size_t n = strlen(down), n_suffix = sizeof suffix - 1;
    char name[128];
    if (n < n_suffix || strcmp(down + n - n_suffix, suffix) != 0) return NULL;
    snprintf(name, sizeof name, "%.*s.ffn_gate.weight", (int)(n - n_suffix), down);
    const frit_tensor *gate = frit_checkpoint_find(p->base, name);
    snprintf(name, sizeof name, "%.*s.ffn_up.weight", (int)(n - n_suffix), down);
    return gate ? frit_checkpoint_find(p->base, name) : NULL;
}

frit_status frit_peft_add_factors(peft *p, const peft_module *m)
{
    const bool of_inputs = m->factors.shape[0] == 1 && m->factors.shape[1] > 1;
    const frit_tensor *w = of_inputs ? find_up(p, m->matrix.name) : frit_checkpoint_find(p->base, m->matrix.name);
    const int64_t n = m->factors.shape[of_inputs ? 1 : 0];
    if (of_inputs && !w)
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: tensor '%s' has factors of inputs, which are supported for the last matrix of a "
                              "gated feed-forward only",
                              p->file->ckpt->path, m->factors.name);
    if (!w || w->n_dims != 2 || w->shape[0] != n || m->matrix.row->rewrite)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: tensor '%s' has factors of %lld numbers, which '%s' has not",
                              p->file->ckpt->path, m->factors.name, (long long)n, w ? w->name : m->matrix.name);
    frit_adapter_pair pair;
    FRIT_TRY(frit_peft_empty_pair(p, w->name, w->shape[0], w->shape[1], &pair));
    pair.factors = m->factors;
    pair.factors.shape[0] = n, pair.factors.shape[1] = 1;
    return frit_adapter_add_pair(p->file, p->base, &pair);
}
