// SPDX-License-Identifier: MIT
// Compares frit's declarations of WebGPU's interface (abi.h) with the header of wgpu-native, if tools/setup webgpu has
// installed it: sizes, offsets of the last members, and numbers.
#include "backend/webgpu/runtime/abi.h"
#include "support/support.h"

#if __has_include("webgpu.h")
#include "webgpu.h"

#define SAME_SIZE(ours, theirs) assert_int_equal(sizeof(ours), sizeof(theirs))
#define SAME_PLACE(ours, our_member, theirs, their_member) \
    assert_int_equal(offsetof(ours, our_member), offsetof(theirs, their_member))

static void structs_are_those_of_the_header(void **state)
{
    (void)state;
    SAME_SIZE(frit_wgpu_string_view, WGPUStringView);
    SAME_SIZE(frit_wgpu_chained_struct, WGPUChainedStruct);
    SAME_SIZE(frit_wgpu_instance_descriptor, WGPUInstanceDescriptor);
    SAME_SIZE(frit_wgpu_request_adapter_options, WGPURequestAdapterOptions);
    SAME_SIZE(frit_wgpu_adapter_info, WGPUAdapterInfo);
    SAME_SIZE(frit_wgpu_limits, WGPULimits);
    SAME_SIZE(frit_wgpu_adapter_callback, WGPURequestAdapterCallbackInfo);
    SAME_SIZE(frit_wgpu_device_callback, WGPURequestDeviceCallbackInfo);
    SAME_SIZE(frit_wgpu_map_callback, WGPUBufferMapCallbackInfo);
    SAME_SIZE(frit_wgpu_lost_callback, WGPUDeviceLostCallbackInfo);
    SAME_SIZE(frit_wgpu_scope_callback, WGPUPopErrorScopeCallbackInfo);
    SAME_SIZE(frit_wgpu_error_callback, WGPUUncapturedErrorCallbackInfo);
    SAME_SIZE(frit_wgpu_named, WGPUQueueDescriptor);
    SAME_SIZE(frit_wgpu_named, WGPUShaderModuleDescriptor);
    SAME_SIZE(frit_wgpu_named, WGPUCommandEncoderDescriptor);
    SAME_SIZE(frit_wgpu_named, WGPUCommandBufferDescriptor);
    SAME_SIZE(frit_wgpu_device_descriptor, WGPUDeviceDescriptor);
    SAME_SIZE(frit_wgpu_buffer_descriptor, WGPUBufferDescriptor);
    SAME_SIZE(frit_wgpu_source_wgsl, WGPUShaderSourceWGSL);
    SAME_SIZE(frit_wgpu_bind_group_layout_entry, WGPUBindGroupLayoutEntry);
    SAME_SIZE(frit_wgpu_bind_group_layout_descriptor, WGPUBindGroupLayoutDescriptor);
    SAME_SIZE(frit_wgpu_pipeline_layout_descriptor, WGPUPipelineLayoutDescriptor);
    SAME_SIZE(frit_wgpu_compute_pipeline_descriptor, WGPUComputePipelineDescriptor);
    SAME_SIZE(frit_wgpu_bind_group_entry, WGPUBindGroupEntry);
    SAME_SIZE(frit_wgpu_bind_group_descriptor, WGPUBindGroupDescriptor);
    SAME_SIZE(frit_wgpu_compute_pass_descriptor, WGPUComputePassDescriptor);
    SAME_SIZE(frit_wgpu_future, WGPUFuture);
    SAME_SIZE(frit_wgpu_buffer, WGPUBuffer);
}

static void members_lie_where_the_header_has_them(void **state)
{
    (void)state;
    SAME_PLACE(frit_wgpu_request_adapter_options, power_preference, WGPURequestAdapterOptions, powerPreference);
    SAME_PLACE(frit_wgpu_request_adapter_options, backend, WGPURequestAdapterOptions, backendType);
    SAME_PLACE(frit_wgpu_adapter_info, device, WGPUAdapterInfo, device);
    SAME_PLACE(frit_wgpu_adapter_info, adapter_type, WGPUAdapterInfo, adapterType);
    SAME_PLACE(frit_wgpu_limits, storage_buffers, WGPULimits, maxStorageBuffersPerShaderStage);
    SAME_PLACE(frit_wgpu_limits, uniform_binding_bytes, WGPULimits, maxUniformBufferBindingSize);
    SAME_PLACE(frit_wgpu_limits, storage_binding_bytes, WGPULimits, maxStorageBufferBindingSize);
    SAME_PLACE(frit_wgpu_limits, uniform_alignment, WGPULimits, minUniformBufferOffsetAlignment);
    SAME_PLACE(frit_wgpu_limits, storage_alignment, WGPULimits, minStorageBufferOffsetAlignment);
    SAME_PLACE(frit_wgpu_limits, buffer_bytes, WGPULimits, maxBufferSize);
    SAME_PLACE(frit_wgpu_limits, workgroup_bytes, WGPULimits, maxComputeWorkgroupStorageSize);
    SAME_PLACE(frit_wgpu_limits, workgroup_invocations, WGPULimits, maxComputeInvocationsPerWorkgroup);
    SAME_PLACE(frit_wgpu_limits, workgroups, WGPULimits, maxComputeWorkgroupsPerDimension);
    SAME_PLACE(frit_wgpu_map_callback, callback, WGPUBufferMapCallbackInfo, callback);
    SAME_PLACE(frit_wgpu_map_callback, b, WGPUBufferMapCallbackInfo, userdata2);
    SAME_PLACE(frit_wgpu_error_callback, callback, WGPUUncapturedErrorCallbackInfo, callback);
    SAME_PLACE(frit_wgpu_device_descriptor, limits, WGPUDeviceDescriptor, requiredLimits);
    SAME_PLACE(frit_wgpu_device_descriptor, lost, WGPUDeviceDescriptor, deviceLostCallbackInfo);
    SAME_PLACE(frit_wgpu_device_descriptor, error, WGPUDeviceDescriptor, uncapturedErrorCallbackInfo);
    SAME_PLACE(frit_wgpu_buffer_descriptor, usage, WGPUBufferDescriptor, usage);
    SAME_PLACE(frit_wgpu_buffer_descriptor, is_mapped, WGPUBufferDescriptor, mappedAtCreation);
    SAME_PLACE(frit_wgpu_source_wgsl, code, WGPUShaderSourceWGSL, code);
    SAME_PLACE(frit_wgpu_bind_group_layout_entry, visibility, WGPUBindGroupLayoutEntry, visibility);
    SAME_PLACE(frit_wgpu_bind_group_layout_entry, buffer, WGPUBindGroupLayoutEntry, buffer);
    SAME_PLACE(frit_wgpu_bind_group_layout_entry, buffer.type, WGPUBindGroupLayoutEntry, buffer.type);
    SAME_PLACE(frit_wgpu_bind_group_layout_entry, sampler, WGPUBindGroupLayoutEntry, sampler);
    SAME_PLACE(frit_wgpu_bind_group_layout_entry, texture, WGPUBindGroupLayoutEntry, texture);
    SAME_PLACE(frit_wgpu_compute_pipeline_descriptor, compute.module, WGPUComputePipelineDescriptor, compute.module);
    SAME_PLACE(frit_wgpu_compute_pipeline_descriptor, compute.entry, WGPUComputePipelineDescriptor, compute.entryPoint);
    SAME_PLACE(frit_wgpu_bind_group_entry, size, WGPUBindGroupEntry, size);
    SAME_PLACE(frit_wgpu_bind_group_descriptor, entries, WGPUBindGroupDescriptor, entries);
}

static void numbers_are_those_of_the_header(void **state)
{
    (void)state;
    static const struct {
        uint64_t ours, theirs;
    } numbers[] = {{FRIT_WGPU_SUCCESS, WGPUStatus_Success},
                   {FRIT_WGPU_SUCCESS, WGPURequestDeviceStatus_Success},
                   {FRIT_WGPU_SUCCESS, WGPUMapAsyncStatus_Success},
                   {FRIT_WGPU_SUCCESS, WGPUPopErrorScopeStatus_Success},
                   {FRIT_WGPU_PROCESS_EVENTS, WGPUCallbackMode_AllowProcessEvents},
                   {FRIT_WGPU_SPONTANEOUS, WGPUCallbackMode_AllowSpontaneous},
                   {FRIT_WGPU_VALIDATION, WGPUErrorFilter_Validation},
                   {FRIT_WGPU_OUT_OF_MEMORY, WGPUErrorFilter_OutOfMemory},
                   {FRIT_WGPU_NO_ERROR, WGPUErrorType_NoError},
                   {FRIT_WGPU_ERROR_OUT_OF_MEMORY, WGPUErrorType_OutOfMemory},
                   {FRIT_WGPU_HIGH_PERFORMANCE, WGPUPowerPreference_HighPerformance},
                   {FRIT_WGPU_CORE, WGPUFeatureLevel_Core},
                   {FRIT_WGPU_DISCRETE, WGPUAdapterType_DiscreteGPU},
                   {FRIT_WGPU_INTEGRATED, WGPUAdapterType_IntegratedGPU},
                   {FRIT_WGPU_CPU, WGPUAdapterType_CPU},
                   {FRIT_WGPU_SHADER_F16, WGPUFeatureName_ShaderF16},
                   {FRIT_WGPU_TIMESTAMPS, WGPUFeatureName_TimestampQuery},
                   {FRIT_WGPU_SUBGROUPS, WGPUFeatureName_Subgroups},
                   {FRIT_WGPU_SOURCE_WGSL, WGPUSType_ShaderSourceWGSL},
                   {FRIT_WGPU_UNIFORM, WGPUBufferBindingType_Uniform},
                   {FRIT_WGPU_STORAGE, WGPUBufferBindingType_Storage},
                   {FRIT_WGPU_READ_ONLY_STORAGE, WGPUBufferBindingType_ReadOnlyStorage}};
    for (size_t i = 0; i < FRIT_COUNT(numbers); i++) assert_int_equal(numbers[i].ours, numbers[i].theirs);
    assert_int_equal(FRIT_WGPU_COMPUTE, WGPUShaderStage_Compute);
    assert_int_equal(FRIT_WGPU_MAP_READ, WGPUBufferUsage_MapRead);
    assert_int_equal(FRIT_WGPU_MAP_READ, WGPUMapMode_Read);
    assert_int_equal(FRIT_WGPU_COPY_SRC, WGPUBufferUsage_CopySrc);
    assert_int_equal(FRIT_WGPU_COPY_DST, WGPUBufferUsage_CopyDst);
    assert_int_equal(FRIT_WGPU_USE_UNIFORM, WGPUBufferUsage_Uniform);
    assert_int_equal(FRIT_WGPU_USE_STORAGE, WGPUBufferUsage_Storage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structs_are_those_of_the_header),
        cmocka_unit_test(members_lie_where_the_header_has_them),
        cmocka_unit_test(numbers_are_those_of_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
static void structs_are_those_of_the_header(void **state)
{
    (void)state;
    skip_because("there is no webgpu.h; tools/setup webgpu installs it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(structs_are_those_of_the_header)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
