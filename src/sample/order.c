// SPDX-License-Identifier: MIT
// The table of stages, and their order in a sampler.
#include "sample/sampler.h"

#include <ctype.h>

enum {
    FIRST = FRIT_STAGE_FIRST,
    LAST = FRIT_STAGE_LAST,
    BY_NAME = FRIT_STAGE_BY_NAME,
    WITH_MIROSTAT = FRIT_STAGE_WITH_MIROSTAT,
};

// In their default order.
static const frit_stage all_stages[] = {
#define STAGE(name, text, letter, aliases, flags, learn) \
    {text, letter, aliases, flags, frit_##name##_is_on, frit_##name##_apply, learn},
#define FIELD(...)
#define VALUE(...)
#include "sample/stages.def"
};
enum { N_STAGES = FRIT_STAGES };
_Static_assert((int)N_STAGES <= (int)FRIT_MAX_STAGES, "a sampler has room for every stage once");

static frit_status fail_stage(frit_str name, const char *what)
{
    frit_buf names = {0};
    for (size_t i = 0; i < N_STAGES; i++) frit_buf_printf(&names, "%s%s", i > 0 ? "," : "", all_stages[i].name);
    const frit_status status = frit_fail_at(
        FRIT_E_INVALID, "samplers", FRIT_CODE_INVALID_VALUE, "'%.*s' %s; each of these can be given once: %s",
        (int)(name.len < 64 ? name.len : 64), name.ptr, what, names.failed ? "" : names.data);
    frit_buf_free(&names);
    return status;
}

static frit_status fail_letter(char letter, const char *what)
{
    char letters[N_STAGES + 1];
    size_t n = 0;
    for (size_t i = 0; i < N_STAGES; i++)
        if (all_stages[i].letter) letters[n++] = all_stages[i].letter;
    letters[n] = 0;
    return frit_fail_at(FRIT_E_INVALID, "sampler-seq", FRIT_CODE_INVALID_VALUE,
                        "'%c' %s; each of these can be given once: %s", letter, what, letters);
}

// Compares names without regard to case, '_' and '-': "Top_K", "top-k" and "topk" are equal.
static bool is_same(frit_str a, frit_str b)
{
    size_t i = 0, k = 0;
    for (;;) {
        while (i < a.len && (a.ptr[i] == '-' || a.ptr[i] == '_')) i++;
        while (k < b.len && (b.ptr[k] == '-' || b.ptr[k] == '_')) k++;
        if (i == a.len || k == b.len) return i == a.len && k == b.len && a.len > 0;
        if (tolower((unsigned char)a.ptr[i++]) != tolower((unsigned char)b.ptr[k++])) return false;
    }
}

static bool has_name(const frit_stage *stage, frit_str name)
{
    if (is_same(name, frit_str_of(stage->name))) return true;
    for (const char *at = stage->aliases; at;) {
        const size_t n = strcspn(at, "|");
        if (is_same(name, (frit_str){at, n})) return true;
        at = at[n] ? at + n + 1 : NULL;
    }
    return false;
}

typedef struct stage_order {
    size_t chosen[FRIT_MAX_STAGES], n;
    bool has[FRIT_MAX_STAGES];
} stage_order;

static bool choose_pivot(stage_order *order, size_t i)
{
    if (order->has[i]) return false;
    order->has[i] = true;
    order->chosen[order->n++] = i;
    return true;
}

static frit_status read_names(const char *names, stage_order *order)
{
    for (const char *at = *names ? names : NULL; at;) {
        const frit_str name = {at, strcspn(at, ",;")};
        size_t i = 0;
        while (i < N_STAGES && !has_name(&all_stages[i], name)) i++;
        if (i == N_STAGES) return fail_stage(name, "is not the name of a stage");
        if (!choose_pivot(order, i)) return fail_stage(name, "occurs twice");
        at = at[name.len] ? at + name.len + 1 : NULL;
    }
    return FRIT_OK;
}

frit_status frit_sampler_check_names(const char *names)
{
    stage_order order = {.n = 0};
    return read_names(names, &order);
}

static frit_status read_letters(const char *letters, stage_order *order)
{
    for (; *letters; letters++) {
        size_t i = 0;
        while (i < N_STAGES && all_stages[i].letter != *letters) i++;
        if (i == N_STAGES) return fail_letter(*letters, "is not the letter of a stage");
        if (!choose_pivot(order, i)) return fail_letter(*letters, "occurs twice");
    }
    return FRIT_OK;
}

static void add_candidate(frit_sampler *sampler, const frit_stage *stage)
{
    const frit_sampler_options *options = &sampler->options;
    if (frit_mirostat_is_on(options) && !(stage->flags & WITH_MIROSTAT)) return;
    if (stage->is_on(options)) sampler->stages[sampler->n_stages++] = stage;
}

frit_status frit_sampler_order(frit_sampler *sampler)
{
    const frit_sampler_options *options = &sampler->options;
    const bool is_listed = options->samplers || options->sampler_seq;
    stage_order order = {.n = 0};
    if (options->sampler_seq)
        FRIT_TRY(read_letters(options->sampler_seq, &order));
    else if (options->samplers)
        FRIT_TRY(read_names(options->samplers, &order));
    if (!is_listed || frit_mirostat_is_on(options)) {
        order = (stage_order){.n = 0};
        for (size_t i = 0; i < N_STAGES; i++)
            if (!(all_stages[i].flags & BY_NAME)) choose_pivot(&order, i);
    }
    for (size_t i = 0; i < N_STAGES; i++)
        if (!order.has[i] && all_stages[i].flags & FIRST) add_candidate(sampler, &all_stages[i]);
    for (unsigned late = 0; late <= LAST; late += LAST)
        for (size_t i = 0; i < order.n; i++)
            if ((all_stages[order.chosen[i]].flags & LAST) == late)
                add_candidate(sampler, &all_stages[order.chosen[i]]);
    if (order.has[FRIT_STAGE_infill] && !sampler->texts.vocab)
        return frit_fail_at(FRIT_E_INVALID, "samplers", FRIT_CODE_INVALID_VALUE,
                            "'infill' needs a vocabulary; this model has none");
    return FRIT_OK;
}
