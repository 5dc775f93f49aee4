// SPDX-License-Identifier: MIT
// Pipelines, groups of bindings, and lists of dispatches.
#include "backend/webgpu/runtime/gpu.h"
#include "backend/webgpu/runtime/scope.h"

#include <stdio.h>
#include <string.h>

// ------------------------------------------------------------------------------- pipelines

static frit_status make_layout(frit_gpu *gpu, const char *kinds, frit_gpu_layout *out)
{
    frit_wgpu_bind_group_layout_entry entries[FRIT_GPU_BINDINGS] = {0};
    const size_t n = strlen(kinds);
    for (size_t i = 0; i < n; i++) {
        entries[i].binding = (uint32_t)i;
        entries[i].visibility = FRIT_WGPU_COMPUTE;
        entries[i].buffer.type = kinds[i] == 'u'   ? FRIT_WGPU_UNIFORM
                                 : kinds[i] == 'r' ? FRIT_WGPU_READ_ONLY_STORAGE
                                                   : FRIT_WGPU_STORAGE;
    }
    snprintf(out->kinds, sizeof out->kinds, "%s", kinds);
    out->group = gpu->call.layout_new(gpu->device,
                                      &(frit_wgpu_bind_group_layout_descriptor){.n_entries = n, .entries = entries});
    if (out->group)
        out->pipeline = gpu->call.pipeline_layout_new(
            gpu->device, &(frit_wgpu_pipeline_layout_descriptor){.n_layouts = 1, .layouts = &out->group});
    return FRIT_OK;
}

static frit_status find_layout(frit_gpu *gpu, const char *kinds, int *out)
{
    if (strlen(kinds) > FRIT_GPU_BINDINGS || strspn(kinds, "urw") != strlen(kinds))
        return frit_fail(FRIT_E_INTERNAL, "bindings '%s'; expected at most %d letters u, r and w", kinds,
                         (int)FRIT_GPU_BINDINGS);
    for (*out = 0; *out < gpu->n_layouts; ++*out)
        if (strcmp(gpu->layouts[*out].kinds, kinds) == 0) return FRIT_OK;
    if (gpu->n_layouts == FRIT_GPU_LAYOUTS) return frit_fail(FRIT_E_INTERNAL, "more than %d layouts", FRIT_GPU_LAYOUTS);
    frit_gpu_scope_begin(gpu);
    frit_status status = make_layout(gpu, kinds, &gpu->layouts[gpu->n_layouts]);
    const frit_status errors = frit_gpu_scope_end(gpu, "a layout of bindings");
    gpu->n_layouts += status == FRIT_OK && errors == FRIT_OK;
    return errors != FRIT_OK ? errors : status;
}

// wgpu-native would count the iterations of every loop, so that none is endless. Indices stay checked.
static frit_wgpu_shader_module new_module(const frit_gpu *gpu, const char *wgsl)
{
    const frit_wgpu_source_wgsl source = {.chain.type = FRIT_WGPU_SOURCE_WGSL, .code = {wgsl, strlen(wgsl)}};
    const frit_wgpu_named descriptor = {.next = (frit_wgpu_chained_struct *)(uintptr_t)&source.chain};
    if (gpu->call.module_trusted) return gpu->call.module_trusted(gpu->device, &descriptor, FRIT_WGPU_BOUNDS_CHECKS);
    return gpu->call.module_new(gpu->device, &descriptor);
}

frit_status frit_gpu_pipeline_new(frit_gpu *gpu, const char *name, const char *wgsl, const char *kinds,
                                  frit_gpu_pipeline *out)
{
    *out = (frit_gpu_pipeline){0};
    FRIT_TRY(frit_gpu_check(gpu));
    FRIT_TRY(find_layout(gpu, kinds, &out->layout));
    frit_gpu_scope_begin(gpu);
    frit_wgpu_shader_module module = new_module(gpu, wgsl);
    frit_status status = frit_gpu_scope_end(gpu, name);
    if (status == FRIT_OK) {
        const frit_wgpu_compute_pipeline_descriptor descriptor = {.layout = gpu->layouts[out->layout].pipeline,
                                                                  .compute = {.module = module, .entry = {"main", 4}}};
        frit_gpu_scope_begin(gpu);
        out->handle = gpu->call.pipeline_new(gpu->device, &descriptor);
        status = frit_gpu_scope_end(gpu, name);
        if (status != FRIT_OK) frit_gpu_pipeline_free(gpu, out);
    }
    if (module) gpu->call.module_release(module);
    return status;
}

void frit_gpu_pipeline_free(frit_gpu *gpu, frit_gpu_pipeline *pipeline)
{
    if (pipeline->handle) gpu->call.pipeline_release(pipeline->handle);
    pipeline->handle = NULL;
}

// ------------------------------------------------------------------------------- groups

static uint64_t range_bytes(const frit_gpu_range *range)
{
    return range->n_bytes ? range->n_bytes : range->buffer->n_bytes - range->offset;
}

static frit_status check_range(const frit_gpu *gpu, char kind, const frit_gpu_range *range)
{
    const uint64_t alignment = kind == 'u' ? gpu->limits.uniform_alignment : gpu->limits.storage_alignment;
    const uint64_t most = kind == 'u' ? gpu->limits.uniform_binding_bytes : gpu->limits.storage_binding_bytes;
    if (!range->buffer || !range->buffer->handle) return frit_fail(FRIT_E_INTERNAL, "a binding has no buffer");
    if (range->buffer->usage != (kind == 'u' ? FRIT_GPU_UNIFORM : FRIT_GPU_STORAGE))
        return frit_fail(FRIT_E_INTERNAL, "a binding has a buffer of another usage");
    if (range->offset >= range->buffer->n_bytes || range->n_bytes > range->buffer->n_bytes - range->offset)
        return frit_fail(FRIT_E_INTERNAL, "a binding ends after its buffer");
    if (range->offset % (alignment ? alignment : 1) != 0 || range_bytes(range) % 4 != 0)
        return frit_fail(FRIT_E_INTERNAL, "a binding begins at byte %llu; expected a multiple of %llu",
                         (unsigned long long)range->offset, (unsigned long long)alignment);
    if (range_bytes(range) > most)
        return frit_fail(FRIT_E_UNSUPPORTED, "%s: a binding of %.1f MB; at most %.1f MB are possible", gpu->name,
                         (double)range_bytes(range) / 1e6, (double)most / 1e6);
    return FRIT_OK;
}

// A buffer that a kernel writes has no other binding, which is stricter than WebGPU's rule.
static frit_status check_aliases(const char *kinds, const frit_gpu_range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            if (i != k && kinds[i] == 'w' && ranges[i].buffer->handle == ranges[k].buffer->handle)
                return frit_fail(FRIT_E_INTERNAL, "bindings %zu and %zu are one buffer, which the kernel writes", i, k);
    return FRIT_OK;
}

frit_status frit_gpu_group_new(frit_gpu *gpu, const frit_gpu_pipeline *pipeline, const frit_gpu_range *ranges,
                               frit_wgpu_bind_group *out)
{
    const frit_gpu_layout *layout = &gpu->layouts[pipeline->layout];
    const size_t n = strlen(layout->kinds);
    frit_wgpu_bind_group_entry entries[FRIT_GPU_BINDINGS] = {0};
    *out = NULL;
    for (size_t i = 0; i < n; i++) {
        FRIT_TRY(check_range(gpu, layout->kinds[i], &ranges[i]));
        entries[i] = (frit_wgpu_bind_group_entry){.binding = (uint32_t)i,
                                                  .buffer = ranges[i].buffer->handle,
                                                  .offset = ranges[i].offset,
                                                  .size = range_bytes(&ranges[i])};
    }
    FRIT_TRY(check_aliases(layout->kinds, ranges, n));
    FRIT_TRY(frit_gpu_check(gpu));
    frit_gpu_scope_begin(gpu);
    frit_wgpu_bind_group group = gpu->call.group_new(
        gpu->device, &(frit_wgpu_bind_group_descriptor){.layout = layout->group, .n_entries = n, .entries = entries});
    const frit_status status = frit_gpu_scope_end(gpu, "a group of bindings");
    if (status == FRIT_OK)
        *out = group;
    else if (group)
        gpu->call.group_release(group);
    return status;
}

// ------------------------------------------------------------------------------- lists

static bool is_inside(const frit_gpu_buffer *buffer, uint64_t offset, uint64_t n_bytes)
{
    return offset % 4 == 0 && n_bytes % 4 == 0 && offset <= buffer->n_bytes && n_bytes <= buffer->n_bytes - offset;
}

static frit_status check_copies(const frit_gpu_copy *copies, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const frit_gpu_copy *c = &copies[i];
        if (c->from->handle == c->to->handle || !is_inside(c->from, c->from_offset, c->n_bytes) ||
            !is_inside(c->to, c->to_offset, c->n_bytes))
            return frit_fail(FRIT_E_INTERNAL, "copy %zu lies outside of its buffers", i);
    }
    return FRIT_OK;
}

static void encode_copies(const frit_gpu *gpu, frit_wgpu_command_encoder encoder, const frit_gpu_copy *copies, size_t n)
{
    for (size_t i = 0; i < n; i++)
        gpu->call.encoder_copy(encoder, copies[i].from->handle, copies[i].from_offset, copies[i].to->handle,
                               copies[i].to_offset, copies[i].n_bytes);
}

static frit_status check_list(const frit_gpu *gpu, const frit_gpu_list *list)
{
    const uint32_t most = gpu->limits.workgroups;
    for (size_t i = 0; i < list->n_dispatches; i++) {
        const frit_gpu_dispatch *d = &list->dispatches[i];
        if (!d->pipeline || !d->pipeline->handle || !d->group)
            return frit_fail(FRIT_E_INTERNAL, "dispatch %zu has no pipeline or no group", i);
        if (d->grid[0] > most || d->grid[1] > most || d->grid[2] > most)
            return frit_fail(FRIT_E_UNSUPPORTED, "%s: a dispatch of %u x %u x %u groups; at most %u are possible",
                             gpu->name, d->grid[0], d->grid[1], d->grid[2], most);
    }
    FRIT_TRY(check_copies(list->before, list->n_before));
    return check_copies(list->copies, list->n_copies);
}

static void encode_dispatches(const frit_gpu *gpu, frit_wgpu_command_encoder encoder, const frit_gpu_list *list)
{
    const frit_gpu_functions *call = &gpu->call;
    const frit_gpu_pipeline *current = NULL;
    frit_wgpu_compute_pass_encoder pass = call->pass_begin(encoder, NULL);
    for (size_t i = 0; i < list->n_dispatches; i++) {
        const frit_gpu_dispatch *d = &list->dispatches[i];
        if (d->grid[0] == 0 || d->grid[1] == 0 || d->grid[2] == 0) continue;
        if (d->pipeline != current) call->pass_pipeline(pass, d->pipeline->handle);
        current = d->pipeline;
        call->pass_group(pass, 0, d->group, 0, NULL);
        call->pass_dispatch(pass, d->grid[0], d->grid[1], d->grid[2]);
    }
    call->pass_end(pass);
    call->pass_release(pass);
}

// A loss is reported when callbacks run.
static frit_status check_loss(frit_gpu *gpu)
{
    gpu->call.process_events(gpu->instance);
    return frit_gpu_check(gpu);
}

frit_status frit_gpu_encode(frit_gpu *gpu, const frit_gpu_list *list, frit_wgpu_command_buffer *out)
{
    const frit_gpu_functions *call = &gpu->call;
    *out = NULL;
    FRIT_TRY(check_list(gpu, list));
    FRIT_TRY(frit_gpu_check(gpu));
    if (list->is_new) frit_gpu_scope_begin(gpu);
    frit_wgpu_command_encoder encoder = call->encoder_new(gpu->device, NULL);
    encode_copies(gpu, encoder, list->before, list->n_before);
    if (list->n_dispatches > 0) encode_dispatches(gpu, encoder, list);
    encode_copies(gpu, encoder, list->copies, list->n_copies);
    frit_wgpu_command_buffer commands = call->encoder_finish(encoder, NULL);
    call->encoder_release(encoder);
    frit_status status = list->is_new ? frit_gpu_scope_end(gpu, "a step") : frit_gpu_check(gpu);
    if (status == FRIT_OK && !commands) status = frit_fail(FRIT_E_UNSUPPORTED, "%s: no commands", gpu->name);
    if (status == FRIT_OK)
        *out = commands;
    else
        frit_gpu_drop_commands(gpu, commands);
    return status;
}

void frit_gpu_drop_commands(frit_gpu *gpu, frit_wgpu_command_buffer commands)
{
    if (commands) gpu->call.command_release(commands);
}

frit_status frit_gpu_submit_commands(frit_gpu *gpu, frit_wgpu_command_buffer commands)
{
    const frit_status status = check_loss(gpu);
    if (status == FRIT_OK && gpu->call.submit_for_index)
        gpu->last_submit = gpu->call.submit_for_index(gpu->queue, 1, &commands);
    else if (status == FRIT_OK)
        gpu->call.queue_submit(gpu->queue, 1, &commands);
    frit_gpu_drop_commands(gpu, commands);
    return status == FRIT_OK ? frit_gpu_check(gpu) : status;
}

frit_status frit_gpu_submit(frit_gpu *gpu, const frit_gpu_list *list)
{
    frit_wgpu_command_buffer commands;
    FRIT_TRY(check_loss(gpu));
    FRIT_TRY(frit_gpu_encode(gpu, list, &commands));
    return frit_gpu_submit_commands(gpu, commands);
}
