// SPDX-License-Identifier: MIT
// Decides if a model has room beside the loaded ones.
//
// An engine asks the system for free memory. A cache is not touched before texts fill it, so memory reserved by other
// engines of this process still seems free. Their possible use is counted here, and a model is loaded only if
// everything has room at once.
#include "frit/cli/config.h"

#ifdef FRIT_HAVE_SERVER
#include "frit/serve.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_CTX = 4096 };

int32_t serve_fit_context(const serve_need *need, uint64_t promised, uint64_t available)
{
    const uint64_t others = promised + need->fixed_bytes;
    const uint64_t room = available > others ? available - others : 0;
    if (need->kv_bytes <= room) return need->n_ctx;
    const double share = (double)room / (double)need->kv_bytes;
    const int32_t shorter = (int32_t)(share * (double)need->n_ctx);
    return need->is_given || shorter < LEAST_CTX ? 0 : shorter;
}

// Bytes of this process that are in memory and not in a file; 0: unknown.
static uint64_t touched_bytes(void)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "RssAnon: %llu", &kib) == 1) break;
    if (file) fclose(file);
    return (uint64_t)kib << 10;
}

// Finds the estimate of the host memory, which is the last device. Other devices have already refused models that they
// have no room for.
static bool find_host(const frit_estimate *estimate, frit_estimate_device *host)
{
    bool found = false;
    for (size_t i = 0; frit_estimate_get_device(estimate, i, host); i++) found = true;
    if (!found) return false;
    frit_estimate_info info;
    frit_estimate_get_info(estimate, &info);
    return frit_estimate_get_device(estimate, info.n_devices - 1, host);
}

static int refuse(const serve_need *need, uint64_t promised, uint64_t available)
{
    char needed[32], others[32], all[32];
    cli_size_text(need->fixed_bytes + need->kv_bytes, needed);
    cli_size_text(promised, others);
    cli_size_text(available, all);
    cli_fail("it needs %s beside %s of models that are loaded; there are %s", needed, others, all);
    return CLI_NO_MEMORY;
}

int serve_take_memory(uint64_t *promised, uint64_t *taken, frit_model *model, frit_engine_options *options)
{
    frit_estimate *estimate;
    frit_estimate_device host;
    frit_estimate_info info;
    const uint64_t touched = touched_bytes();
    *taken = 0;
    if (touched == 0 || (options->fit && strcmp(options->fit, "off") == 0)) return CLI_DONE;
    if (frit_estimate_new(&estimate, model, options) != FRIT_OK) return CLI_DONE;   // the engine will report the error
    frit_estimate_get_info(estimate, &info);
    const bool found = find_host(estimate, &host);
    frit_estimate_free(estimate);
    if (!found) return CLI_DONE;
    const serve_need need = {.fixed_bytes = host.packed_bytes + host.mapped_bytes + host.scratch_bytes,
                             .kv_bytes = host.kv_bytes,
                             .n_ctx = info.n_ctx,
                             .is_given = options->n_ctx != 0};
    const uint64_t available = host.free_bytes + touched;
    const int32_t n_ctx = *promised > 0 ? serve_fit_context(&need, *promised, available) : need.n_ctx;
    if (n_ctx == 0) return refuse(&need, *promised, available);
    if (n_ctx < need.n_ctx) options->n_ctx = n_ctx;
    *taken = need.fixed_bytes + need.kv_bytes / (uint64_t)need.n_ctx * (uint64_t)n_ctx;
    *promised += *taken;
    return CLI_DONE;
}

#endif
