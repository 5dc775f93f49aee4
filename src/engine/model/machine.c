// SPDX-License-Identifier: MIT
// Public functions about the machine, the op table and architectures, and the sampler for a model.
#include "engine/model/model.h"

#include "backend/backend.h"
#include "backend/cpu/probe.h"
#include "backend/webgpu/adapters.h"

#include <stdio.h>

frit_status frit_machine_probe(frit_machine *machine, int32_t n_threads)
{
    FRIT_REQUIRE(machine);
    *machine = (frit_machine){0};
    return frit_cpu_probe(machine, n_threads);
}

// The backend of device i. *name: the device's name, if it is one of several of the backend; otherwise NULL.
static const frit_backend *backend_of(size_t i, const char **name)
{
    const frit_backend *backend;
    *name = NULL;
    for (int k = 0; (backend = frit_backend_get(k)) != NULL && backend != &frit_backend_cpu; k++) {
        const int count = backend == &frit_backend_webgpu ? frit_webgpu_count() : 1;
        const size_t n = count > 1 ? (size_t)count : 1;
        if (i < n && n > 1) *name = frit_webgpu_numbered((int)i);
        if (i < n) return backend;
        i -= n;
    }
    return NULL;
}

bool frit_machine_get_device(size_t i, frit_machine_device *device)
{
    const char *name;
    FRIT_REQUIRE_OR(false, device);
    *device = (frit_machine_device){0};
    const frit_backend *backend = backend_of(i, &name);
    if (!backend) return false;
    frit_device *opened = NULL;
    const frit_device_target numbered = {.gpu = name};
    const frit_status status = backend->open(&opened, &(frit_device_options){.target = name ? &numbered : NULL});
    device->name = name ? name : backend->name;
    device->is_usable = status == FRIT_OK && opened;
    if (!device->is_usable) {
        snprintf(device->kind, sizeof device->kind, "%s", status == FRIT_OK ? "this machine has none" : frit_error());
        return true;
    }
    frit_device_info info;
    backend->info(opened, &info);
    snprintf(device->kind, sizeof device->kind, "%s", info.isa);
    device->free_bytes = info.free_bytes;
    backend->close(opened);
    return true;
}

bool frit_op_get_info(size_t i, frit_op_info *info)
{
    FRIT_REQUIRE_OR(false, info);
    if (i >= FRIT_OP_COUNT) return false;
    const frit_op_row *row = frit_op_get((frit_op)i);
    *info = (frit_op_info){.name = row->name, .formula = row->formula, .cpu = frit_backend_cpu.op_kernel((frit_op)i)};
    return true;
}

bool frit_architecture_get_info(size_t i, frit_architecture_info *info)
{
    FRIT_REQUIRE_OR(false, info);
    const frit_arch *arch = frit_arch_get(i);
    if (!arch) return false;
    *info = (frit_architecture_info){.name = arch->name, .title = arch->title};
    return true;
}

frit_status frit_sampler_new(frit_sampler **out, const frit_model *model, const frit_sampler_options *options)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE_UNUSED(options);
    frit_sampler_texts texts = {0};
    if (model->tokenizer) texts = (frit_sampler_texts){&model->vocab, model->tokenizer->pieces};
    return frit_sampler_create_with(out, model->info.n_vocab, &texts, options);
}
