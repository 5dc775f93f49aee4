// SPDX-License-Identifier: MIT
// backend/webgpu_fake.h: a library with WebGPU's interface that checks what frit calls and computes nothing.
//
//     webgpu/fake.c          instance, adapters, the device, error scopes, buffers
//     webgpu/fake_lists.c    kernels, bindings, lists of dispatches, submits
//
// Where wgpu-native ends the process, so does the fake, with a sentence: lists with an error, lists that were submitted
// before, buffers that are mapped or destroyed, submits to a lost device, objects that are released twice. Where an
// implementation reports an error to a scope, so does the fake. Buffers have memory, and copies copy it.
//
// A test sets faults by the functions below, which it finds in the library with dlsym.
#pragma once
#include "backend/webgpu/runtime/abi.h"

#include <stdbool.h>

typedef struct fake_settings {
    int n_adapters;             // from most to least powerful, 0: none; the last one is a processor if there are 3
    bool refuses_device;        // an adapter cannot be opened
    bool has_small_limits;      // fewer bindings and threads than the standard has
    int refused_pipeline;       // pipelines are refused from this number on; 0: none
    uint64_t memory;            // bytes that buffers may have together; 0: no limit
    int lost_at_submit;         // the device is lost in this submit; 0: never
    int lost_at_map;            // the device is lost while this mapping waits; 0: never
    int failed_map;             // this mapping fails; 0: none
    int uncaptured_at_submit;   // an error without a scope comes with this submit; 0: none
} fake_settings;

// Sets the faults, and sets all counts to 0.
void fake_set(const fake_settings *settings);
// Objects that were made and not released.
int fake_n_living(void);
int fake_n_submits(void);
uint64_t fake_n_dispatches(void);

// ------------------------------------------------------------------------------- for the files of the fake

enum { FAKE_BINDINGS = 16 };

typedef enum fake_kind {
    FAKE_INSTANCE = 1,
    FAKE_ADAPTER,
    FAKE_DEVICE,
    FAKE_QUEUE,
    FAKE_BUFFER,
    FAKE_MODULE,
    FAKE_LAYOUT,
    FAKE_PIPELINE_LAYOUT,
    FAKE_PIPELINE,
    FAKE_GROUP,
    FAKE_ENCODER,
    FAKE_PASS,
    FAKE_COMMANDS
} fake_kind;

typedef struct fake_object {
    fake_kind kind;
    bool is_error;                       // it was made by a wrong call
    struct fake_object *parent, *next;   // next: of all that were made, which stay in memory
    int n_refs;
} fake_object;

typedef struct fake_buffer {
    fake_object base;
    uint64_t usage, size;
    uint8_t *bytes;
    bool is_destroyed;
    int map_state;   // 0 none, 1 waiting, 2 mapped
} fake_buffer;

extern fake_settings fake;
void *fake_new(fake_kind kind, size_t n_bytes);
void fake_release(void *object, fake_kind kind);
// Ends the process: an implementation may do so.
_Noreturn void fake_abort(const char *sentence);
// Ends the process if the object is not a living one of this kind.
void fake_require(const void *object, fake_kind kind, const char *where);
// An error for the innermost scope with this filter (FRIT_WGPU_VALIDATION ...), or without a scope.
void fake_error(uint32_t filter, const char *sentence);
bool fake_is_lost(void);
void fake_lose(void);
