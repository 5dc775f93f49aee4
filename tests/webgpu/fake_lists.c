// SPDX-License-Identifier: MIT
// The fake's kernels, bindings, lists and submits.
#include "backend/webgpu_fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct layout {
    fake_object base;
    uint32_t types[FAKE_BINDINGS];
    size_t n;
} layout;

typedef struct pipeline {
    fake_object base;
    const layout *layout;
} pipeline;

typedef struct pipeline_layout {
    fake_object base;
    const layout *layout;
} pipeline_layout;

typedef struct group {
    fake_object base;
    const layout *layout;
    fake_buffer *buffers[FAKE_BINDINGS];
    uint64_t offsets[FAKE_BINDINGS], sizes[FAKE_BINDINGS];
} group;

typedef struct command {   // a copy, or a dispatch with its bindings
    fake_buffer *from, *to;
    uint64_t from_offset, to_offset, size;
    const group *group;
} command;

typedef struct commands {
    fake_object base;
    command *list;
    size_t n, capacity;
    const char *error;
    bool is_submitted;
    // While they are encoded:
    const pipeline *pipeline;
    const group *group;
    bool is_in_pass;
} commands;

static int n_submits, n_pipelines;
static uint64_t n_dispatches;

void fake_reset_lists(void);
void fake_reset_lists(void)
{
    n_submits = n_pipelines = 0;
    n_dispatches = 0;
}

int fake_n_submits(void)
{
    return n_submits;
}

uint64_t fake_n_dispatches(void)
{
    return n_dispatches;
}

// ------------------------------------------------------------------------------- kernels

// Dawn's compiler wants parentheses where | or & and a shift are operands of each other. Naga does not.
static bool has_bare_shift(const char *text)
{
    enum { MOST_DEPTH = 64, BITS = 1, SHIFT = 2 };
    unsigned seen[MOST_DEPTH] = {0};
    int depth = 0;
    for (const char *c = text; *c; c++) {
        const bool is_shift = (c[0] == '<' || c[0] == '>') && c[1] == c[0] && (c[2] == ' ' || c[2] == '=');
        if (strchr("([{", *c) && depth + 1 < MOST_DEPTH) seen[++depth] = 0;
        if (strchr(")]}", *c) && depth > 0) depth--;
        if (strchr(",;{}", *c) || (*c == '=' && c[1] == ' ')) seen[depth] = 0;
        if ((*c == '|' || *c == '&') && c[1] == ' ' && c[-1] == ' ') seen[depth] |= BITS;
        if (is_shift && c[2] == ' ') seen[depth] |= SHIFT;
        if (is_shift) c++;
        if (seen[depth] == (BITS | SHIFT)) return true;
    }
    return false;
}

static bool is_kernel(frit_wgpu_string_view text)
{
    int depth = 0;
    const size_t n = text.length == SIZE_MAX ? strlen(text.data) : text.length;
    char *copy = calloc(n + 1, 1);
    if (!copy) fake_abort("there is no memory");
    memcpy(copy, text.data, n);
    for (size_t i = 0; i < n && depth >= 0; i++) depth += copy[i] == '{' ? 1 : copy[i] == '}' ? -1 : 0;
    const bool is_right = depth == 0 && strstr(copy, "@compute") && strstr(copy, "fn main(") && !has_bare_shift(copy);
    free(copy);
    return is_right;
}

frit_wgpu_shader_module wgpuDeviceCreateShaderModule(frit_wgpu_device device, const frit_wgpu_named *descriptor)
{
    fake_require(device, FAKE_DEVICE, "wgpuDeviceCreateShaderModule");
    fake_object *module = fake_new(FAKE_MODULE, sizeof *module);
    const frit_wgpu_source_wgsl *source = (const frit_wgpu_source_wgsl *)(const void *)descriptor->next;
    if (!source || source->chain.type != FRIT_WGPU_SOURCE_WGSL || !is_kernel(source->code))
        fake_error(FRIT_WGPU_VALIDATION, "the kernel is not WGSL"), module->is_error = true;
    return (frit_wgpu_shader_module)(void *)module;
}

void wgpuShaderModuleRelease(frit_wgpu_shader_module module)
{
    fake_release(module, FAKE_MODULE);
}

frit_wgpu_bind_group_layout wgpuDeviceCreateBindGroupLayout(frit_wgpu_device device,
                                                            const frit_wgpu_bind_group_layout_descriptor *d)
{
    size_t n_storage = 0;
    fake_require(device, FAKE_DEVICE, "wgpuDeviceCreateBindGroupLayout");
    layout *made = fake_new(FAKE_LAYOUT, sizeof *made);
    if (d->n_entries > FAKE_BINDINGS) fake_abort("a layout has too many bindings");
    for (size_t i = 0; i < d->n_entries; i++) {
        made->types[i] = d->entries[i].buffer.type;
        n_storage += made->types[i] != FRIT_WGPU_UNIFORM;
    }
    made->n = d->n_entries;
    if (n_storage > 8) fake_error(FRIT_WGPU_VALIDATION, "more than 8 storage buffers"), made->base.is_error = true;
    return (frit_wgpu_bind_group_layout)(void *)made;
}

void wgpuBindGroupLayoutRelease(frit_wgpu_bind_group_layout handle)
{
    fake_release(handle, FAKE_LAYOUT);
}

frit_wgpu_pipeline_layout wgpuDeviceCreatePipelineLayout(frit_wgpu_device device,
                                                         const frit_wgpu_pipeline_layout_descriptor *d)
{
    fake_require(device, FAKE_DEVICE, "wgpuDeviceCreatePipelineLayout");
    pipeline_layout *made = fake_new(FAKE_PIPELINE_LAYOUT, sizeof *made);
    made->layout = (const layout *)(const void *)d->layouts[0];
    return (frit_wgpu_pipeline_layout)(void *)made;
}

void wgpuPipelineLayoutRelease(frit_wgpu_pipeline_layout handle)
{
    fake_release(handle, FAKE_PIPELINE_LAYOUT);
}

frit_wgpu_compute_pipeline wgpuDeviceCreateComputePipeline(frit_wgpu_device device,
                                                           const frit_wgpu_compute_pipeline_descriptor *d)
{
    fake_require(device, FAKE_DEVICE, "wgpuDeviceCreateComputePipeline");
    fake_require(d->compute.module, FAKE_MODULE, "wgpuDeviceCreateComputePipeline");
    pipeline *made = fake_new(FAKE_PIPELINE, sizeof *made);
    made->layout = ((const pipeline_layout *)(const void *)d->layout)->layout;
    const bool is_refused = fake.refused_pipeline && ++n_pipelines >= fake.refused_pipeline;
    if (((const fake_object *)(const void *)d->compute.module)->is_error || is_refused) {
        fake_error(FRIT_WGPU_VALIDATION, is_refused ? "the driver refuses the kernel" : "the kernel has an error");
        made->base.is_error = true;
    }
    return (frit_wgpu_compute_pipeline)(void *)made;
}

void wgpuComputePipelineRelease(frit_wgpu_compute_pipeline handle)
{
    fake_release(handle, FAKE_PIPELINE);
}

// ------------------------------------------------------------------------------- bindings

static const char *fault_of(uint32_t type, const fake_buffer *buffer, uint64_t offset, uint64_t size)
{
    const uint64_t needed = type == FRIT_WGPU_UNIFORM ? FRIT_WGPU_USE_UNIFORM : FRIT_WGPU_USE_STORAGE;
    const uint64_t most = type == FRIT_WGPU_UNIFORM ? 64 << 10 : 128 << 20;
    if (!(buffer->usage & needed)) return "a binding has a buffer of another usage";
    if (offset % 256 || size % 4) return "a binding is not aligned";
    if (size == 0 || size > buffer->size || offset > buffer->size - size) return "a binding ends after its buffer";
    if (size > most) return "a binding is too large";
    return NULL;
}

frit_wgpu_bind_group wgpuDeviceCreateBindGroup(frit_wgpu_device device, const frit_wgpu_bind_group_descriptor *d)
{
    fake_require(device, FAKE_DEVICE, "wgpuDeviceCreateBindGroup");
    fake_require(d->layout, FAKE_LAYOUT, "wgpuDeviceCreateBindGroup");
    group *made = fake_new(FAKE_GROUP, sizeof *made);
    made->layout = (const layout *)(const void *)d->layout;
    const char *fault = d->n_entries == made->layout->n ? NULL : "a group has another number of bindings";
    for (size_t i = 0; i < d->n_entries && !fault; i++) {
        const frit_wgpu_bind_group_entry *e = &d->entries[i];
        fake_require(e->buffer, FAKE_BUFFER, "wgpuDeviceCreateBindGroup");
        made->buffers[i] = (fake_buffer *)(void *)e->buffer;
        made->offsets[i] = e->offset;
        made->sizes[i] = e->size;
        fault = fault_of(made->layout->types[i], made->buffers[i], e->offset, e->size);
    }
    if (fault) fake_error(FRIT_WGPU_VALIDATION, fault), made->base.is_error = true;
    return (frit_wgpu_bind_group)(void *)made;
}

void wgpuBindGroupRelease(frit_wgpu_bind_group handle)
{
    fake_release(handle, FAKE_GROUP);
}

// ------------------------------------------------------------------------------- lists

frit_wgpu_command_encoder wgpuDeviceCreateCommandEncoder(frit_wgpu_device device, const frit_wgpu_named *descriptor)
{
    (void)descriptor;
    fake_require(device, FAKE_DEVICE, "wgpuDeviceCreateCommandEncoder");
    return fake_new(FAKE_ENCODER, sizeof(commands));
}

void wgpuCommandEncoderRelease(frit_wgpu_command_encoder handle)
{
    fake_release(handle, FAKE_ENCODER);
}

static void add_command(commands *c, command new)
{
    if (c->n == c->capacity) {
        c->capacity = 2 * c->capacity + 16;
        c->list = realloc(c->list, c->capacity * sizeof *c->list);
        if (!c->list) fake_abort("there is no memory");
    }
    c->list[c->n++] = new;
}

static void set_error(commands *c, const char *sentence)
{
    if (!c->error) c->error = sentence;
}

void wgpuCommandEncoderCopyBufferToBuffer(frit_wgpu_command_encoder handle, frit_wgpu_buffer from, uint64_t from_offset,
                                          frit_wgpu_buffer to, uint64_t to_offset, uint64_t size)
{
    commands *c = (commands *)(void *)handle;
    fake_buffer *a = (fake_buffer *)(void *)from, *b = (fake_buffer *)(void *)to;
    fake_require(handle, FAKE_ENCODER, "wgpuCommandEncoderCopyBufferToBuffer");
    fake_require(from, FAKE_BUFFER, "wgpuCommandEncoderCopyBufferToBuffer");
    fake_require(to, FAKE_BUFFER, "wgpuCommandEncoderCopyBufferToBuffer");
    if (c->is_in_pass) set_error(c, "a copy is in a pass");
    if (a == b) set_error(c, "a copy has one buffer");
    if (!(a->usage & FRIT_WGPU_COPY_SRC) || !(b->usage & FRIT_WGPU_COPY_DST)) set_error(c, "a copy has wrong usages");
    if (from_offset % 4 || to_offset % 4 || size % 4) set_error(c, "a copy is not aligned");
    if (from_offset + size > a->size || to_offset + size > b->size) set_error(c, "a copy ends after its buffer");
    add_command(c, (command){.from = a, .to = b, .from_offset = from_offset, .to_offset = to_offset, .size = size});
}

void wgpuCommandEncoderClearBuffer(frit_wgpu_command_encoder handle, frit_wgpu_buffer buffer, uint64_t offset,
                                   uint64_t size)
{
    (void)buffer, (void)offset, (void)size;
    fake_require(handle, FAKE_ENCODER, "wgpuCommandEncoderClearBuffer");
}

frit_wgpu_compute_pass_encoder wgpuCommandEncoderBeginComputePass(frit_wgpu_command_encoder handle,
                                                                  const frit_wgpu_compute_pass_descriptor *descriptor)
{
    (void)descriptor;
    fake_require(handle, FAKE_ENCODER, "wgpuCommandEncoderBeginComputePass");
    fake_object *pass = fake_new(FAKE_PASS, sizeof *pass);
    pass->parent = (fake_object *)(void *)handle;
    ((commands *)(void *)handle)->is_in_pass = true;
    return (frit_wgpu_compute_pass_encoder)(void *)pass;
}

static commands *list_of(frit_wgpu_compute_pass_encoder handle)
{
    fake_require(handle, FAKE_PASS, "a pass");
    return (commands *)(void *)((fake_object *)(void *)handle)->parent;
}

void wgpuComputePassEncoderSetPipeline(frit_wgpu_compute_pass_encoder handle, frit_wgpu_compute_pipeline p)
{
    fake_require(p, FAKE_PIPELINE, "wgpuComputePassEncoderSetPipeline");
    list_of(handle)->pipeline = (const pipeline *)(const void *)p;
}

void wgpuComputePassEncoderSetBindGroup(frit_wgpu_compute_pass_encoder handle, uint32_t i, frit_wgpu_bind_group g,
                                        size_t n_offsets, const uint32_t *offsets)
{
    (void)i, (void)n_offsets, (void)offsets;
    fake_require(g, FAKE_GROUP, "wgpuComputePassEncoderSetBindGroup");
    list_of(handle)->group = (const group *)(const void *)g;
}

// A buffer is written by one binding of a dispatch only, and not read by another one.
static bool has_aliases(const group *g)
{
    for (size_t i = 0; i < g->layout->n; i++)
        for (size_t k = 0; k < g->layout->n; k++)
            if (i != k && g->buffers[i] == g->buffers[k] && g->layout->types[i] == FRIT_WGPU_STORAGE) return true;
    return false;
}

void wgpuComputePassEncoderDispatchWorkgroups(frit_wgpu_compute_pass_encoder handle, uint32_t x, uint32_t y, uint32_t z)
{
    commands *c = list_of(handle);
    if (!c->pipeline || c->pipeline->base.is_error) set_error(c, "a dispatch has no kernel");
    if (!c->group || c->group->base.is_error) set_error(c, "a dispatch has no bindings");
    if (x > 65535 || y > 65535 || z > 65535) set_error(c, "a dispatch is too large");
    if (c->error) return;
    if (c->group->layout != c->pipeline->layout) set_error(c, "a dispatch has bindings of another kernel");
    if (has_aliases(c->group)) set_error(c, "a dispatch writes a buffer that another binding has");
    add_command(c, (command){.group = c->group});
}

void wgpuComputePassEncoderEnd(frit_wgpu_compute_pass_encoder handle)
{
    list_of(handle)->is_in_pass = false;
}

void wgpuComputePassEncoderRelease(frit_wgpu_compute_pass_encoder handle)
{
    fake_release(handle, FAKE_PASS);
}

frit_wgpu_command_buffer wgpuCommandEncoderFinish(frit_wgpu_command_encoder handle, const frit_wgpu_named *descriptor)
{
    commands *from = (commands *)(void *)handle;
    (void)descriptor;
    fake_require(handle, FAKE_ENCODER, "wgpuCommandEncoderFinish");
    if (from->is_in_pass) set_error(from, "a pass has no end");
    commands *made = fake_new(FAKE_COMMANDS, sizeof *made);
    made->list = from->list;
    made->n = from->n;
    made->error = from->error;
    from->list = NULL;
    from->n = 0;
    if (made->error) fake_error(FRIT_WGPU_VALIDATION, made->error);
    return (frit_wgpu_command_buffer)(void *)made;
}

void wgpuCommandBufferRelease(frit_wgpu_command_buffer handle)
{
    commands *c = (commands *)(void *)handle;
    fake_release(handle, FAKE_COMMANDS);
    free(c->list);
    c->list = NULL;
}

static void require_usable(const fake_buffer *buffer)
{
    if (buffer->base.n_refs == 0 && buffer->bytes == NULL) fake_abort("a list has a buffer that was released");
    if (buffer->is_destroyed) fake_abort("a list has a buffer that was destroyed");
    if (buffer->map_state) fake_abort("a list has a buffer that is mapped");
}

static void run_command(const command *c)
{
    if (c->group) {
        if (c->group->base.n_refs == 0) fake_abort("a list has bindings that were released");
        for (size_t i = 0; i < c->group->layout->n; i++) require_usable(c->group->buffers[i]);
        n_dispatches++;
        return;
    }
    require_usable(c->from);
    require_usable(c->to);
    memcpy(c->to->bytes + c->to_offset, c->from->bytes + c->from_offset, (size_t)c->size);
}

void wgpuQueueSubmit(frit_wgpu_queue queue, size_t n, const frit_wgpu_command_buffer *list)
{
    fake_require(queue, FAKE_QUEUE, "wgpuQueueSubmit");
    if (fake_is_lost()) fake_abort("a list is submitted to a lost device");
    for (size_t i = 0; i < n; i++) {
        commands *c = (commands *)(void *)list[i];
        fake_require(c, FAKE_COMMANDS, "wgpuQueueSubmit");
        if (c->error) fake_abort(c->error);
        if (c->is_submitted) fake_abort("a list is submitted twice");
        c->is_submitted = true;
        for (size_t k = 0; k < c->n; k++) run_command(&c->list[k]);
    }
    n_submits++;
    if (n_submits == fake.uncaptured_at_submit) fake_error(FRIT_WGPU_VALIDATION, "an error that no call expects");
    if (n_submits == fake.lost_at_submit) fake_lose();
}
