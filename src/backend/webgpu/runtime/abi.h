// SPDX-License-Identifier: MIT
// backend/webgpu/runtime/abi.h: the part of WebGPU's C interface of 2025 that frit uses. Dawn and wgpu-native
// implement it; frit opens either at run time. tests/backend/webgpu_abi_test.c compares sizes, offsets and numbers with
// the header of a release of wgpu-native.
//
// Names are those of the interface with another prefix: WGPUBufferDescriptor is frit_wgpu_buffer_descriptor. Flags are
// 64 bits wide, enumerations and booleans 32.
#pragma once
#include <stddef.h>
#include <stdint.h>

// clang-format off
#define FRIT_WGPU_HANDLES(X) X(instance) X(adapter) X(device) X(queue) X(buffer) X(shader_module) X(bind_group_layout) \
    X(bind_group) X(pipeline_layout) X(compute_pipeline) X(command_encoder) X(compute_pass_encoder) X(command_buffer)
// clang-format on
#define HANDLE(name) typedef struct frit_wgpu_##name##_object *frit_wgpu_##name;
FRIT_WGPU_HANDLES(HANDLE)
#undef HANDLE

enum {
    FRIT_WGPU_SUCCESS = 1,          // of all kinds of status
    FRIT_WGPU_PROCESS_EVENTS = 2,   // callbacks run in wgpuInstanceProcessEvents
    FRIT_WGPU_SPONTANEOUS = 3,      // callbacks may run at any time
    FRIT_WGPU_VALIDATION = 1,       // error filters
    FRIT_WGPU_OUT_OF_MEMORY = 2,
    FRIT_WGPU_INTERNAL = 3,
    FRIT_WGPU_NO_ERROR = 1,   // error types
    FRIT_WGPU_ERROR_OUT_OF_MEMORY = 3,
    FRIT_WGPU_HIGH_PERFORMANCE = 2,
    FRIT_WGPU_CORE = 2,
    FRIT_WGPU_DISCRETE = 1,   // kinds of adapters
    FRIT_WGPU_INTEGRATED = 2,
    FRIT_WGPU_CPU = 3,
    FRIT_WGPU_SHADER_F16 = 0x0b,   // features
    FRIT_WGPU_TIMESTAMPS = 0x09,
    FRIT_WGPU_SUBGROUPS = 0x12,
    FRIT_WGPU_SOURCE_WGSL = 2,   // types of chained structs
    FRIT_WGPU_INSTANCE_EXTRAS = 0x30004,
    FRIT_WGPU_BOUNDS_CHECKS = 1,   // of wgpu-native: which checks kernels have
    FRIT_WGPU_UNIFORM = 2,         // types of bindings
    FRIT_WGPU_STORAGE = 3,
    FRIT_WGPU_READ_ONLY_STORAGE = 4,
    FRIT_WGPU_COMPUTE = 4,    // shader stage
    FRIT_WGPU_MAP_READ = 1,   // buffer usages; also the map mode
    FRIT_WGPU_COPY_SRC = 4,
    FRIT_WGPU_COPY_DST = 8,
    FRIT_WGPU_USE_UNIFORM = 0x40,
    FRIT_WGPU_USE_STORAGE = 0x80,
};

typedef struct frit_wgpu_string_view {
    const char *data;
    size_t length;
} frit_wgpu_string_view;

typedef struct frit_wgpu_chained_struct {
    struct frit_wgpu_chained_struct *next;
    uint32_t type;
} frit_wgpu_chained_struct;

typedef struct frit_wgpu_instance_descriptor {
    frit_wgpu_chained_struct *next;
    size_t n_features;
    const uint32_t *features;
    const void *limits;
} frit_wgpu_instance_descriptor;

// An extension of wgpu-native: which interfaces of the system it opens. `rest` is zero, and longer than what follows.
typedef struct frit_wgpu_instance_extras {
    frit_wgpu_chained_struct chain;
    uint64_t backends, flags;
    uint64_t rest[16];
} frit_wgpu_instance_extras;

typedef struct frit_wgpu_request_adapter_options {
    frit_wgpu_chained_struct *next;
    uint32_t feature_level, power_preference, force_fallback, backend;
    void *surface;
} frit_wgpu_request_adapter_options;

typedef struct frit_wgpu_adapter_info {
    frit_wgpu_chained_struct *next;
    frit_wgpu_string_view vendor, architecture, device, description;
    uint32_t backend, adapter_type, vendor_id, device_id, subgroup_min, subgroup_max;
} frit_wgpu_adapter_info;

typedef struct frit_wgpu_limits {
    frit_wgpu_chained_struct *next;
    uint32_t textures[4], bind_groups, bind_groups_and_vertex_buffers, bindings_per_group, dynamic_buffers[2];
    uint32_t sampled_textures, samplers, storage_buffers, storage_textures, uniform_buffers;
    uint64_t uniform_binding_bytes, storage_binding_bytes;
    uint32_t uniform_alignment, storage_alignment, vertex_buffers;
    uint64_t buffer_bytes;
    uint32_t vertex_attributes, vertex_stride, inter_stage_variables, color_attachments, color_bytes;
    uint32_t workgroup_bytes, workgroup_invocations, workgroup_size[3], workgroups, immediate_bytes;
} frit_wgpu_limits;

typedef void (*frit_wgpu_adapter_fn)(uint32_t status, frit_wgpu_adapter adapter, frit_wgpu_string_view message, void *a,
                                     void *b);
typedef void (*frit_wgpu_device_fn)(uint32_t status, frit_wgpu_device device, frit_wgpu_string_view message, void *a,
                                    void *b);
typedef void (*frit_wgpu_map_fn)(uint32_t status, frit_wgpu_string_view message, void *a, void *b);
typedef void (*frit_wgpu_lost_fn)(frit_wgpu_device const *device, uint32_t reason, frit_wgpu_string_view message,
                                  void *a, void *b);
typedef void (*frit_wgpu_error_fn)(frit_wgpu_device const *device, uint32_t type, frit_wgpu_string_view message,
                                   void *a, void *b);
typedef void (*frit_wgpu_scope_fn)(uint32_t status, uint32_t type, frit_wgpu_string_view message, void *a, void *b);

#define CALLBACK(name)                           \
    typedef struct frit_wgpu_##name##_callback { \
        frit_wgpu_chained_struct *next;          \
        uint32_t mode;                           \
        frit_wgpu_##name##_fn callback;          \
        void *a, *b;                             \
    } frit_wgpu_##name##_callback;
CALLBACK(adapter)
CALLBACK(device)
CALLBACK(map)
CALLBACK(lost)
CALLBACK(scope)
#undef CALLBACK

typedef struct frit_wgpu_error_callback {
    frit_wgpu_chained_struct *next;
    frit_wgpu_error_fn callback;
    void *a, *b;
} frit_wgpu_error_callback;

typedef struct frit_wgpu_named {   // descriptors that have a label only
    frit_wgpu_chained_struct *next;
    frit_wgpu_string_view label;
} frit_wgpu_named;

typedef struct frit_wgpu_device_descriptor {
    frit_wgpu_chained_struct *next;
    frit_wgpu_string_view label;
    size_t n_features;
    const uint32_t *features;
    const frit_wgpu_limits *limits;
    frit_wgpu_named queue;
    frit_wgpu_lost_callback lost;
    frit_wgpu_error_callback error;
} frit_wgpu_device_descriptor;

typedef struct frit_wgpu_buffer_descriptor {
    frit_wgpu_chained_struct *next;
    frit_wgpu_string_view label;
    uint64_t usage, size;
    uint32_t is_mapped;
} frit_wgpu_buffer_descriptor;

typedef struct frit_wgpu_source_wgsl {
    frit_wgpu_chained_struct chain;
    frit_wgpu_string_view code;
} frit_wgpu_source_wgsl;

typedef struct frit_wgpu_bind_group_layout_entry {
    frit_wgpu_chained_struct *next;
    uint32_t binding;
    uint64_t visibility;
    uint32_t array_size;
    struct {
        frit_wgpu_chained_struct *next;
        uint32_t type, has_dynamic_offset;
        uint64_t min_size;
    } buffer;
    struct {
        frit_wgpu_chained_struct *next;
        uint32_t type;
    } sampler;
    struct {
        frit_wgpu_chained_struct *next;
        uint32_t type, dimension, is_multisampled;
    } texture, storage_texture;
} frit_wgpu_bind_group_layout_entry;

typedef struct frit_wgpu_bind_group_layout_descriptor {
    frit_wgpu_chained_struct *next;
    frit_wgpu_string_view label;
    size_t n_entries;
    const frit_wgpu_bind_group_layout_entry *entries;
} frit_wgpu_bind_group_layout_descriptor;

typedef struct frit_wgpu_pipeline_layout_descriptor {
    frit_wgpu_chained_struct *next;
    frit_wgpu_string_view label;
    size_t n_layouts;
    const frit_wgpu_bind_group_layout *layouts;
    uint32_t immediate_bytes;
} frit_wgpu_pipeline_layout_descriptor;

typedef struct frit_wgpu_compute_pipeline_descriptor {
    frit_wgpu_chained_struct *next;
    frit_wgpu_string_view label;
    frit_wgpu_pipeline_layout layout;
    struct {
        frit_wgpu_chained_struct *next;
        frit_wgpu_shader_module module;
        frit_wgpu_string_view entry;
        size_t n_constants;
        const void *constants;
    } compute;
} frit_wgpu_compute_pipeline_descriptor;

typedef struct frit_wgpu_bind_group_entry {
    frit_wgpu_chained_struct *next;
    uint32_t binding;
    frit_wgpu_buffer buffer;
    uint64_t offset, size;
    void *sampler, *texture_view;
} frit_wgpu_bind_group_entry;

typedef struct frit_wgpu_bind_group_descriptor {
    frit_wgpu_chained_struct *next;
    frit_wgpu_string_view label;
    frit_wgpu_bind_group_layout layout;
    size_t n_entries;
    const frit_wgpu_bind_group_entry *entries;
} frit_wgpu_bind_group_descriptor;

typedef struct frit_wgpu_compute_pass_descriptor {
    frit_wgpu_chained_struct *next;
    frit_wgpu_string_view label;
    const void *timestamps;
} frit_wgpu_compute_pass_descriptor;

typedef struct frit_wgpu_future {
    uint64_t id;
} frit_wgpu_future;
