// SPDX-License-Identifier: MIT
// Opening WebGPU: the library, an adapter and its device.
#include "backend/webgpu/runtime/gpu.h"
#include "backend/webgpu/runtime/scope.h"

#include "base/os.h"
#include "base/time.h"

#include <stdio.h>
#include <string.h>

static const char *const library_names[] = {"libwebgpu_dawn.so.0", "libwebgpu_dawn.so",        "libwebgpu_dawn.dylib",
                                            "webgpu_dawn.dll",     "libwgpu_native.so",        "libwgpu_native.dylib",
                                            "wgpu_native.dll",     "libwgpu_native-release.so"};

// ------------------------------------------------------------------------------- the library

static void *find(frit_gpu *gpu, const char *symbol)
{
    return frit_library_find(gpu->library, symbol);
}

static frit_status find_functions(frit_gpu *gpu, const char *name)
{
#define WGPU(member, symbol, result, parameters)                                                                     \
    {                                                                                                                \
        void *const found = find(gpu, #symbol);                                                                      \
        if (!found)                                                                                                  \
            return frit_fail(FRIT_E_NOT_FOUND,                                                                       \
                             "%s has no function %s; expected Dawn or wgpu-native with the interface of 2025", name, \
                             #symbol);                                                                               \
        memcpy(&gpu->call.member, &found, sizeof found);                                                             \
    }
#include "backend/webgpu/runtime/webgpu.def"
#undef WGPU
    void *const poll = find(gpu, "wgpuDevicePoll"), *const submit = find(gpu, "wgpuQueueSubmitForIndex");
    void *const trusted = find(gpu, "wgpuDeviceCreateShaderModuleTrusted");
    memcpy(&gpu->call.module_trusted, &trusted, sizeof trusted);
    memcpy(&gpu->call.poll, &poll, sizeof poll);
    memcpy(&gpu->call.submit_for_index, &submit, sizeof submit);
    gpu->library_name = poll && submit ? "wgpu-native" : "Dawn";
    return FRIT_OK;
}

static frit_status open_library(frit_gpu *gpu, const char *wanted)
{
    const char *name = wanted;
    if (wanted) gpu->library = frit_library_open(wanted);
    for (size_t i = 0; i < FRIT_COUNT(library_names) && !wanted && !gpu->library; i++)
        gpu->library = frit_library_open(name = library_names[i]);
    if (gpu->library) return find_functions(gpu, name);
    return frit_fail(FRIT_E_NOT_FOUND, "WebGPU's library (%s) cannot be loaded",
                     wanted ? wanted : "libwebgpu_dawn or libwgpu_native");
}

// ------------------------------------------------------------------------------- waiting

// Runs callbacks until *is_done, for 30 seconds at most.
bool frit_gpu_wait_until(frit_gpu *gpu, const _Atomic bool *is_done)
{
    const uint64_t limit = 30000000000u, begin = frit_time_ns();
    while (!atomic_load(is_done)) {
        gpu->call.process_events(gpu->instance);
        if (frit_time_ns() - begin > limit) return false;
        frit_os_yield();
    }
    return true;
}

static void copy_view(char *to, size_t n, frit_wgpu_string_view view)
{
    const size_t length = view.data ? view.length == SIZE_MAX ? strlen(view.data) : view.length : 0;
    snprintf(to, n, "%.*s", (int)(length < n ? length : n - 1), view.data ? view.data : "");
    for (char *c = to; *c; c++)
        if (*c == '\n') *c = ' ';
}

typedef struct scope_result {
    _Atomic bool is_done;
    uint32_t type;
    char sentence[512];
} scope_result;

static void scope_popped(uint32_t status, uint32_t type, frit_wgpu_string_view message, void *a, void *b)
{
    scope_result *result = a;
    (void)b;
    result->type = status == FRIT_WGPU_SUCCESS ? type : FRIT_WGPU_NO_ERROR;
    copy_view(result->sentence, sizeof result->sentence, message);
    atomic_store(&result->is_done, true);
}

static void pop_scope(frit_gpu *gpu, scope_result *result)
{
    *result = (scope_result){.type = FRIT_WGPU_NO_ERROR};
    gpu->call.scope_pop(gpu->device, (frit_wgpu_scope_callback){
                                         .mode = FRIT_WGPU_PROCESS_EVENTS, .callback = scope_popped, .a = result});
    frit_gpu_wait_until(gpu, &result->is_done);
}

void frit_gpu_scope_begin(frit_gpu *gpu)
{
    gpu->call.scope_push(gpu->device, FRIT_WGPU_OUT_OF_MEMORY);
    gpu->call.scope_push(gpu->device, FRIT_WGPU_VALIDATION);
}

frit_status frit_gpu_scope_end(frit_gpu *gpu, const char *what)
{
    scope_result invalid, memory;
    pop_scope(gpu, &invalid);
    pop_scope(gpu, &memory);
    if (memory.type != FRIT_WGPU_NO_ERROR)
        return frit_fail(FRIT_E_MEMORY, "%s: %s: %s", gpu->name, what, memory.sentence);
    if (invalid.type != FRIT_WGPU_NO_ERROR)
        return frit_fail(invalid.type == FRIT_WGPU_ERROR_OUT_OF_MEMORY ? FRIT_E_MEMORY : FRIT_E_UNSUPPORTED,
                         "%s: %s: %s", gpu->name, what, invalid.sentence);
    return frit_gpu_check(gpu);
}

static void device_lost(frit_wgpu_device const *device, uint32_t reason, frit_wgpu_string_view message, void *a,
                        void *b)
{
    frit_gpu *gpu = a;
    (void)device, (void)reason, (void)b;
    if (atomic_load(&gpu->is_lost)) return;
    copy_view(gpu->failure, sizeof gpu->failure, message);
    atomic_store(&gpu->is_lost, true);
}

static void error_found(frit_wgpu_device const *device, uint32_t type, frit_wgpu_string_view message, void *a, void *b)
{
    frit_gpu *gpu = a;
    (void)device, (void)type, (void)b;
    if (atomic_load(&gpu->is_lost) || atomic_load(&gpu->has_error)) return;
    copy_view(gpu->failure, sizeof gpu->failure, message);
    atomic_store(&gpu->has_error, true);
}

frit_status frit_gpu_check(frit_gpu *gpu)
{
    if (atomic_load(&gpu->is_lost))
        return frit_fail(FRIT_E_UNSUPPORTED, "%s: the GPU was lost: %s", gpu->name, gpu->failure);
    if (atomic_exchange(&gpu->has_error, false))
        return frit_fail(FRIT_E_UNSUPPORTED, "%s: %s", gpu->name, gpu->failure);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- adapter and device

typedef struct request {
    _Atomic bool is_done;
    void *object;
    char sentence[256];
} request;

static void got_adapter(uint32_t status, frit_wgpu_adapter adapter, frit_wgpu_string_view message, void *a, void *b)
{
    request *r = a;
    (void)b;
    r->object = status == FRIT_WGPU_SUCCESS ? adapter : NULL;
    copy_view(r->sentence, sizeof r->sentence, message);
    atomic_store(&r->is_done, true);
}

static void got_device(uint32_t status, frit_wgpu_device device, frit_wgpu_string_view message, void *a, void *b)
{
    request *r = a;
    (void)b;
    r->object = status == FRIT_WGPU_SUCCESS ? device : NULL;
    copy_view(r->sentence, sizeof r->sentence, message);
    atomic_store(&r->is_done, true);
}

static bool request_adapter(frit_gpu *gpu, uint32_t backend, request *r)
{
    const frit_wgpu_request_adapter_options options = {
        .feature_level = FRIT_WGPU_CORE, .power_preference = FRIT_WGPU_HIGH_PERFORMANCE, .backend = backend};
    *r = (request){0};
    gpu->call.request_adapter(
        gpu->instance, &options,
        (frit_wgpu_adapter_callback){.mode = FRIT_WGPU_PROCESS_EVENTS, .callback = got_adapter, .a = r});
    frit_gpu_wait_until(gpu, &r->is_done);
    gpu->adapter = r->object;
    return gpu->adapter;
}

static void describe_adapter(frit_gpu *gpu)
{
    frit_wgpu_adapter_info info = {0};
    if (gpu->call.adapter_info(gpu->adapter, &info) == FRIT_WGPU_SUCCESS) {
        copy_view(gpu->name, sizeof gpu->name, info.device.length > 0 ? info.device : info.vendor);
        gpu->features.is_software = info.adapter_type == FRIT_WGPU_CPU;
        gpu->features.is_discrete = info.adapter_type == FRIT_WGPU_DISCRETE;
        gpu->call.adapter_info_free(info);
    }
    if (!gpu->name[0]) snprintf(gpu->name, sizeof gpu->name, "a GPU without a name");   // browsers hide names
    gpu->features.has_f16 = gpu->call.adapter_has(gpu->adapter, FRIT_WGPU_SHADER_F16);
    gpu->features.has_subgroups = gpu->call.adapter_has(gpu->adapter, FRIT_WGPU_SUBGROUPS);
    gpu->features.has_timestamps = gpu->call.adapter_has(gpu->adapter, FRIT_WGPU_TIMESTAMPS);
}

// wgpu-native would also open OpenGL, which writes messages where there is no screen.
static void open_instance(frit_gpu *gpu)
{
    enum { VULKAN = 1, METAL = 4, D3D12 = 8 };
    frit_wgpu_instance_extras extras = {.chain.type = FRIT_WGPU_INSTANCE_EXTRAS, .backends = VULKAN | METAL | D3D12};
    const frit_wgpu_instance_descriptor descriptor = {.next = gpu->call.poll ? &extras.chain : NULL};
    gpu->instance = gpu->call.create_instance(&descriptor);
}

// Systems have one of these interfaces, Windows two.
static frit_status open_adapter(frit_gpu *gpu)
{
    enum { VULKAN = 6, METAL = 5, D3D12 = 4 };
    static const uint32_t backends[] = {VULKAN, METAL, D3D12};
    request r = {0};
    open_instance(gpu);
    if (!gpu->instance) return frit_fail(FRIT_E_NOT_FOUND, "%s cannot be started", gpu->library_name);
    for (size_t i = 0; i < FRIT_COUNT(backends); i++) {
        if (!request_adapter(gpu, backends[i], &r)) continue;
        describe_adapter(gpu);
        return FRIT_OK;
    }
    return frit_fail(FRIT_E_NOT_FOUND, "%s finds no GPU by Vulkan, Metal or Direct3D 12%s%s", gpu->library_name,
                     r.sentence[0] ? ": " : "", r.sentence);
}

static frit_status open_device(frit_gpu *gpu)
{
    request r = {0};
    frit_wgpu_limits limits = {0};
    if (gpu->call.adapter_limits(gpu->adapter, &limits) != FRIT_WGPU_SUCCESS)
        return frit_fail(FRIT_E_UNSUPPORTED, "%s: %s does not give its limits", gpu->name, gpu->library_name);
    limits.next = NULL;
    gpu->limits = limits;
    const frit_wgpu_device_descriptor descriptor = {
        .limits = &limits,
        .lost = {.mode = FRIT_WGPU_SPONTANEOUS, .callback = device_lost, .a = gpu},
        .error = {.callback = error_found, .a = gpu}};
    gpu->call.request_device(
        gpu->adapter, &descriptor,
        (frit_wgpu_device_callback){.mode = FRIT_WGPU_PROCESS_EVENTS, .callback = got_device, .a = &r});
    frit_gpu_wait_until(gpu, &r.is_done);
    gpu->device = r.object;
    if (!gpu->device) return frit_fail(FRIT_E_UNSUPPORTED, "%s cannot be opened: %s", gpu->name, r.sentence);
    gpu->queue = gpu->call.device_queue(gpu->device);
    return FRIT_OK;
}

frit_status frit_gpu_open(frit_gpu *gpu, const char *library)
{
    memset(gpu, 0, sizeof *gpu);
    frit_status status = open_library(gpu, library);
    if (status == FRIT_OK) status = open_adapter(gpu);
    if (status == FRIT_OK) status = open_device(gpu);
    if (status != FRIT_OK) frit_gpu_close(gpu);
    return status;
}

void frit_gpu_close(frit_gpu *gpu)
{
    const frit_gpu_functions *call = &gpu->call;
    for (int i = 0; i < gpu->n_layouts; i++) {
        if (gpu->layouts[i].pipeline) call->pipeline_layout_release(gpu->layouts[i].pipeline);
        if (gpu->layouts[i].group) call->layout_release(gpu->layouts[i].group);
    }
    if (gpu->queue) call->queue_release(gpu->queue);
    if (gpu->device) {
        atomic_store(&gpu->is_lost, true);   // the callback of the end is not a loss
        call->device_release(gpu->device);
    }
    if (gpu->adapter) call->adapter_release(gpu->adapter);
    if (gpu->instance) call->instance_release(gpu->instance);
    // Vulkan's loader and drivers keep threads and handlers, so the library stays loaded.
    memset(gpu, 0, sizeof *gpu);
}
