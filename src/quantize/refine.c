// SPDX-License-Identifier: MIT
// Rounding a quantized file's matrices again, layer by layer, with the covariance of their inputs (refine_rows.h).
//
// Two engines read the same text: the model's and the quantized file's, of which what comes before is refined. Both
// run the layer (refine_stream.h), whose inputs in the one and the other give H and C. Every eighth window of the text
// is held out. Matrices that read the same are refined together, and then the layer runs again for its next ones: what
// takes back errors must know those that will be there. The output matrix comes last. One that the model shares with
// its token embeddings stays: those have been read.
#include "quantize/refine.h"
#include "backend/cpu/pack/memory.h"
#include "base/file/file.h"
#include "base/time.h"
#include "quantize/refine_file.h"
#include "quantize/refine_rows.h"
#include "quantize/refine_state.h"
#include "quantize/refine_stream.h"
#include "format/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_OUT = 8, MEASURED_WINDOWS = 16, TOKENS_PER_COLUMN = 5, ROUNDS = 5 };
static const float alpha = 0.5f;   // how much of the errors of earlier layers is taken back

// Of a layer, in nanoseconds: where its time goes.
typedef struct layer_times {
    uint64_t model, file, sums, factors, rounding;
} layer_times;

typedef struct refining {
    const frit_refine_options *options;
    frit_log log;
    const char *path;   // of the quantized file
    frit_file *file;    // a copy of it, in which blocks are replaced
    char *bytes;        // its content
    size_t n_bytes;
    frit_model *source, *quantized;
    frit_refine_text text;
    frit_refine_stream original, changed;   // the model's, and the quantized file's
    frit_covariance *kept, *kept_held;      // what the model's matrices of the layer read
    uint64_t most_kept;                     // bytes
    bool keeps_all;                         // of all windows
    int32_t kept_layer;                     // that they are of; below 0: none
    int64_t next;                           // the matrices that read what this entry of them does are refined now
    frit_covariance *sums, *held;
    frit_pool *pool;
    int32_t layer;     // past the last one: the output
    char prefix[64];   // of the layer's tensors: "blk.3."
    frit_map done;     // names of tensors
    frit_refine_input input;
    const float *input_of;   // the sums that `input` has the factor of
    int64_t n_matrices, n_refined, n_worse, n_few;
    int32_t n_in_layer, n_left;   // tensors to refine
    frit_refine_labels labels;
    frit_refine_state state;
    size_t n_taken;   // tensors of an earlier run
    layer_times times;
} refining;

// ------------------------------------------------------------------------------------- reading the text

static bool is_left(const refining *r, const char *name)
{
    int64_t any;
    return strncmp(name, r->prefix, strlen(r->prefix)) == 0 && !frit_map_get(&r->done, frit_str_of(name), &any);
}

// What the model's engine reads: all of the layer where that is kept, else what the next matrices read, so that steps
// end there. Names that are not known yet belong to a layer that is looked at first.
static bool is_kept(void *ctx, const char *name)
{
    const refining *r = ctx;
    const frit_covariance_entry *entry = frit_covariance_find(r->kept, name);
    return is_left(r, name) && (!entry || r->keeps_all || entry->source == r->next);
}

static bool is_wanted(void *ctx, const char *name)
{
    const refining *r = ctx;
    const frit_covariance_entry *entry = frit_covariance_find(r->kept, name);
    return entry && entry->source == r->next && is_left(r, name);
}

static frit_status say_progress(refining *r)
{
    const frit_refine_options *o = r->options;
    const double share = r->n_in_layer > 0 ? (double)r->n_left / r->n_in_layer : 1;
    const double done = ((double)r->layer + 1 - share) / (r->source->hp.n_layer + 1);
    if (!o->progress || o->progress(o->progress_ctx, done)) return FRIT_OK;
    return frit_fail(FRIT_E_CANCELLED, "%s: refining was cancelled", r->path);
}

static const frit_tensor *own_output(const refining *r);
static bool is_refinable(const refining *r, const char *name);

// The last layer after which something is refined yet.
static int32_t last_to_leave(const refining *r)
{
    return r->source->hp.n_layer - (own_output(r) ? 1 : 2);
}

// Whether the layer has no matrices to refine but those that are refined now.
static bool is_last_group(const refining *r)
{
    for (int64_t i = 0; i < r->kept->n; i++) {
        const frit_covariance_entry *entry = &r->kept->entries[i];
        if (entry->source != r->next && is_left(r, entry->name) && is_refinable(r, entry->name)) return false;
    }
    return true;
}

// Adds the time since `from` to a sum, and returns now.
static uint64_t count_time(uint64_t *sum, uint64_t from)
{
    const uint64_t now = frit_time_ns();
    *sum += now - from;
    return now;
}

static frit_status read_group(refining *r, frit_refine_windows windows, bool is_read, frit_covariance *sums)
{
    uint64_t now = frit_time_ns();
    if (!is_read) FRIT_TRY(frit_refine_stream_run(&r->original, windows, r->text.window));
    now = count_time(&r->times.model, now);
    const uint64_t before = sums->spent_ns;
    FRIT_TRY(frit_refine_stream_run(&r->changed, windows, r->text.window));
    count_time(&r->times.file, now);
    r->times.file -= sums->spent_ns - before;
    r->times.sums += sums->spent_ns - before;
    return say_progress(r);
}

// The next windows from w on that are held out, or not, as many as a step may have; n 0: none.
static frit_refine_windows next_windows(const refining *r, int64_t w, bool is_held)
{
    frit_refine_windows windows = {.apart = is_held ? HELD_OUT : 1};
    while (w < r->text.n_windows && (w % HELD_OUT == HELD_OUT - 1) != is_held) w++;
    windows.first = w;
    for (; w < r->text.n_windows && windows.n < FRIT_REFINE_AT_ONCE; w += windows.apart, windows.n++)
        if ((w % HELD_OUT == HELD_OUT - 1) != is_held) break;
    return windows;
}

// The windows that are held out, or the others. The model's engine need not run where all that it has read is kept. It
// goes on to the next layer where it need not come back to this one.
static frit_status read_windows(refining *r, bool is_held, frit_covariance *kept, frit_covariance *sums)
{
    const bool is_read = r->keeps_all && r->kept_layer == r->layer;
    const bool leaves = r->layer <= last_to_leave(r) && (r->keeps_all || is_last_group(r));
    const bool advances = r->original.rows && leaves;
    frit_covariance_set_against(sums, kept);
    if (!is_read) FRIT_TRY(frit_refine_stream_begin(&r->original, kept, r->layer, advances));
    FRIT_TRY(frit_refine_stream_begin(&r->changed, sums, r->layer, false));
    frit_refine_windows windows = next_windows(r, 0, is_held);
    for (; windows.n > 0; windows = next_windows(r, windows.first + windows.n * windows.apart, is_held)) {
        if (!r->keeps_all) frit_covariance_forget(kept);
        if (!r->keeps_all) frit_covariance_forget(sums);
        FRIT_TRY(read_group(r, windows, is_read, sums));
    }
    const uint64_t now = frit_time_ns();
    FRIT_TRY(frit_covariance_finish(sums, r->pool));
    count_time(&r->times.sums, now);
    return FRIT_OK;
}

static frit_status new_covariance(refining *r, bool (*wants)(void *, const char *), frit_covariance **out)
{
    const frit_covariance_options options = {.wants = wants, .wants_ctx = r};
    return frit_covariance_new(out, &options);
}

// What matrices the layer has, and which read the same: one token shows.
static frit_status find_matrices(refining *r)
{
    uint64_t n_bytes = 0;
    FRIT_TRY(new_covariance(r, is_kept, &r->kept));
    FRIT_TRY(new_covariance(r, is_kept, &r->kept_held));
    r->kept->keeps_rows = true;
    FRIT_TRY(frit_refine_stream_begin(&r->original, r->kept, r->layer, false));
    FRIT_TRY(frit_refine_stream_run(&r->original, (frit_refine_windows){0, 1, 1}, 1));
    frit_covariance_forget(r->kept);
    for (int64_t i = 0; i < r->kept->n; i++)
        if (r->kept->entries[i].source == i)
            n_bytes += (uint64_t)r->options->n_tokens * (uint64_t)r->kept->entries[i].width * sizeof(float);
    r->keeps_all = n_bytes <= r->most_kept / 2;   // room grows twofold
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- matrices

typedef struct matrix {
    const frit_tensor *from, *to;
    int64_t index, n_rows, width;   // of the tensor's matrices
    float *weights;
    uint8_t *blocks;
} matrix;

static uint64_t weights_bytes(const matrix *m)
{
    return (uint64_t)(m->n_rows * m->width) * sizeof *m->weights;
}

static uint8_t *blocks_of(const refining *r, const matrix *m)
{
    const size_t offset = (size_t)((const char *)m->to->data - r->bytes);
    return (uint8_t *)r->bytes + offset + (size_t)(m->index * m->n_rows) * frit_dtype_row_bytes(m->to->dtype, m->width);
}

typedef struct reading {
    const matrix *m;
    _Atomic bool failed;
} reading;

static void read_part(void *ctx, int part, int parts)
{
    reading *all = ctx;
    const matrix *m = all->m;
    uint8_t *row = malloc((size_t)frit_tensor_row_bytes(m->from)),
            *scratch = malloc(frit_tensor_scratch_bytes(m->from) + 1);
    if (!row || !scratch) all->failed = true;
    for (int64_t i = m->n_rows * part / parts; i < m->n_rows * (part + 1) / parts && !all->failed; i++) {
        const uint8_t *at = frit_tensor_rows(m->from, m->index * m->n_rows + i, 1, row, scratch);
        frit_dtype_get(m->from->dtype)->decode(at, m->weights + i * m->width, m->width);
    }
    free(row);
    free(scratch);
}

static frit_status read_weights(const refining *r, const matrix *m)
{
    reading all = {.m = m};
    frit_pool_run(r->pool, read_part, &all);
    return all.failed ? frit_fail_memory((size_t)frit_tensor_row_bytes(m->from), m->from->name) : FRIT_OK;
}

static void drop(void *ctx, const float *numbers)
{
    const refining *r = ctx;
    frit_covariance_drop(r->sums, numbers);
    frit_covariance_drop(r->held, numbers);
}

static frit_status prepare_input(refining *r, const frit_covariance_entry *sums, int64_t index)
{
    const frit_covariance_entry *held = frit_covariance_find(r->held, sums->name);
    const int64_t n = sums->width * sums->width;
    const float *at = sums->sums + index * n;
    if (at == r->input_of) return FRIT_OK;
    frit_refine_input_free(&r->input);
    r->input_of = NULL;
    r->input = (frit_refine_input){.dense = r->sums->dense,
                                   .width = sums->width,
                                   .sums = at,
                                   .cross = sums->cross,
                                   .held = held ? held->sums + index * n : NULL,
                                   .held_cross = held ? held->cross : NULL,
                                   .alpha = alpha,
                                   .rounds = ROUNDS,
                                   .drop = sums->n_each > 1 ? NULL : drop,   // of experts others come yet
                                   .drop_ctx = r};
    const uint64_t start = frit_time_ns();
    FRIT_TRY(frit_refine_factor(&r->input, r->pool));
    count_time(&r->times.factors, start);
    r->input_of = at;
    return FRIT_OK;
}

// Replaces the blocks if they are better over the tokens that are held out.
static frit_status refine_matrix(refining *r, matrix *m)
{
    frit_refine_rows rows = {
        .type = m->to->dtype, .weights = m->weights, .start = blocks_of(r, m), .blocks = m->blocks, .n = m->n_rows};
    const uint64_t start = frit_time_ns();
    FRIT_TRY(read_weights(r, m));
    FRIT_TRY(frit_refine_run(&r->input, &rows, r->pool));
    count_time(&r->times.rounding, start);
    if (rows.change < 0) {
        memcpy(blocks_of(r, m), m->blocks, (size_t)m->n_rows * frit_dtype_row_bytes(m->to->dtype, m->width));
        r->n_refined++;
    } else
        r->n_worse++;
    return FRIT_OK;
}

static frit_status refine_matrices(refining *r, matrix *m, const frit_covariance_entry *sums)
{
    const int64_t n_matrices = m->to->n_dims > 2 ? frit_tensor_n_rows(m->to) / m->n_rows : 1;
    for (m->index = 0; m->index < n_matrices; m->index++) {
        const int64_t each = sums->n_each > 1 ? m->index : 0;
        r->n_matrices++;
        if (sums->counts[each] < TOKENS_PER_COLUMN * m->width) {
            r->n_few++;
            continue;
        }
        FRIT_TRY(prepare_input(r, sums, each));
        FRIT_TRY(refine_matrix(r, m));
    }
    return FRIT_OK;
}

static bool is_refinable(const refining *r, const char *name)
{
    const frit_tensor *to = frit_checkpoint_find(r->quantized->ckpt, name);
    const frit_tensor *from = frit_checkpoint_find(r->source->ckpt, name);
    return to && from && to->n_dims > 1 && frit_block_format_get(to->dtype) && from->dtype != to->dtype;
}

static frit_status refine_tensor(refining *r, const char *name)
{
    const frit_covariance_entry *sums = frit_covariance_find(r->sums, name);
    const frit_tensor *to = frit_checkpoint_find(r->quantized->ckpt, name);
    matrix m = {.from = frit_checkpoint_find(r->source->ckpt, name), .to = to, .width = frit_tensor_width(to)};
    m.n_rows = to->shape[to->n_dims - 2];
    if (frit_tensor_width(m.from) != m.width || frit_tensor_n_rows(m.from) != frit_tensor_n_rows(to))
        return frit_fail(FRIT_E_INVALID, "%s: '%s' has another shape than in the model", r->path, to->name);
    if (!sums || sums->width != m.width) return FRIT_OK;
    m.weights = frit_cpu_memory_new(weights_bytes(&m));
    m.blocks = malloc((size_t)m.n_rows * frit_dtype_row_bytes(to->dtype, m.width));
    const frit_status status =
        m.weights && m.blocks ? refine_matrices(r, &m, sums) : frit_fail_memory((size_t)weights_bytes(&m), to->name);
    frit_cpu_memory_free(m.weights, weights_bytes(&m));
    free(m.blocks);
    return status;
}

// ------------------------------------------------------------------------------------- layers

static frit_engine_options engine_options(const refining *r)
{
    return (frit_engine_options){.n_ctx = (int32_t)r->text.window,
                                 .n_batch = FRIT_REFINE_AT_ONCE * (int32_t)r->text.window,
                                 .n_sessions = FRIT_REFINE_AT_ONCE,
                                 .n_threads = r->options->n_threads,
                                 .cache_type_k = "f16",
                                 .cache_type_v = "f16",
                                 .device = "cpu",
                                 .no_prefix_cache = true};   // windows are steps: kernels for prompts run all
}

static void close_pass(refining *r)
{
    frit_engine_free(r->changed.engine);
    frit_model_free(r->quantized);
    frit_covariance_free(r->sums);
    frit_covariance_free(r->held);
    frit_refine_input_free(&r->input);
    r->changed.engine = NULL;
    r->quantized = NULL;
    r->sums = r->held = NULL;
    r->input_of = NULL;
}

static void close_layer(refining *r)
{
    if (r->original.engine) frit_engine_observe_covariance(r->original.engine, NULL);
    frit_covariance_free(r->kept);
    frit_covariance_free(r->kept_held);
    r->kept = r->kept_held = NULL;
    r->kept_layer = -1;
    r->n_in_layer = 0;
}

static frit_status check_target(const refining *r)
{
    const frit_hparams *a = &r->source->hp, *b = &r->quantized->hp;
    const bool is_same = r->source->arch == r->quantized->arch && a->n_layer == b->n_layer && a->n_embd == b->n_embd &&
                         a->n_vocab == b->n_vocab;
    if (is_same) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "%s: the file is of another model than %s", r->path, r->source->ckpt->path);
}

// Tensors of the layer that are to be refined.
static int32_t count_left(const refining *r)
{
    const frit_checkpoint *ckpt = r->quantized->ckpt;
    int32_t n = 0;
    for (size_t i = 0; i < ckpt->n_tensors; i++)
        n += is_left(r, ckpt->tensors[i].name) && is_refinable(r, ckpt->tensors[i].name);
    return n;
}

// The first matrices of the layer that are left; false: there are none.
static bool find_next(refining *r)
{
    for (int64_t i = 0; i < r->kept->n; i++) {
        const frit_covariance_entry *entry = &r->kept->entries[i];
        if (!is_left(r, entry->name) || !is_refinable(r, entry->name)) continue;
        r->next = entry->source;
        return true;
    }
    return false;
}

// kept: those that are refined.
static frit_status refine_group(refining *r, frit_refine_blocks *kept, size_t *n)
{
    for (int64_t i = 0; i < r->kept->n; i++) {
        const frit_covariance_entry *entry = &r->kept->entries[i];
        const frit_tensor *tensor = frit_checkpoint_find(r->source->ckpt, entry->name);
        if (entry->source != r->next || !is_left(r, entry->name)) continue;
        if (is_refinable(r, entry->name)) {
            const frit_tensor *to = frit_checkpoint_find(r->quantized->ckpt, entry->name);
            FRIT_TRY(refine_tensor(r, entry->name));
            kept[(*n)++] = (frit_refine_blocks){tensor->name, strlen(tensor->name), to->data, to->n_bytes};
        }
        if (!frit_map_put(&r->done, frit_str_of(tensor->name), 1)) return frit_fail_memory(64, "a layer");
    }
    return FRIT_OK;
}

static frit_status refine_next(refining *r)
{
    size_t n = 0;
    frit_refine_blocks *kept = calloc((size_t)r->kept->n, sizeof *kept);
    frit_status status = kept ? refine_group(r, kept, &n) : frit_fail_memory((size_t)r->kept->n, "a layer");
    const frit_refine_progress progress = {r->layer, r->n_matrices, r->n_refined, r->n_worse, r->n_few};
    if (status == FRIT_OK) status = frit_refine_state_add(&r->state, &progress, kept, n);
    free(kept);
    r->n_left = count_left(r);
    return status;
}

// NULL: the model shares it with its token embeddings.
static const frit_tensor *own_output(const refining *r)
{
    const frit_weights *weights = &r->source->weights;
    const frit_tensor *output = weights->lm_head.w;
    return output && output != weights->tok_embd.w && strlen(output->name) < sizeof r->prefix ? output : NULL;
}

static void set_prefix(refining *r)
{
    const frit_tensor *output = own_output(r);
    if (r->layer < r->source->hp.n_layer)
        snprintf(r->prefix, sizeof r->prefix, "blk.%d.", (int)r->layer);
    else
        snprintf(r->prefix, sizeof r->prefix, "%s", output ? output->name : "none");
}

static frit_status open_changed(refining *r)
{
    FRIT_TRY(frit_model_open_memory(&r->quantized, r->bytes, r->n_bytes, NULL));
    r->quantized->loads_late = true;   // an engine for each group of matrices, of a layer
    r->quantized->floats_coarse = true;
    return check_target(r);
}

static frit_status start_changed(refining *r)
{
    const frit_engine_options options = engine_options(r);
    return frit_engine_new(&r->changed.engine, r->quantized, &options);
}

// The next matrices of the layer, that read the same.
static frit_status run_pass(refining *r, bool *is_done)
{
    FRIT_TRY(open_changed(r));
    r->n_left = count_left(r);
    if (r->n_in_layer == 0) r->n_in_layer = r->n_left;
    *is_done = r->n_left == 0;
    if (*is_done) return FRIT_OK;
    if (!r->kept) FRIT_TRY(find_matrices(r));
    *is_done = !find_next(r);
    if (*is_done) return FRIT_OK;
    FRIT_TRY(start_changed(r));
    FRIT_TRY(new_covariance(r, is_wanted, &r->sums));
    FRIT_TRY(new_covariance(r, is_wanted, &r->held));
    r->sums->gathers = r->held->gathers = true;
    FRIT_TRY(read_windows(r, false, r->kept, r->sums));
    FRIT_TRY(read_windows(r, true, r->kept_held, r->held));
    if (r->original.advances) r->original.layer = r->layer + 1;
    r->kept_layer = r->layer;
    return refine_next(r);
}

static bool wants_none(void *ctx, const char *name)
{
    (void)ctx, (void)name;
    return false;
}

static frit_status advance(refining *r, frit_refine_stream *stream)
{
    FRIT_TRY(new_covariance(r, wants_none, &r->sums));
    FRIT_TRY(frit_refine_stream_begin(stream, r->sums, r->layer, true));
    for (int64_t w = 0; w < r->text.n_windows; w += FRIT_REFINE_AT_ONCE) {
        const int64_t n = r->text.n_windows - w < FRIT_REFINE_AT_ONCE ? r->text.n_windows - w : FRIT_REFINE_AT_ONCE;
        FRIT_TRY(frit_refine_stream_run(stream, (frit_refine_windows){w, 1, n}, r->text.window));
        FRIT_TRY(say_progress(r));
    }
    stream->layer = r->layer + 1;
    FRIT_TRY(frit_engine_observe_covariance(stream->engine, NULL));
    frit_covariance_free(r->sums);
    r->sums = NULL;
    return FRIT_OK;
}

// From the layer to the next one, in both engines, where what they read is kept.
static frit_status advance_both(refining *r)
{
    uint64_t now = frit_time_ns();
    if (r->layer > last_to_leave(r) || !r->original.rows) return FRIT_OK;
    if (r->original.layer <= r->layer) FRIT_TRY(advance(r, &r->original));
    now = count_time(&r->times.model, now);
    FRIT_TRY(open_changed(r));
    FRIT_TRY(start_changed(r));
    FRIT_TRY(advance(r, &r->changed));
    count_time(&r->times.file, now);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- what a run before has done

// Of everything that the result follows from.
static void make_key(const refining *r, uint8_t key[FRIT_SHA256_BYTES])
{
    const uint64_t version = 4;   // of the search: what another one began is not gone on with
    frit_sha256 sum;
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, &version, sizeof version);
    frit_sha256_add(&sum, r->labels.sha256, sizeof r->labels.sha256);
    frit_checkpoint_hash(r->source->ckpt, &sum);
    frit_sha256_add(&sum, r->bytes, r->n_bytes);
    frit_sha256_end(&sum, key);
}

static const frit_tensor *find_named(const frit_checkpoint *ckpt, const frit_refine_blocks *blocks)
{
    int64_t at;
    const frit_str name = {blocks->name, (size_t)blocks->name_bytes};
    return frit_map_get(&ckpt->tensor_index, name, &at) ? &ckpt->tensors[at] : NULL;
}

static bool take_blocks(void *ctx, const frit_refine_progress *progress, const frit_refine_blocks *blocks)
{
    refining *r = ctx;
    const frit_tensor *to = find_named(r->quantized->ckpt, blocks), *from = find_named(r->source->ckpt, blocks);
    const bool fits = to && from && to->n_bytes == blocks->n_bytes && progress->layer >= r->layer &&
                      progress->layer <= r->source->hp.n_layer;
    if (!fits || !frit_map_put(&r->done, frit_str_of(from->name), 1)) return false;
    memcpy(r->bytes + ((const char *)to->data - r->bytes), blocks->blocks, (size_t)blocks->n_bytes);
    r->layer = (int32_t)progress->layer;
    r->n_matrices = progress->n_matrices;
    r->n_refined = progress->n_refined;
    r->n_worse = progress->n_worse;
    r->n_few = progress->n_few;
    r->n_taken++;
    return true;
}

// Both engines run as far as the layer that is refined next.
static frit_status resume(refining *r)
{
    uint8_t key[FRIT_SHA256_BYTES];
    make_key(r, key);
    FRIT_TRY(open_changed(r));
    frit_status status = frit_refine_state_open(&r->state, r->path, key, take_blocks, r);
    close_pass(r);
    if (status != FRIT_OK || r->n_taken == 0) return status;
    frit_log_say(&r->log, FRIT_LOG_INFO, "%s: goes on after the %zu tensors that a run before has refined", r->path,
                 r->n_taken);
    if (r->layer == 0) return FRIT_OK;
    r->layer--;
    status = advance_both(r);
    close_pass(r);
    r->layer++;
    return status;
}

// ------------------------------------------------------------------------------------- the whole

static frit_status open_copy(refining *r)
{
    frit_file_close(r->file);
    r->file = NULL;
    FRIT_TRY(frit_file_open_copy(&r->file, r->path));
    r->bytes = (char *)frit_file_bytes(r->file);
    r->n_bytes = (size_t)frit_file_size(r->file);
    return FRIT_OK;
}

static void say_times(const refining *r)
{
    const layer_times *t = &r->times;
    frit_log_say(
        &r->log, FRIT_LOG_DEBUG,
        "%.40s: reading the model took %.1f s, the file %.1f s, covariance %.1f s, its factors %.1f s, rounding "
        "%.1f s",
        r->prefix, 1e-9 * (double)t->model, 1e-9 * (double)t->file, 1e-9 * (double)t->sums, 1e-9 * (double)t->factors,
        1e-9 * (double)t->rounding);
}

static frit_status refine_layer(refining *r)
{
    frit_status status = FRIT_OK;
    set_prefix(r);
    r->times = (layer_times){0};
    for (bool is_done = false; !is_done && status == FRIT_OK;) {
        status = run_pass(r, &is_done);
        close_pass(r);
    }
    if (status == FRIT_OK) status = advance_both(r);
    if (status == FRIT_OK) say_times(r);
    close_pass(r);
    close_layer(r);
    return status;
}

static int64_t window_of(const frit_model *source)
{
    const int64_t n = source->hp.n_ctx;
    return n > 0 && n < FRIT_REFINE_WINDOW ? n : FRIT_REFINE_WINDOW;
}

frit_status frit_refine_check(const frit_model *source, size_t n_tokens)
{
    FRIT_REQUIRE(source);
    if (strncmp(source->ckpt->format, "GGUF", 4) != 0)
        return frit_fail(FRIT_E_UNSUPPORTED, "%s: refining needs the model as a GGUF file; 'frit convert' makes one",
                         source->ckpt->path);
    if (source->vocab_only || source->arch->is_encoder || source->arch->is_encoder_decoder)
        return frit_fail(FRIT_E_UNSUPPORTED, "%s: refining is for models that continue a text", source->ckpt->path);
    const int64_t least = HELD_OUT * window_of(source);
    if (n_tokens / (size_t)HELD_OUT >= (size_t)window_of(source)) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "refining needs a text of at least %lld tokens, found %zu", (long long)least,
                     n_tokens);
}

static frit_status check_source(refining *r)
{
    size_t n = 0;
    FRIT_TRY(frit_refine_check(r->source, r->options->n_tokens));
    frit_refine_text *text = &r->text;
    text->tokens = r->options->tokens;
    text->has_bos = frit_tokenize(r->source, "", 0, FRIT_TEXT_SPECIAL, &text->bos, 1, &n) == FRIT_OK && n == 1;
    text->window = window_of(r->source);
    text->n_windows = (int64_t)r->options->n_tokens / text->window;
    return FRIT_OK;
}

// What is left of the memory may keep what matrices read.
static frit_status open_streams(refining *r)
{
    r->original.text = r->changed.text = &r->text;
    r->original.path = r->changed.path = r->path;
    FRIT_TRY(frit_refine_stream_open(&r->original, r->source, r->most_kept / 2));
    if (!r->original.rows) return FRIT_OK;
    FRIT_TRY(frit_refine_stream_open(&r->changed, r->source, r->most_kept / 2));
    r->most_kept -= 2 * (uint64_t)(r->text.n_windows * r->text.window * r->source->hp.n_embd) * sizeof(float);
    return FRIT_OK;
}

// Over text that is held out: as exactly as engines compute, which for covariance they need not.
static frit_status measure(refining *r, double *kl)
{
    const frit_engine_options options = engine_options(r);
    frit_refine_stream exact = {.text = &r->text};
    frit_status status = open_changed(r);
    r->source->floats_coarse = false;
    if (status == FRIT_OK) status = frit_engine_new(&exact.engine, r->source, &options);
    r->source->floats_coarse = true;
    if (status == FRIT_OK) r->quantized->floats_coarse = false;
    if (status == FRIT_OK) status = start_changed(r);
    if (status == FRIT_OK)
        status = frit_refine_measure(&exact, &r->changed, HELD_OUT - 1, HELD_OUT, MEASURED_WINDOWS, kl);
    frit_engine_free(exact.engine);
    close_pass(r);
    return status;
}

static frit_status refine_layers(refining *r)
{
    const int32_t n_layers = r->source->hp.n_layer;
    for (; r->layer <= n_layers; r->layer++) FRIT_TRY(refine_layer(r));
    return FRIT_OK;
}

static void say_refined(refining *r, double before, double after)
{
    frit_log_say(&r->log, FRIT_LOG_INFO, "over text that is held out the KL divergence goes from %.5f to %.5f", before,
                 after);
    frit_log_say(&r->log, FRIT_LOG_INFO,
                 "%lld of %lld matrices are refined; %lld stay because their errors on other text did not fall, %lld "
                 "because fewer than %d tokens for each column reached them",
                 (long long)r->n_refined, (long long)r->n_matrices, (long long)r->n_worse, (long long)r->n_few,
                 (int)TOKENS_PER_COLUMN);
}

// Matrices stay where the whole of what was refined does not help.
static frit_status finish(refining *r, double before)
{
    double after;
    FRIT_TRY(measure(r, &after));
    const bool is_worse = r->n_refined > 0 && !(after < before);
    if (is_worse) {
        frit_log_say(&r->log, FRIT_LOG_INFO,
                     "0 of %lld matrices are refined: over text that is held out the KL divergence would go from %.5f "
                     "to %.5f",
                     (long long)r->n_matrices, before, after);
        FRIT_TRY(open_copy(r));   // as it was
    } else
        say_refined(r, before, after);
    r->labels.kl = is_worse ? before : after;
    r->labels.n_matrices = is_worse ? 0 : (uint64_t)r->n_refined;
    return frit_refine_write(r->path, r->bytes, r->n_bytes, &r->labels, is_worse ? NULL : &r->done);
}

// Whether a matrix has another type than in the model.
static frit_status find_changes(refining *r, bool *has_any)
{
    *has_any = false;
    FRIT_TRY(open_changed(r));
    const frit_checkpoint *ckpt = r->quantized->ckpt;
    for (size_t i = 0; i < ckpt->n_tensors; i++) {
        const frit_tensor *to = &ckpt->tensors[i], *from = frit_checkpoint_find(r->source->ckpt, to->name);
        *has_any |= to->n_dims > 1 && from && from->dtype != to->dtype;
    }
    close_pass(r);
    return FRIT_OK;
}

static void label_text(refining *r)
{
    const int64_t n_held = r->text.n_windows / HELD_OUT;
    frit_sha256 sum;
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, r->options->tokens, r->options->n_tokens * sizeof *r->options->tokens);
    frit_sha256_end(&sum, r->labels.sha256);
    r->labels.n_tokens = r->options->n_tokens;
    r->labels.n_windows = (uint64_t)(n_held < MEASURED_WINDOWS ? n_held : MEASURED_WINDOWS);
}

static frit_status refine(refining *r, const char *source)
{
    double before;
    bool has_any;
    FRIT_TRY(frit_model_open(&r->source, source, NULL));
    r->source->floats_in_place = r->source->loads_late = true;   // layers run one after the other
    r->source->floats_coarse = true;   // what products round has no direction, and cancels in sums over many rows
    FRIT_TRY(check_source(r));
    label_text(r);
    FRIT_TRY(open_copy(r));
    FRIT_TRY(find_changes(r, &has_any));
    if (!has_any) {
        frit_log_say(&r->log, FRIT_LOG_INFO, "%s: its matrices have the types of the model, and none is rounded again",
                     r->path);
        return FRIT_OK;
    }
    const frit_engine_options options = engine_options(r);
    FRIT_TRY(frit_engine_new(&r->original.engine, r->source, &options));
    FRIT_TRY(open_streams(r));
    FRIT_TRY(frit_pool_new(&r->pool, options.n_threads));
    FRIT_TRY(measure(r, &before));
    FRIT_TRY(resume(r));
    FRIT_TRY(refine_layers(r));
    return finish(r, before);
}

frit_status frit_refine_within(const char *source, const char *target, const frit_refine_options *options,
                               uint64_t most_kept)
{
    refining r = {.options = options,
                  .log = {options->log, options->log_ctx},
                  .path = target,
                  .most_kept = most_kept,
                  .kept_layer = -1};
    const frit_status status = refine(&r, source);
    if (status == FRIT_E_CANCELLED && r.state.writer)
        frit_log_say(&r.log, FRIT_LOG_INFO, "the next run goes on from %s.refine.part", target);
    frit_refine_state_close(&r.state, status != FRIT_OK);
    close_pass(&r);
    frit_engine_free(r.original.engine);
    frit_refine_stream_close(&r.original);
    frit_refine_stream_close(&r.changed);
    frit_model_free(r.source);
    frit_pool_free(r.pool);
    frit_map_free(&r.done);
    frit_file_close(r.file);
    return status;
}

frit_status frit_refine(const char *source, const char *target, const frit_refine_options *options)
{
    FRIT_REQUIRE(source);
    FRIT_REQUIRE(target);
    FRIT_REQUIRE(options);
    FRIT_REQUIRE_UNUSED(options);
    FRIT_REQUIRE_ITEMS(options->tokens, options->n_tokens);
    return frit_refine_within(source, target, options, UINT64_C(4) << 30);
}
