// SPDX-License-Identifier: MIT
// The packed matrices of a device: which matrices a plan wants packed, where they lie, and who packs them.
#include "backend/cpu/memory.h"
#include "backend/cpu/pack.h"

#include <stdlib.h>

enum { CHUNK_BYTES = 1 << 20 };   // packed before the pages of the file are given back

typedef struct frit_pack {
    const frit_tensor *tensor;   // valid while it is packed; later, `data` says which one it was
    const void *data;
    frit_dtype dtype;
    int64_t n_rows, n;
    uint64_t offset;   // of the first panel, in the memory of the plan
    uint8_t *panels;
} pack;

typedef struct frit_pack_memory {
    struct frit_pack_memory *next;
    uint8_t *bytes;
    uint64_t n_bytes;
} pack_memory;

// Matrices of a stack lie one behind the other, and their rows fill panels.
static int64_t width_of(const frit_tensor *tensor)
{
    return tensor->shape[tensor->n_dims - 1];
}

static int64_t height_of(const frit_tensor *tensor)
{
    return tensor->n_dims == 3 ? tensor->shape[0] * tensor->shape[1] : tensor->shape[0];
}

bool frit_packs_want(const frit_kernels *kernels, const frit_tensor *tensor)
{
    const bool stack = tensor->n_dims == 3 && tensor->shape[1] % (2 * FRIT_PANEL_ROWS) == 0;
    return (tensor->n_dims == 2 || stack) && kernels->packed[tensor->dtype].run &&
           frit_pack_fits(tensor->dtype, width_of(tensor));
}

static pack *find(const frit_packs *packs, const frit_tensor *tensor)
{
    for (size_t i = 0; i < packs->n; i++) {
        pack *p = &packs->list[i];
        if (p->data == tensor->data && p->dtype == tensor->dtype && p->n_rows == height_of(tensor) &&
            p->n == width_of(tensor))
            return p;
    }
    return NULL;
}

const uint8_t *frit_packs_find(const frit_packs *packs, const frit_tensor *tensor)
{
    const pack *p = find(packs, tensor);
    return p ? p->panels : NULL;
}

const uint8_t *frit_packs_largest(const frit_packs *packs, uint64_t *n_bytes)
{
    const uint8_t *bytes = NULL;
    *n_bytes = 0;
    for (const pack_memory *m = packs->memory; m; m = m->next) {
        if (m->n_bytes <= *n_bytes) continue;
        bytes = m->bytes;
        *n_bytes = m->n_bytes;
    }
    return bytes;
}

static frit_status add(frit_packs *packs, const frit_tensor *tensor, uint64_t *n_bytes)
{
    if (find(packs, tensor)) return FRIT_OK;
    if (packs->n == packs->capacity) {
        const size_t capacity = packs->capacity ? 2 * packs->capacity : 256;
        pack *list = realloc(packs->list, capacity * sizeof *list);
        if (!list) return frit_fail_memory(capacity * sizeof *list, "the list of packed matrices");
        packs->list = list;
        packs->capacity = capacity;
    }
    const uint64_t row_bytes = frit_pack_row_bytes(tensor->dtype, width_of(tensor));
    const uint64_t n_panels = ((uint64_t)height_of(tensor) + FRIT_PANEL_ROWS - 1) / FRIT_PANEL_ROWS;
    packs->list[packs->n++] = (pack){.tensor = tensor,
                                     .data = tensor->data,
                                     .dtype = tensor->dtype,
                                     .n_rows = height_of(tensor),
                                     .n = width_of(tensor),
                                     .offset = *n_bytes};
    *n_bytes += (n_panels * FRIT_PANEL_ROWS * row_bytes + FRIT_CPU_ALIGN - 1) / FRIT_CPU_ALIGN * FRIT_CPU_ALIGN;
    return FRIT_OK;
}

static frit_status add_all(frit_packs *packs, const frit_kernels *kernels, const frit_plan *plan, uint64_t *n_bytes)
{
    for (int i = 0; i < plan->n_steps; i++) {
        const frit_node *node = plan->steps[i].node;
        const frit_cpu_op *op = &frit_cpu_ops[node->op];
        for (int s = 0; (op->linear || op->stacked) && s < node->n_src; s++) {
            if (!(op->matrices >> s & 1) || !frit_packs_want(kernels, node->src[s]->tensor)) continue;
            FRIT_TRY(add(packs, node->src[s]->tensor, n_bytes));
        }
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- packing

static void pack_rows(const pack *p, frit_range rows)
{
    const size_t row_bytes = (size_t)frit_dtype_row_bytes(p->dtype, p->n);
    const size_t packed_bytes = frit_pack_row_bytes(p->dtype, p->n);
    const uint8_t *bytes = p->data;
    for (int64_t i = rows.begin, given_back = i; i < rows.end;) {
        const int64_t n = rows.end - i < FRIT_PANEL_ROWS ? rows.end - i : FRIT_PANEL_ROWS;
        frit_pack_panel(p->dtype, bytes + (size_t)i * row_bytes, (int)n, p->n, p->panels + (size_t)i * packed_bytes);
        i += n;
        const size_t n_read = (size_t)(i - given_back) * row_bytes;
        if (!p->tensor->is_mapped || (n_read < CHUNK_BYTES && i < rows.end)) continue;
        frit_cpu_memory_drop(bytes + (size_t)given_back * row_bytes, n_read);
        given_back = i;
    }
}

typedef struct job {
    const frit_packs *packs;
    size_t first;
} job;

static void pack_part(void *ctx, int part, int parts)
{
    const job *j = ctx;
    for (size_t i = j->first; i < j->packs->n; i++) {
        const pack *p = &j->packs->list[i];
        pack_rows(p, frit_split(p->n_rows, FRIT_PANEL_ROWS, (frit_share){part, part + 1, parts, part}));
    }
}

frit_status frit_packs_add(frit_packs *packs, frit_pool *pool, const frit_kernels *kernels, const frit_plan *plan)
{
    const size_t first = packs->n;
    uint64_t n_bytes = 0;
    frit_status status = add_all(packs, kernels, plan, &n_bytes);
    if (status == FRIT_OK && packs->n == first) return FRIT_OK;
    pack_memory *memory = status == FRIT_OK ? calloc(1, sizeof *memory) : NULL;
    if (memory) memory->bytes = frit_cpu_memory_new(n_bytes);
    if (!memory || !memory->bytes) {
        free(memory);
        packs->n = first;
        return status == FRIT_OK ? frit_fail_memory((size_t)n_bytes, "the packed weights") : status;
    }
    memory->n_bytes = n_bytes;
    memory->next = packs->memory;
    packs->memory = memory;
    for (size_t i = first; i < packs->n; i++) packs->list[i].panels = memory->bytes + packs->list[i].offset;
    frit_pool_run(pool, pack_part, &(job){packs, first});
    return FRIT_OK;
}

void frit_packs_free(frit_packs *packs)
{
    while (packs->memory) {
        pack_memory *memory = packs->memory;
        packs->memory = memory->next;
        frit_cpu_memory_free(memory->bytes, memory->n_bytes);
        free(memory);
    }
    free(packs->list);
    *packs = (frit_packs){0};
}
