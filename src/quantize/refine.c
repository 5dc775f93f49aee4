// SPDX-License-Identifier: MIT
// Refining: rounds the matrices of a quantized file again, layer by layer, with the covariance of their inputs
// (refine_rows.h).
//
// Two engines read the same text: one has the model, the other the quantized file, whose earlier layers are refined
// already. Both run the layer (refine_stream.h). The inputs of its matrices in both engines give H and C. Every eighth
// window of the text is held out. Matrices with the same input are refined together. Then the layer runs again for its
// next matrices, so that they compensate errors that remain. The output matrix comes last. An output matrix that is
// shared with the token embeddings is not refined, because the embeddings have been read already.
#include "quantize/refine.h"
#include "base/file/file.h"
#include "quantize/refine_job.h"

#include <stdlib.h>
#include <string.h>

enum { MEASURED_WINDOWS = 16 };

// ------------------------------------------------------------------------------------- an earlier run

// Makes a key of everything that the result depends on.
static void make_key(const frit_refining *r, uint8_t key[FRIT_SHA256_BYTES])
{
    const uint64_t version = 4;   // version of the search: results of another version are not continued
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

static bool restore_blocks(void *ctx, const frit_refine_progress *progress, const frit_refine_blocks *blocks)
{
    frit_refining *r = ctx;
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

// Restores the blocks that an earlier run has refined, and runs both engines to the next layer to refine.
static frit_status resume_refining(frit_refining *r)
{
    uint8_t key[FRIT_SHA256_BYTES];
    make_key(r, key);
    FRIT_TRY(frit_refine_open_quantized(r));
    frit_status status = frit_refine_state_open(&r->state, r->path, key, restore_blocks, r);
    frit_refine_close_quantized(r);
    if (status != FRIT_OK || r->n_taken == 0) return status;
    frit_log_say(&r->log, FRIT_LOG_INFO, "%s: continues after %zu tensors, which an earlier run has refined", r->path,
                 r->n_taken);
    if (r->layer == 0) return FRIT_OK;
    r->layer--;
    status = frit_refine_advance(r);
    frit_refine_close_quantized(r);
    r->layer++;
    return status;
}

// ------------------------------------------------------------------------------------- the source and the text

static frit_status open_copy(frit_refining *r)
{
    frit_file_close(r->file);
    r->file = NULL;
    FRIT_TRY(frit_file_open_copy(&r->file, r->path));
    r->bytes = (char *)frit_file_bytes(r->file);
    r->n_bytes = (size_t)frit_file_size(r->file);
    return FRIT_OK;
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
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: refining needs the model as a GGUF file; 'frit convert' makes one",
                              source->ckpt->path);
    if (source->vocab_only || source->arch->is_encoder || source->arch->is_encoder_decoder)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: refining is for models that continue a text",
                              source->ckpt->path);
    const int64_t least = FRIT_REFINE_HELD_OUT * window_of(source);
    if (n_tokens / (size_t)FRIT_REFINE_HELD_OUT >= (size_t)window_of(source)) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "refining needs a text of at least %lld tokens, found %zu", (long long)least,
                     n_tokens);
}

static frit_status check_source(frit_refining *r)
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

// Opens the streams. Memory that they do not need is left for the inputs of matrices.
static frit_status open_streams(frit_refining *r)
{
    r->original.text = r->changed.text = &r->text;
    r->original.path = r->changed.path = r->path;
    FRIT_TRY(frit_refine_stream_open(&r->original, r->source, r->most_kept / 2));
    if (!r->original.rows) return FRIT_OK;
    FRIT_TRY(frit_refine_stream_open(&r->changed, r->source, r->most_kept / 2));
    r->most_kept -= 2 * (uint64_t)(r->text.n_windows * r->text.window * r->source->hp.n_embd) * sizeof(float);
    return FRIT_OK;
}

// Sets *has_any if a matrix has another type than in the model.
static frit_status find_changed_types(frit_refining *r, bool *has_any)
{
    *has_any = false;
    FRIT_TRY(frit_refine_open_quantized(r));
    const frit_checkpoint *ckpt = r->quantized->ckpt;
    for (size_t i = 0; i < ckpt->n_tensors; i++) {
        const frit_tensor *to = &ckpt->tensors[i], *from = frit_checkpoint_find(r->source->ckpt, to->name);
        *has_any |= to->n_dims > 1 && from && from->dtype != to->dtype;
    }
    frit_refine_close_quantized(r);
    return FRIT_OK;
}

static void label_text(frit_refining *r)
{
    const int64_t n_held = r->text.n_windows / FRIT_REFINE_HELD_OUT;
    frit_sha256 sum;
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, r->options->tokens, r->options->n_tokens * sizeof *r->options->tokens);
    frit_sha256_end(&sum, r->labels.sha256);
    r->labels.n_tokens = r->options->n_tokens;
    r->labels.n_windows = (uint64_t)(n_held < MEASURED_WINDOWS ? n_held : MEASURED_WINDOWS);
}

// ------------------------------------------------------------------------------------- the whole

// Measures the KL divergence over held-out windows. Floats are exact here, unlike while covariance is summed.
static frit_status measure_kl(frit_refining *r, double *kl)
{
    const frit_engine_options options = frit_refine_engine_options(r);
    frit_refine_stream exact = {.text = &r->text};
    frit_status status = frit_refine_open_quantized(r);
    r->source->floats_coarse = false;
    if (status == FRIT_OK) status = frit_engine_new(&exact.engine, r->source, &options);
    r->source->floats_coarse = true;
    if (status == FRIT_OK) r->quantized->floats_coarse = false;
    if (status == FRIT_OK) status = frit_refine_start_quantized(r);
    if (status == FRIT_OK)
        status = frit_refine_measure(&exact, &r->changed, FRIT_REFINE_HELD_OUT - 1, FRIT_REFINE_HELD_OUT,
                                     MEASURED_WINDOWS, kl);
    frit_engine_free(exact.engine);
    frit_refine_close_quantized(r);
    return status;
}

static frit_status refine_layers(frit_refining *r)
{
    const int32_t n_layers = r->source->hp.n_layer;
    for (; r->layer <= n_layers; r->layer++) FRIT_TRY(frit_refine_layer(r));
    return FRIT_OK;
}

// Writes the file. If refining increased the KL divergence, all matrices stay as they were.
static frit_status write_result(frit_refining *r, double before)
{
    double after;
    FRIT_TRY(measure_kl(r, &after));
    const bool is_worse = r->n_refined > 0 && !(after < before);
    if (is_worse) {
        frit_log_say(&r->log, FRIT_LOG_INFO,
                     "0 of %lld matrices are refined: on held-out text the KL divergence would go from %.5f "
                     "to %.5f",
                     (long long)r->n_matrices, before, after);
        FRIT_TRY(open_copy(r));   // restores the original
    } else
        frit_refine_report_result(r, before, after);
    r->labels.kl = is_worse ? before : after;
    r->labels.n_matrices = is_worse ? 0 : (uint64_t)r->n_refined;
    return frit_refine_write(r->path, r->bytes, r->n_bytes, &r->labels, is_worse ? NULL : &r->done);
}

static frit_status refine_file(frit_refining *r, const char *source)
{
    double before;
    bool has_any;
    FRIT_TRY(frit_model_open(&r->source, source, NULL));
    r->source->floats_in_place = r->source->loads_late = true;   // layers run one after another
    r->source->floats_coarse = true;   // rounding errors of products cancel in sums over many rows
    FRIT_TRY(check_source(r));
    label_text(r);
    FRIT_TRY(open_copy(r));
    FRIT_TRY(find_changed_types(r, &has_any));
    if (!has_any) {
        frit_log_say(&r->log, FRIT_LOG_INFO, "%s: its matrices have the model's types, so none is refined", r->path);
        return FRIT_OK;
    }
    const frit_engine_options options = frit_refine_engine_options(r);
    FRIT_TRY(frit_engine_new(&r->original.engine, r->source, &options));
    FRIT_TRY(open_streams(r));
    FRIT_TRY(frit_pool_new(&r->pool, options.n_threads));
    FRIT_TRY(measure_kl(r, &before));
    FRIT_TRY(resume_refining(r));
    FRIT_TRY(refine_layers(r));
    return write_result(r, before);
}

frit_status frit_refine_within(const char *source, const char *target, const frit_refine_options *options,
                               uint64_t most_kept)
{
    frit_refining r = {.options = options,
                       .log = {options->log, options->log_ctx},
                       .path = target,
                       .most_kept = most_kept,
                       .kept_layer = -1};
    const frit_status status = refine_file(&r, source);
    if (status == FRIT_E_CANCELLED && r.state.writer)
        frit_log_say(&r.log, FRIT_LOG_INFO, "the next run continues from %s.refine.part", target);
    frit_refine_state_close(&r.state, status != FRIT_OK);
    frit_refine_close_quantized(&r);
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
