// SPDX-License-Identifier: MIT
// Refining a layer: both engines run it over the text, then groups of matrices with the same input are rounded again.
#include "quantize/refine_job.h"
#include "base/time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------------- tensors

// True if the tensor belongs to the layer and was not refined yet.
static bool is_left(const frit_refining *r, const char *name)
{
    int64_t any;
    return strncmp(name, r->prefix, strlen(r->prefix)) == 0 && !frit_map_get(&r->done, frit_str_of(name), &any);
}

// Returns the output matrix; NULL if the model shares it with its token embeddings.
static const frit_tensor *own_output(const frit_refining *r)
{
    const frit_weights *weights = &r->source->weights;
    const frit_tensor *output = weights->lm_head.w;
    return output && output != weights->tok_embd.w && strlen(output->name) < sizeof r->prefix ? output : NULL;
}

// Returns the last layer that has layers or an output matrix to refine after it.
static int32_t last_to_leave(const frit_refining *r)
{
    return r->source->hp.n_layer - (own_output(r) ? 1 : 2);
}

// Counts the tensors of the layer that are still to be refined.
static int32_t count_left(const frit_refining *r)
{
    const frit_checkpoint *ckpt = r->quantized->ckpt;
    int32_t n = 0;
    for (size_t i = 0; i < ckpt->n_tensors; i++)
        n += is_left(r, ckpt->tensors[i].name) && frit_refine_can_round(r, ckpt->tensors[i].name);
    return n;
}

// True if the layer has no other matrices to refine than the current group.
static bool is_last_group(const frit_refining *r)
{
    for (int64_t i = 0; i < r->kept->n; i++) {
        const frit_covariance_entry *entry = &r->kept->entries[i];
        if (entry->source != r->next && is_left(r, entry->name) && frit_refine_can_round(r, entry->name)) return false;
    }
    return true;
}

// Sets r->next to the next group of matrices to refine. Returns false if the layer is finished.
static bool find_next(frit_refining *r)
{
    for (int64_t i = 0; i < r->kept->n; i++) {
        const frit_covariance_entry *entry = &r->kept->entries[i];
        if (!is_left(r, entry->name) || !frit_refine_can_round(r, entry->name)) continue;
        r->next = entry->source;
        return true;
    }
    return false;
}

// ------------------------------------------------------------------------------------- reading the text

// Selects the matrices whose inputs the model's engine stores: all of the layer if memory allows, else the next group,
// so that steps end there. Names without an entry are accepted while the matrices of the layer are looked for.
static bool is_kept(void *ctx, const char *name)
{
    const frit_refining *r = ctx;
    const frit_covariance_entry *entry = frit_covariance_find(r->kept, name);
    return is_left(r, name) && (!entry || r->keeps_all || entry->source == r->next);
}

// Selects the current group for the sums of the quantized file's engine.
static bool is_wanted(void *ctx, const char *name)
{
    const frit_refining *r = ctx;
    const frit_covariance_entry *entry = frit_covariance_find(r->kept, name);
    return entry && entry->source == r->next && is_left(r, name);
}

static frit_status run_windows(frit_refining *r, frit_refine_windows windows, bool is_read, frit_covariance *sums)
{
    uint64_t now = frit_time_ns();
    if (!is_read) FRIT_TRY(frit_refine_stream_run(&r->original, windows, r->text.window));
    now = frit_refine_count_time(&r->times.model, now);
    const uint64_t before = sums->spent_ns;
    FRIT_TRY(frit_refine_stream_run(&r->changed, windows, r->text.window));
    frit_refine_count_time(&r->times.file, now);
    r->times.file -= sums->spent_ns - before;
    r->times.sums += sums->spent_ns - before;
    return frit_refine_report_progress(r);
}

// Returns the next windows from w on that are held out, or that are not, at most as many as a step has room for; n 0:
// none.
static frit_refine_windows next_windows(const frit_refining *r, int64_t w, bool is_held)
{
    frit_refine_windows windows = {.apart = is_held ? FRIT_REFINE_HELD_OUT : 1};
    while (w < r->text.n_windows && (w % FRIT_REFINE_HELD_OUT == FRIT_REFINE_HELD_OUT - 1) != is_held) w++;
    windows.first = w;
    for (; w < r->text.n_windows && windows.n < FRIT_REFINE_AT_ONCE; w += windows.apart, windows.n++)
        if ((w % FRIT_REFINE_HELD_OUT == FRIT_REFINE_HELD_OUT - 1) != is_held) break;
    return windows;
}

// Runs the layer over the windows that are held out, or over the others. The model's engine does not run if all its
// inputs are stored. It advances to the next layer if it need not return to this one.
static frit_status read_windows(frit_refining *r, bool is_held, frit_covariance *kept, frit_covariance *sums)
{
    const bool is_read = r->keeps_all && r->kept_layer == r->layer;
    const bool leaves = r->layer <= last_to_leave(r) && (r->keeps_all || is_last_group(r));
    const bool advances = r->original.rows && leaves;
    frit_covariance_set_against(sums, kept);
    if (!is_read) FRIT_TRY(frit_refine_stream_begin(&r->original, kept, r->layer, advances));
    FRIT_TRY(frit_refine_stream_begin(&r->changed, sums, r->layer, false));
    frit_refine_windows windows = next_windows(r, 0, is_held);
    for (; windows.n > 0; windows = next_windows(r, windows.first + windows.n * windows.apart, is_held)) {
        if (!r->keeps_all) frit_covariance_drop_rows(kept);
        if (!r->keeps_all) frit_covariance_drop_rows(sums);
        FRIT_TRY(run_windows(r, windows, is_read, sums));
    }
    const uint64_t now = frit_time_ns();
    FRIT_TRY(frit_covariance_finish(sums, r->pool));
    frit_refine_count_time(&r->times.sums, now);
    return FRIT_OK;
}

static frit_status make_covariance(frit_refining *r, bool (*wants)(void *, const char *), frit_covariance **out)
{
    const frit_covariance_options options = {.wants = wants, .wants_ctx = r};
    return frit_covariance_new(out, &options);
}

// Finds the matrices of the layer and which of them share an input, by running one token.
static frit_status find_matrices(frit_refining *r)
{
    uint64_t n_bytes = 0;
    FRIT_TRY(make_covariance(r, is_kept, &r->kept));
    FRIT_TRY(make_covariance(r, is_kept, &r->kept_held));
    r->kept->keeps_rows = true;
    FRIT_TRY(frit_refine_stream_begin(&r->original, r->kept, r->layer, false));
    FRIT_TRY(frit_refine_stream_run(&r->original, (frit_refine_windows){0, 1, 1}, 1));
    frit_covariance_drop_rows(r->kept);
    for (int64_t i = 0; i < r->kept->n; i++)
        if (r->kept->entries[i].source == i)
            n_bytes += (uint64_t)r->options->n_tokens * (uint64_t)r->kept->entries[i].width * sizeof(float);
    r->keeps_all = n_bytes <= r->most_kept / 2;   // arrays grow by doubling
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- groups

frit_engine_options frit_refine_engine_options(const frit_refining *r)
{
    return (frit_engine_options){.n_ctx = (int32_t)r->text.window,
                                 .n_batch = FRIT_REFINE_AT_ONCE * (int32_t)r->text.window,
                                 .n_sessions = FRIT_REFINE_AT_ONCE,
                                 .n_threads = r->options->n_threads,
                                 .cache_type_k = "f16",
                                 .cache_type_v = "f16",
                                 .device = "cpu",
                                 .no_prefix_cache = true};   // a window is a step, so prefill kernels run it
}

void frit_refine_close_quantized(frit_refining *r)
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

static void close_layer(frit_refining *r)
{
    if (r->original.engine) frit_engine_observe_covariance(r->original.engine, NULL);
    frit_covariance_free(r->kept);
    frit_covariance_free(r->kept_held);
    r->kept = r->kept_held = NULL;
    r->kept_layer = -1;
    r->n_in_layer = 0;
}

static frit_status check_target(const frit_refining *r)
{
    const frit_hparams *a = &r->source->hp, *b = &r->quantized->hp;
    const bool is_same = r->source->arch == r->quantized->arch && a->n_layer == b->n_layer && a->n_embd == b->n_embd &&
                         a->n_vocab == b->n_vocab;
    if (is_same) return FRIT_OK;
    return frit_fail_file(FRIT_E_INVALID, "%s: its model differs from that of %s", r->path, r->source->ckpt->path);
}

frit_status frit_refine_open_quantized(frit_refining *r)
{
    FRIT_TRY(frit_model_open_memory(&r->quantized, r->bytes, r->n_bytes, NULL));
    r->quantized->loads_late = true;   // each engine loads only the layer of a group of matrices
    r->quantized->floats_coarse = true;
    return check_target(r);
}

frit_status frit_refine_start_quantized(frit_refining *r)
{
    const frit_engine_options options = frit_refine_engine_options(r);
    return frit_engine_new(&r->changed.engine, r->quantized, &options);
}

// Refines the tensors of the current group and lists them in `kept`.
static frit_status refine_group_tensors(frit_refining *r, frit_refine_blocks *kept, size_t *n)
{
    for (int64_t i = 0; i < r->kept->n; i++) {
        const frit_covariance_entry *entry = &r->kept->entries[i];
        const frit_tensor *tensor = frit_checkpoint_find(r->source->ckpt, entry->name);
        if (entry->source != r->next || !is_left(r, entry->name)) continue;
        if (frit_refine_can_round(r, entry->name)) {
            const frit_tensor *to = frit_checkpoint_find(r->quantized->ckpt, entry->name);
            FRIT_TRY(frit_refine_tensor(r, entry->name));
            kept[(*n)++] = (frit_refine_blocks){tensor->name, strlen(tensor->name), to->data, to->n_bytes};
        }
        if (!frit_map_put(&r->done, frit_str_of(tensor->name), 1)) return frit_fail_memory(64, "a layer");
    }
    return FRIT_OK;
}

static frit_status refine_group(frit_refining *r)
{
    size_t n = 0;
    frit_refine_blocks *kept = calloc((size_t)r->kept->n, sizeof *kept);
    frit_status status = kept ? refine_group_tensors(r, kept, &n) : frit_fail_memory((size_t)r->kept->n, "a layer");
    const frit_refine_progress progress = {r->layer, r->n_matrices, r->n_refined, r->n_worse, r->n_few};
    if (status == FRIT_OK) status = frit_refine_state_add(&r->state, &progress, kept, n);
    free(kept);
    r->n_left = count_left(r);
    return status;
}

// Refines the next group of matrices that share an input.
static frit_status refine_next_group(frit_refining *r, bool *is_done)
{
    FRIT_TRY(frit_refine_open_quantized(r));
    r->n_left = count_left(r);
    if (r->n_in_layer == 0) r->n_in_layer = r->n_left;
    *is_done = r->n_left == 0;
    if (*is_done) return FRIT_OK;
    if (!r->kept) FRIT_TRY(find_matrices(r));
    *is_done = !find_next(r);
    if (*is_done) return FRIT_OK;
    FRIT_TRY(frit_refine_start_quantized(r));
    FRIT_TRY(make_covariance(r, is_wanted, &r->sums));
    FRIT_TRY(make_covariance(r, is_wanted, &r->held));
    r->sums->gathers = r->held->gathers = true;
    FRIT_TRY(read_windows(r, false, r->kept, r->sums));
    FRIT_TRY(read_windows(r, true, r->kept_held, r->held));
    if (r->original.advances) r->original.layer = r->layer + 1;
    r->kept_layer = r->layer;
    return refine_group(r);
}

// ------------------------------------------------------------------------------------- layers

static void set_prefix(frit_refining *r)
{
    const frit_tensor *output = own_output(r);
    if (r->layer < r->source->hp.n_layer)
        snprintf(r->prefix, sizeof r->prefix, "blk.%d.", (int)r->layer);
    else
        snprintf(r->prefix, sizeof r->prefix, "%s", output ? output->name : "none");
}

static bool wants_none(void *ctx, const char *name)
{
    (void)ctx, (void)name;
    return false;
}

static frit_status advance_stream(frit_refining *r, frit_refine_stream *stream)
{
    FRIT_TRY(make_covariance(r, wants_none, &r->sums));
    FRIT_TRY(frit_refine_stream_begin(stream, r->sums, r->layer, true));
    for (int64_t w = 0; w < r->text.n_windows; w += FRIT_REFINE_AT_ONCE) {
        const int64_t n = r->text.n_windows - w < FRIT_REFINE_AT_ONCE ? r->text.n_windows - w : FRIT_REFINE_AT_ONCE;
        FRIT_TRY(frit_refine_stream_run(stream, (frit_refine_windows){w, 1, n}, r->text.window));
        FRIT_TRY(frit_refine_report_progress(r));
    }
    stream->layer = r->layer + 1;
    FRIT_TRY(frit_engine_observe_covariance(stream->engine, NULL));
    frit_covariance_free(r->sums);
    r->sums = NULL;
    return FRIT_OK;
}

frit_status frit_refine_advance(frit_refining *r)
{
    uint64_t now = frit_time_ns();
    if (r->layer > last_to_leave(r) || !r->original.rows) return FRIT_OK;
    if (r->original.layer <= r->layer) FRIT_TRY(advance_stream(r, &r->original));
    now = frit_refine_count_time(&r->times.model, now);
    FRIT_TRY(frit_refine_open_quantized(r));
    FRIT_TRY(frit_refine_start_quantized(r));
    FRIT_TRY(advance_stream(r, &r->changed));
    frit_refine_count_time(&r->times.file, now);
    return FRIT_OK;
}

frit_status frit_refine_layer(frit_refining *r)
{
    frit_status status = FRIT_OK;
    set_prefix(r);
    r->times = (frit_refine_times){0};
    for (bool is_done = false; !is_done && status == FRIT_OK;) {
        status = refine_next_group(r, &is_done);
        frit_refine_close_quantized(r);
    }
    if (status == FRIT_OK) status = frit_refine_advance(r);
    if (status == FRIT_OK) frit_refine_report_times(r);
    frit_refine_close_quantized(r);
    close_layer(r);
    return status;
}
