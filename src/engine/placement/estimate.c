// SPDX-License-Identifier: MIT
// The public estimate of what an engine would need.
#include "engine/placement/needs.h"

#include "backend/group.h"

#include <stdio.h>
#include <stdlib.h>

struct frit_estimate {
    frit_estimate_info info;
    frit_estimate_device devices[FRIT_MAX_DEVICES];
    char names[FRIT_MAX_DEVICES][32];   // of members of groups
    char why_not[FRIT_ERROR_BYTES];
};

static frit_estimate_device row_of(const frit_fit *fit, const frit_fit_memory *memory, frit_fit_choice choice)
{
    return (frit_estimate_device){.name = memory->device,
                                  .n_layers = memory->n_layers,
                                  .packed_bytes = memory->weight_bytes,
                                  .mapped_bytes = memory->mapped_bytes,
                                  .kv_bytes = frit_fit_cache_bytes(fit, memory, choice),
                                  .scratch_bytes = memory->scratch_bytes,
                                  .free_bytes = memory->available};
}

// Adds the row, or a row for each member of a group.
static void add_rows(frit_estimate *estimate, const frit_fit_memory *memory, frit_estimate_device row)
{
    frit_device_list list, one;
    size_t *n = &estimate->info.n_devices;
    if (memory->n_ranks == 0 || !frit_device_list_parse(memory->device, &list)) list.n = 0;
    if (list.n == 0) estimate->devices[(*n)++] = row;
    for (int32_t i = 0; i < list.n && *n < FRIT_MAX_DEVICES - 1; i++) {
        one = list;
        one.n = 1;
        one.numbers[0] = list.numbers[i];
        frit_device_list_name(&one, estimate->names[*n], sizeof estimate->names[*n]);
        row.name = estimate->names[*n];
        estimate->devices[(*n)++] = row;
    }
}

static frit_status fill_estimate(frit_estimate *estimate, const frit_engine_needs *needs)
{
    frit_fit_choice choice;
    const frit_fit *fit = &needs->fit;
    const frit_status status = frit_fit_choose(fit, &choice);
    if (status != FRIT_OK && status != FRIT_E_MEMORY) return status;
    frit_kv_shape shape = needs->shape;
    shape.types = fit->types[choice.types];
    if (status != FRIT_OK) snprintf(estimate->why_not, sizeof estimate->why_not, "%s", frit_error());
    estimate->info = (frit_estimate_info){.why_not = status == FRIT_OK ? NULL : estimate->why_not,
                                          .n_ctx = choice.n_ctx,
                                          .n_ctx_train = fit->n_ctx_train,
                                          .n_sessions = fit->room.n_sessions,
                                          .cache_type_k = frit_dtype_get(shape.types.k)->name,
                                          .cache_type_v = frit_dtype_get(shape.types.v)->name,
                                          .kv_token_bytes = frit_kv_token_bytes(&shape)};
    for (int i = 0; i < fit->n_memories; i++)
        add_rows(estimate, &fit->memories[i], row_of(fit, &fit->memories[i], choice));
    return FRIT_OK;
}

frit_status frit_estimate_new(frit_estimate **out, frit_model *model, const frit_engine_options *options)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(model);
    const frit_engine_options chosen = options ? *options : (frit_engine_options){0};
    frit_engine_needs needs;
    frit_engine *engine;
    frit_estimate *estimate = calloc(1, sizeof *estimate);
    if (!estimate) return frit_fail_memory(sizeof *estimate, "an estimate");
    frit_status status = frit_engine_begin(&engine, model, &chosen, NULL, &needs);
    if (status == FRIT_OK) status = fill_estimate(estimate, &needs);
    frit_engine_needs_free(&needs);
    frit_engine_free(engine);
    if (status != FRIT_OK)
        frit_estimate_free(estimate);
    else
        *out = estimate;
    return status;
}

void frit_estimate_free(frit_estimate *estimate)
{
    free(estimate);
}

frit_status frit_estimate_get_info(const frit_estimate *estimate, frit_estimate_info *info)
{
    FRIT_REQUIRE(info);
    *info = (frit_estimate_info){0};
    FRIT_REQUIRE(estimate);
    *info = estimate->info;
    return FRIT_OK;
}

bool frit_estimate_get_device(const frit_estimate *estimate, size_t i, frit_estimate_device *device)
{
    FRIT_REQUIRE_OR(false, estimate);
    FRIT_REQUIRE_OR(false, device);
    if (i >= estimate->info.n_devices) return false;
    *device = estimate->devices[i];
    return true;
}
