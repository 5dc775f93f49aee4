// SPDX-License-Identifier: MIT
// mmproj files: a row for each kind of encoder, with its tensors, its keys and its processor.
#include "format/mmproj.h"

#include "format/mmproj_kind.h"
#include "format/processor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_PATCH = 256, MAX_MERGE = 32 };

// ------------------------------------------------------------------------------- values

static frit_status get_count(const frit_checkpoint *ckpt, const char *key, int64_t low, int64_t high, int64_t *out)
{
    bool found;
    FRIT_TRY(frit_meta_get_i64(&ckpt->meta, key, out, &found));
    if (!found && *out == 0)
        return frit_fail_file(FRIT_E_FORMAT, "%s: metadata key '%s' is missing, expected %lld to %lld", ckpt->path, key,
                              (long long)low, (long long)high);
    if (*out >= low && *out <= high) return FRIT_OK;
    return frit_fail_file(FRIT_E_FORMAT, "%s: metadata key '%s' is %lld, expected %lld to %lld", ckpt->path, key,
                          (long long)*out, (long long)low, (long long)high);
}

static frit_status get_u32(const frit_checkpoint *ckpt, const char *key, int64_t high, uint32_t *out)
{
    int64_t value = *out;
    FRIT_TRY(get_count(ckpt, key, 1, high, &value));
    *out = (uint32_t)value;
    return FRIT_OK;
}

static frit_status get_merge(const frit_checkpoint *ckpt, const mmproj_kind *kind, uint32_t *out)
{
    *out = kind->merge;
    return kind->merge_key ? get_u32(ckpt, kind->merge_key, MAX_MERGE, out) : FRIT_OK;
}

static const char *key_of(const mmproj *m, const char *key, char text[128])
{
    snprintf(text, 128, "%s.%s", m->kind->arch, key);
    return text;
}

static frit_status add_count(const mmproj *m, const char *key, int64_t value)
{
    char text[128];
    return frit_meta_add_u64(&m->ckpt->meta, key_of(m, key, text), (uint64_t)value);
}

static frit_status add_real(const mmproj *m, const char *key, double value)
{
    char text[128];
    return frit_meta_add_f64(&m->ckpt->meta, key_of(m, key, text), value);
}

// The rows of a tensor that has been renamed.
static frit_status count_rows(const mmproj *m, const char *name, int64_t *out)
{
    const frit_tensor *tensor = frit_checkpoint_find(m->ckpt, name);
    if (!tensor) return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' is missing", m->ckpt->path, name);
    *out = tensor->shape[0];
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- kinds

static frit_status add_positions(const mmproj *m)
{
    int64_t n;
    FRIT_TRY(count_rows(m, "position_embd.weight", &n));
    if (frit_checkpoint_find(m->ckpt, "class_embd.weight")) n--;
    const int64_t side = (int64_t)sqrt((double)n);
    if (n < 1 || side * side != n)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: tensor 'v.position_embd.weight' has %lld positions of patches, "
                              "expected the square of a number",
                              m->ckpt->path, (long long)n);
    return add_count(m, "position_side", side);
}

static frit_status add_rope(const mmproj *m)
{
    return add_real(m, "rope.freq_base", 10000);
}

// Adds a list with one number for each layer.
static frit_status add_list(const mmproj *m, const char *key, const uint32_t *items, int64_t n)
{
    char text[128];
    key_of(m, key, text);
    const char *copy = frit_arena_text(&m->ckpt->arena, text, strlen(text));
    const frit_value list = {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_U32, (uint64_t)n, items}};
    return copy ? frit_meta_add(&m->ckpt->meta, frit_str_of(copy), list) : frit_fail_memory(strlen(text), "a key");
}

// The layers that give features of their own; *n: how many. NULL without an error if the file does not say.
static frit_status get_deep(const frit_checkpoint *ckpt, int64_t n_layer, const frit_value **flags, int64_t *n)
{
    const frit_value *list = *flags = frit_meta_find(&ckpt->meta, "clip.vision.is_deepstack_layers");
    *n = 0;
    if (!list) return FRIT_OK;
    if (list->type != FRIT_VALUE_ARRAY || list->array.type != FRIT_VALUE_BOOL || list->array.n != (uint64_t)n_layer)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: metadata key 'clip.vision.is_deepstack_layers' is bad, expected a flag for each of "
                              "%lld layers",
                              ckpt->path, (long long)n_layer);
    for (int64_t i = 0; i < n_layer; i++) *n += frit_value_item_i64(list, (uint64_t)i) != 0;
    return FRIT_OK;
}

static frit_status add_qwen3(const mmproj *m)
{
    int64_t n_layer = 0, n_deep;
    const frit_value *flags;
    FRIT_TRY(get_count(m->ckpt, "clip.vision.block_count", 1, 1024, &n_layer));
    FRIT_TRY(get_deep(m->ckpt, n_layer, &flags, &n_deep));
    uint32_t *layers = frit_arena_new(&m->ckpt->arena, uint32_t, (size_t)n_layer);
    if (!layers) return frit_fail_memory((size_t)n_layer * sizeof *layers, "the layers of an encoder");
    for (int64_t i = 0; i < n_layer; i++) layers[i] = flags && frit_value_item_i64(flags, (uint64_t)i) != 0;
    FRIT_TRY(add_count(m, "n_deepstack_layers", n_deep));
    FRIT_TRY(add_list(m, "deepstack_layers", layers, n_layer));
    FRIT_TRY(add_positions(m));
    return add_rope(m);
}

// The table of columns, then that of rows.
static frit_status add_gemma4(const mmproj *m)
{
    int64_t n;
    FRIT_TRY(count_rows(m, "position_embd.weight", &n));
    FRIT_TRY(add_count(m, "position_side", n / 2));
    return add_real(m, "rope.freq_base", 100);
}

// The converter puts the rows of queries and keys in the order of interleaved pairs.
static frit_status add_pixtral(const mmproj *m)
{
    FRIT_TRY(frit_meta_add_text(&m->ckpt->meta, "frit.rope.style", "interleaved"));
    return add_rope(m);
}

static frit_status add_llama4(const mmproj *m)
{
    int64_t width;
    FRIT_TRY(count_rows(m, "merge_in.weight", &width));
    FRIT_TRY(add_count(m, "projector_length", width));
    FRIT_TRY(add_positions(m));
    return add_rope(m);
}

// One of some layers has no windows. Windows have 112 pixels, which files do not say.
static frit_status add_qwen2_5(const mmproj *m)
{
    int64_t n_layer = 0, period = 0, patch = 0;
    FRIT_TRY(get_count(m->ckpt, "clip.vision.block_count", 1, 1024, &n_layer));
    FRIT_TRY(get_count(m->ckpt, "clip.vision.n_wa_pattern", 1, 1024, &period));
    FRIT_TRY(get_count(m->ckpt, "clip.vision.patch_size", 1, MAX_PATCH, &patch));
    const uint32_t window = (uint32_t)(112 / 2 / patch);
    uint32_t *windows = frit_arena_new(&m->ckpt->arena, uint32_t, (size_t)n_layer);
    if (!windows) return frit_fail_memory((size_t)n_layer * sizeof *windows, "the windows of layers");
    for (int64_t i = 0; i < n_layer; i++) windows[i] = (i + 1) % period == 0 ? 0 : window > 0 ? window : 1;
    FRIT_TRY(add_list(m, "attention.sliding_window", windows, n_layer));
    return add_rope(m);
}

static frit_status limit_tiles(const frit_checkpoint *ckpt, frit_processor *p)
{
    FRIT_TRY(get_u32(ckpt, "clip.vision.image_size", FRIT_MAX_TILE_SIDE, &p->width));
    p->height = p->width;
    return FRIT_OK;
}

static frit_status limit_idefics3(const frit_checkpoint *ckpt, frit_processor *p)
{
    FRIT_TRY(limit_tiles(ckpt, p));
    p->longest = 4 * p->width;
    return get_u32(ckpt, "clip.vision.preproc_image_size", FRIT_MAX_TILE_SIDE, &p->longest);
}

static frit_status limit_pixtral(const frit_checkpoint *ckpt, frit_processor *p)
{
    return get_u32(ckpt, "clip.vision.image_size", FRIT_MAX_TILE_SIDE, &p->longest);
}

// The limits that Qwen publishes, in tokens.
static frit_status limit_pixels(frit_processor *p, uint64_t n_least)
{
    const uint64_t side = (uint64_t)p->patch * p->merge;
    p->min_pixels = n_least * side * side;
    p->max_pixels = 16384 * side * side;
    return FRIT_OK;
}

static frit_status limit_qwen2(const frit_checkpoint *ckpt, frit_processor *p)
{
    (void)ckpt;
    return limit_pixels(p, 4);
}

static frit_status limit_qwen3(const frit_checkpoint *ckpt, frit_processor *p)
{
    (void)ckpt;
    return limit_pixels(p, 64);
}

static frit_status limit_gemma3(const frit_checkpoint *ckpt, frit_processor *p)
{
    FRIT_TRY(limit_tiles(ckpt, p));
    const uint32_t side = p->width / p->patch / p->merge;
    p->soft_per_tile = side * side;
    if (side > 0) return FRIT_OK;
    return frit_fail_file(FRIT_E_FORMAT, "%s: pictures of %u pixels on a side, expected at least %u", ckpt->path,
                          (unsigned)p->width, (unsigned)(p->patch * p->merge));
}

static const mmproj_name idefics3_names[] = {{.from = "mm.model.fc", .to = "merge_out"}};
static const mmproj_name llama4_names[] = {{.from = "mm.model.mlp.1", .to = "merge_in"},
                                           {.from = "mm.model.mlp.2", .to = "merge_mid"},
                                           {.from = "mm.model.fc", .to = "merge_out"}};
static const mmproj_name pixtral_names[] = {{.from = "mm.input_norm", .to = "output_norm"},
                                            {.from = "mm.patch_merger", .to = "merge_squares"},
                                            {.from = "mm.1", .to = "merge_in"},
                                            {.from = "mm.2", .to = "merge_out"}};
static const mmproj_name qwen_names[] = {{.from = "mm.0", .to = "merge_in"}, {.from = "mm.2", .to = "merge_out"}};

static const mmproj_name gemma3_names[] = {{.from = "mm.soft_emb_norm", .to = "mean_norm"},
                                           {.from = "mm.input_projection", .to = "merge_out", .is_transposed = true}};
static const mmproj_name gemma4_names[] = {{.from = "mm.input_projection", .to = "merge_out"},
                                           {.from = "v.blk.*.attn_post_norm", .to = "blk.*.post_attention_norm"},
                                           {.from = "v.blk.*.ffn_post_norm", .to = "blk.*.post_ffw_norm"},
                                           {.from = "v.blk.*.attn_q_norm", .to = "blk.*.attn_q_norm"},
                                           {.from = "v.blk.*.attn_k_norm", .to = "blk.*.attn_k_norm"},
                                           {.from = "v.std_bias", .to = "std_bias.weight", .is_whole = true},
                                           {.from = "v.std_scale", .to = "std_scale.weight", .is_whole = true}};

#define SCALE_FACTOR "clip.vision.projector.scale_factor"
#define NAMES(list)  .names = list, .n_names = FRIT_COUNT(list)

// clang-format off
static const mmproj_kind kinds[] = {
    {.name = "gemma3", .arch = "gemma3_vision", .processor = "Gemma3ImageProcessor", .merge_key = SCALE_FACTOR,
     .merge = 4, .acts = "clip.use_gelu", NAMES(gemma3_names), .more = add_positions, .limit = limit_gemma3},
    {.name = "gemma4v", .arch = "gemma4_vision", .processor = "Gemma4ImageProcessor", .merge = 3, NAMES(gemma4_names),
     .more = add_gemma4},
    {.name = "idefics3", .arch = "idefics3_vision", .processor = "Idefics3ImageProcessor", .merge_key = SCALE_FACTOR,
     .acts = "clip.use_gelu", NAMES(idefics3_names), .more = add_positions, .limit = limit_idefics3},
    {.name = "llama4", .arch = "llama4_vision", .processor = "Llama4ImageProcessor", .merge_key = SCALE_FACTOR,
     .acts = "clip.use_gelu", NAMES(llama4_names), .more = add_llama4, .limit = limit_tiles},
    {.name = "pixtral", .arch = "mistral3_vision", .processor = "PixtralImageProcessor",
     .merge_key = "clip.vision.spatial_merge_size", .acts = "clip.use_gelu|clip.use_silu", NAMES(pixtral_names),
     .more = add_pixtral, .limit = limit_pixtral},
    {.name = "qwen2vl_merger", .arch = "qwen2_vl_vision", .processor = "Qwen2VLImageProcessor", .merge = 2,
     NAMES(qwen_names), .more = add_rope, .limit = limit_qwen2},
    {.name = "qwen2.5vl_merger", .arch = "qwen2_5_vl_vision", .processor = "Qwen2VLImageProcessor", .merge = 2,
     .acts = "clip.use_silu", NAMES(qwen_names), .more = add_qwen2_5, .limit = limit_qwen2},
    {.name = "qwen3vl_merger", .arch = "qwen3_vl_vision", .processor = "Qwen2VLImageProcessor",
     .merge_key = "clip.vision.spatial_merge_size", .merge = 2, .acts = "clip.use_gelu", NAMES(qwen_names),
     .more = add_qwen3, .limit = limit_qwen3},
};
// clang-format on

static frit_status find_kind(const frit_checkpoint *ckpt, const mmproj_kind **out)
{
    frit_str kind = {0};
    bool found, has_vision = true;
    FRIT_TRY(frit_meta_get_bool(&ckpt->meta, "clip.has_vision_encoder", &has_vision, NULL));
    FRIT_TRY(frit_meta_get_text(&ckpt->meta, "clip.vision.projector_type", &kind, &found));
    if (!found) FRIT_TRY(frit_meta_get_text(&ckpt->meta, "clip.projector_type", &kind, &found));
    if (!has_vision || !found)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: has no %s, expected an encoder of pictures", ckpt->path,
                              has_vision ? "clip.projector_type" : "vision encoder");
    for (size_t i = 0; i < FRIT_COUNT(kinds); i++) {
        *out = &kinds[i];
        if (frit_str_is(kind, kinds[i].name)) return FRIT_OK;
    }
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: encoders of the kind '%.*s' (clip.projector_type) are not supported",
                          ckpt->path, (int)(kind.len < 64 ? kind.len : 64), kind.ptr);
}

// ------------------------------------------------------------------------------- keys

// Writes the activation if the kind allows several; the others are those of their architecture.
static frit_status check_act(const mmproj *m)
{
    static const char *const keys[] = {"clip.use_gelu", "clip.use_silu"}, *const acts[] = {"gelu", "silu"};
    const char *allowed = m->kind->acts, *found = NULL;
    for (size_t i = 0; i < FRIT_COUNT(keys); i++) {
        bool is_set = false;
        FRIT_TRY(frit_meta_get_bool(&m->ckpt->meta, keys[i], &is_set, NULL));
        if (is_set && (found || !allowed || !strstr(allowed, keys[i])))
            return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %s is true, expected %s for the kind '%s'", m->ckpt->path,
                                  keys[i], allowed ? allowed : "no such key", m->kind->name);
        if (is_set) found = acts[i];
    }
    if (!found && allowed)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: no activation is set, expected %s for the kind '%s'",
                              m->ckpt->path, allowed, m->kind->name);
    return found && strchr(allowed, '|') ? frit_meta_add_text(&m->ckpt->meta, "frit.act", found) : FRIT_OK;
}

static frit_status add_shapes(const mmproj *m)
{
    int64_t n_embd = 0, n_head = 0, n_out = 0, n_ff, n_layer = 0;
    uint32_t merge;
    const frit_tensor *patch = frit_checkpoint_find(m->ckpt, "patch_embd.weight");
    FRIT_TRY(get_count(m->ckpt, "clip.vision.embedding_length", 1, 1 << 20, &n_embd));
    FRIT_TRY(get_count(m->ckpt, "clip.vision.attention.head_count", 1, 1 << 16, &n_head));
    FRIT_TRY(get_count(m->ckpt, "clip.vision.projection_dim", 1, 1 << 20, &n_out));
    FRIT_TRY(get_count(m->ckpt, "clip.vision.block_count", 1, 1024, &n_layer));
    FRIT_TRY(get_merge(m->ckpt, m->kind, &merge));
    FRIT_TRY(count_rows(m, "blk.0.ffn_up.weight", &n_ff));   // some files have another number in their key
    if (!patch || patch->n_dims != 2)
        return frit_fail_file(FRIT_E_FORMAT, "%s: tensor 'v.patch_embd.weight' is missing, or no matrix or filter",
                              m->ckpt->path);
    if (n_embd % n_head != 0 || n_embd / n_head % 2 != 0)
        return frit_fail_file(
            FRIT_E_FORMAT, "%s: clip.vision.embedding_length is %lld, expected an even number for each of %lld heads",
            m->ckpt->path, (long long)n_embd, (long long)n_head);
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {
        {"context_length", 1 << 20},
        {"embedding_length", n_embd},
        {"block_count", n_layer},
        {"attention.head_count", n_head},
        {"attention.head_count_kv", n_head},
        {"attention.key_length", n_embd / n_head},
        {"attention.value_length", n_embd / n_head},
        {"feed_forward_length", n_ff},
        {"embedding_length_input", patch->shape[1]},
        {"embedding_length_out", n_out},
        {"spatial_merge_size", merge},
    };
    for (size_t i = 0; i < FRIT_COUNT(counts); i++) FRIT_TRY(add_count(m, counts[i].key, counts[i].value));
    return FRIT_OK;
}

static frit_status add_keys(const mmproj *m)
{
    double eps = 0;
    FRIT_TRY(add_shapes(m));
    FRIT_TRY(check_act(m));
    FRIT_TRY(frit_meta_get_f64(&m->ckpt->meta, "clip.vision.attention.layer_norm_epsilon", &eps, NULL));
    FRIT_TRY(add_real(m, "attention.layer_norm_epsilon", eps));
    FRIT_TRY(add_real(m, "attention.layer_norm_rms_epsilon", eps));
    FRIT_TRY(frit_meta_remove(&m->ckpt->meta, "general.architecture"));
    FRIT_TRY(frit_meta_add_text(&m->ckpt->meta, "general.architecture", m->kind->arch));
    return m->kind->more ? m->kind->more(m) : FRIT_OK;
}

frit_status frit_mmproj_respell(frit_checkpoint *ckpt)
{
    mmproj m = {.ckpt = ckpt};
    frit_str arch = {0};
    FRIT_TRY(frit_meta_get_text(&ckpt->meta, "general.architecture", &arch, NULL));
    if (!frit_str_is(arch, "clip"))
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: general.architecture is '%.*s', expected 'clip', an encoder of pictures", ckpt->path,
                              (int)(arch.len < 64 ? arch.len : 64), arch.ptr ? arch.ptr : "");
    FRIT_TRY(find_kind(ckpt, &m.kind));
    FRIT_TRY(frit_mmproj_rename(&m));
    return add_keys(&m);
}

// ------------------------------------------------------------------------------- processor

static frit_status get_colors(const frit_checkpoint *ckpt, const char *key, double low, float out[3])
{
    const frit_value *list = frit_meta_find(&ckpt->meta, key);
    if (!list) return FRIT_OK;
    const bool is_list = list->type == FRIT_VALUE_ARRAY && list->array.n == 3 &&
                         (list->array.type == FRIT_VALUE_F32 || list->array.type == FRIT_VALUE_F64);
    for (uint64_t i = 0; i < 3; i++) {
        const double value = is_list ? frit_value_item_f64(list, i) : NAN;
        if (!(value >= low) || value > 1e6)
            return frit_fail_file(FRIT_E_FORMAT, "%s: metadata key '%s' is bad, expected three numbers from %g",
                                  ckpt->path, key, low);
        out[i] = (float)value;
    }
    return FRIT_OK;
}

frit_status frit_mmproj_processor(frit_processor *p, const frit_checkpoint *ckpt)
{
    const mmproj_kind *kind;
    FRIT_TRY(find_kind(ckpt, &kind));
    FRIT_TRY(frit_processor_of_type(p, kind->processor));
    FRIT_TRY(get_u32(ckpt, "clip.vision.patch_size", MAX_PATCH, &p->patch));
    FRIT_TRY(get_merge(ckpt, kind, &p->merge));
    if (p->rule == FRIT_RULE_SMART) p->block = p->merge;
    FRIT_TRY(get_colors(ckpt, "clip.vision.image_mean", -1e6, p->mean));
    FRIT_TRY(get_colors(ckpt, "clip.vision.image_std", 1e-6, p->deviation));
    if (kind->limit) FRIT_TRY(kind->limit(ckpt, p));
    return frit_fail_in(ckpt->path, frit_processor_check(p));
}
