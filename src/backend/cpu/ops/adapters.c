// SPDX-License-Identifier: MIT
// The adapters of a CPU device: copies of their tables. The tensors are not copied.
#include "backend/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

static void free_table(frit_adapter_table *table)
{
    free(table->matrices);
    free(table->directions);
    *table = (frit_adapter_table){0};
}

static frit_status copy_table(frit_adapter_table *to, const frit_adapter_table *from)
{
    *to = *from;
    to->matrices = calloc((size_t)from->n_matrices + 1, sizeof *to->matrices);
    to->directions = calloc((size_t)from->n_layers + 1, sizeof *to->directions);
    if (!to->matrices || !to->directions) {
        free_table(to);
        return frit_fail_memory((size_t)from->n_matrices * sizeof *to->matrices, "the table of an adapter");
    }
    memcpy(to->matrices, from->matrices, (size_t)from->n_matrices * sizeof *to->matrices);
    memcpy(to->directions, from->directions, (size_t)from->n_layers * sizeof *to->directions);
    return FRIT_OK;
}

static frit_status reserve(frit_cpu_adapters *adapters, int32_t n)
{
    if (n <= adapters->n) return FRIT_OK;
    frit_adapter_table *tables = realloc(adapters->tables, (size_t)n * sizeof *tables);
    if (tables) adapters->tables = tables;
    int32_t *used = realloc(adapters->used, (size_t)n * sizeof *used);
    if (used) adapters->used = used;
    if (!tables || !used) return frit_fail_memory((size_t)n * sizeof *tables, "the list of adapters");
    for (int32_t i = adapters->n; i < n; i++) tables[i] = (frit_adapter_table){0};
    adapters->n = n;
    return FRIT_OK;
}

frit_status frit_cpu_set_adapter(frit_device *base, int32_t i, const frit_adapter_table *adapter)
{
    frit_cpu_adapters *adapters = &((frit_cpu_device *)base)->adapters;
    frit_adapter_table table = {0};
    FRIT_TRY(reserve(adapters, i + 1));
    if (adapter) FRIT_TRY(copy_table(&table, adapter));
    free_table(&adapters->tables[i]);
    adapters->tables[i] = table;
    return FRIT_OK;
}

void frit_cpu_find_adapters(frit_cpu_adapters *adapters, const frit_batch *batch)
{
    adapters->n_used = 0;
    for (int32_t i = 0; batch->scales && i < batch->n_adapters && i < adapters->n; i++) {
        bool is_used = false;
        for (int32_t s = 0; s < batch->n_seqs; s++)
            is_used = is_used || batch->scales[(int64_t)s * batch->n_adapters + i] != 0;
        if (is_used && adapters->tables[i].matrices) adapters->used[adapters->n_used++] = i;
    }
}

void frit_cpu_adapters_free(frit_cpu_adapters *adapters)
{
    for (int32_t i = 0; i < adapters->n; i++) free_table(&adapters->tables[i]);
    free(adapters->tables);
    free(adapters->used);
    *adapters = (frit_cpu_adapters){0};
}
