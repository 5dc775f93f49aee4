// SPDX-License-Identifier: MIT
// backend/gpu_engine.h: engines on the GPU of gpu.h, and the texts that tests run on it and on the CPU.
#pragma once
#include "arch/golden.h"
#include "backend/cuda/device.h"
#include "backend/gpu.h"
#include "convert/random.h"
#include "engine/engine.h"
#include "support/kept_rows.h"

// The CPU runs plain code, which has activations in f32.
static inline frit_engine *new_engine(frit_model *model, const char *device, const char *cache, int32_t n_ctx)
{
    const frit_engine_options options = {.n_ctx = n_ctx,
                                         .n_threads = 2,
                                         .cache_type_k = cache,
                                         .cache_type_v = cache,
                                         .n_sessions = 2,
                                         .cpu = strcmp(device, "cpu") == 0 ? "reference" : NULL,
                                         .device = device};
    frit_engine *engine;
    assert_ok(frit_engine_new(&engine, model, &options));
    return engine;
}

static inline void run_golden(frit_engine *engine, frit_session *session, const golden *g, size_t begin, size_t end,
                              size_t chunk, kept_rows *r)
{
    const frit_push_options options = {.output = g->output, .row = keep_row, .row_ctx = r};
    for (size_t i = begin; i < end; i += chunk) {
        const size_t n = end - i < chunk ? end - i : chunk;
        int32_t n_rows;
        assert_ok(frit_session_push(session, g->tokens + i, n, &options));
        do assert_ok(frit_engine_step(engine, &n_rows));
        while (n_rows > 0);
        r->n_rows += n;
    }
}

// An op that runs on the CPU; NULL: all run on the GPU.
static inline const char *op_on_cpu(const frit_engine *engine)
{
    const frit_shape_class *classes = &engine->plans.classes[0][0][0][0][0];
    const size_t n = sizeof engine->plans.classes / sizeof *classes;
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; classes[i].planned && k < classes[i].segments.n; k++) {
            const frit_segment *segment = &classes[i].segments.list[k];
            for (int j = 0; segment->device > 0 && j < segment->graph.n_nodes; j++) {
                const frit_node *node = segment->graph.nodes[j];
                if (node->op != FRIT_OP_INPUT && node->op != FRIT_OP_WEIGHT && node->op != FRIT_OP_RESHAPE)
                    return frit_op_get(node->op)->name;
            }
        }
    }
    return NULL;
}

static inline bool has_kernel(const frit_engine *engine, const char *name)
{
    const frit_cuda_device *d = (const frit_cuda_device *)engine->devices[0];
    for (size_t i = 0; i < d->n_kernels; i++)
        if (strcmp(d->kernels[i]->name, name) == 0) return true;
    return false;
}

// Pieces of a text: more than a page, a single token, a few.
enum { N_PIECES = 3, FAR = 1024 };   // FAR: positions after which pages are copied ahead

// Computes the logits after each piece.
static inline void run_pieces(frit_engine *engine, int32_t n_first, size_t n_vocab, float *logits)
{
    const int32_t pieces[N_PIECES] = {n_first, 1, 3};
    frit_token tokens[FAR + 160];
    frit_session *session;
    int32_t begin = 0, n_rows;
    for (int i = 0; i < FAR + 160; i++) tokens[i] = (i * 37 + 11) % (int)n_vocab;
    assert_ok(frit_session_new(&session, engine));
    for (size_t i = 0; i < N_PIECES; begin += pieces[i++]) {
        assert_ok(frit_session_push(session, tokens + begin, (size_t)pieces[i], NULL));
        do assert_ok(frit_engine_step(engine, &n_rows));
        while (n_rows > 0);
        memcpy(logits + i * n_vocab, frit_session_logits(session), n_vocab * sizeof *logits);
    }
    frit_session_free(session);
}

static inline frit_model *random_model(const char *keys)
{
    frit_model *model;
    frit_checkpoint *ckpt;
    const frit_random_row row = {.shape = {.name = "llama", .arch = "llama", .title = "", .n_layers = 1}, .keys = keys};
    const frit_random_options options = {.type = "q8_0"};
    const char *path = temp_path("random.gguf");
    assert_ok(frit_random_open(&ckpt, &row, &options));
    assert_ok(frit_random_save(ckpt, path, &options));
    frit_checkpoint_close(ckpt);
    assert_ok(frit_model_open(&model, path, NULL));
    return model;
}

#define SMALL_LLAMA(size)                                                                                           \
    "context_length=2048 embedding_length=256 feed_forward_length=256 attention.head_count=4 attention.head_count_" \
    "kv=2 attention.key_length=" size " attention.value_length=" size                                               \
    " attention.layer_norm_rms_epsilon=1e-5 rope.dimension_count=" size " vocab_size=320"
