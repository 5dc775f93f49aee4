// SPDX-License-Identifier: MIT
// Lists the matrices whose types are chosen, and the types that each may get.
#include "quantize/type_choice.h"
#include "format/rows.h"

#include <stdlib.h>
#include <string.h>

// K types are fast on every device. The others are slow where a kernel is missing.
static const struct {
    frit_dtype type;
    bool only_all;
} types[] = {
    {FRIT_DTYPE_Q2_K, false},   {FRIT_DTYPE_Q3_K, false},   {FRIT_DTYPE_Q4_K, false},  {FRIT_DTYPE_Q5_K, false},
    {FRIT_DTYPE_Q6_K, false},   {FRIT_DTYPE_Q8_0, false},   {FRIT_DTYPE_Q4_0, false},  {FRIT_DTYPE_Q4_1, false},
    {FRIT_DTYPE_Q5_0, false},   {FRIT_DTYPE_Q5_1, false},   {FRIT_DTYPE_IQ4_NL, true}, {FRIT_DTYPE_IQ4_XS, true},
    {FRIT_DTYPE_IQ3_S, true},   {FRIT_DTYPE_IQ3_XXS, true}, {FRIT_DTYPE_IQ2_S, true},  {FRIT_DTYPE_IQ2_XS, true},
    {FRIT_DTYPE_IQ2_XXS, true},
};

static bool fits(frit_dtype type, int64_t width)
{
    return width % frit_dtype_get(type)->block_elems == 0;
}

static void add_type(frit_type_choice_matrix *m, const frit_tensor *tensor, frit_dtype type, uint64_t most)
{
    const int64_t width = frit_tensor_width(tensor);
    for (int i = 0; i < m->n_types; i++)
        if (m->types[i].type == type) return;
    if (!fits(type, width) || m->n_types == FRIT_TYPE_CHOICE_TYPES) return;
    const uint64_t n_bytes = (uint64_t)frit_tensor_n_rows(tensor) * frit_dtype_row_bytes(type, width);
    if (n_bytes >= most) return;
    m->types[m->n_types++] = (frit_type_price){.type = type, .n_bytes = n_bytes};
}

static int smaller_first(const void *a, const void *b)
{
    const frit_type_price *x = a, *y = b;
    if (x->n_bytes != y->n_bytes) return x->n_bytes < y->n_bytes ? -1 : 1;
    return (x->type > y->type) - (x->type < y->type);
}

// Adds types that are smaller than the source and need no importance that cannot be measured.
static void add_types(frit_type_choice_matrix *m, const frit_tensor *tensor, bool all)
{
    const bool is_table = strstr(tensor->name, "token_embd.weight") != NULL;
    add_type(m, tensor, tensor->dtype, UINT64_MAX);
    const uint64_t most = m->types[0].n_bytes;
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        const bool needs = frit_mix_needs_importance(&frit_mix_chosen, "blk", types[i].type);
        if ((types[i].only_all && !all) || (needs && is_table)) continue;
        add_type(m, tensor, types[i].type, most);
    }
    qsort(m->types, (size_t)m->n_types, sizeof *m->types, smaller_first);
}

static frit_status set_type(frit_type_choice *a, const frit_tensor *tensor, frit_dtype type)
{
    if (frit_map_put(&a->types, frit_str_of(tensor->name), (int64_t)type)) return FRIT_OK;
    return frit_fail_memory(sizeof type, tensor->name);
}

static frit_status read_type(const char *option, const char *name, frit_dtype *type)
{
    *type = FRIT_DTYPE_COUNT;
    if (!name || (frit_dtype_from_name(name, type) && frit_file_type_id(*type) >= 0)) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "%s is '%.40s', expected a type like q6_k or f16", option, name);
}

// Lists a matrix with two types or more. A matrix with a given type stays in the list, so that a state file also serves
// other options.
static frit_status list_one(frit_type_choice *a, size_t i, frit_dtype kept, bool all)
{
    const frit_tensor *tensor = &a->ckpt->tensors[i];
    frit_type_choice_matrix *m = &a->list[a->n];
    if (!frit_convert_is_mixed(tensor)) return FRIT_OK;
    *m = (frit_type_choice_matrix){.i = i, .name = tensor->name, .probe_kl = -1, .is_kept = kept != FRIT_DTYPE_COUNT};
    m->probe = frit_convert_fit(FRIT_DTYPE_Q3_K, frit_tensor_width(tensor), true);
    const frit_dtype type = m->is_kept ? frit_convert_fit(kept, frit_tensor_width(tensor), true) : tensor->dtype;
    add_types(m, tensor, all);
    if (m->n_types < 2 || frit_tensor_n_elems(tensor) == 0) return set_type(a, tensor, type);
    if (m->is_kept) m->n_types = 0;
    if (m->is_kept) add_type(m, tensor, type, UINT64_MAX);
    a->n++;
    return FRIT_OK;
}

static bool can_choose(const frit_type_choice *a)
{
    for (size_t k = 0; k < a->n; k++)
        if (!a->list[k].is_kept) return true;
    return false;
}

frit_status frit_type_choice_list(frit_type_choice *a)
{
    const size_t n = a->ckpt->n_tensors;
    const frit_map none = {0};
    frit_mix_options mix = {.mix = &frit_mix_chosen, .keep = &a->quantize.keep, .chosen = &none};
    frit_dtype *kept = frit_arena_new(&a->arena, frit_dtype, n + 1);
    a->list = frit_arena_new(&a->arena, frit_type_choice_matrix, n + 1);
    if (!kept || !a->list) return frit_fail_memory(n * sizeof *a->list, "the list of matrices");
    const char *name = a->options->types ? a->options->types : "k";
    const bool all = strcmp(name, "all") == 0;
    if (!all && strcmp(name, "k") != 0) return frit_fail(FRIT_E_INVALID, "types is '%.40s', expected k or all", name);
    FRIT_TRY(read_type("output-type", a->quantize.output_type, &mix.output));
    FRIT_TRY(read_type("embedding-type", a->quantize.embedding_type, &mix.table));
    FRIT_TRY(frit_mix_types(a->ckpt, &mix, kept));
    for (size_t i = 0; i < n; i++) FRIT_TRY(list_one(a, i, kept[i], all));
    if (can_choose(a)) return FRIT_OK;
    return frit_fail_file(FRIT_E_INVALID, "%s: has no matrix whose type could be chosen", a->source);
}
