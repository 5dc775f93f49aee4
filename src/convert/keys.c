// SPDX-License-Identifier: MIT
// Keys that other engines expect in a GGUF file and that folders express differently.
//
//     windows by layer           ARCH.attention.sliding_window: their size; which layers have one follows from ARCH
//     shared experts             ARCH.expert_shared_feed_forward_length
//     the router's function      ARCH.expert_gating_func
//     Llama 3's rotary scaling   the tensor rope_freqs.weight instead of keys
#include "convert/convert.h"

#include <stdio.h>
#include <string.h>

static const char *key_of(const frit_arch *arch, const char *name, char text[128])
{
    snprintf(text, 128, "%s.%s", arch->name, name);
    return text;
}

static frit_status add_number(frit_meta *meta, const frit_arch *arch, const char *name, int64_t value)
{
    char key[128];
    if (value <= 0 || frit_meta_find(meta, key_of(arch, name, key))) return FRIT_OK;
    const char *copy = frit_arena_text(meta->arena, key, strlen(key));
    if (!copy) return frit_fail_memory(strlen(key), "a key");
    return frit_meta_add(meta, frit_str_of(copy), (frit_value){.type = FRIT_VALUE_U32, .u = (uint64_t)value});
}

static bool is_in_a_tensor(const frit_hparams *hp)
{
    return hp->rope.scaling == FRIT_ROPE_LLAMA3;
}

frit_status frit_convert_add_keys(frit_meta *meta, const frit_hparams *hp, const frit_arch *arch)
{
    static const char *const scaling[] = {"type", "factor", "low_freq_factor", "high_freq_factor",
                                          "original_context_length"};
    int32_t window = 0;
    FRIT_TRY(frit_meta_remove(meta, "frit.rope.style"));   // rows are in the order of the architecture's files
    FRIT_TRY(frit_meta_remove(meta, "frit.delta.grouped_heads"));
    for (int32_t i = 0; i < hp->n_layer; i++) window = hp->layers[i].window > window ? hp->layers[i].window : window;
    FRIT_TRY(add_number(meta, arch, "attention.sliding_window", window));
    FRIT_TRY(add_number(meta, arch, "expert_shared_feed_forward_length", hp->n_ff_shexp));
    if (hp->n_expert > 0 && (hp->gating == FRIT_GATING_SOFTMAX || hp->gating == FRIT_GATING_SIGMOID))
        FRIT_TRY(add_number(meta, arch, "expert_gating_func", hp->gating));
    for (size_t i = 0; is_in_a_tensor(hp) && i < FRIT_COUNT(scaling); i++) {
        char name[64], key[128];
        snprintf(name, sizeof name, "rope.scaling.%s", scaling[i]);
        FRIT_TRY(frit_meta_remove(meta, key_of(arch, name, key)));
    }
    return FRIT_OK;
}

frit_status frit_convert_rope_factors(frit_hparams *hp, frit_arena *arena, const float **factors)
{
    *factors = NULL;
    if (!is_in_a_tensor(hp)) return FRIT_OK;
    frit_hparams plain = *hp;
    plain.rope.scaling = FRIT_ROPE_PLAIN;
    plain.rope_table = plain.rope_swa_table = (frit_rope_table){0};
    FRIT_TRY(frit_rope_init(hp, hp->n_ctx_train, arena));
    FRIT_TRY(frit_rope_init(&plain, hp->n_ctx_train, arena));
    const int32_t n = hp->rope.dim / 2;
    float *values = frit_arena_new(arena, float, (size_t)n);
    if (!values) return frit_fail_memory((size_t)n * sizeof *values, "the factors of rotation");
    const float *fast = plain.rope_table.inv_freq->data, *slow = hp->rope_table.inv_freq->data;
    for (int32_t i = 0; i < n; i++) values[i] = fast[i] / slow[i];
    *factors = values;
    return FRIT_OK;
}
