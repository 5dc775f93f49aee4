// SPDX-License-Identifier: MIT
// Hyperparameters of RoPE: style, scaling, sections, and layers with a window.
#include "arch/hparams_reader.h"

static frit_status read_scaling(frit_hparams_reader *r)
{
    static const struct {
        const char *name;
        frit_rope_scaling scaling;
    } names[] = {
        {"none", FRIT_ROPE_PLAIN},      {"linear", FRIT_ROPE_LINEAR}, {"yarn", FRIT_ROPE_YARN},
        {"dynamic", FRIT_ROPE_DYNAMIC}, {"llama3", FRIT_ROPE_LLAMA3}, {"longrope", FRIT_ROPE_LONG},
    };
    frit_str name;
    bool found;
    FRIT_TRY(frit_meta_get_text(&r->ckpt->meta, frit_hparams_key(r, "rope.scaling.type"), &name, &found));
    // A factor without a type means linear scaling, which was the only type in early files.
    r->hp->rope.scaling = FRIT_ROPE_LINEAR;
    if (!found) return FRIT_OK;
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        r->hp->rope.scaling = names[i].scaling;
        if (frit_str_is(name, names[i].name)) return FRIT_OK;
    }
    return frit_fail(FRIT_E_UNSUPPORTED, "%s is '%.*s', expected none, linear, yarn, dynamic, llama3 or longrope",
                     r->key, (int)(name.len < 64 ? name.len : 64), name.ptr);
}

static frit_status read_rope_style(frit_hparams_reader *r)
{
    frit_str name;
    bool found;
    r->hp->rope_style = r->arch->rope_style;
    FRIT_TRY(frit_meta_get_text(&r->ckpt->meta, "frit.rope.style", &name, &found));
    if (!found) return FRIT_OK;
    bool is_neox = frit_str_is(name, "neox");
    if (!is_neox && !frit_str_is(name, "interleaved"))
        return frit_fail(FRIT_E_FORMAT, "frit.rope.style is '%.*s', expected 'interleaved' or 'neox'",
                         (int)(name.len < 64 ? name.len : 64), name.ptr);
    r->hp->rope_style = is_neox ? FRIT_ROPE_NEOX : FRIT_ROPE_INTERLEAVED;
    return FRIT_OK;
}

// Sets RoPE of layers with a window: as in other layers, with a base of its own and possibly without scaling.
static void complete_rope_swa(frit_hparams_reader *r)
{
    frit_hparams *hp = r->hp;
    const frit_windows *windows = &r->arch->windows;
    float base = hp->rope_swa.base;
    const int32_t dim = hp->rope_swa.dim;
    if (base == 0) base = windows->rope_base != 0 ? windows->rope_base : hp->rope.base;
    bool plain = windows->plain_rope;
    frit_meta_get_bool(&r->ckpt->meta, "frit.rope.plain_swa", &plain, NULL);
    hp->is_swa_plain = plain;
    if (plain)
        hp->rope_swa = (frit_rope_params){.dim = hp->rope.dim, .factor = 1, .attn_factor = 1};
    else
        hp->rope_swa = hp->rope;
    hp->rope_swa.base = base;
    if (dim > 0) hp->rope_swa.dim = dim;
}

static frit_status read_sections(frit_hparams_reader *r)
{
    const frit_value *sections = frit_meta_find(&r->ckpt->meta, frit_hparams_key(r, "rope.dimension_sections"));
    if (!sections) return FRIT_OK;
    bool fits = sections->type == FRIT_VALUE_ARRAY && sections->array.n <= 4 &&
                sections->array.type != FRIT_VALUE_TEXT && sections->array.type != FRIT_VALUE_F32 &&
                sections->array.type != FRIT_VALUE_F64;
    if (!fits) return frit_fail(FRIT_E_FORMAT, "%s is not an array of at most 4 whole numbers", r->key);
    for (uint64_t i = 0; i < sections->array.n; i++)
        r->hp->rope_sections[i] = (int32_t)(frit_value_item_i64(sections, i) & 0xffff);
    return FRIT_OK;
}

frit_status frit_hparams_complete_rope(frit_hparams_reader *r)
{
    frit_hparams *hp = r->hp;
    frit_rope_params *rope = &hp->rope;
    FRIT_TRY(read_scaling(r));
    FRIT_TRY(read_rope_style(r));
    if (rope->factor == 0) rope->factor = 1;
    if (rope->attn_factor == 0) rope->attn_factor = 1;
    if (rope->ext_factor < 0) rope->ext_factor = 1;
    if (rope->n_ctx_orig == 0) rope->n_ctx_orig = hp->n_ctx_train;
    if (rope->scaling == FRIT_ROPE_LLAMA3 && rope->high_freq_factor <= rope->low_freq_factor)
        return frit_fail(FRIT_E_FORMAT, "%s.rope.scaling.high_freq_factor is %g, expected more than low_freq_factor %g",
                         r->arch->name, (double)rope->high_freq_factor, (double)rope->low_freq_factor);
    frit_meta_get_bool(&r->ckpt->meta, "frit.rope.yarn_no_truncate", &rope->no_truncate, NULL);
    for (int32_t i = 0; i < hp->n_layer && rope->dim == 0; i++) rope->dim = hp->layers[i].k_dim;
    for (int32_t i = 0; i < hp->n_layer; i++) {
        if (hp->layers[i].n_head == 0) continue;
        const bool is_swa = hp->layers[i].window > 0 && hp->rope_swa.dim > 0;
        const int32_t dim = is_swa ? hp->rope_swa.dim : rope->dim;
        if (dim % 2 != 0 || dim > hp->layers[i].k_dim)
            return frit_fail(FRIT_E_FORMAT,
                             "%s.rope.dimension_count%s is %d, expected an even number up to the head size %d",
                             r->arch->name, is_swa ? "_swa" : "", (int)dim, (int)hp->layers[i].k_dim);
    }
    complete_rope_swa(r);
    hp->is_rope_mixed = r->arch->mixes_rope;
    return read_sections(r);
}
