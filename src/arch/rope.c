// SPDX-License-Identifier: MIT
// RoPE frequencies. Pair i of a head is rotated by position * inv_freq[i]. Scaling rules slow down the slow pairs, so
// that positions beyond the trained context give angles that occurred in training. The rules are those of transformers'
// modeling_rope_utils.py; GGUF's form of the Llama 3 rule is a tensor of divisors (rope_freqs, a source of the op)
// instead.
#include "arch/arch.h"

#include <math.h>

static const double two_pi = 6.283185307179586;

static double plain(const frit_rope_params *rope, double base, int i)
{
    return pow(base, -2.0 * i / rope->dim);
}

// The base with which the wavelength of the slowest pair grows by the factor `ratio`.
static double ntk_base(const frit_rope_params *rope, int32_t n_ctx)
{
    if (n_ctx <= rope->n_ctx_orig || rope->dim <= 2) return rope->base;
    double factor = rope->factor, ratio = factor * n_ctx / rope->n_ctx_orig - (factor - 1);
    return rope->base * pow(ratio, (double)rope->dim / (rope->dim - 2));
}

// Slow pairs are divided by the factor, fast pairs stay unchanged, and pairs between them are interpolated by
// wavelength.
static double llama3(const frit_rope_params *rope, double inv_freq)
{
    double turns = rope->n_ctx_orig * inv_freq / two_pi;   // within the original context
    double low = rope->low_freq_factor, high = rope->high_freq_factor;
    if (turns < low) return inv_freq / rope->factor;
    if (turns > high) return inv_freq;
    double smooth = (turns - low) / (high - low);
    return (1 - smooth) * inv_freq / rope->factor + smooth * inv_freq;
}

// The pair that makes n_turns rotations within the original context.
static double yarn_pair(const frit_rope_params *rope, double n_turns)
{
    return rope->dim * log(rope->n_ctx_orig / (n_turns * two_pi)) / (2 * log(rope->base));
}

static double yarn(const frit_rope_params *rope, double inv_freq, int i)
{
    double first = yarn_pair(rope, rope->beta_fast), last = yarn_pair(rope, rope->beta_slow);
    if (!rope->no_truncate) {
        first = floor(first);
        last = ceil(last);
    }
    first = fmax(first, 0);
    last = fmin(last, rope->dim - 1);
    if (last == first) last += 0.001;
    double stretched = fmin(fmax((i - first) / (last - first), 0), 1);   // 0: unchanged, 1: divided by the factor
    double stays = (1 - stretched) * rope->ext_factor;
    return inv_freq / rope->factor * (1 - stays) + inv_freq * stays;
}

static double yarn_magnitude(const frit_rope_params *rope)
{
    // The rule does not apply if the scale of attention is multiplied instead.
    double rule =
        rope->log_multiplier == 0 && rope->factor > 1 && rope->ext_factor != 0 ? 0.1 * log(rope->factor) + 1 : 1;
    return rule * rope->attn_factor;
}

static double scaled(const frit_rope_params *rope, double base, int i)
{
    double inv_freq = plain(rope, base, i);
    switch (rope->scaling) {
    case FRIT_ROPE_LINEAR:
        return inv_freq / rope->factor;
    case FRIT_ROPE_LLAMA3:
        return llama3(rope, inv_freq);
    case FRIT_ROPE_YARN:
        return yarn(rope, inv_freq, i);
    case FRIT_ROPE_PLAIN:
    case FRIT_ROPE_DYNAMIC:
    case FRIT_ROPE_LONG:
        break;   // scaled through the base, or by factors among the weights
    }
    return inv_freq;
}

// Makes a table, unless it exists: all engines of a model read the same tensor.
static frit_status make_table(frit_rope_table *table, const char *name, const frit_rope_params *rope, int32_t n_ctx,
                              frit_arena *arena)
{
    const int64_t n_pairs = rope->dim / 2;
    const double base = rope->scaling == FRIT_ROPE_DYNAMIC ? ntk_base(rope, n_ctx) : rope->base;
    if (table->inv_freq && table->base == base) return FRIT_OK;
    float *inv_freq;
    FRIT_TRY(frit_constant_new(&table->inv_freq, &inv_freq, name, 1, &n_pairs, arena));
    for (int i = 0; i < n_pairs; i++) inv_freq[i] = (float)scaled(rope, base, i);
    table->base = base;
    table->magnitude = rope->scaling == FRIT_ROPE_YARN ? (float)yarn_magnitude(rope) : rope->attn_factor;
    return FRIT_OK;
}

frit_status frit_rope_init(frit_hparams *hp, int32_t n_ctx, frit_arena *arena)
{
    hp->n_ctx = n_ctx;
    FRIT_TRY(make_table(&hp->rope_table, "rope.inv_freq", &hp->rope, n_ctx, arena));
    bool same = hp->rope_swa.base == hp->rope.base && hp->rope_swa.scaling == hp->rope.scaling &&
                hp->rope_swa.dim == hp->rope.dim;
    if (!same) return make_table(&hp->rope_swa_table, "rope_swa.inv_freq", &hp->rope_swa, n_ctx, arena);
    hp->rope_swa_table = hp->rope_table;   // one table for both, so that angles are computed once
    return FRIT_OK;
}
