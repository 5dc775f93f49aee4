// SPDX-License-Identifier: MIT
// What a matrix becomes whose rows cannot be cut into the blocks of the wanted type, and saying so.
#include "convert/convert.h"

#include <string.h>

// The types of other engines' quantizers: the next finer one with blocks of 32.
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

static bool fits(frit_dtype dtype, int64_t width)
{
    return width % frit_dtype_get(dtype)->block_elems == 0;
}

frit_dtype frit_convert_fit(frit_dtype wanted, int64_t width)
{
    if (fits(wanted, width)) return wanted;
    for (size_t i = 0; i < FRIT_COUNT(fallbacks); i++)
        if (fallbacks[i].wanted == wanted && fits(fallbacks[i].instead, width)) return fallbacks[i].instead;
    return FRIT_DTYPE_F16;
}

// ------------------------------------------------------------------------------------- saying so

// "blk.12.attn_q.weight" -> "blk.*.attn_q.weight": layers are alike.
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

void frit_fallbacks_add(frit_fallbacks *all, const char *name, frit_dtype got)
{
    char pattern[128];
    all->n_matrices++;
    if (got == all->wanted) return;
    frit_buf *names = &all->of[got].names;
    all->of[got].n++;
    write_pattern(name, pattern, sizeof pattern);
    if (is_listed(names, pattern)) return;
    if (names->len > 0) frit_buf_text(names, ", ");
    frit_buf_text(names, pattern);
}

void frit_fallbacks_say(frit_fallbacks *all, const frit_log *log, const char *source)
{
    for (int type = 0; type < FRIT_DTYPE_COUNT; type++) {
        frit_buf *names = &all->of[type].names;
        if (all->of[type].n > 0)
            frit_log_say(log, FRIT_LOG_WARNING,
                         "%s: %zu of %zu matrices become %s, because %s needs rows of a multiple of %d numbers: %s",
                         source, all->of[type].n, all->n_matrices, frit_dtype_get((frit_dtype)type)->name,
                         frit_dtype_get(all->wanted)->name, (int)frit_dtype_get(all->wanted)->block_elems,
                         names->data ? names->data : "");
        frit_buf_free(names);
    }
}
