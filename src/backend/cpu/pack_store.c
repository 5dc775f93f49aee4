// SPDX-License-Identifier: MIT
// The packed matrices of a device: which matrices a plan wants packed, where they lie, and who packs them.
#include "backend/cpu/memory.h"
#include "backend/cpu/pack.h"
#include "format/rows.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_BYTES = 1 << 20,   // packed before the pages of the file are given back
    ROWS_AT_ONCE = 4 * FRIT_PANEL_ROWS,
};

static const uint64_t batch_bytes = 64 << 20;   // packed before somebody is told

typedef struct frit_pack {
    frit_tensor tensor;
    bool as_rows;      // only copied: nobody reads panels of it, and its rows do not lie in memory
    uint64_t offset;   // of the first panel, in the memory of the plan
    const uint8_t *panels;
} pack;

typedef struct frit_pack_memory {
    struct frit_pack_memory *next;
    uint8_t *made;          // by packing; NULL: the bytes are those of the file
    frit_file *file;        // of the cache, or NULL
    const uint8_t *bytes;   // of panels
    uint64_t n_bytes;
} pack_memory;

// Matrices of a stack lie one behind the other, and their rows fill panels.
bool frit_packs_want(const frit_kernels *kernels, const frit_tensor *tensor)
{
    const bool stack = tensor->n_dims == 3 && tensor->shape[1] % (2 * FRIT_PANEL_ROWS) == 0;
    return (tensor->n_dims == 2 || stack) && kernels->packed[tensor->dtype].run &&
           frit_pack_fits(tensor->dtype, frit_tensor_width(tensor));
}

static const uint8_t *find(const frit_packs *packs, const frit_tensor *tensor, bool as_rows)
{
    for (size_t i = 0; i < packs->n; i++) {
        const pack *p = &packs->list[i];
        if (p->as_rows == as_rows && frit_tensor_is_same(&p->tensor, tensor)) return p->panels;
    }
    return NULL;
}

const uint8_t *frit_packs_find(const frit_packs *packs, const frit_tensor *tensor)
{
    return find(packs, tensor, false);
}

const uint8_t *frit_packs_rows(const frit_packs *packs, const frit_tensor *tensor)
{
    return tensor->data ? tensor->data : find(packs, tensor, true);
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

static uint64_t bytes_of(const pack *p)
{
    const uint64_t n_rows = (uint64_t)frit_tensor_n_rows(&p->tensor), panel = FRIT_PANEL_ROWS;
    if (p->as_rows) return n_rows * frit_tensor_row_bytes(&p->tensor);
    return (n_rows + panel - 1) / panel * panel * frit_pack_row_bytes(p->tensor.dtype, frit_tensor_width(&p->tensor));
}

static frit_status add(frit_packs *packs, const frit_tensor *tensor, bool as_rows, uint64_t *n_bytes)
{
    for (size_t i = 0; i < packs->n; i++)
        if (packs->list[i].as_rows == as_rows && frit_tensor_is_same(&packs->list[i].tensor, tensor)) return FRIT_OK;
    if (packs->n == packs->capacity) {
        const size_t capacity = packs->capacity ? 2 * packs->capacity : 256;
        pack *list = realloc(packs->list, capacity * sizeof *list);
        if (!list) return frit_fail_memory(capacity * sizeof *list, "the list of packed matrices");
        packs->list = list;
        packs->capacity = capacity;
    }
    pack *p = &packs->list[packs->n++];
    *p = (pack){.tensor = *tensor, .as_rows = as_rows, .offset = *n_bytes};
    *n_bytes += (bytes_of(p) + FRIT_CPU_ALIGN - 1) / FRIT_CPU_ALIGN * FRIT_CPU_ALIGN;
    return FRIT_OK;
}

// Panels for products that read them; rows for those who read rows that lie nowhere in memory.
static frit_status add_matrices(frit_packs *packs, const frit_kernels *kernels, const frit_node *node,
                                uint64_t *n_bytes)
{
    const frit_cpu_op *op = &frit_cpu_ops[node->op];
    const bool is_product = kernels && (op->linear || op->stacked) && (!op->fits || op->fits(node));
    for (int s = 0; s < node->n_src; s++) {
        const frit_tensor *tensor = frit_node_storage(node->src[s])->tensor;
        if (!(op->matrices >> s & 1) || !tensor) continue;
        const bool wanted = is_product && frit_packs_want(kernels, tensor);
        if (wanted || (!tensor->data && !frit_stack_row(tensor, 0))) FRIT_TRY(add(packs, tensor, !wanted, n_bytes));
    }
    return FRIT_OK;
}

static frit_status add_all(frit_packs *packs, const frit_kernels *kernels, const frit_plan *plan, uint64_t *n_bytes)
{
    for (int k = 0; k < plan->phases.n_chains; k++)
        for (int i = 0; i < plan->phases.chains[k].n_nodes; i++)
            FRIT_TRY(add_matrices(packs, kernels, plan->phases.chains[k].nodes[i], n_bytes));
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- packing

static void put(const pack *p, uint8_t *panels, int64_t first, int64_t n_rows, const uint8_t *rows)
{
    const int64_t n = frit_tensor_width(&p->tensor);
    const size_t row_bytes = (size_t)frit_tensor_row_bytes(&p->tensor);
    if (p->as_rows) {
        memcpy(panels + (size_t)first * row_bytes, rows, (size_t)n_rows * row_bytes);
        return;
    }
    const size_t packed_bytes = frit_pack_row_bytes(p->tensor.dtype, n);
    for (int64_t i = 0; i < n_rows; i += FRIT_PANEL_ROWS) {
        const int64_t rest = n_rows - i < FRIT_PANEL_ROWS ? n_rows - i : FRIT_PANEL_ROWS;
        frit_pack_panel(p->tensor.dtype, rows + (size_t)i * row_bytes, (int)rest, n,
                        panels + (size_t)(first + i) * packed_bytes);
    }
}

// Rows that must be made first, and what that needs.
static size_t buffer_bytes(const pack *p)
{
    if (p->tensor.data) return 0;
    return ROWS_AT_ONCE * (size_t)frit_tensor_row_bytes(&p->tensor) + frit_tensor_scratch_bytes(&p->tensor);
}

static void pack_rows(const pack *p, uint8_t *panels, frit_range rows, uint8_t *buffer)
{
    const size_t row_bytes = (size_t)frit_tensor_row_bytes(&p->tensor);
    for (int64_t i = rows.begin, given_back = i; i < rows.end;) {
        const int64_t n = rows.end - i < ROWS_AT_ONCE ? rows.end - i : ROWS_AT_ONCE;
        put(p, panels, i, n, frit_tensor_rows(&p->tensor, i, n, buffer, buffer + ROWS_AT_ONCE * row_bytes));
        i += n;
        const size_t n_read = (size_t)(i - given_back) * row_bytes;
        if (!p->tensor.is_mapped || (n_read < CHUNK_BYTES && i < rows.end)) continue;
        frit_cpu_memory_drop((const uint8_t *)p->tensor.data + (size_t)given_back * row_bytes, n_read);
        given_back = i;
    }
}

// Of what a tensor is made of.
static void drop_parts(const frit_tensor *tensor)
{
    const frit_recipe *recipe = tensor->data ? NULL : tensor->recipe;
    for (size_t i = 0; recipe && i < recipe->n_parts; i++) {
        const frit_tensor *part = &recipe->parts[i];
        if (part->is_mapped) frit_cpu_memory_drop(part->data, part->n_bytes);
        drop_parts(part);
    }
}

typedef struct job {
    const pack *first, *end;
    uint8_t *made;      // what panels are written to
    uint8_t *buffers;   // one for each thread
    size_t buffer_bytes;
} job;

static void pack_part(void *ctx, int part, int parts)
{
    const job *j = ctx;
    const frit_share share = {part, part + 1, parts, part};
    for (const pack *p = j->first; p < j->end; p++)
        pack_rows(p, j->made + p->offset, frit_split(frit_tensor_n_rows(&p->tensor), FRIT_PANEL_ROWS, share),
                  j->buffers + (size_t)part * j->buffer_bytes);
}

static frit_status tell(const frit_device *device, double done)
{
    if (!device->progress || device->progress(device->progress_ctx, done)) return FRIT_OK;
    return frit_fail(FRIT_E_CANCELLED, "packing the weights was cancelled");
}

// Some matrices at a time; in between somebody may be told.
static frit_status pack_all(const frit_packs *packs, size_t first, frit_pool *pool, const frit_device *device,
                            const pack_memory *memory)
{
    const pack *list = packs->list, *end = list + packs->n;
    job j = {.made = memory->made};
    uint64_t n_done = 0;
    for (const pack *p = list + first; p < end; p++)
        if (buffer_bytes(p) > j.buffer_bytes) j.buffer_bytes = (buffer_bytes(p) + 63) / 64 * 64;
    j.buffers = malloc((size_t)frit_pool_size(pool) * j.buffer_bytes + 1);
    if (!j.buffers) return frit_fail_memory((size_t)frit_pool_size(pool) * j.buffer_bytes, "packing");
    frit_status status = FRIT_OK;
    for (j.first = j.end = list + first; j.first < end && status == FRIT_OK; j.first = j.end) {
        for (uint64_t n = 0; j.end < end && n < batch_bytes; j.end++) n += bytes_of(j.end);
        frit_pool_run(pool, pack_part, &j);
        for (const pack *p = j.first; p < j.end; p++) drop_parts(&p->tensor), n_done += bytes_of(p);
        status = tell(device, n_done < memory->n_bytes ? (double)n_done / (double)memory->n_bytes : 1);
    }
    free(j.buffers);
    return status;
}

// ------------------------------------------------------------------------------- the cache

// Whether all of it lies in mapped files; parts that may be absent have no name.
static bool is_from_files(const frit_tensor *tensor)
{
    if (tensor->data) return tensor->is_mapped;
    for (size_t i = 0; tensor->recipe && i < tensor->recipe->n_parts; i++)
        if (tensor->recipe->parts[i].name && !is_from_files(&tensor->recipe->parts[i])) return false;
    return tensor->recipe && tensor->recipe->n_parts > 0;
}

static void sample_bytes(const frit_tensor *tensor, frit_buf *text)
{
    enum { SAMPLE_BYTES = 256, SAMPLES = 3 };
    const uint64_t n = tensor->n_bytes < SAMPLE_BYTES ? tensor->n_bytes : SAMPLE_BYTES;
    for (uint64_t k = 0; k < SAMPLES; k++)
        frit_buf_append(text, (const uint8_t *)tensor->data + (tensor->n_bytes - n) / (SAMPLES - 1) * k, (size_t)n);
    frit_cpu_memory_drop(tensor->data, tensor->n_bytes);
}

// Whole rows, as they are made: metadata may change what is made of the same files.
static bool sample_rows(const pack *p, frit_buf *text)
{
    enum { SAMPLES = 4 };
    const size_t row_bytes = (size_t)frit_tensor_row_bytes(&p->tensor);
    uint8_t *row = malloc(buffer_bytes(p));
    if (!row) return false;
    for (int64_t k = 0; k < SAMPLES; k++) {
        const int64_t i = (frit_tensor_n_rows(&p->tensor) - 1) * k / (SAMPLES - 1);
        frit_tensor_read(&p->tensor, i, 1, row, row + ROWS_AT_ONCE * row_bytes);
        frit_buf_append(text, row, row_bytes);
    }
    free(row);
    drop_parts(&p->tensor);
    return true;
}

// All that panels depend on, beside size and time of the files: names, shapes, and samples of the bytes. False: some
// of it lies in no mapped file, so nobody knows what it was made of.
static bool describe(const frit_packs *packs, size_t first, frit_buf *text)
{
    for (size_t i = first; i < packs->n; i++) {
        const pack *p = &packs->list[i];
        if (!is_from_files(&p->tensor)) return false;
        frit_buf_printf(text, "%s %d %lld %lld %d\n", p->tensor.name, (int)p->tensor.dtype,
                        (long long)frit_tensor_n_rows(&p->tensor), (long long)frit_tensor_width(&p->tensor),
                        p->as_rows);
        if (p->tensor.data)
            sample_bytes(&p->tensor, text);
        else if (!sample_rows(p, text))
            return false;
    }
    return !text->failed;
}

static bool read_cache(const frit_packs *packs, frit_pool *pool, frit_pack_key key, pack_memory *memory)
{
    memory->bytes = frit_pack_cache_read(&packs->cache, pool, key, memory->n_bytes, &memory->file);
    return memory->bytes != NULL;
}

static frit_status fill(const frit_packs *packs, frit_pool *pool, const frit_device *device, size_t first,
                        pack_memory *memory)
{
    frit_buf text = {0};
    const bool is_kept = packs->cache.folder && describe(packs, first, &text);
    const frit_pack_key key = frit_pack_key_of(&packs->cache, (frit_str){text.data, text.len});
    frit_buf_free(&text);
    if (packs->cache.folder && !is_kept)
        frit_log_say(&packs->cache.log, FRIT_LOG_WARNING,
                     "weights cache: only weights that lie in mapped files are kept, and these do not");
    if (is_kept && read_cache(packs, pool, key, memory)) return tell(device, 1);
    memory->bytes = memory->made = frit_cpu_memory_new(memory->n_bytes);
    if (!memory->made) return frit_fail_memory((size_t)memory->n_bytes, "the packed weights");
    FRIT_TRY(pack_all(packs, first, pool, device, memory));
    if (is_kept) frit_pack_cache_write(&packs->cache, pool, key, memory->bytes, memory->n_bytes);
    return FRIT_OK;
}

static void free_memory(pack_memory *memory)
{
    if (!memory) return;
    frit_cpu_memory_free(memory->made, memory->n_bytes);
    frit_file_close(memory->file);
    free(memory);
}

frit_status frit_packs_add(frit_packs *packs, frit_pool *pool, const frit_device *device, const frit_kernels *kernels,
                           const frit_plan *plan)
{
    const size_t first = packs->n;
    uint64_t n_bytes = 0;
    frit_status status = add_all(packs, kernels, plan, &n_bytes);
    if (status == FRIT_OK && packs->n == first) return FRIT_OK;
    pack_memory *memory = status == FRIT_OK ? calloc(1, sizeof *memory) : NULL;
    if (status == FRIT_OK && !memory) status = frit_fail_memory(sizeof *memory, "the packed weights");
    if (status == FRIT_OK) {
        memory->n_bytes = n_bytes;
        status = fill(packs, pool, device, first, memory);
    }
    if (status != FRIT_OK) {
        free_memory(memory);
        packs->n = first;
        return status;
    }
    memory->next = packs->memory;
    packs->memory = memory;
    for (size_t i = first; i < packs->n; i++) packs->list[i].panels = memory->bytes + packs->list[i].offset;
    return FRIT_OK;
}

frit_status frit_packs_check(const frit_packs *packs)
{
    for (const pack_memory *m = packs->memory; m; m = m->next)
        if (m->file && !frit_file_is_intact(m->file))
            return frit_fail(FRIT_E_IO, "%s: the file shrank from %llu to %llu bytes while in use",
                             frit_file_path(m->file), (unsigned long long)frit_file_size(m->file),
                             (unsigned long long)frit_file_size_now(m->file));
    return FRIT_OK;
}

void frit_packs_free(frit_packs *packs)
{
    while (packs->memory) {
        pack_memory *memory = packs->memory;
        packs->memory = memory->next;
        free_memory(memory);
    }
    free(packs->cache.folder);
    free(packs->list);
    *packs = (frit_packs){0};
}
