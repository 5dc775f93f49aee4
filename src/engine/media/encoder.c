// SPDX-License-Identifier: MIT
// Encoders of pictures: opening, planning for a number of rows, running.
#include "engine/media/encoder.h"

#include <stdatomic.h>
#include <stdlib.h>

// The plan for a number of rows, and the memory of their input.
typedef struct plan_for {
    frit_arena arena;
    frit_graph graph;
    frit_plan *plan;
    frit_exec *exec;
    const frit_node *given;
    int64_t n_rows, n_outs;   // most
    int32_t *tokens, *positions, *out_rows;
    frit_out_row *taken;
    float *rows;   // [n_rows, frit_media_width]
} plan_for;

struct frit_encoder {
    frit_engine *engine;
    frit_device *device;
    frit_checkpoint *ckpt;
    frit_arena arena;
    const frit_arch *arch;
    frit_hparams hp;
    frit_weights weights;
    frit_cache cache;   // without layers
    plan_for made;
};

// ------------------------------------------------------------------------------- opening

static frit_status read_model(frit_encoder *e, const char *path)
{
    const frit_checkpoint_options options = {.part = FRIT_CHECKPOINT_VISION, .log = &e->engine->model->log};
    FRIT_TRY(frit_checkpoint_open(&e->ckpt, path, &options));
    frit_str name;
    FRIT_TRY(frit_meta_get_text(&e->ckpt->meta, "general.architecture", &name, NULL));
    const char *text = frit_arena_text(&e->arena, name.ptr, name.len);
    e->arch = text ? frit_media_arch_find(text) : NULL;
    if (!e->arch)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: the encoder '%.*s' is not supported", path,
                              (int)(name.len < 64 ? name.len : 64), name.ptr);
    FRIT_TRY(frit_hparams_read(&e->hp, e->arch, e->ckpt, &e->arena));
    return frit_weights_bind(&e->weights, e->arch, &e->hp, e->ckpt, &e->arena);
}

frit_status frit_encoder_open(frit_encoder **out, frit_engine *engine, const char *path)
{
    *out = NULL;
    frit_encoder *e = calloc(1, sizeof *e);
    if (!e) return frit_fail_memory(sizeof *e, "an encoder");
    e->engine = engine;
    e->device = frit_engine_cpu(engine);
    const frit_status status = read_model(e, path);
    if (status != FRIT_OK) {
        frit_encoder_close(e);
        return status;
    }
    *out = e;
    return FRIT_OK;
}

static void free_plan(frit_encoder *e)
{
    plan_for *made = &e->made;
    if (made->exec) e->device->backend->exec_free(e->device, made->exec);
    frit_arena_free(&made->arena);
    *made = (plan_for){0};
}

void frit_encoder_close(frit_encoder *encoder)
{
    if (!encoder) return;
    free_plan(encoder);
    frit_checkpoint_close(encoder->ckpt);
    frit_arena_free(&encoder->arena);
    free(encoder);
}

frit_status frit_encoder_count(const frit_encoder *encoder, frit_media_grid grid, frit_media_size *out)
{
    return frit_media_count(encoder->arch, &encoder->hp, grid, out);
}

int64_t frit_encoder_width(const frit_encoder *encoder)
{
    return frit_media_out_width(&encoder->hp);
}

const float *frit_encoder_newline(const frit_encoder *encoder)
{
    const frit_tensor *newline = encoder->weights.media.newline.w;
    return newline ? newline->data : NULL;
}

int64_t frit_encoder_patch_width(const frit_encoder *encoder)
{
    return encoder->hp.n_embd_in;
}

// ------------------------------------------------------------------------------- planning

static frit_status allocate(frit_encoder *e, frit_media_size size)
{
    plan_for *made = &e->made;
    const size_t n = (size_t)size.n_rows, width = (size_t)frit_media_width(e->arch, &e->hp);
    made->n_rows = size.n_rows, made->n_outs = size.n_outs;
    made->tokens = frit_arena_new(&made->arena, int32_t, n);
    made->positions = frit_arena_new(&made->arena, int32_t, n);
    made->out_rows = frit_arena_new(&made->arena, int32_t, (size_t)size.n_outs);
    made->taken = frit_arena_new(&made->arena, frit_out_row, (size_t)size.n_outs);
    made->rows = frit_arena_new(&made->arena, float, n *width);
    if (!made->tokens || !made->positions || !made->out_rows || !made->taken || !made->rows)
        return frit_fail_memory(n * width * sizeof(float), "the patches of a picture");
    for (size_t i = 0; i < n; i++) made->tokens[i] = 0, made->positions[i] = (int32_t)i;
    return FRIT_OK;
}

static frit_status plan(frit_encoder *e, frit_media_size size)
{
    plan_for *made = &e->made;
    FRIT_TRY(allocate(e, size));
    frit_graph_init(&made->graph, &made->arena, size.n_rows, size.n_outs);
    FRIT_TRY(frit_media_build(&made->graph, e->arch, &e->hp, &e->weights));
    frit_fuse(&made->graph);
    FRIT_TRY(frit_graph_check(&made->graph));
    for (int i = 0; i < made->graph.n_nodes; i++)
        if (frit_node_is_result_input(made->graph.nodes[i])) made->given = made->graph.nodes[i];
    const frit_plan_options options = {.is_fused = true,
                                       .early_prologues = e->device->backend->early_prologues,
                                       .can_join = e->device->backend->can_join,
                                       .device = e->device};
    FRIT_TRY(frit_plan_new(&made->plan, &made->graph, &options));
    return e->device->backend->prepare(e->device, made->plan, &e->cache, &made->exec);
}

// Makes room for a picture, with some more, so that pictures that grow little by little are not planned each time.
static frit_status reserve(frit_encoder *e, frit_media_size size)
{
    if (e->made.exec && size.n_rows <= e->made.n_rows && size.n_outs <= e->made.n_outs) return FRIT_OK;
    free_plan(e);
    size.n_rows += size.n_rows / 4, size.n_outs += size.n_outs / 4;
    const frit_status status = plan(e, size);
    if (status != FRIT_OK) free_plan(e);
    return status;
}

// ------------------------------------------------------------------------------- running

static frit_status submit(frit_encoder *e, frit_media_size size, float *features)
{
    plan_for *made = &e->made;
    const frit_backend *backend = e->device->backend;
    const int64_t width = frit_encoder_width(e);
    const frit_seq seq = {.n_rows = (int32_t)size.n_rows, .row_class = FRIT_ROWS_LONG_PREFILL};
    const frit_batch batch = {.n_rows = (int32_t)size.n_rows,
                              .n_outs = (int32_t)size.n_outs,
                              .n_seqs = 1,
                              .tokens = made->tokens,
                              .positions = made->positions,
                              .out_rows = made->out_rows,
                              .seqs = &seq};
    for (int64_t i = 0; i < size.n_outs; i++) made->taken[i] = (frit_out_row){.copy = features + i * width};
    frit_step_output output = {.taken = made->taken};
    frit_ticket ticket;
    FRIT_TRY(backend->write(e->device, backend->value(made->exec, made->given), made->rows,
                            (uint64_t)(size.n_rows * frit_media_width(e->arch, &e->hp)) * sizeof(float)));
    FRIT_TRY(backend->submit(e->device, made->exec, &batch, &output, &ticket));
    FRIT_TRY(backend->wait(e->device, ticket));
    for (int64_t i = 0; i < size.n_outs; i++)
        if (atomic_load(&made->taken[i].bad))
            return frit_fail_file(FRIT_E_FORMAT,
                                  "%s: the encoder's results are not finite (NaN or infinity): its weights are damaged",
                                  e->ckpt->path);
    return FRIT_OK;
}

frit_status frit_encoder_run(frit_encoder *encoder, frit_media_grid grid, const float *pixels, float *features)
{
    frit_media_size size;
    FRIT_TRY(frit_encoder_count(encoder, grid, &size));
    FRIT_TRY(reserve(encoder, size));
    const frit_media_rows rows = {encoder->made.rows, encoder->made.out_rows};
    FRIT_TRY(frit_media_place(encoder->arch, &encoder->hp, &encoder->weights, grid, pixels, &rows));
    return submit(encoder, size, features);
}
