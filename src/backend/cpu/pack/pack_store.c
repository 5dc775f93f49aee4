// SPDX-License-Identifier: MIT
// The store of packed matrices: lists them, counts bytes, packs them, and shares them among devices.
#include "backend/cpu/pack/memory.h"
#include "backend/cpu/pack/pack.h"
#include "base/grow.h"
#include "format/rows.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_BYTES = 1 << 20,   // packed before the pages of the file are dropped
    ROWS_AT_ONCE = 4 * FRIT_PANEL_ROWS,
};

static const uint64_t batch_bytes = 64 << 20;   // packed before progress is reported

typedef struct pack {
    frit_tensor tensor;
    const frit_interleave *layout;   // NULL: copied only, no product reads panels
    uint64_t offset;                 // offset of the first panel in the block
} pack;

typedef struct pack_block {
    struct pack_block *next;
    pack *list;
    size_t n, capacity;
    uint8_t *made;          // packed memory; NULL: the bytes are in the file
    frit_file *file;        // file of the cache, or NULL
    const uint8_t *bytes;   // bytes of panels
    uint64_t n_bytes;
} pack_block;

// The memory from which products read floats of files.
typedef enum float_rows { FLOATS_UNDECIDED, FLOATS_IN_PLACE, FLOATS_COPIED } float_rows;

struct frit_packs {
    frit_store base;
    const frit_interleave *layouts[FRIT_DTYPE_COUNT];   // layouts of types that are packed
    frit_store_cache cache;
    uint64_t most_floats;            // most bytes of floats that are copied
    _Atomic int floats;              // float_rows, decided at the first use
    frit_lock *lock;                 // held by the thread that packs
    _Atomic uint32_t n_millionths;   // progress of the thread that packs
    _Atomic(pack_block *) blocks;
};

static const pack_block *blocks_of(const frit_packs *packs)
{
    return atomic_load((_Atomic(pack_block *) *)(uintptr_t)&packs->blocks);
}

// ------------------------------------------------------------------------------- the list of matrices

// True if rows can be packed, and the matrices of a stack fill whole panels.
static bool fills_panels(const frit_tensor *tensor, const frit_interleave *layout)
{
    const bool stack = tensor->n_dims == 3 && tensor->shape[1] % (2 * FRIT_PANEL_ROWS) == 0;
    return layout && (tensor->n_dims == 2 || stack) && frit_pack_fits(layout, frit_tensor_width(tensor));
}

bool frit_packs_needs(const frit_kernels *kernels, const frit_tensor *tensor)
{
    return fills_panels(tensor, kernels->packed[tensor->dtype].layout);
}

static const pack *find_in(const pack_block *block, const frit_tensor *tensor, bool as_rows)
{
    for (size_t i = 0; i < block->n; i++)
        if (!block->list[i].layout == as_rows && frit_tensor_is_same(&block->list[i].tensor, tensor))
            return &block->list[i];
    return NULL;
}

static const uint8_t *find_matrix(const frit_packs *packs, const frit_tensor *tensor, bool as_rows)
{
    for (const pack_block *b = blocks_of(packs); b; b = b->next) {
        const pack *p = find_in(b, tensor, as_rows);
        if (p) return b->bytes + p->offset;
    }
    return NULL;
}

const uint8_t *frit_packs_find(const frit_packs *packs, const frit_tensor *tensor)
{
    return find_matrix(packs, tensor, false);
}

const uint8_t *frit_packs_rows(const frit_packs *packs, const frit_tensor *tensor)
{
    const uint8_t *rows = find_matrix(packs, tensor, true);
    return rows ? rows : tensor->data;
}

const uint8_t *frit_packs_largest(const frit_packs *packs, uint64_t *n_bytes)
{
    const uint8_t *bytes = NULL;
    *n_bytes = 0;
    for (const pack_block *b = blocks_of(packs); b; b = b->next) {
        if (b->n_bytes <= *n_bytes) continue;
        bytes = b->bytes;
        *n_bytes = b->n_bytes;
    }
    return bytes;
}

static uint64_t bytes_of(const pack *p)
{
    const uint64_t n_rows = (uint64_t)frit_tensor_n_rows(&p->tensor), panel = FRIT_PANEL_ROWS;
    if (!p->layout) return n_rows * frit_tensor_row_bytes(&p->tensor);
    return (n_rows + panel - 1) / panel * panel * frit_pack_row_bytes(p->layout, frit_tensor_width(&p->tensor));
}

static frit_status add(pack_block *block, const frit_tensor *tensor, const frit_interleave *layout)
{
    FRIT_TRY(FRIT_GROW(block->list, block->capacity, block->n + 1, "the list of packed matrices"));
    pack *p = &block->list[block->n++];
    *p = (pack){.tensor = *tensor, .layout = layout, .offset = block->n_bytes};
    block->n_bytes += (bytes_of(p) + FRIT_CPU_ALIGN - 1) / FRIT_CPU_ALIGN * FRIT_CPU_ALIGN;
    return FRIT_OK;
}

// True if all parts of the tensor are in mapped files. Absent optional parts have no name.
static bool is_from_files(const frit_tensor *tensor)
{
    if (tensor->data) return tensor->is_mapped;
    for (size_t i = 0; tensor->recipe && i < tensor->recipe->n_parts; i++)
        if (tensor->recipe->parts[i].name && !is_from_files(&tensor->recipe->parts[i])) return false;
    return tensor->recipe && tensor->recipe->n_parts > 0;
}

static bool is_in_memory(const frit_tensor *tensor)
{
    return tensor->data || frit_stack_row(tensor, 0);
}

static bool is_product(const frit_weight_use *use)
{
    const frit_cpu_op *op = &frit_cpu_ops[use->node->op];
    return (op->linear || op->stacked) && (!op->fits || op->fits(use->node));
}

// True for floats in mapped files that products read, mostly in pages of 4 KiB.
static bool may_copy(const frit_weight_use *use)
{
    const frit_tensor *tensor = use->tensor;
    const bool is_matrix = frit_cpu_ops[use->node->op].matrices >> use->source & 1;
    return is_matrix && is_product(use) && frit_dtype_get(tensor->dtype)->block_elems == 1 && is_in_memory(tensor) &&
           is_from_files(tensor);
}

// Decided once for the store, so that loading matches the measured bytes.
static bool copies_floats(frit_packs *packs, const frit_weight_uses *uses)
{
    int decided = atomic_load(&packs->floats);
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < uses->n && decided == FLOATS_UNDECIDED; i++) {
        bool counts = may_copy(&uses->list[i]);
        for (size_t k = 0; k < i && counts; k++)
            counts = !frit_tensor_is_same(uses->list[k].tensor, uses->list[i].tensor) || !may_copy(&uses->list[k]);
        if (counts) n_bytes += uses->list[i].tensor->n_bytes;
    }
    if (n_bytes > 0) {
        const int choice = n_bytes <= packs->most_floats ? FLOATS_COPIED : FLOATS_IN_PLACE;
        if (atomic_compare_exchange_strong(&packs->floats, &decided, choice)) decided = choice;
    }
    return decided == FLOATS_COPIED;
}

// The store has panels for products, rows for ops that read rows which no file contains, and copies of floats in files,
// which products read faster from huge pages.
static frit_status list_missing(frit_packs *packs, const frit_weight_uses *uses, pack_block *block)
{
    const bool copies = copies_floats(packs, uses);
    for (const frit_weight_use *use = uses->list; use < uses->list + uses->n; use++) {
        const frit_tensor *tensor = use->tensor;
        if (!(frit_cpu_ops[use->node->op].matrices >> use->source & 1)) {
            if (tensor->data) continue;
            return frit_fail(FRIT_E_UNSUPPORTED, "tensor '%s' is read as a vector and is too large to stay in memory",
                             tensor->name);
        }
        const frit_interleave *layout = packs->layouts[tensor->dtype];
        const bool as_rows = !is_product(use) || !fills_panels(tensor, layout);
        if (as_rows && is_in_memory(tensor) && !(copies && may_copy(use))) continue;
        if (find_matrix(packs, tensor, as_rows) || find_in(block, tensor, as_rows)) continue;
        FRIT_TRY(add(block, tensor, as_rows ? NULL : layout));
    }
    return FRIT_OK;
}

static uint64_t mapped_bytes(const frit_tensor *tensor)
{
    if (tensor->data) return tensor->is_mapped ? tensor->n_bytes : 0;
    uint64_t n_bytes = 0;
    for (size_t i = 0; tensor->recipe && i < tensor->recipe->n_parts; i++)
        if (tensor->recipe->parts[i].name) n_bytes += mapped_bytes(&tensor->recipe->parts[i]);
    return n_bytes;
}

static bool is_in(const pack_block *block, const frit_tensor *tensor)
{
    return find_in(block, tensor, false) || find_in(block, tensor, true);
}

frit_status frit_packs_measure(frit_packs *packs, const frit_weight_uses *uses, frit_weight_bytes *out)
{
    pack_block block = {0};
    *out = (frit_weight_bytes){.stored = packs->base.n_bytes(&packs->base)};
    const frit_status status = list_missing(packs, uses, &block);
    out->missing = block.n_bytes;
    out->stored += block.n_bytes;
    for (size_t i = 0; i < uses->n; i++) {
        const frit_tensor *tensor = uses->list[i].tensor;
        bool counts = !is_in(&block, tensor) && !find_matrix(packs, tensor, false) && !find_matrix(packs, tensor, true);
        for (size_t k = 0; k < i && counts; k++) counts = !frit_tensor_is_same(uses->list[k].tensor, tensor);
        if (counts) out->in_place += mapped_bytes(tensor);
    }
    free(block.list);
    return status;
}

// ------------------------------------------------------------------------------- packing

static void put(const pack *p, uint8_t *panels, int64_t first, int64_t n_rows, const uint8_t *rows)
{
    const int64_t n = frit_tensor_width(&p->tensor);
    const size_t row_bytes = (size_t)frit_tensor_row_bytes(&p->tensor);
    if (!p->layout) {
        memcpy(panels + (size_t)first * row_bytes, rows, (size_t)n_rows * row_bytes);
        return;
    }
    const size_t packed_bytes = frit_pack_row_bytes(p->layout, n);
    for (int64_t i = 0; i < n_rows; i += FRIT_PANEL_ROWS) {
        const int64_t rest = n_rows - i < FRIT_PANEL_ROWS ? n_rows - i : FRIT_PANEL_ROWS;
        frit_pack_panel(p->layout, rows + (size_t)i * row_bytes, (int)rest, n,
                        panels + (size_t)(first + i) * packed_bytes);
    }
}

// Rows that must be computed first by each thread, with their memory.
static size_t buffer_bytes(const pack *p)
{
    if (p->tensor.data || frit_tensor_is_by_caller(&p->tensor)) return 0;
    return ROWS_AT_ONCE * (size_t)frit_tensor_row_bytes(&p->tensor) + frit_tensor_scratch_bytes(&p->tensor);
}

static void pack_rows(const pack *p, uint8_t *panels, frit_range rows, uint8_t *buffer)
{
    const size_t row_bytes = (size_t)frit_tensor_row_bytes(&p->tensor);
    for (int64_t i = rows.begin, dropped = i; i < rows.end;) {
        const int64_t n = rows.end - i < ROWS_AT_ONCE ? rows.end - i : ROWS_AT_ONCE;
        put(p, panels, i, n, frit_tensor_rows(&p->tensor, i, n, buffer, buffer + ROWS_AT_ONCE * row_bytes));
        i += n;
        const size_t n_read = (size_t)(i - dropped) * row_bytes;
        if (!p->tensor.is_mapped || (n_read < CHUNK_BYTES && i < rows.end)) continue;
        frit_cpu_memory_drop((const uint8_t *)p->tensor.data + (size_t)dropped * row_bytes, n_read);
        dropped = i;
    }
}

// Drops the mapped pages of all parts that a tensor is made of.
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
    uint8_t *made;      // memory of the panels
    uint8_t *buffers;   // one for each thread
    size_t buffer_bytes;
} job;

static void pack_part(void *ctx, int thread, int n_threads)
{
    const job *j = ctx;
    const frit_share share = {thread, thread + 1, n_threads, thread};
    for (const pack *p = j->first; p < j->end; p++)
        if (!frit_tensor_is_by_caller(&p->tensor))
            pack_rows(p, j->made + p->offset, frit_split(frit_tensor_n_rows(&p->tensor), FRIT_PANEL_ROWS, share),
                      j->buffers + (size_t)thread * j->buffer_bytes);
}

// Rows of one matrix that are in memory, and where their panels begin.
typedef struct chunk {
    const pack *pack;
    uint8_t *panels;
    const uint8_t *rows;
    int64_t first, n;
} chunk;

static void put_part(void *ctx, int thread, int n_threads)
{
    const chunk *c = ctx;
    const frit_share share = {thread, thread + 1, n_threads, thread};
    const frit_range part = frit_split(c->n, FRIT_PANEL_ROWS, share);
    if (part.end > part.begin)
        put(c->pack, c->panels, c->first + part.begin, part.end - part.begin,
            c->rows + (size_t)part.begin * (size_t)frit_tensor_row_bytes(&c->pack->tensor));
}

// Packs a matrix whose rows only the calling thread may read: it reads chunks, which all threads pack.
static frit_status pack_by_caller(const pack *p, uint8_t *panels, frit_pool *pool)
{
    const size_t row_bytes = (size_t)frit_tensor_row_bytes(&p->tensor);
    const int64_t n_rows = frit_tensor_n_rows(&p->tensor);
    const int64_t n_fitting = (int64_t)(4 * CHUNK_BYTES / row_bytes / ROWS_AT_ONCE * ROWS_AT_ONCE);
    const int64_t n_most = n_fitting > ROWS_AT_ONCE ? n_fitting : ROWS_AT_ONCE,
                  n_at_once = n_rows < n_most ? n_rows : n_most;
    const size_t n_bytes = ((size_t)n_at_once * row_bytes + 63) / 64 * 64 + frit_tensor_scratch_bytes(&p->tensor);
    uint8_t *buffer = malloc(n_bytes);
    if (!buffer) return frit_fail_memory(n_bytes, "packing");
    uint8_t *scratch = buffer + n_bytes - frit_tensor_scratch_bytes(&p->tensor);
    chunk c = {.pack = p, .panels = panels};
    for (; c.first < n_rows; c.first += c.n) {
        c.n = n_rows - c.first < n_at_once ? n_rows - c.first : n_at_once;
        c.rows = frit_tensor_rows(&p->tensor, c.first, c.n, buffer, scratch);
        frit_pool_run(pool, put_part, &c);
    }
    free(buffer);
    return FRIT_OK;
}

static frit_status report_progress(frit_progress progress, double done)
{
    if (!progress.fn || progress.fn(progress.ctx, done)) return FRIT_OK;
    return frit_fail(FRIT_E_CANCELLED, "packing the weights was cancelled");
}

// Reports progress, also to threads that wait for the store.
static frit_status tell_all(frit_packs *packs, frit_progress progress, double done)
{
    atomic_store(&packs->n_millionths, (uint32_t)(done * 1e6));
    frit_lock_news(packs->lock);
    return report_progress(progress, done);
}

// Packs batches of matrices, and reports progress between batches.
static frit_status pack_all(frit_packs *packs, const pack_block *block, frit_pool *pool, frit_progress progress)
{
    const pack *end = block->list + block->n;
    job j = {.made = block->made};
    uint64_t n_done = 0;
    for (const pack *p = block->list; p < end; p++)
        if (buffer_bytes(p) > j.buffer_bytes) j.buffer_bytes = (buffer_bytes(p) + 63) / 64 * 64;
    j.buffers = malloc((size_t)frit_pool_size(pool) * j.buffer_bytes + 1);
    if (!j.buffers) return frit_fail_memory((size_t)frit_pool_size(pool) * j.buffer_bytes, "packing");
    frit_status status = FRIT_OK;
    for (j.first = j.end = block->list; j.first < end && status == FRIT_OK; j.first = j.end) {
        for (uint64_t n = 0; j.end < end && n < batch_bytes; j.end++) n += bytes_of(j.end);
        frit_pool_run(pool, pack_part, &j);
        for (const pack *p = j.first; p < j.end && status == FRIT_OK; p++)
            if (frit_tensor_is_by_caller(&p->tensor)) status = pack_by_caller(p, j.made + p->offset, pool);
        for (const pack *p = j.first; p < j.end; p++) drop_parts(&p->tensor), n_done += bytes_of(p);
        for (const pack *p = j.first; p < j.end && status == FRIT_OK; p++) status = frit_tensor_check(&p->tensor);
        if (status == FRIT_OK)
            status = tell_all(packs, progress, n_done < block->n_bytes ? (double)n_done / (double)block->n_bytes : 1);
    }
    free(j.buffers);
    return status;
}

// ------------------------------------------------------------------------------- the cache

static void sample_bytes(const frit_tensor *tensor, frit_buf *text)
{
    enum { SAMPLE_BYTES = 256, SAMPLES = 3 };
    const uint64_t n = tensor->n_bytes < SAMPLE_BYTES ? tensor->n_bytes : SAMPLE_BYTES;
    for (uint64_t k = 0; k < SAMPLES; k++)
        frit_buf_append(text, (const uint8_t *)tensor->data + (tensor->n_bytes - n) / (SAMPLES - 1) * k, (size_t)n);
    frit_cpu_memory_drop(tensor->data, tensor->n_bytes);
}

// Samples whole computed rows, because metadata may change how rows are computed from the files.
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

// Describes everything that panels depend on besides size and time of the files: names, shapes, and samples of the
// bytes. False if some weights are in no mapped file, so that their source is unknown.
static bool describe(const pack_block *block, frit_buf *text)
{
    for (const pack *p = block->list; p < block->list + block->n; p++) {
        if (!is_from_files(&p->tensor)) return false;
        frit_buf_printf(text, "%s %d %lld %lld %s\n", p->tensor.name, (int)p->tensor.dtype,
                        (long long)frit_tensor_n_rows(&p->tensor), (long long)frit_tensor_width(&p->tensor),
                        p->layout ? p->layout->name : "rows");
        if (p->tensor.data)
            sample_bytes(&p->tensor, text);
        else if (!sample_rows(p, text))
            return false;
    }
    return !text->failed;
}

static bool read_cache(const frit_packs *packs, frit_pool *pool, frit_store_key key, pack_block *block)
{
    block->bytes = frit_store_cache_read(&packs->cache, pool, key, block->n_bytes, &block->file);
    return block->bytes != NULL;
}

static frit_status fill(frit_packs *packs, frit_pool *pool, frit_progress progress, pack_block *block)
{
    frit_buf text = {0};
    const bool is_cached = packs->cache.folder && describe(block, &text);
    const frit_store_key key = frit_store_key_of(&packs->cache, (frit_str){text.data, text.len});
    frit_buf_free(&text);
    if (packs->cache.folder && !is_cached)
        frit_log_say(&packs->cache.log, FRIT_LOG_WARNING,
                     "weights cache: only weights that lie in mapped files are kept, and these do not");
    if (is_cached && read_cache(packs, pool, key, block)) return report_progress(progress, 1);
    block->bytes = block->made = frit_cpu_memory_new(block->n_bytes);
    if (!block->made) return frit_fail_memory((size_t)block->n_bytes, "the packed weights");
    FRIT_TRY(pack_all(packs, block, pool, progress));
    if (is_cached) frit_store_cache_write(&packs->cache, pool, key, block->bytes, block->n_bytes);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- loading

static void free_block(pack_block *block)
{
    frit_cpu_memory_free(block->made, block->n_bytes);
    frit_file_close(block->file);
    free(block->list);
    free(block);
}

// Called with the lock held.
static frit_status load(frit_packs *packs, frit_pool *pool, const frit_weight_uses *uses, frit_progress progress)
{
    pack_block *block = calloc(1, sizeof *block);
    if (!block) return frit_fail_memory(sizeof *block, "the packed weights");
    frit_status status = list_missing(packs, uses, block);
    if (status == FRIT_OK && block->n > 0) status = fill(packs, pool, progress, block);
    if (status != FRIT_OK || block->n == 0) {
        free_block(block);
        return status;
    }
    block->next = atomic_load(&packs->blocks);
    atomic_store(&packs->blocks, block);
    return FRIT_OK;
}

frit_status frit_packs_load(frit_packs *packs, frit_pool *pool, const frit_weight_uses *uses, frit_progress progress)
{
    pack_block missing = {0};
    frit_status status = list_missing(packs, uses, &missing);
    const bool is_whole = missing.n == 0;
    free(missing.list);
    if (status != FRIT_OK || is_whole) return status;
    uint32_t seen = 0;
    while (!frit_lock_wait(packs->lock, &seen))
        FRIT_TRY(report_progress(progress, 1e-6 * atomic_load(&packs->n_millionths)));
    status = load(packs, pool, uses, progress);
    atomic_store(&packs->n_millionths, 0);
    frit_lock_release(packs->lock);
    return status;
}

frit_status frit_packs_check(const frit_packs *packs)
{
    for (const pack_block *b = blocks_of(packs); b; b = b->next)
        if (b->file && !frit_file_is_intact(b->file))
            return frit_fail_file(FRIT_E_IO, "%s: the file shrank from %llu to %llu bytes while in use",
                                  frit_file_path(b->file), (unsigned long long)frit_file_size(b->file),
                                  (unsigned long long)frit_file_size_now(b->file));
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- the store

static uint64_t packs_bytes(const frit_store *store)
{
    uint64_t n_bytes = 0;
    for (const pack_block *b = blocks_of((const frit_packs *)store); b; b = b->next) n_bytes += b->n_bytes;
    return n_bytes;
}

static void packs_free(frit_store *store)
{
    frit_packs *packs = (frit_packs *)store;
    for (pack_block *b = atomic_load(&packs->blocks), *next; b; b = next) {
        next = b->next;
        free_block(b);
    }
    frit_lock_free(packs->lock);
    free(packs->cache.folder);
    free((char *)(uintptr_t)packs->base.form);
    free(packs);
}

// The form of a store: the packed types, their layouts, and the cache folder.
static char *form_of(const frit_packs_options *options)
{
    frit_buf form = {0};
    frit_buf_text(&form, "panels of");
    for (int type = 0; options->kernels && type < FRIT_DTYPE_COUNT; type++)
        if (options->kernels->packed[type].run)
            frit_buf_printf(&form, " %s", options->kernels->packed[type].layout->name);
    if (options->folder) frit_buf_printf(&form, " in %s", options->folder);
    if (!form.failed) return form.data;
    frit_buf_free(&form);
    return NULL;
}

static frit_status make_store(frit_store **out, void *ctx)
{
    const frit_packs_options *options = ctx;
    frit_packs *packs = calloc(1, sizeof *packs);
    if (!packs) return frit_fail_memory(sizeof *packs, "a store of weights");
    packs->base = (frit_store){.form = form_of(options), .free = packs_free, .n_bytes = packs_bytes};
    for (int type = 0; type < FRIT_DTYPE_COUNT; type++)
        packs->layouts[type] = options->kernels ? options->kernels->packed[type].layout : NULL;
    packs->cache = (frit_store_cache){.source = options->source, .log = options->log ? *options->log : (frit_log){0}};
    packs->most_floats = options->most_floats;
    frit_buf folder = {0};
    if (options->folder) frit_buf_text(&folder, options->folder);
    packs->cache.folder = folder.data;
    frit_status status = frit_lock_new(&packs->lock);
    if (!packs->base.form || folder.failed) status = frit_fail_memory(folder.len, "the name of a store of weights");
    if (status != FRIT_OK) {
        packs_free(&packs->base);
        return status;
    }
    *out = &packs->base;
    return FRIT_OK;
}

frit_status frit_packs_open(frit_packs **out, frit_stores *stores, const frit_packs_options *options)
{
    *out = NULL;
    char *form = form_of(options);
    if (!form) return frit_fail_memory(1, "the name of a store of weights");
    frit_store *store;
    const frit_status status = frit_stores_acquire(stores, form, make_store, (void *)(uintptr_t)options, &store);
    free(form);
    *out = (frit_packs *)store;
    return status;
}
