// SPDX-License-Identifier: MIT
// Public functions about the machine, the op table and architectures, and the sampler for a model.
#include "engine/model/model.h"

#include "backend/backend.h"
#include "backend/cpu/probe.h"

#include <stdio.h>

frit_status frit_machine_probe(frit_machine *machine, int32_t n_threads)
{
    FRIT_REQUIRE(machine);
    *machine = (frit_machine){0};
    return frit_cpu_probe(machine, n_threads);
}

// How many devices the backend is listed with: at least one, which may not be usable.
static size_t count_devices(const frit_backend *backend)
{
    const int count = backend->count ? backend->count() : 1;
    return count < 1 ? 1 : count > FRIT_NUMBERED_DEVICES ? FRIT_NUMBERED_DEVICES : (size_t)count;
}

// The backend of device i. *number: the device's number, if it is one of several of the backend; otherwise -1.
static const frit_backend *backend_of(size_t i, int32_t *number)
{
    const frit_backend *backend;
    for (int k = 0; (backend = frit_backend_get(k)) != NULL && backend != &frit_backend_cpu; k++) {
        const size_t n = count_devices(backend);
        *number = n > 1 ? (int32_t)i : -1;
        if (i < n) return backend;
        i -= n;
    }
    return NULL;
}

bool frit_machine_get_device(size_t i, frit_machine_device *device)
{
    int32_t number;
    FRIT_REQUIRE_OR(false, device);
    *device = (frit_machine_device){0};
    const frit_backend *backend = backend_of(i, &number);
    if (!backend) return false;
    frit_device *opened = NULL;
    const frit_device_options chosen = {.number = number, .n_members = 1}, any = {0};
    const frit_status status = backend->open(&opened, number >= 0 ? &chosen : &any);
    device->name = number >= 0 ? backend->numbered[number] : backend->name;
    device->is_usable = status == FRIT_OK && opened;
    if (!device->is_usable) {
        snprintf(device->kind, sizeof device->kind, "%s", status == FRIT_OK ? "this machine has none" : frit_error());
        return true;
    }
    frit_device_info info;
    backend->info(opened, &info);
    snprintf(device->kind, sizeof device->kind, "%s", info.isa);
    device->free_bytes = info.free_bytes;
    device->reaches = number >= 0 && backend->reaches ? backend->reaches(number) : 0;
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
