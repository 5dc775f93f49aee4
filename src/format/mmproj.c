// SPDX-License-Identifier: MIT
// mmproj files: a row for each kind of encoder, with its tensors, its keys and its processor.
#include "format/mmproj.h"

#include "format/processor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// A tensor "FROM.weight", which may have a bias. '*' is the layer.
typedef struct mmproj_name {
    const char *from, *to;
} mmproj_name;

typedef struct mmproj mmproj;

typedef struct mmproj_kind {
    const char *name;        // clip.projector_type
    const char *arch;        // the encoder
    const char *processor;   // image_processor_type of folders
    const char *merge_key;   // patches on a side of a block; NULL: 2
    const char *acts;        // flags that it may have, of which one is set: "clip.use_gelu"; NULL: none is set
    const mmproj_name *names;
    size_t n_names;
    frit_status (*more)(const mmproj *m);   // writes more keys; may be NULL
    // Sets what the file says of the processor besides patches and colors; may be NULL.
    frit_status (*limit)(const frit_checkpoint *ckpt, frit_processor *p);
} mmproj_kind;

struct mmproj {
    frit_checkpoint *ckpt;
    const mmproj_kind *kind;
};

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
    *out = 2;
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
    char text[128];
    FRIT_TRY(get_count(m->ckpt, "clip.vision.block_count", 1, 1024, &n_layer));
    FRIT_TRY(get_count(m->ckpt, "clip.vision.n_wa_pattern", 1, 1024, &period));
    FRIT_TRY(get_count(m->ckpt, "clip.vision.patch_size", 1, MAX_PATCH, &patch));
    const uint32_t window = (uint32_t)(112 / 2 / patch);
    uint32_t *windows = frit_arena_new(&m->ckpt->arena, uint32_t, (size_t)n_layer);
    key_of(m, "attention.sliding_window", text);
    const char *key = frit_arena_text(&m->ckpt->arena, text, strlen(text));
    if (!windows || !key) return frit_fail_memory((size_t)n_layer * sizeof *windows, "the windows of layers");
    for (int64_t i = 0; i < n_layer; i++) windows[i] = (i + 1) % period == 0 ? 0 : window > 0 ? window : 1;
    const frit_value list = {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_U32, (uint64_t)n_layer, windows}};
    FRIT_TRY(frit_meta_add(&m->ckpt->meta, frit_str_of(key), list));
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

static frit_status limit_qwen(const frit_checkpoint *ckpt, frit_processor *p)
{
    const uint64_t side = (uint64_t)p->patch * p->merge;
    (void)ckpt;
    p->min_pixels = 4 * side * side;
    p->max_pixels = 16384 * side * side;
    return FRIT_OK;
}

static const mmproj_name idefics3_names[] = {{"mm.model.fc", "merge_out"}};
static const mmproj_name llama4_names[] = {
    {"mm.model.mlp.1", "merge_in"}, {"mm.model.mlp.2", "merge_mid"}, {"mm.model.fc", "merge_out"}};
static const mmproj_name pixtral_names[] = {{"mm.input_norm", "output_norm"},
                                            {"mm.patch_merger", "merge_squares"},
                                            {"mm.1", "merge_in"},
                                            {"mm.2", "merge_out"}};
static const mmproj_name qwen_names[] = {{"mm.0", "merge_in"}, {"mm.2", "merge_out"}};

#define SCALE_FACTOR "clip.vision.projector.scale_factor"
#define NAMES(list)  .names = list, .n_names = FRIT_COUNT(list)

// clang-format off
static const mmproj_kind kinds[] = {
    {.name = "idefics3", .arch = "idefics3_vision", .processor = "Idefics3ImageProcessor", .merge_key = SCALE_FACTOR,
     .acts = "clip.use_gelu", NAMES(idefics3_names), .more = add_positions, .limit = limit_idefics3},
    {.name = "llama4", .arch = "llama4_vision", .processor = "Llama4ImageProcessor", .merge_key = SCALE_FACTOR,
     .acts = "clip.use_gelu", NAMES(llama4_names), .more = add_llama4, .limit = limit_tiles},
    {.name = "pixtral", .arch = "mistral3_vision", .processor = "PixtralImageProcessor",
     .merge_key = "clip.vision.spatial_merge_size", .acts = "clip.use_gelu|clip.use_silu", NAMES(pixtral_names),
     .more = add_pixtral, .limit = limit_pixtral},
    {.name = "qwen2vl_merger", .arch = "qwen2_vl_vision", .processor = "Qwen2VLImageProcessor", NAMES(qwen_names),
     .more = add_rope, .limit = limit_qwen},
    {.name = "qwen2.5vl_merger", .arch = "qwen2_5_vl_vision", .processor = "Qwen2VLImageProcessor",
     .acts = "clip.use_silu", NAMES(qwen_names), .more = add_qwen2_5, .limit = limit_qwen},
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

// ------------------------------------------------------------------------------- tensors

static const mmproj_name shared_names[] = {
    {"v.patch_embd", "patch_embd"},
    {"v.position_embd", "position_embd"},
    {"v.pre_ln", "input_norm"},
    {"v.post_ln", "output_norm"},
    {"v.blk.*.ln1", "blk.*.attn_norm"},
    {"v.blk.*.attn_q", "blk.*.attn_q"},
    {"v.blk.*.attn_k", "blk.*.attn_k"},
    {"v.blk.*.attn_v", "blk.*.attn_v"},
    {"v.blk.*.attn_qkv", "blk.*.attn_qkv"},
    {"v.blk.*.attn_out", "blk.*.attn_output"},
    {"v.blk.*.attn_post_norm", "blk.*.ffn_norm"},
    {"v.blk.*.ln2", "blk.*.ffn_norm"},
    {"v.blk.*.ffn_gate", "blk.*.ffn_gate"},
    {"v.blk.*.ffn_up", "blk.*.ffn_up"},
    {"v.blk.*.ffn_down", "blk.*.ffn_down"},
};

// Matches "v.blk.12.ln1.bias" with "v.blk.*.ln1". Returns the rest, ".bias"; NULL: no match.
static const char *match(const char *name, const char *pattern, const char **layer, int *n_layer)
{
    *layer = "", *n_layer = 0;
    for (; *pattern; pattern++) {
        if (*pattern != '*') {
            if (*name++ != *pattern) return NULL;
            continue;
        }
        *n_layer = (int)strspn(name, "0123456789");
        *layer = name;
        name += *n_layer;
        if (*n_layer == 0) return NULL;
    }
    return strcmp(name, ".weight") == 0 || strcmp(name, ".bias") == 0 ? name : NULL;
}

static const char *rename_by(frit_arena *arena, const char *name, const mmproj_name *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *layer, *star = strchr(rows[i].to, '*');
        int n_layer;
        const char *rest = match(name, rows[i].from, &layer, &n_layer);
        char text[256];
        if (!rest || n_layer > 9) continue;
        if (star)
            snprintf(text, sizeof text, "%.*s%.*s%s%s", (int)(star - rows[i].to), rows[i].to, n_layer, layer, star + 1,
                     rest);
        else
            snprintf(text, sizeof text, "%s%s", rows[i].to, rest);
        return frit_arena_text(arena, text, strlen(text));
    }
    return frit_arena_text(arena, name, strlen(name));   // the encoder's weight list refuses it
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

// Filters become rows.
static void flatten(frit_tensor *tensor)
{
    for (int i = 2; i < tensor->n_dims; i++) tensor->shape[1] *= tensor->shape[i], tensor->shape[i] = 1;
    if (tensor->n_dims > 2) tensor->n_dims = 2;
}

// Joins the filters of two frames, [out, color, y, x] each: row o has for each color both frames.
static frit_status join_frames(const mmproj *m, frit_tensor *first, const frit_tensor *second)
{
    const int64_t *shape = first->shape, n_out = shape[0], n_color = shape[1], area = shape[2] * shape[3];
    if (first->n_dims != 4 || memcmp(shape, second->shape, sizeof first->shape) != 0)
        return frit_fail_file(FRIT_E_FORMAT, "%s: tensors '%s' and '%s' have different shapes, expected equal filters",
                              m->ckpt->path, first->name, second->name);
    const size_t n = (size_t)frit_tensor_n_elems(first);
    float *values = frit_arena_new(&m->ckpt->arena, float, 2 * n), *parts = calloc(2 * n, sizeof *parts);
    frit_status status = values && parts ? FRIT_OK : frit_fail_memory(2 * n * sizeof *values, first->name);
    if (status == FRIT_OK) status = frit_tensor_decode_rows(first, 0, (int64_t)n / shape[3], parts);
    if (status == FRIT_OK) status = frit_tensor_decode_rows(second, 0, (int64_t)n / shape[3], parts + n);
    for (int64_t i = 0; i < 2 * n_out * n_color && status == FRIT_OK; i++)
        memcpy(values + i * area, parts + (i % 2) * (int64_t)n + i / 2 * area, (size_t)area * sizeof *values);
    free(parts);
    FRIT_TRY(status);
    *first = (frit_tensor){.name = first->name,
                           .dtype = FRIT_DTYPE_F32,
                           .n_dims = 2,
                           .shape = {n_out, 2 * n_color * area, 1, 1},
                           .data = values,
                           .n_bytes = 2 * n * sizeof *values};
    return FRIT_OK;
}

static frit_status add_tensor(const mmproj *m, frit_tensor tensor, const frit_tensor *second_frame)
{
    frit_arena *arena = &m->ckpt->arena;
    const char *old = tensor.name;
    if (strcmp(old, "v.patch_embd.weight") == 0 && second_frame)
        FRIT_TRY(join_frames(m, &tensor, second_frame));
    else if (strcmp(old, "v.patch_embd.weight") == 0)
        flatten(&tensor);
    tensor.name = rename_by(arena, old, m->kind->names, m->kind->n_names);
    if (tensor.name && strcmp(tensor.name, old) == 0)
        tensor.name = rename_by(arena, old, shared_names, FRIT_COUNT(shared_names));
    if (strcmp(old, "v.class_embd") == 0) tensor.name = "class_embd.weight";
    if (!tensor.name) return frit_fail_memory(strlen(old), "a tensor name");
    return frit_checkpoint_add_tensor(m->ckpt, &tensor);
}

// Lists the tensors again by their new names, without those of an encoder of sounds.
static frit_status rename_tensors(const mmproj *m)
{
    frit_checkpoint *ckpt = m->ckpt;
    const size_t n = ckpt->n_tensors;
    const frit_tensor *second = frit_checkpoint_find(ckpt, "v.patch_embd.weight.1");
    frit_tensor *old = calloc(n + 1, sizeof *old), copy = {0};
    if (!old) return frit_fail_memory(n * sizeof *old, "the tensors of an encoder");
    if (n > 0) memcpy(old, ckpt->tensors, n * sizeof *old);
    if (second) copy = *second;
    ckpt->n_tensors = 0;
    frit_map_free(&ckpt->tensor_index);
    frit_status status = FRIT_OK;
    for (size_t i = 0; i < n && status == FRIT_OK; i++) {
        const bool is_sound = starts_with(old[i].name, "a.") || starts_with(old[i].name, "mm.a.");
        if (is_sound || strcmp(old[i].name, "v.patch_embd.weight.1") == 0) continue;
        status = add_tensor(m, old[i], second ? &copy : NULL);
    }
    free(old);
    return status;
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
    FRIT_TRY(rename_tensors(&m));
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
