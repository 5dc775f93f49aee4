// SPDX-License-Identifier: MIT
// Archives of compiled kernels for machines without NVRTC.
#include "backend/cuda/runtime/compile.h"
#include "backend/cuda/runtime/target.h"
#include "engine/placement/needs.h"

#include "base/file/file.h"

#include <stdio.h>

bool frit_kernels_get_gpu(size_t i, frit_kernels_gpu *gpu)
{
    FRIT_REQUIRE_OR(false, gpu);
    const frit_cuda_target *target = frit_cuda_target_get(i);
    *gpu = (frit_kernels_gpu){0};
    if (!target) return false;
    *gpu =
        (frit_kernels_gpu){.name = target->name, .arch = target->arch, .n_multiprocessors = target->n_multiprocessors};
    return true;
}

static frit_status find_target(const char *name, const frit_cuda_target **out)
{
    const int row = name ? frit_cuda_target_find(name) : -1;
    *out = row < 0 ? NULL : frit_cuda_target_get((size_t)row);
    if (*out) return FRIT_OK;
    frit_buf names = {0};
    for (size_t i = 0; frit_cuda_target_get(i); i++)
        frit_buf_printf(&names, "%s%s", i ? ", " : "", frit_cuda_target_get(i)->name);
    const frit_status status = frit_fail(FRIT_E_INVALID, "GPU '%.60s' is not known by name; expected one of %s",
                                         name ? name : "", names.failed ? "" : names.data);
    frit_buf_free(&names);
    return status;
}

typedef struct progress_part {
    frit_progress whole;
    double begin, end;
} progress_part;

static bool report_part(void *ctx, double done)
{
    const progress_part *p = ctx;
    return !p->whole.fn || p->whole.fn(p->whole.ctx, p->begin + (p->end - p->begin) * done);
}

// A machine without NVRTC may lack cuBLASLt too, and products of many rows then have other kernels.
static frit_status compile_both(frit_model *model, const frit_engine_options *options, const frit_device_target *target,
                                frit_progress progress)
{
    const double between = 0.9;   // most kernels are for machines with cuBLASLt
    for (int i = 0; i < 2; i++) {
        frit_device_target one = *target;
        frit_engine *engine;
        progress_part part = {progress, i ? between : 0, i ? 1 : between};
        one.has_blas = i == 0;
        FRIT_TRY(frit_engine_new_for(&engine, model, options, &one));
        const frit_status status = frit_engine_compile(engine, (frit_progress){report_part, &part});
        frit_engine_free(engine);
        FRIT_TRY(status);
    }
    return FRIT_OK;
}

// Adds a number to the ascending numbers of an archive.
static frit_status add_multiprocessors(frit_cubin_archive_info *info, uint32_t n)
{
    uint32_t *list = info->multiprocessors;
    int at = 0, used = 0;
    while (used < FRIT_CUBIN_GPUS && list[used] != 0) used++;
    while (at < used && list[at] < n) at++;
    if (at < used && list[at] == n) return FRIT_OK;
    if (used == FRIT_CUBIN_GPUS)
        return frit_fail(FRIT_E_LIMIT, "an archive has kernels for %d kinds of GPU; expected fewer for one more", used);
    for (int i = used; i > at; i--) list[i] = list[i - 1];
    list[at] = n;
    return FRIT_OK;
}

// Opens the archive that is there. *archive is NULL without a file, or if it has kernels of another version.
static frit_status open_known(const frit_model *model, const char *path, const frit_cubin_archive_info *wanted,
                              frit_cubin_archive **archive)
{
    const frit_status status = frit_cubin_archive_open(archive, path);
    if (status == FRIT_E_NOT_FOUND) return FRIT_OK;
    FRIT_TRY(status);
    const frit_cubin_archive_info *info = frit_cubin_archive_get_info(*archive);
    if (memcmp(&info->sources, &wanted->sources, sizeof info->sources) == 0 && info->arch == wanted->arch)
        return FRIT_OK;
    frit_log_say(&model->log, FRIT_LOG_WARNING, "%s: its kernels are of another version and are replaced", path);
    frit_cubin_archive_close(*archive);
    *archive = NULL;
    return FRIT_OK;
}

static void note_compiler(const frit_cubin_list *list, frit_cubin_archive_info *info)
{
    if (list->nvrtc_major < info->nvrtc_major) return;
    if (list->nvrtc_major > info->nvrtc_major || list->nvrtc_minor > info->nvrtc_minor)
        info->nvrtc_minor = list->nvrtc_minor;
    info->nvrtc_major = list->nvrtc_major;
}

static frit_status write_archive(frit_model *model, const frit_engine_options *engine,
                                 const frit_kernels_options *options, const frit_cuda_target *target,
                                 frit_cubin_list *list, frit_kernels_report *report)
{
    frit_cubin_archive_info info = {.sources = frit_cuda_sources_key(), .arch = (uint32_t)target->arch};
    frit_cubin_archive *known = NULL;
    FRIT_TRY(open_known(model, report->path, &info, &known));
    frit_status status = FRIT_OK;
    if (known) info = *frit_cubin_archive_get_info(known);
    if (known) status = frit_cubin_list_add_archive(list, known);
    const size_t n_before = list->n;
    const frit_device_target device = {.gpu = target->name, .known = known, .kernels = list};
    if (status == FRIT_OK)
        status = compile_both(model, engine, &device, (frit_progress){options->progress, options->progress_ctx});
    if (status == FRIT_OK) status = add_multiprocessors(&info, (uint32_t)target->n_multiprocessors);
    frit_cubin_archive_close(known);
    FRIT_TRY(status);
    note_compiler(list, &info);
    FRIT_TRY(frit_cubin_archive_write(report->path, &info, list, &report->n_bytes));
    report->n_kernels = list->n;
    report->n_added = list->n - n_before;
    return FRIT_OK;
}

frit_status frit_kernels_write(frit_model *model, const frit_engine_options *engine,
                               const frit_kernels_options *options, frit_kernels_report *report)
{
    FRIT_REQUIRE(report);
    *report = (frit_kernels_report){0};
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(options);
    FRIT_REQUIRE(options->folder);
    FRIT_REQUIRE_UNUSED(options);
    const frit_cuda_target *target;
    frit_cubin_list list = {0};
    frit_engine_options chosen = engine ? *engine : (frit_engine_options){0};
    chosen.device = "cuda";
    chosen.gpu_layers = "all";
    if (chosen.n_ctx == 0) chosen.n_ctx = 4096;   // kernels do not depend on it
    FRIT_TRY(find_target(options->gpu, &target));
    FRIT_TRY(frit_folder_make(options->folder));
    const int n = snprintf(report->path, sizeof report->path, "%s/sm_%d.kernels", options->folder, target->arch);
    if (n < 0 || (size_t)n >= sizeof report->path)
        return frit_fail(FRIT_E_LIMIT, "folder: the path has %d bytes; expected fewer than %zu", n,
                         sizeof report->path);
    const frit_status status = write_archive(model, &chosen, options, target, &list, report);
    frit_cubin_list_free(&list);
    return status;
}
