// SPDX-License-Identifier: MIT
// Steps of a model through WebGPU: tokens per second of generation and of a prompt, and what each kind of kernel takes
// of a step. The time of a kind is that of its dispatches alone, with the weights and buffers of the step.
#include "webgpu_bench.h"

#include "backend/webgpu/exec.h"
#include "base/time.h"
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP = 8, STEPS = 64, MOST_KINDS = 64 };

typedef struct kind {   // dispatches of one kernel for matrices of one size
    const char *file;
    const frit_gpu_pipeline *pipeline;
    const char *op, *type;
    int64_t n_out;
    int n;
    uint64_t n_bytes;   // of weights
} kind;

static double seconds_since(uint64_t begin)
{
    return (double)(frit_time_ns() - begin) * 1e-9;
}

static void run_tokens(frit_engine *engine, frit_session *session, const frit_token *tokens, size_t n)
{
    int32_t n_rows;
    must(frit_session_push(session, tokens, n, &(frit_push_options){.output = FRIT_OUTPUT_LAST}));
    do {
        must(frit_engine_step(engine, &n_rows));
    } while (n_rows > 0);
}

// ------------------------------------------------------------------------------- kinds

static uint64_t weight_bytes(const frit_webgpu_launch *l)
{
    const bool is_product = strcmp(l->kernel->file, "product.wgsl") == 0 || strcmp(l->kernel->file, "matrix.wgsl") == 0;
    for (int i = 0; is_product && i < l->n_bindings; i++)
        if (l->bindings[i].where == FRIT_WEBGPU_AT_BUFFER) return l->bindings[i].buffer->n_bytes;
    return 0;
}

static kind kind_of(const frit_webgpu_launch *l)
{
    kind k = {.file = l->kernel->file, .pipeline = &l->kernel->pipeline, .op = frit_op_get(l->node->op)->name};
    k.n_bytes = weight_bytes(l);
    k.n_out = frit_node_width(l->node);
    k.type = "";
    if (k.n_bytes > 0) k.type = frit_dtype_get(frit_node_storage(l->node->src[1])->tensor->dtype)->name;
    return k;
}

static bool is_used(const frit_gpu_dispatch *d)
{
    return d->grid[0] > 0 && d->grid[1] > 0 && d->grid[2] > 0;
}

static bool is_same(const kind *a, const kind *b)
{
    return a->pipeline == b->pipeline && a->n_bytes == b->n_bytes && a->n_out == b->n_out;
}

static int find_kinds(const frit_exec *exec, kind *kinds)
{
    int n = 0;
    for (int i = 0; i < exec->n_launches; i++) {
        const kind k = kind_of(&exec->launches[i]);
        int at = 0;
        if (!is_used(&exec->dispatches[i])) continue;
        while (at < n && !is_same(&kinds[at], &k)) at++;
        if (at == MOST_KINDS) continue;
        if (at == n) kinds[n++] = k;
        kinds[at].n++;
    }
    return n;
}

// Dispatches of a step are submitted once and so many times more.
static size_t repeats_of(const frit_exec *exec)
{
    return exec->plan->graph->max_rows > 64 ? 1 : 8;
}

// Microseconds of the dispatches of a kind, or of all.
static double time_kind(frit_webgpu_device *d, const frit_exec *exec, const kind *wanted)
{
    size_t n = 0;
    double encode;
    const size_t repeats = repeats_of(exec);
    frit_gpu_dispatch *list = calloc((size_t)exec->n_launches * (repeats + 1) + 1, sizeof *list);
    if (!list) exit(1);
    for (int i = 0; i < exec->n_launches; i++) {
        const kind k = kind_of(&exec->launches[i]);
        if (is_used(&exec->dispatches[i]) && (!wanted || is_same(&k, wanted))) list[n++] = exec->dispatches[i];
    }
    for (size_t i = n; i < n * (repeats + 1); i++) list[i] = list[i - n];
    const frit_gpu_buffer *from = &d->shared[FRIT_WEBGPU_SCRATCH].buffer;
    const double once = time_dispatches(&d->gpu, from, list, n, &encode);
    const double many = time_dispatches(&d->gpu, from, list, n * (repeats + 1), &encode);
    free(list);
    return (many - once) / (double)repeats;
}

static void profile(frit_webgpu_device *d, const frit_exec *exec, const char *what)
{
    static kind kinds[MOST_KINDS];
    const int n = find_kinds(exec, kinds);
    double sum = 0;
    int n_all = 0;
    uint64_t n_bytes = 0;
    for (int i = 0; i < n; i++) {
        const kind *k = &kinds[i];
        const double us = time_kind(d, exec, k);
        sum += us;
        n_all += k->n;
        n_bytes += k->n_bytes * (uint64_t)k->n;
        printf("%s | %-16s %-10s %-6s %6lld | %4d x %7.1f us = %8.0f us", what, k->file, k->op, k->type,
               (long long)k->n_out, k->n, us / k->n, us);
        if (k->n_bytes > 0) printf(", %.0f GB/s", (double)k->n_bytes * k->n / us / 1e3);
        printf("\n");
    }
    const double all = time_kind(d, exec, NULL);
    printf("%s | all | %d dispatches, %.0f us together, %.0f us apart, %.0f MB of weights: %.0f GB/s\n", what, n_all,
           all, sum, (double)n_bytes / 1e6, (double)n_bytes / all / 1e3);
}

// ------------------------------------------------------------------------------- steps

// The executable of the plan with the fewest rows, or of prompts.
static const frit_exec *last_exec(const frit_engine *engine, bool is_prompt)
{
    const frit_shape_class *classes = &engine->plans.classes[0][0][0][0][0];
    const size_t n_classes = sizeof engine->plans.classes / sizeof *classes;
    const frit_exec *found = NULL;
    for (size_t i = 0; i < n_classes; i++)
        for (int s = 0; classes[i].planned && s < classes[i].segments.n; s++) {
            const frit_planned_segment *p = &classes[i].planned[s];
            if (!p->exec || strcmp(p->device->backend->name, "webgpu") != 0 || !p->exec->is_checked) continue;
            const int64_t n = classes[i].graph.max_rows;
            if (is_prompt ? n > 64 : n <= 64 && (!found || n < found->plan->graph->max_rows)) found = p->exec;
        }
    return found;
}

static double generate(frit_engine *engine, frit_session *session, int n)
{
    frit_sampler *sampler;
    frit_token token = 100;
    must(frit_sampler_new(&sampler, engine->model, &(frit_sampler_options){.temp = 0}));
    must(frit_session_push(session, &token, 1, NULL));
    const uint64_t begin = frit_time_ns();
    for (int i = 0; i < n; i++) must(frit_session_next(session, sampler, &token));
    const double seconds = seconds_since(begin);
    frit_sampler_free(sampler);
    return n / seconds;
}

void bench_model(const char *library, const char *shape, const char *type, int n_prompt, int n_layers)
{
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    frit_webgpu_use_library(library);
    must(frit_model_open_random(&model, &(frit_random_options){.shape = shape, .type = type, .n_layers = n_layers},
                                NULL));
    must(frit_engine_new(&engine, model,
                         &(frit_engine_options){.device = "webgpu",
                                                .n_ctx = 2 * n_prompt + 512,
                                                .n_batch = n_prompt,
                                                .n_sessions = 1,
                                                .cache_type_k = "f16",
                                                .cache_type_v = "f16"}));
    must(frit_session_new(&session, engine));
    frit_webgpu_device *d = (frit_webgpu_device *)engine->devices[0];
    frit_token *tokens = calloc((size_t)n_prompt + 1, sizeof *tokens);
    if (!tokens) exit(1);
    for (int i = 0; i < n_prompt; i++) tokens[i] = 100 + i % 1000;
    run_tokens(engine, session, tokens, (size_t)n_prompt);
    uint64_t begin = frit_time_ns();
    for (int i = 0; i < n_prompt; i++) tokens[i]++;   // none is in the prefix cache
    must(frit_session_truncate(session, 0));
    run_tokens(engine, session, tokens, (size_t)n_prompt);
    printf("model | %s %s, %d layers | prompt of %d: %.0f tokens/s\n", shape, type, (int)engine->model->hp.n_layer,
           n_prompt, n_prompt / seconds_since(begin));
    generate(engine, session, WARM_UP);
    printf("model | %s %s | generation: %.1f tokens/s\n", shape, type, generate(engine, session, STEPS));
    const frit_exec *decode = last_exec(engine, false), *prompt = last_exec(engine, true);
    if (decode) profile(d, decode, "decode");
    if (prompt && n_prompt > 64) profile(d, prompt, "prompt");
    free(tokens);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
}
