// SPDX-License-Identifier: MIT
// Replacement types for matrices whose rows do not consist of whole blocks of the wanted type, and warnings about them.
#include "convert/convert.h"

#include <string.h>

// The next finer type with blocks of 32.
static const struct {
    frit_dtype wanted, instead;
} fallbacks[] = {
    {FRIT_DTYPE_Q2_K, FRIT_DTYPE_IQ4_NL},    {FRIT_DTYPE_Q3_K, FRIT_DTYPE_IQ4_NL},
    {FRIT_DTYPE_Q4_K, FRIT_DTYPE_Q5_0},      {FRIT_DTYPE_Q5_K, FRIT_DTYPE_Q5_1},
    {FRIT_DTYPE_Q6_K, FRIT_DTYPE_Q8_0},      {FRIT_DTYPE_IQ1_S, FRIT_DTYPE_IQ4_NL},
    {FRIT_DTYPE_IQ1_M, FRIT_DTYPE_IQ4_NL},   {FRIT_DTYPE_IQ2_XXS, FRIT_DTYPE_IQ4_NL},
    {FRIT_DTYPE_IQ2_XS, FRIT_DTYPE_IQ4_NL},  {FRIT_DTYPE_IQ2_S, FRIT_DTYPE_IQ4_NL},
    {FRIT_DTYPE_IQ3_XXS, FRIT_DTYPE_IQ4_NL}, {FRIT_DTYPE_IQ3_S, FRIT_DTYPE_IQ4_NL},
    {FRIT_DTYPE_IQ4_XS, FRIT_DTYPE_IQ4_NL},  {FRIT_DTYPE_TQ1_0, FRIT_DTYPE_Q4_0},
    {FRIT_DTYPE_TQ2_0, FRIT_DTYPE_Q4_0},     {FRIT_DTYPE_NVFP4, FRIT_DTYPE_IQ4_NL},
    {FRIT_DTYPE_Q1_0, FRIT_DTYPE_IQ4_NL},    {FRIT_DTYPE_Q2_0, FRIT_DTYPE_IQ4_NL},
};

// Replacements in mixes, as in llama.cpp.
static const struct {
    frit_dtype wanted, instead;
} fallbacks_in_mixes[] = {
    {FRIT_DTYPE_Q2_K, FRIT_DTYPE_Q4_0},
    {FRIT_DTYPE_Q3_K, FRIT_DTYPE_Q4_0},
    {FRIT_DTYPE_Q2_0, FRIT_DTYPE_Q4_0},
};

static bool fits(frit_dtype dtype, int64_t width)
{
    return width % frit_dtype_get(dtype)->block_elems == 0;
}

frit_dtype frit_convert_fit(frit_dtype wanted, int64_t width, bool in_mix)
{
    if (fits(wanted, width)) return wanted;
    for (size_t i = 0; in_mix && i < FRIT_COUNT(fallbacks_in_mixes); i++)
        if (fallbacks_in_mixes[i].wanted == wanted && fits(fallbacks_in_mixes[i].instead, width))
            return fallbacks_in_mixes[i].instead;
    for (size_t i = 0; i < FRIT_COUNT(fallbacks); i++)
        if (fallbacks[i].wanted == wanted && fits(fallbacks[i].instead, width)) return fallbacks[i].instead;
    return FRIT_DTYPE_F16;
}

// ------------------------------------------------------------------------------------- saying so

// Writes "blk.12.attn_q.weight" as "blk.*.attn_q.weight", because layers are alike.
static void write_pattern(const char *name, char *out, size_t size)
{
    size_t n = 0;
    for (const char *p = name; *p && n + 1 < size; n++) {
        const bool is_number = *p >= '0' && *p <= '9' && p > name && p[-1] == '.';
        size_t n_digits = is_number ? strspn(p, "0123456789") : 0;
        out[n] = n_digits > 0 && p[n_digits] == '.' ? '*' : *p;
        p += out[n] == '*' ? n_digits : 1;
    }
    out[n] = 0;
}

static bool is_listed(const frit_buf *names, const char *pattern)
{
    const size_t n = strlen(pattern);
    for (const char *at = names->data; at && (at = strstr(at, pattern)); at += n)
        if ((at == names->data || at[-1] == ' ') && (at[n] == 0 || at[n] == ',')) return true;
    return false;
}

void frit_fallbacks_add(frit_fallbacks *all, const char *name, frit_dtype wanted, frit_dtype got)
{
    char pattern[128];
    size_t i = 0;
    all->n_matrices++;
    if (got == wanted) return;
    while (i < all->n_changes && (all->changes[i].wanted != wanted || all->changes[i].got != got)) i++;
    if (i == FRIT_COUNT(all->changes)) return;
    if (i == all->n_changes) {
        all->changes[i].wanted = wanted;
        all->changes[i].got = got;
        all->n_changes++;
    }
    frit_buf *names = &all->changes[i].names;
    all->changes[i].n++;
    write_pattern(name, pattern, sizeof pattern);
    if (is_listed(names, pattern)) return;
    if (names->len > 0) frit_buf_text(names, ", ");
    frit_buf_text(names, pattern);
}

void frit_fallbacks_say(frit_fallbacks *all, const frit_log *log, const char *source)
{
    for (size_t i = 0; i < all->n_changes; i++) {
        frit_buf *names = &all->changes[i].names;
        const frit_dtype_info *wanted = frit_dtype_get(all->changes[i].wanted);
        frit_log_say(log, FRIT_LOG_WARNING,
                     "%s: %zu of %zu matrices become %s, because %s needs rows of a multiple of %d numbers: %s", source,
                     all->changes[i].n, all->n_matrices, frit_dtype_get(all->changes[i].got)->name, wanted->name,
                     wanted->block_elems, names->data ? names->data : "");
        frit_buf_free(names);
    }
    all->n_changes = 0;
}
