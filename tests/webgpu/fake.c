// SPDX-License-Identifier: MIT
// The fake's instance, adapters, device, error scopes and buffers.
#include "backend/webgpu_fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EVENTS = 64, MOST_SCOPES = 8, ALIGNMENT = 256 };

typedef struct event {   // a callback that runs in wgpuInstanceProcessEvents
    enum { ADAPTER_FOUND, DEVICE_OPENED, SCOPE_POPPED, BUFFER_MAPPED } kind;
    void *callback, *a, *b, *object;
    uint32_t status, type;
    const char *sentence;
} event;

typedef struct scope {
    uint32_t filter, type;
    const char *sentence;
} scope;

fake_settings fake = {.n_adapters = 1};

static struct {
    event events[MOST_EVENTS];
    int n_events;
    scope scopes[MOST_SCOPES];
    int n_scopes;
    fake_object *objects;
    int n_living, n_maps;
    uint64_t used_bytes;
    frit_wgpu_lost_callback lost;
    frit_wgpu_error_callback error;
    bool has_device, is_lost;
} world = {0};

_Noreturn void fake_abort(const char *sentence)
{
    fprintf(stderr, "webgpu's fake: %s\n", sentence);
    abort();
}

static frit_wgpu_string_view view_of(const char *text)
{
    return (frit_wgpu_string_view){text, text ? strlen(text) : 0};
}

// ------------------------------------------------------------------------------- objects

void *fake_new(fake_kind kind, size_t n_bytes)
{
    fake_object *object = calloc(1, n_bytes);
    if (!object) fake_abort("there is no memory");
    object->kind = kind;
    object->n_refs = 1;
    object->next = world.objects;
    world.objects = object;
    world.n_living++;
    return object;
}

void fake_require(const void *object, fake_kind kind, const char *where)
{
    const fake_object *o = object;
    if (o && o->kind == kind && o->n_refs > 0) return;
    fprintf(stderr, "webgpu's fake: %s is called with a wrong object\n", where);
    abort();
}

void fake_release(void *object, fake_kind kind)
{
    fake_require(object, kind, "a release");
    fake_object *o = object;
    o->n_refs--;
    world.n_living--;
    if (kind == FAKE_BUFFER) {
        fake_buffer *buffer = object;
        if (!buffer->is_destroyed) world.used_bytes -= buffer->size;
        free(buffer->bytes);
        buffer->bytes = NULL;
        buffer->is_destroyed = true;
    }
    // The object stays in memory, so that a wrong use of it is seen.
}

int fake_n_living(void)
{
    return world.n_living;
}

static void reset_counts(void);

void fake_set(const fake_settings *settings)
{
    fake = *settings;
    world.n_maps = 0;
    reset_counts();
}

// ------------------------------------------------------------------------------- events

static void add_event(event e)
{
    if (world.n_events == MOST_EVENTS) fake_abort("too many callbacks wait");
    world.events[world.n_events++] = e;
}

bool fake_is_lost(void)
{
    return world.is_lost;
}

void fake_lose(void)
{
    if (world.is_lost) return;
    world.is_lost = true;
    if (world.lost.callback) world.lost.callback(NULL, 1, view_of("the fake has lost it"), world.lost.a, world.lost.b);
}

void fake_error(uint32_t filter, const char *sentence)
{
    const uint32_t type = filter == FRIT_WGPU_OUT_OF_MEMORY ? FRIT_WGPU_ERROR_OUT_OF_MEMORY : 2;
    for (int i = world.n_scopes - 1; i >= 0; i--) {
        scope *s = &world.scopes[i];
        if (s->filter != filter) continue;
        if (s->type == FRIT_WGPU_NO_ERROR) *s = (scope){filter, type, sentence};
        return;
    }
    if (world.error.callback) world.error.callback(NULL, type, view_of(sentence), world.error.a, world.error.b);
}

static void run_event(const event *e)
{
    const frit_wgpu_string_view text = view_of(e->sentence);
    switch (e->kind) {
    case ADAPTER_FOUND:
        ((frit_wgpu_adapter_fn)e->callback)(e->status, e->object, text, e->a, e->b);
        break;
    case DEVICE_OPENED:
        ((frit_wgpu_device_fn)e->callback)(e->status, e->object, text, e->a, e->b);
        break;
    case SCOPE_POPPED:
        ((frit_wgpu_scope_fn)e->callback)(e->status, e->type, text, e->a, e->b);
        break;
    case BUFFER_MAPPED:
        if (world.is_lost || ++world.n_maps == fake.lost_at_map) {
            fake_lose();
            ((frit_wgpu_map_fn)e->callback)(4, view_of("the device is lost"), e->a, e->b);
            return;
        }
        const bool fails = world.n_maps == fake.failed_map;
        ((fake_buffer *)e->object)->map_state = fails ? 0 : 2;
        ((frit_wgpu_map_fn)e->callback)(fails ? 3 : FRIT_WGPU_SUCCESS, view_of(fails ? "it fails" : ""), e->a, e->b);
        break;
    }
}

void wgpuInstanceProcessEvents(frit_wgpu_instance instance)
{
    fake_require(instance, FAKE_INSTANCE, "wgpuInstanceProcessEvents");
    while (world.n_events > 0) {
        const event first = world.events[0];
        world.n_events--;
        memmove(world.events, world.events + 1, (size_t)world.n_events * sizeof first);
        run_event(&first);
    }
}

// ------------------------------------------------------------------------------- opening

typedef struct fake_adapter {
    fake_object base;
    int number;
} fake_adapter;

frit_wgpu_instance wgpuCreateInstance(const frit_wgpu_instance_descriptor *descriptor)
{
    (void)descriptor;
    return fake_new(FAKE_INSTANCE, sizeof(fake_object));
}

void wgpuInstanceRelease(frit_wgpu_instance instance)
{
    fake_release(instance, FAKE_INSTANCE);
}

// Adapter 0 is the one of high performance, 1 that of low power, 2 the fallback.
frit_wgpu_future wgpuInstanceRequestAdapter(frit_wgpu_instance instance, const frit_wgpu_request_adapter_options *o,
                                            frit_wgpu_adapter_callback callback)
{
    enum { VULKAN = 6 };
    int number = o->force_fallback ? 2 : o->power_preference == FRIT_WGPU_HIGH_PERFORMANCE ? 0 : 1;
    fake_require(instance, FAKE_INSTANCE, "wgpuInstanceRequestAdapter");
    if (!o->force_fallback && number >= fake.n_adapters) number = fake.n_adapters - 1;
    event e = {.kind = ADAPTER_FOUND, .a = callback.a, .b = callback.b, .status = 3, .sentence = "there is none"};
    *(frit_wgpu_adapter_fn *)&e.callback = callback.callback;
    if (o->backend == VULKAN && number >= 0 && number < fake.n_adapters) {
        fake_adapter *adapter = fake_new(FAKE_ADAPTER, sizeof *adapter);
        adapter->number = number;
        e.object = adapter;
        e.status = FRIT_WGPU_SUCCESS;
    }
    add_event(e);
    return (frit_wgpu_future){1};
}

void wgpuAdapterRelease(frit_wgpu_adapter adapter)
{
    fake_release(adapter, FAKE_ADAPTER);
}

uint32_t wgpuAdapterGetInfo(frit_wgpu_adapter adapter, frit_wgpu_adapter_info *info)
{
    static const char *const names[] = {"fast fake", "small fake", "fake processor"};
    static const uint32_t types[] = {FRIT_WGPU_INTEGRATED, FRIT_WGPU_INTEGRATED, FRIT_WGPU_CPU};
    const fake_adapter *a = (const fake_adapter *)adapter;
    fake_require(adapter, FAKE_ADAPTER, "wgpuAdapterGetInfo");
    info->device = view_of(names[a->number]);
    info->adapter_type = types[a->number];
    info->device_id = (uint32_t)a->number;
    info->backend = 6;
    return FRIT_WGPU_SUCCESS;
}

void wgpuAdapterInfoFreeMembers(frit_wgpu_adapter_info info)
{
    (void)info;
}

uint32_t wgpuAdapterGetLimits(frit_wgpu_adapter adapter, frit_wgpu_limits *limits)
{
    fake_require(adapter, FAKE_ADAPTER, "wgpuAdapterGetLimits");
    *limits = (frit_wgpu_limits){.storage_buffers = fake.has_small_limits ? 4 : 8,
                                 .uniform_buffers = 12,
                                 .bindings_per_group = 1000,
                                 .uniform_binding_bytes = 64 << 10,
                                 .storage_binding_bytes = 128 << 20,
                                 .uniform_alignment = ALIGNMENT,
                                 .storage_alignment = ALIGNMENT,
                                 .buffer_bytes = 256 << 20,
                                 .workgroup_bytes = 16 << 10,
                                 .workgroup_invocations = fake.has_small_limits ? 128 : 256,
                                 .workgroup_size = {256, 256, 64},
                                 .workgroups = 65535};
    return FRIT_WGPU_SUCCESS;
}

uint32_t wgpuAdapterHasFeature(frit_wgpu_adapter adapter, uint32_t feature)
{
    (void)adapter, (void)feature;
    return 0;
}

frit_wgpu_future wgpuAdapterRequestDevice(frit_wgpu_adapter adapter, const frit_wgpu_device_descriptor *d,
                                          frit_wgpu_device_callback callback)
{
    fake_require(adapter, FAKE_ADAPTER, "wgpuAdapterRequestDevice");
    event e = {.kind = DEVICE_OPENED, .a = callback.a, .b = callback.b, .status = 3, .sentence = "it is in use"};
    *(frit_wgpu_device_fn *)&e.callback = callback.callback;
    if (!fake.refuses_device) {
        if (world.has_device) fake_abort("two devices are open at once");
        e.object = fake_new(FAKE_DEVICE, sizeof(fake_object));
        e.status = FRIT_WGPU_SUCCESS;
        e.sentence = "";
        world.lost = d->lost;
        world.error = d->error;
        world.is_lost = false;
        world.has_device = true;
    }
    add_event(e);
    return (frit_wgpu_future){1};
}

void wgpuDeviceDestroy(frit_wgpu_device device)
{
    fake_require(device, FAKE_DEVICE, "wgpuDeviceDestroy");
    fake_lose();
}

void wgpuDeviceRelease(frit_wgpu_device device)
{
    fake_release(device, FAKE_DEVICE);
    world.has_device = false;
    world.n_scopes = 0;
}

frit_wgpu_queue wgpuDeviceGetQueue(frit_wgpu_device device)
{
    fake_require(device, FAKE_DEVICE, "wgpuDeviceGetQueue");
    return fake_new(FAKE_QUEUE, sizeof(fake_object));
}

void wgpuQueueRelease(frit_wgpu_queue queue)
{
    fake_release(queue, FAKE_QUEUE);
}

void wgpuDevicePushErrorScope(frit_wgpu_device device, uint32_t filter)
{
    fake_require(device, FAKE_DEVICE, "wgpuDevicePushErrorScope");
    if (world.n_scopes == MOST_SCOPES) fake_abort("too many error scopes");
    world.scopes[world.n_scopes++] = (scope){filter, FRIT_WGPU_NO_ERROR, ""};
}

frit_wgpu_future wgpuDevicePopErrorScope(frit_wgpu_device device, frit_wgpu_scope_callback callback)
{
    fake_require(device, FAKE_DEVICE, "wgpuDevicePopErrorScope");
    if (world.n_scopes == 0) fake_abort("an error scope is popped that was not pushed");
    const scope s = world.scopes[--world.n_scopes];
    event e = {.kind = SCOPE_POPPED,
               .a = callback.a,
               .b = callback.b,
               .status = FRIT_WGPU_SUCCESS,
               .type = s.type,
               .sentence = s.sentence};
    *(frit_wgpu_scope_fn *)&e.callback = callback.callback;
    add_event(e);
    return (frit_wgpu_future){1};
}

// ------------------------------------------------------------------------------- buffers

frit_wgpu_buffer wgpuDeviceCreateBuffer(frit_wgpu_device device, const frit_wgpu_buffer_descriptor *d)
{
    fake_require(device, FAKE_DEVICE, "wgpuDeviceCreateBuffer");
    fake_buffer *buffer = fake_new(FAKE_BUFFER, sizeof *buffer);
    buffer->usage = d->usage;
    buffer->size = d->size;
    const bool is_readback = d->usage & FRIT_WGPU_MAP_READ;
    if (d->usage == 0 || (is_readback && d->usage & ~(uint64_t)(FRIT_WGPU_MAP_READ | FRIT_WGPU_COPY_DST)))
        fake_error(FRIT_WGPU_VALIDATION, "usages of a buffer do not go together"), buffer->base.is_error = true;
    if (d->size > 256 << 20) fake_error(FRIT_WGPU_VALIDATION, "a buffer is too large"), buffer->base.is_error = true;
    if (fake.memory && world.used_bytes + d->size > fake.memory)
        fake_error(FRIT_WGPU_OUT_OF_MEMORY, "the fake has no memory"), buffer->base.is_error = true;
    if (buffer->base.is_error) buffer->size = 0;
    world.used_bytes += buffer->size;
    buffer->bytes = calloc(1, (size_t)buffer->size + 1);
    if (!buffer->bytes) fake_abort("there is no memory");
    return (frit_wgpu_buffer)buffer;
}

void wgpuBufferDestroy(frit_wgpu_buffer handle)
{
    fake_buffer *buffer = (fake_buffer *)handle;
    fake_require(handle, FAKE_BUFFER, "wgpuBufferDestroy");
    if (!buffer->is_destroyed) world.used_bytes -= buffer->size;
    buffer->is_destroyed = true;
}

void wgpuBufferRelease(frit_wgpu_buffer handle)
{
    fake_release(handle, FAKE_BUFFER);
}

frit_wgpu_future wgpuBufferMapAsync(frit_wgpu_buffer handle, uint64_t mode, size_t offset, size_t size,
                                    frit_wgpu_map_callback callback)
{
    fake_buffer *buffer = (fake_buffer *)handle;
    fake_require(handle, FAKE_BUFFER, "wgpuBufferMapAsync");
    if (mode != FRIT_WGPU_MAP_READ || !(buffer->usage & FRIT_WGPU_MAP_READ)) fake_abort("a buffer cannot be mapped");
    if (offset % 8 || size % 4 || offset + size > buffer->size) fake_abort("a mapping ends after its buffer");
    if (buffer->map_state != 0) fake_abort("a buffer is mapped twice");
    event e = {.kind = BUFFER_MAPPED, .a = callback.a, .b = callback.b, .object = buffer};
    *(frit_wgpu_map_fn *)&e.callback = callback.callback;
    buffer->map_state = 1;
    add_event(e);
    return (frit_wgpu_future){1};
}

const void *wgpuBufferGetConstMappedRange(frit_wgpu_buffer handle, size_t offset, size_t size)
{
    const fake_buffer *buffer = (const fake_buffer *)handle;
    fake_require(handle, FAKE_BUFFER, "wgpuBufferGetConstMappedRange");
    return buffer->map_state == 2 && offset + size <= buffer->size ? buffer->bytes + offset : NULL;
}

void wgpuBufferUnmap(frit_wgpu_buffer handle)
{
    fake_require(handle, FAKE_BUFFER, "wgpuBufferUnmap");
    ((fake_buffer *)handle)->map_state = 0;
}

void wgpuQueueWriteBuffer(frit_wgpu_queue queue, frit_wgpu_buffer handle, uint64_t offset, const void *from,
                          size_t size)
{
    fake_buffer *buffer = (fake_buffer *)handle;
    fake_require(queue, FAKE_QUEUE, "wgpuQueueWriteBuffer");
    fake_require(handle, FAKE_BUFFER, "wgpuQueueWriteBuffer");
    if (fake_is_lost()) return;
    if (!(buffer->usage & FRIT_WGPU_COPY_DST) || buffer->is_destroyed || buffer->map_state || offset % 4 || size % 4 ||
        offset + size > buffer->size) {
        fake_error(FRIT_WGPU_VALIDATION, "a write is not inside of a buffer that can be written");
        return;
    }
    memcpy(buffer->bytes + offset, from, size);
}

void fake_reset_lists(void);

static void reset_counts(void)
{
    fake_reset_lists();
}
