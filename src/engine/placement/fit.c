// SPDX-License-Identifier: MIT
// Chooses the context that memory allows.
//
//     available memory  [ weights | scratch | keys and values ........ | left alone ...... ]
//
// If options give the context, everything must fit. If the engine chooses it, scratch, keys and values get half of what
// the weights leave. Cache types of fewer bits are used if the first ones leave less than ENOUGH tokens, or less than
// the requested context.
#include "engine/placement/fit.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/number.h"

enum { STEP = 1024, ENOUGH = 4 * STEP };   // a chosen context is a multiple of STEP

static const double mib = 1024 * 1024;

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    uint64_t n_bytes;
    return frit_add_u64(a, b, &n_bytes) ? n_bytes : UINT64_MAX;
}

uint64_t frit_fit_cache_bytes(const frit_fit *fit, const frit_fit_memory *memory, frit_fit_choice choice)
{
    frit_kv_room room = fit->room;
    room.n_ctx = choice.n_ctx;
    return add_saturated(frit_kv_bytes(&memory->sizes[choice.types], &room), memory->evicted_bytes[choice.types]);
}

// Bytes beside the weights.
static uint64_t needed_bytes(const frit_fit *fit, const frit_fit_memory *memory, frit_fit_choice choice)
{
    return add_saturated(frit_fit_cache_bytes(fit, memory, choice), memory->scratch_bytes);
}

static uint64_t weights_of(const frit_fit_memory *memory)
{
    return add_saturated(memory->weight_bytes, memory->mapped_bytes);
}

static uint64_t budget_of(const frit_fit_memory *memory)
{
    const uint64_t weights = weights_of(memory);
    return memory->available > weights ? memory->available - weights : 0;
}

// Returns the first memory without room; NULL: all have room. Only 1 / `share` of what the weights leave may be used.
static const frit_fit_memory *find_full(const frit_fit *fit, frit_fit_choice choice, uint64_t share)
{
    for (const frit_fit_memory *memory = fit->memories; memory < fit->memories + fit->n_memories; memory++)
        if (needed_bytes(fit, memory, choice) > budget_of(memory) / share || weights_of(memory) > memory->available)
            return memory;
    return NULL;
}

// Returns the largest multiple of `step` up to `most` that fits; 0 if none does.
static int32_t find_largest(const frit_fit *fit, int types, int32_t most, int32_t step, uint64_t share)
{
    int32_t low = 0, high = most / step;
    while (low < high) {
        const int32_t middle = high - (high - low) / 2;
        if (find_full(fit, (frit_fit_choice){middle * step, types}, share))
            high = middle - 1;
        else
            low = middle;
    }
    return low * step;
}

static int32_t most_of(const frit_fit *fit)
{
    return fit->n_ctx > 0 ? fit->n_ctx : fit->n_ctx_train > 0 ? fit->n_ctx_train : ENOUGH;
}

static int32_t step_below(int32_t most)
{
    return most < FRIT_PAGE_TOKENS ? most : FRIT_PAGE_TOKENS;
}

static int32_t find_comfortable(const frit_fit *fit, int types)
{
    const int32_t most = most_of(fit);
    if (!find_full(fit, (frit_fit_choice){most, types}, 2)) return most;
    const int32_t n = find_largest(fit, types, most, STEP, 2);
    return n > 0 ? n : find_largest(fit, types, most < STEP ? most : STEP, FRIT_PAGE_TOKENS, 2);
}

static const char *plural(int32_t n)
{
    return n == 1 ? "" : "s";
}

static void write_advice(const frit_fit *fit, frit_buf *text)
{
    const int types = fit->n_types - 1;
    const int32_t n = find_largest(fit, types, most_of(fit), step_below(most_of(fit)), 1);
    const char *name = frit_dtype_get(fit->types[types].k)->name;
    if (n > 0)
        frit_buf_printf(text, "a context of %d tokens fits with cached keys in %s; types of fewer bits leave more", n,
                        name);
    else
        frit_buf_printf(text, "weights of a smaller type, a smaller batch or fewer sessions need less");
}

typedef struct size_text {
    char text[32];
} size_text;

static size_text size_of(uint64_t n_bytes)
{
    static const char *const units[] = {"MiB", "GiB", "TiB"};
    double n = (double)n_bytes / mib;
    size_t unit = 0;
    for (; n >= 1024 && unit < 2; unit++) n /= 1024;
    size_text size;
    frit_format(size.text, sizeof size.text, "%.1f %s", n, units[unit]);
    return size;
}

static frit_status fail_fit(const frit_fit *fit, frit_fit_choice choice)
{
    const frit_fit_memory *memory = find_full(fit, choice, 1);
    const uint64_t cache = frit_fit_cache_bytes(fit, memory, choice);
    frit_buf advice = {0};
    write_advice(fit, &advice);
    const frit_status status = frit_fail_file(
        FRIT_E_MEMORY,
        "%s: does not fit into the memory of %s%s: a context of %d tokens for %d session%s needs %s (weights %s, "
        "cache %s, scratch %s), %s are free; %s",
        fit->path, memory->n_ranks > 1 ? "each device of " : "", memory->device, choice.n_ctx, fit->room.n_sessions,
        plural(fit->room.n_sessions),
        size_of(add_saturated(weights_of(memory), needed_bytes(fit, memory, choice))).text,
        size_of(weights_of(memory)).text, size_of(cache).text, size_of(memory->scratch_bytes).text,
        size_of(memory->available).text, advice.data ? advice.data : "");
    frit_buf_free(&advice);
    return status;
}

static void add_needs(const frit_fit *fit, frit_fit_choice choice, frit_buf *text)
{
    for (const frit_fit_memory *memory = fit->memories; memory < fit->memories + fit->n_memories; memory++)
        frit_buf_printf(text, "%s %s%s needs %s of %s that are free", memory == fit->memories ? ":" : ",",
                        memory->n_ranks > 1 ? "each device of " : "", memory->device,
                        size_of(add_saturated(weights_of(memory), needed_bytes(fit, memory, choice))).text,
                        size_of(memory->available).text);
}

void frit_fit_tell(const frit_fit *fit, frit_fit_choice choice)
{
    frit_buf text = {0};
    const frit_fit_memory *host = &fit->memories[fit->n_memories - 1], *first = fit->memories;
    const bool is_short = choice.n_ctx < most_of(fit),
               is_placed = fit->places_auto && host > first && host->n_layers > 0;
    const bool differs = is_short || choice.types > 0 || is_placed;
    frit_buf_printf(&text, "%s: %sthe context is %d tokens", fit->path, differs ? "to fit into memory, " : "",
                    choice.n_ctx);
    if (is_short) frit_buf_printf(&text, " of %d", most_of(fit));
    if (choice.types > 0)
        frit_buf_printf(&text, ", cached keys and values are %s", frit_dtype_get(fit->types[choice.types].k)->name);
    if (is_placed)
        frit_buf_printf(&text, ", %d layers run on %s and %d on %s", first->n_layers, first->device, host->n_layers,
                        host->device);
    add_needs(fit, choice, &text);
    if (text.data) frit_log_say(fit->log, differs ? FRIT_LOG_WARNING : FRIT_LOG_INFO, "%s", text.data);
    frit_buf_free(&text);
    if (fit->n_ctx > 0 && fit->n_ctx_train > 0 && fit->n_ctx > fit->n_ctx_train)
        frit_log_say(fit->log, FRIT_LOG_WARNING, "%s: a context of %d tokens is longer than the %d it was trained for",
                     fit->path, fit->n_ctx, fit->n_ctx_train);
}

frit_status frit_fit_choose(const frit_fit *fit, frit_fit_choice *choice)
{
    const int32_t most = most_of(fit), enough = most < ENOUGH ? most : ENOUGH;
    *choice = (frit_fit_choice){most, 0};
    if (fit->off) return FRIT_OK;
    if (fit->n_ctx > 0) {
        while (choice->types < fit->n_types && find_full(fit, *choice, 1)) choice->types++;
        if (choice->types < fit->n_types) return FRIT_OK;
        choice->types = fit->n_types - 1;
        return fail_fit(fit, *choice);
    }
    choice->n_ctx = 0;
    for (int i = 0; i < fit->n_types && choice->n_ctx < enough; i++) {
        const int32_t n_ctx = find_comfortable(fit, i);
        if (n_ctx > choice->n_ctx) *choice = (frit_fit_choice){n_ctx, i};
    }
    if (choice->n_ctx > 0) return FRIT_OK;
    const int types = fit->n_types - 1,
              n_ctx = find_largest(fit, types, most, step_below(most), 1);   // with nothing to spare
    *choice = (frit_fit_choice){n_ctx > 0 ? n_ctx : step_below(most), types};
    return n_ctx > 0 ? FRIT_OK : fail_fit(fit, *choice);
}
