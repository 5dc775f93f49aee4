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
    void *const enumerate = find(gpu, "wgpuInstanceEnumerateAdapters");
    memcpy(&gpu->call.module_trusted, &trusted, sizeof trusted);
    memcpy(&gpu->call.poll, &poll, sizeof poll);
    memcpy(&gpu->call.submit_for_index, &submit, sizeof submit);
    memcpy(&gpu->call.enumerate, &enumerate, sizeof enumerate);
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
    for (;;) {
        gpu->call.process_events(gpu->instance);
        if (atomic_load(is_done)) return true;
        if (frit_time_ns() - begin > limit) return false;
        frit_os_yield();
    }
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

static frit_wgpu_adapter request_adapter(frit_gpu *gpu, const frit_wgpu_request_adapter_options *options, request *r)
{
    *r = (request){0};
    gpu->call.request_adapter(
        gpu->instance, options,
        (frit_wgpu_adapter_callback){.mode = FRIT_WGPU_PROCESS_EVENTS, .callback = got_adapter, .a = r});
    frit_gpu_wait_until(gpu, &r->is_done);
    return r->object;
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

// Interfaces of systems to their GPUs: Vulkan, Metal and Direct3D 12. Systems have one of them, Windows two.
static const uint32_t interfaces[] = {6, 5, 4};

static frit_status open_best(frit_gpu *gpu)
{
    request r = {0};
    for (size_t i = 0; i < FRIT_COUNT(interfaces) && !gpu->adapter; i++)
        gpu->adapter =
            request_adapter(gpu,
                            &(frit_wgpu_request_adapter_options){.feature_level = FRIT_WGPU_CORE,
                                                                 .power_preference = FRIT_WGPU_HIGH_PERFORMANCE,
                                                                 .backend = interfaces[i]},
                            &r);
    if (gpu->adapter) return FRIT_OK;
    return frit_fail(FRIT_E_NOT_FOUND, "%s finds no GPU by Vulkan, Metal or Direct3D 12%s%s", gpu->library_name,
                     r.sentence[0] ? ": " : "", r.sentence);
}

typedef struct adapters {
    frit_wgpu_adapter list[FRIT_GPU_ADAPTERS];
    int n;
} adapters;

static bool is_same(const frit_gpu *gpu, frit_wgpu_adapter a, frit_wgpu_adapter b)
{
    frit_wgpu_adapter_info x = {0}, y = {0};
    gpu->call.adapter_info(a, &x);
    gpu->call.adapter_info(b, &y);
    const bool is_same = x.vendor_id == y.vendor_id && x.device_id == y.device_id && x.backend == y.backend &&
                         x.adapter_type == y.adapter_type && x.device.length == y.device.length;
    gpu->call.adapter_info_free(x);
    gpu->call.adapter_info_free(y);
    return is_same;
}

static void add_adapter(const frit_gpu *gpu, adapters *all, frit_wgpu_adapter adapter)
{
    bool is_known = all->n == FRIT_GPU_ADAPTERS;
    for (int i = 0; i < all->n && !is_known; i++) is_known = is_same(gpu, all->list[i], adapter);
    if (is_known)
        gpu->call.adapter_release(adapter);
    else
        all->list[all->n++] = adapter;
}

// Libraries without a list of adapters are asked for one of each kind.
static void request_all(frit_gpu *gpu, adapters *all)
{
    enum { LOW_POWER = 1 };
    static const uint32_t powers[] = {FRIT_WGPU_HIGH_PERFORMANCE, LOW_POWER};
    request r;
    for (size_t i = 0; i < FRIT_COUNT(interfaces); i++)
        for (uint32_t kind = 0; kind <= FRIT_COUNT(powers); kind++) {
            const frit_wgpu_request_adapter_options options = {.feature_level = FRIT_WGPU_CORE,
                                                               .power_preference =
                                                                   kind < FRIT_COUNT(powers) ? powers[kind] : 0,
                                                               .force_fallback = kind == FRIT_COUNT(powers),
                                                               .backend = interfaces[i]};
            frit_wgpu_adapter found = request_adapter(gpu, &options, &r);
            if (found) add_adapter(gpu, all, found);
        }
}

static void find_all(frit_gpu *gpu, adapters *all)
{
    frit_wgpu_adapter found[64];
    all->n = 0;
    if (!gpu->call.enumerate) {
        request_all(gpu, all);
        return;
    }
    const size_t n = gpu->call.enumerate(gpu->instance, NULL, NULL);
    if (n == 0 || n > FRIT_COUNT(found)) return;
    gpu->call.enumerate(gpu->instance, NULL, found);
    for (size_t i = 0; i < n; i++) add_adapter(gpu, all, found[i]);
}

static frit_status open_number(frit_gpu *gpu, int number)
{
    adapters all;
    find_all(gpu, &all);
    for (int i = 0; i < all.n; i++) {
        if (i == number)
            gpu->adapter = all.list[i];
        else
            gpu->call.adapter_release(all.list[i]);
    }
    if (gpu->adapter) return FRIT_OK;
    return frit_fail(FRIT_E_NOT_FOUND, "%s finds %d adapter%s, and none with number %d", gpu->library_name, all.n,
                     all.n == 1 ? "" : "s", number);
}

static frit_status open_adapter(frit_gpu *gpu, int number)
{
    open_instance(gpu);
    if (!gpu->instance) return frit_fail(FRIT_E_NOT_FOUND, "%s cannot be started", gpu->library_name);
    FRIT_TRY(number < 0 ? open_best(gpu) : open_number(gpu, number));
    describe_adapter(gpu);
    return FRIT_OK;
}

int frit_gpu_n_adapters(const char *library)
{
    frit_gpu gpu = {0};
    adapters all = {.n = 0};
    if (open_library(&gpu, library) == FRIT_OK) open_instance(&gpu);
    if (gpu.instance) find_all(&gpu, &all);
    for (int i = 0; i < all.n; i++) gpu.call.adapter_release(all.list[i]);
    frit_gpu_close(&gpu);
    return all.n;
}

// Limits that kernels need, which all implementations of the standard have.
static frit_status check_limits(const frit_gpu *gpu)
{
    const frit_wgpu_limits *limits = &gpu->limits;
    const struct {
        const char *what;
        uint64_t found, needed;
    } rows[] = {{"storage buffers of a kernel", limits->storage_buffers, 8},
                {"bytes of workgroup memory", limits->workgroup_bytes, 16 << 10},
                {"threads of a workgroup", limits->workgroup_invocations, 256},
                {"workgroups of a dimension", limits->workgroups, 65535},
                {"bytes of a storage binding", limits->storage_binding_bytes, 1 << 20}};
    for (size_t i = 0; i < FRIT_COUNT(rows); i++)
        if (rows[i].found < rows[i].needed)
            return frit_fail(FRIT_E_UNSUPPORTED, "%s has %llu %s; expected at least %llu", gpu->name,
                             (unsigned long long)rows[i].found, rows[i].what, (unsigned long long)rows[i].needed);
    return FRIT_OK;
}

static frit_status open_device(frit_gpu *gpu)
{
    request r = {0};
    frit_wgpu_limits limits = {0};
    if (gpu->call.adapter_limits(gpu->adapter, &limits) != FRIT_WGPU_SUCCESS)
        return frit_fail(FRIT_E_UNSUPPORTED, "%s: %s does not give its limits", gpu->name, gpu->library_name);
    limits.next = NULL;
    gpu->limits = limits;
    FRIT_TRY(check_limits(gpu));
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

frit_status frit_gpu_open(frit_gpu *gpu, const char *library, int number)
{
    memset(gpu, 0, sizeof *gpu);
    frit_status status = open_library(gpu, library);
    if (status == FRIT_OK) status = open_adapter(gpu, number);
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
