// SPDX-License-Identifier: MIT
// Adapters as PEFT saves them:
//
//     adapter_config.json          {"peft_type": "LORA", "r": 16, "lora_alpha": 32, ...}
//     adapter_model.safetensors    base_model.model.MODULE.lora_A.weight [r, in], .lora_B.weight [out, r]
//                                  base_model.model.MODULE.lora_embedding_A [r, tokens], .lora_embedding_B [out, r]
//                                  base_model.model.MODULE.lora_magnitude_vector [out] (DoRA)
//                                  base_model.model.MODULE.base_layer.weight: the model's own, which is not read
//                                  base_model.model.MODULE.base_layer.bias [out]: instead of the model's own
//                                  base_model.model.MODULE.weight: a whole matrix (modules_to_save)
//                                  base_model.model.MODULE.token_adapter.trainable_tokens_delta [n, width]: whole rows
//                                  base_model.model.MODULE.ia3_l [out, 1], [1, in]: factors (IA3)
//
// MODULE is named as in the model's own folder, so the rows of its family give the GGUF name; experts become stacks.
// The family is the first one of the model's architecture that has rows for all modules. An adapter of all experts at
// once (target_parameters) names the first parameter of a layer "experts.base_layer" and the second one "experts".
#include "format/adapter_peft.h"

#include "base/check.h"
#include "base/grow.h"
#include "format/json.h"
#include "format/safetensors.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char config_name[] = "adapter_config.json";
static const char prefix[] = "base_model.model.";

// ------------------------------------------------------------------------------- configuration

static frit_status refuse(const peft *p, const char *what)
{
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s/%s: %s", p->file->ckpt->path, config_name, what);
}

static bool is_set(const json_t *value)
{
    if (!value || json_is_null(value) || json_is_false(value)) return false;
    return !(json_is_array(value) && json_array_size(value) == 0) &&
           !(json_is_object(value) && json_object_size(value) == 0);
}

static frit_status read_config(peft *p)
{
    static const struct {
        const char *key, *sentence;
    } unknown[] = {
        {"lora_bias", "lora_bias: adapters with biases are not supported"},
        {"alora_invocation_tokens", "alora_invocation_tokens: adapters that start at certain tokens are not "
                                    "supported"},
        {"layer_replication", "layer_replication: adapters that repeat layers are not supported"},
    };
    const char *folder = p->file->ckpt->path;
    const char *type = json_string_value(json_object_get(p->config, "peft_type"));
    const json_t *r = json_object_get(p->config, "r"), *alpha = json_object_get(p->config, "lora_alpha");
    p->is_ia3 = type && strcmp(type, "IA3") == 0;
    if (!type || (strcmp(type, "LORA") != 0 && !p->is_ia3))
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s/%s: peft_type is '%.40s', only LORA and IA3 are supported",
                              folder, config_name, type ? type : "absent");
    for (size_t i = 0; i < FRIT_COUNT(unknown); i++)
        if (is_set(json_object_get(p->config, unknown[i].key))) return refuse(p, unknown[i].sentence);
    if (p->is_ia3) return FRIT_OK;
    p->r = json_number_value(r);
    p->alpha = json_is_null(alpha) || !alpha ? 8 : json_number_value(alpha);
    if (!(p->r >= 1 && p->r <= 1 << 16) || floor(p->r) != p->r)
        return frit_fail_file(FRIT_E_FORMAT, "%s/%s: r is %g, expected a rank from 1 to 65536", folder, config_name,
                              p->r);
    if (!(fabs(p->alpha) < 1e9) || (alpha && !json_is_null(alpha) && !json_is_number(alpha)))
        return frit_fail_file(FRIT_E_FORMAT, "%s/%s: lora_alpha is not a number", folder, config_name);
    p->by_root = json_is_true(json_object_get(p->config, "use_rslora"));
    p->is_dora = json_is_true(json_object_get(p->config, "use_dora"));
    p->has_parameters = is_set(json_object_get(p->config, "target_parameters"));
    p->file->alpha = (float)p->alpha;
    return FRIT_OK;
}

// A key of a pattern is a regular expression for a module's name, or its last parts after a dot.
static frit_status fits_key(const peft *p, const char *pattern, const char *module, const char *key, bool *fits)
{
    enum { MATCH_LIMIT = 100000 };
    frit_buf text = {0};
    int error;
    size_t at;
    frit_buf_printf(&text, "\\A(?:.*\\.)?(?:%s)\\z", key);
    if (text.failed) return frit_fail_memory(text.len, "a pattern");
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)text.data, text.len, PCRE2_UTF, &error, &at, NULL);
    pcre2_match_data *data = code ? pcre2_match_data_create_from_pattern(code, NULL) : NULL;
    pcre2_match_context *limits = data ? pcre2_match_context_create(NULL) : NULL;
    int found = PCRE2_ERROR_NOMEMORY;
    if (limits) {
        pcre2_set_match_limit(limits, MATCH_LIMIT);
        found = pcre2_match(code, (PCRE2_SPTR)module, strlen(module), 0, 0, data, limits);
    }
    const bool is_bad = !code || (found < 0 && found != PCRE2_ERROR_NOMATCH && found != PCRE2_ERROR_NOMEMORY);
    pcre2_match_context_free(limits);
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    frit_buf_free(&text);
    if (is_bad)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s/%s: %s: '%.60s' is not a regular expression that can be matched",
                              p->file->ckpt->path, config_name, pattern, key);
    *fits = found > 0;
    return found == PCRE2_ERROR_NOMEMORY ? frit_fail_memory(strlen(key), "a pattern") : FRIT_OK;
}

static frit_status find_in_pattern(const peft *p, const char *name, const char *module, double *out)
{
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)(uintptr_t)json_object_get(p->config, name), key, value)
    {
        bool fits;
        FRIT_TRY(fits_key(p, name, module, key, &fits));
        if (!fits) continue;
        if (!json_is_number(value) || !(fabs(json_number_value(value)) < 1e9))
            return frit_fail_file(FRIT_E_FORMAT, "%s/%s: %s: '%.60s' is not a number", p->file->ckpt->path, config_name,
                                  name, key);
        *out = json_number_value(value);
        return FRIT_OK;
    }
    return FRIT_OK;
}

static frit_status scale_of(const peft *p, const char *module, int64_t rank, float *scale)
{
    double alpha = p->alpha, r = p->r;
    FRIT_TRY(find_in_pattern(p, "alpha_pattern", module, &alpha));
    FRIT_TRY(find_in_pattern(p, "rank_pattern", module, &r));
    if (r != (double)rank)
        return frit_fail_file(FRIT_E_FORMAT, "%s: the adapter of '%s' has the rank %lld, but %s says %g",
                              p->file->ckpt->path, module, (long long)rank, config_name, r);
    *scale = (float)(alpha / (p->by_root ? sqrt(r) : r));
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- tensors

// Splits "base_model.model.MODULE.lora_A.weight": returns the side, and the end of MODULE.
static char side_of(const char *name, size_t *n_module, bool *is_table)
{
    static const struct {
        const char *suffix;
        char side;
        bool is_table;
    } sides[] = {{".lora_A.weight", 'a', false},
                 {".lora_B.weight", 'b', false},
                 {".lora_embedding_A", 'a', true},
                 {".lora_embedding_B", 'b', true},
                 {".lora_magnitude_vector", 'm', false},
                 {".lora_magnitude_vector.weight", 'm', false},
                 {".base_layer.weight", '-', false},
                 {".base_layer.bias", 'c', false},
                 {".ia3_l", 'l', false},
                 {".token_adapter.trainable_tokens_delta", 't', false},
                 {".token_adapter.base_layer.weight", '-', false}};
    const size_t n = strlen(name), n_prefix = sizeof prefix - 1;
    for (size_t i = 0; i < FRIT_COUNT(sides); i++) {
        const size_t n_suffix = strlen(sides[i].suffix);
        if (n <= n_prefix + n_suffix || strncmp(name, prefix, n_prefix) != 0) continue;
        if (strcmp(name + n - n_suffix, sides[i].suffix) != 0) continue;
        *n_module = n - n_prefix - n_suffix;
        *is_table = sides[i].is_table;
        return sides[i].side;
    }
    const size_t n_suffix = strlen(".weight");
    if (n <= n_prefix + n_suffix || strncmp(name, prefix, n_prefix) != 0 || strcmp(name + n - n_suffix, ".weight") != 0)
        return 0;
    *n_module = n - n_prefix - n_suffix;
    *is_table = false;
    return strstr(name, ".lora_") ? 0 : 'w';
}

// In a multimodal model "language_model.model.norm" or "model.language_model.norm" is "model.norm" of the text model.
static const char *name_in_text_model(frit_arena *arena, const char *name)
{
    static const struct {
        const char *there, *here;
    } prefixes[] = {{"model.language_model.model.", "model."},
                    {"model.language_model.", "model."},
                    {"language_model.model.", "model."},
                    {"language_model.lm_head", "lm_head"},
                    {"language_model.", "model."},
                    {"model.text_model.", "model."}};
    for (size_t i = 0; i < FRIT_COUNT(prefixes); i++) {
        const size_t n = strlen(prefixes[i].there), n_here = strlen(prefixes[i].here), n_rest = strlen(name);
        if (strncmp(name, prefixes[i].there, n) != 0) continue;
        char *copy = frit_arena_alloc(arena, n_here + n_rest + 1, 1);
        if (copy) snprintf(copy, n_here + n_rest + 1, "%s%s", prefixes[i].here, name + n);
        return copy;
    }
    return name;
}

// True for modules of image and sound encoders and their projectors, which read no text.
static bool is_of_encoder(const char *name)
{
    static const char *const parts[] = {
        "vision_tower.", "vision_model.", "visual.",       "vision_encoder.", "audio_tower.",          "audio_model.",
        "embed_vision.", "embed_audio.",  "mm_projector.", "connector.",      "multi_modal_projector."};
    if (strncmp(name, "model.", 6) == 0) name += 6;
    for (size_t i = 0; i < FRIT_COUNT(parts); i++)
        if (strncmp(name, parts[i], strlen(parts[i])) == 0) return true;
    return false;
}

// "model.layers.3.mlp.experts" or "...experts.base_layer".
static bool is_all_experts(const char *name)
{
    const char *at = strstr(name, ".experts");
    return at && (strcmp(at, ".experts") == 0 || strcmp(at, ".experts.base_layer") == 0);
}

static frit_status add_module(peft *p, const char *name, bool is_table, peft_module **out)
{
    FRIT_TRY(FRIT_GROW_IN(&p->file->ckpt->arena, p->modules, p->capacity, p->n + 1, "an adapter"));
    if (!frit_map_put(&p->index, frit_str_of(name), (int64_t)p->n)) return frit_fail_memory(64, "a module's name");
    *out = &p->modules[p->n++];
    **out = (peft_module){.name = name_in_text_model(&p->file->ckpt->arena, name), .full = name, .is_table = is_table};
    if (!(*out)->name) return frit_fail_memory(strlen(name), "a module's name");
    (*out)->is_parameter = p->has_parameters && is_all_experts((*out)->name);
    return FRIT_OK;
}

// Stores magnitudes or biases as one column; published adapters have [out], [1, out] or [out, 1].
static frit_status take_column(const peft_module *m, frit_tensor *out, const frit_tensor *tensor,
                               const frit_safetensors_entry *entry)
{
    const int64_t n = frit_tensor_n_elems(tensor);
    bool is_vector = tensor->n_dims > 0 && tensor->n_dims <= 2 && frit_dtype_get(tensor->dtype)->block_elems == 1;
    for (int i = 0; i < tensor->n_dims; i++) is_vector = is_vector && (tensor->shape[i] == 1 || tensor->shape[i] == n);
    if (!is_vector || m->is_table)
        return frit_fail_file(m->is_table ? FRIT_E_UNSUPPORTED : FRIT_E_FORMAT, "%s: tensor '%s': %s", entry->path,
                              entry->name,
                              m->is_table ? "magnitudes (DoRA) of embeddings are not supported"
                                          : "expected a vector in a plain number format");
    *out = *tensor;
    out->n_dims = 2;
    out->shape[0] = n;
    out->shape[1] = 1;
    return FRIT_OK;
}

static frit_status take(void *ctx, const frit_safetensors_entry *entry)
{
    peft *p = ctx;
    size_t n;
    bool is_table;
    const char side = side_of(entry->name, &n, &is_table);
    if (side == '-') return FRIT_OK;
    if (!side)
        return frit_fail_file(
            FRIT_E_UNSUPPORTED,
            "%s: tensor '%s' is not one of a low-rank pair (%sMODULE.lora_A.weight and .lora_B.weight)", entry->path,
            entry->name, prefix);
    const char *name = frit_arena_text(&p->file->ckpt->arena, entry->name + sizeof prefix - 1, n);
    if (!name) return frit_fail_memory(n, "a module's name");
    if (is_of_encoder(name)) {
        if (p->n_left_out++ == 0) p->left_out = name;
        return FRIT_OK;
    }
    int64_t at;
    peft_module *m = frit_map_get(&p->index, frit_str_of(name), &at) ? &p->modules[at] : NULL;
    if (!m) FRIT_TRY(add_module(p, name, is_table, &m));
    if (is_table) m->is_table = true;
    frit_tensor tensor;
    FRIT_TRY(frit_safetensors_to_tensor(entry, &tensor));
    if (side == 'm') return take_column(m, &m->m, &tensor, entry);
    if (side == 'c') return take_column(m, &m->bias, &tensor, entry);
    if (tensor.n_dims != 2 || (m->is_table != is_table && (side == 'a' || side == 'b')) ||
        frit_dtype_get(tensor.dtype)->block_elems != 1)
        return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' is not a matrix in a plain number format", entry->path,
                              entry->name);
    *(side == 'a'   ? &m->a
      : side == 'b' ? &m->b
      : side == 'w' ? &m->whole
      : side == 't' ? &m->tokens
                    : &m->factors) = tensor;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- into GGUF's form

static frit_status has_all(peft *p, bool *out, const char **missing)
{
    *out = true;
    for (size_t i = 0; i < p->n && *out; i++) {
        char name[256];
        if (p->modules[i].is_parameter) continue;
        snprintf(name, sizeof name, "%s.weight", p->modules[i].name);
        FRIT_TRY(frit_hf_find_matrix(&p->hf, name, &p->modules[i].matrix));
        *out = p->modules[i].matrix.row != NULL;
        if (!*out) *missing = p->modules[i].name;
    }
    return FRIT_OK;
}

static frit_status find_family(peft *p)
{
    frit_str arch = {"", 0};
    const char *missing = NULL;
    size_t n_families = 0;
    FRIT_TRY(frit_meta_get_text(&p->base->meta, "general.architecture", &arch, NULL));
    for (size_t i = 0; (p->hf.family = frit_hf_family_get(i)); i++) {
        bool fits;
        if (!frit_str_is(arch, p->hf.family->arch)) continue;
        n_families++;
        FRIT_TRY(has_all(p, &fits, &missing));
        if (fits) return FRIT_OK;
    }
    if (n_families == 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: no module names are known for the architecture '%.*s' of %s",
                              p->file->ckpt->path, (int)(arch.len < 60 ? arch.len : 60), arch.ptr, p->base->path);
    return frit_fail_file(FRIT_E_INVALID, "%s: the adapter is for the module '%s', which %s (%.*s) does not have",
                          p->file->ckpt->path, missing, p->base->path, (int)(arch.len < 60 ? arch.len : 60), arch.ptr);
}

// Rows of b are rows of the matrix, so b gets the matrix's row order; columns are never reordered. PEFT stores a matrix
// that the folder stores transposed in the ordinary order.
static frit_status rewrite(peft *p, peft_module *m)
{
    const frit_hf_tensor *row = m->matrix.row;
    char name[160];
    snprintf(name, sizeof name, "%.*s.multiplier", (int)(strlen(m->matrix.name) - strlen(".weight")), m->matrix.name);
    if (frit_checkpoint_find(p->base, name))   // adapters in GGUF include it in b
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: adapters of '%s' are not supported: its configuration scales it",
                              p->file->ckpt->path, m->name);
    if (m->is_table) return frit_hf_transpose(&p->hf, &m->a, false);   // [tokens, rank]
    if (!row->rewrite || row->rewrite == frit_hf_transpose) return FRIT_OK;
    if (row->rewrite == frit_hf_ungroup_qkv && m->m.name) FRIT_TRY(row->rewrite(&p->hf, &m->m, false));
    if (row->rewrite == frit_hf_ungroup_qkv && m->bias.name)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: biases of '%s' are not supported: GGUF has them in another form",
                              p->file->ckpt->path, m->name);
    if (row->rewrite == frit_hf_ungroup_qkv) return row->rewrite(&p->hf, &m->b, false);
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: adapters of '%s' are not supported: GGUF has it in another form",
                          p->file->ckpt->path, m->name);
}

// An expert's tensor goes into the stack of all experts; experts without adapter stay zero.
static frit_status stack(peft *p, frit_tensor *all, const frit_tensor *one, int64_t expert)
{
    frit_arena *arena = &p->file->ckpt->arena;
    const int64_t n = (int64_t)frit_hf_written(&p->hf, "expert_count");
    uint64_t n_bytes;
    if (!all->data) {
        if (n < 1 || !frit_mul_u64(one->n_bytes, (uint64_t)n, &n_bytes) || n_bytes > SIZE_MAX)
            return frit_fail(FRIT_E_FORMAT, "%s: expert_count is %lld, expected 1 or more", p->base->path,
                             (long long)n);
        *all = *one;
        all->n_dims = 3;
        all->shape[0] = n, all->shape[1] = one->shape[0], all->shape[2] = one->shape[1];
        all->n_bytes = n_bytes;
        all->data = frit_arena_alloc(arena, (size_t)n_bytes, 64);
        if (!all->data) return frit_fail_memory((size_t)n_bytes, one->name);
    }
    if (expert >= all->shape[0] || all->dtype != one->dtype || all->shape[1] != one->shape[0] ||
        all->shape[2] != one->shape[1])
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: tensor '%s' of expert %lld has another shape or type than other experts",
                              p->file->ckpt->path, one->name, (long long)expert);
    memcpy((uint8_t *)(uintptr_t)all->data + (uint64_t)expert * one->n_bytes, one->data, (size_t)one->n_bytes);
    return FRIT_OK;
}

static frit_status add_pair(peft *p, peft_module *m)
{
    frit_adapter_pair pair = {.a = m->a, .b = m->b, .magnitudes = m->m, .bias = m->bias};
    pair.name = frit_arena_text(&p->file->ckpt->arena, m->matrix.name, strlen(m->matrix.name));
    if (!pair.name) return frit_fail_memory(128, "a tensor's name");
    const int64_t rank = m->b.shape[m->b.n_dims - 1];
    FRIT_TRY(scale_of(p, m->full, rank, &pair.scale));
    return frit_adapter_add_pair(p->file, p->base, &pair);
}

// ------------------------------------------------------------------------------- all experts at once

// Reads rows [begin, begin + n) of b [out, r * experts], in which the columns of one rank are adjacent, as [experts, n,
// r].
static frit_status spread_b(peft *p, const frit_tensor *b, int64_t n_expert, int64_t begin, int64_t n, frit_tensor *out)
{
    const int64_t rank = b->shape[1] / n_expert;
    const size_t size = frit_dtype_get(b->dtype)->block_bytes;
    const uint64_t n_bytes = (uint64_t)n_expert * (uint64_t)n * (uint64_t)rank * size;
    uint8_t *to = frit_arena_alloc(&p->file->ckpt->arena, (size_t)n_bytes, 1);
    if (!to) return frit_fail_memory((size_t)n_bytes, b->name);
    *out = *b;
    out->n_dims = 3;
    out->shape[0] = n_expert, out->shape[1] = n, out->shape[2] = rank;
    out->data = to;
    out->n_bytes = n_bytes;
    out->is_mapped = false;
    for (int64_t e = 0; e < n_expert; e++)
        for (int64_t o = begin; o < begin + n; o++)
            for (int64_t j = 0; j < rank; j++, to += size)
                memcpy(to, (const uint8_t *)b->data + (size_t)(o * b->shape[1] + j * n_expert + e) * size, size);
    return FRIT_OK;
}

static frit_status add_spread(peft *p, const peft_module *m, const frit_tensor *w, int64_t begin)
{
    frit_adapter_pair pair = {.name = w->name, .a = m->a};
    pair.a.n_dims = 3;
    pair.a.shape[0] = w->shape[0], pair.a.shape[1] = m->a.shape[0] / w->shape[0], pair.a.shape[2] = m->a.shape[1];
    FRIT_TRY(spread_b(p, &m->b, w->shape[0], begin, w->shape[1], &pair.b));
    FRIT_TRY(scale_of(p, m->full, pair.a.shape[1], &pair.scale));
    return frit_adapter_add_pair(p->file, p->base, &pair);
}

static const frit_tensor *find_stack(const peft *p, const peft_module *m, const char *part)
{
    const char *at = strstr(m->name, "layers.");
    char name[96];
    snprintf(name, sizeof name, "blk.%d.ffn_%s_exps.weight", at ? (int)strtol(at + strlen("layers."), NULL, 10) : -1,
             part);
    const frit_tensor *w = frit_checkpoint_find(p->base, name);
    return w && w->n_dims == 3 ? w : NULL;
}

// Adds the matrices of an expert parameter. Their dimensions show if it is gate and up in one, or down.
static frit_status add_parameter(peft *p, peft_module *m)
{
    const frit_tensor *down = find_stack(p, m, "down"), *gate = find_stack(p, m, "gate"), *up = find_stack(p, m, "up");
    const frit_tensor *both = find_stack(p, m, "gate_up"), *any = down ? down : both;
    const int64_t n_out = m->b.shape[0], n_in = m->a.shape[1];
    char name[256];
    frit_hf_matrix matrix;
    snprintf(name, sizeof name, "%.*s.gate_up_proj", (int)(strstr(m->name, ".experts") - m->name + 8), m->name);
    FRIT_TRY(frit_hf_find_matrix(&p->hf, name, &matrix));
    const bool divides = any && m->a.shape[0] % any->shape[0] == 0 && m->b.shape[1] == m->a.shape[0];
    if (divides && down && n_out == down->shape[1] && n_in == down->shape[2]) return add_spread(p, m, down, 0);
    if (matrix.row && matrix.row->rewrite)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: adapters of '%s' are not supported: GGUF has it in another form",
                              p->file->ckpt->path, name);
    if (divides && both && n_out == both->shape[1] && n_in == both->shape[2]) return add_spread(p, m, both, 0);
    if (divides && gate && up && n_out == gate->shape[1] + up->shape[1] && n_in == gate->shape[2]) {
        FRIT_TRY(add_spread(p, m, gate, 0));
        return add_spread(p, m, up, gate->shape[1]);
    }
    return frit_fail_file(FRIT_E_INVALID, "%s: the adapter of '%s' fits no experts of %s", p->file->ckpt->path, m->full,
                          p->base->path);
}

// The experts of a stack are collected in the first expert's module.
static frit_status add_experts(peft *p, peft_module *first)
{
    frit_tensor a = {.data = NULL}, b = {.data = NULL};
    for (peft_module *m = first; m < p->modules + p->n; m++) {
        if (m->matrix.expert < 0 || strcmp(m->matrix.name, first->matrix.name) != 0) continue;
        FRIT_TRY(rewrite(p, m));
        FRIT_TRY(stack(p, &a, &m->a, m->matrix.expert));
        FRIT_TRY(stack(p, &b, &m->b, m->matrix.expert));
        if (m != first) m->matrix.row = NULL;   // done
    }
    first->a = a;
    first->b = b;
    return add_pair(p, first);
}

// A module without a pair is a whole matrix, rows of a table, or factors.
static bool has_more(const peft_module *m)
{
    return m->whole.name || m->tokens.name || m->factors.name;
}

static frit_status check_module(const peft *p, const peft_module *m)
{
    const char *path = p->file->ckpt->path;
    const bool is_pair = m->a.name && m->b.name, has_none = !m->a.name && !m->b.name;
    if (has_more(m) && has_none && !m->m.name && !m->bias.name) {
        if (m->matrix.expert < 0 && (m->factors.name != NULL) == p->is_ia3) return FRIT_OK;
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: the adapter of module '%s' is not supported", path, m->full);
    }
    if (has_more(m) || p->is_ia3)
        return frit_fail_file(FRIT_E_FORMAT, "%s: module '%s' has more than one kind of adapter", path, m->full);
    if (!is_pair)
        return frit_fail_file(FRIT_E_FORMAT, "%s: module '%s' has a tensor %s, expected also %s", path, m->full,
                              m->a.name      ? "A"
                              : m->b.name    ? "B"
                              : m->bias.name ? "of biases"
                                             : "of magnitudes",
                              m->a.name ? "B" : "A");
    if ((m->m.name != NULL) != p->is_dora && (m->m.name || !m->is_table))
        return frit_fail_file(FRIT_E_FORMAT, "%s: module '%s' has %s, but %s says use_dora: %s", path, m->full,
                              m->m.name ? "magnitudes" : "no magnitudes", config_name, p->is_dora ? "true" : "false");
    const bool is_plain = m->matrix.expert < 0 && !m->is_parameter && !m->is_table;
    if (!is_plain && (p->is_dora || m->bias.name))
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: module '%s': magnitudes (DoRA) and biases of experts and embeddings are not "
                              "supported",
                              path, m->full);
    if (m->m.name && m->bias.name)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: module '%s': magnitudes (DoRA) beside biases are not supported",
                              path, m->full);
    return FRIT_OK;
}

// True if the adapter has a tensor of a module with this name, or with a longer name that ends with it.
static bool has_tensor_of(const peft *p, const char *name, bool whole)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < p->n; i++) {
        const size_t n_full = strlen(p->modules[i].full);
        const frit_tensor *tensor = whole ? &p->modules[i].whole : &p->modules[i].tokens;
        if (tensor->name && n_full >= n && strcmp(p->modules[i].full + n_full - n, name) == 0) return true;
    }
    return false;
}

// Checks that the tensors that the configuration announces are there.
static frit_status check_announced(const peft *p)
{
    const json_t *saved = json_object_get(p->config, "modules_to_save"), *item;
    const char *missing = NULL, *key;
    json_t *ids;
    size_t i;
    json_array_foreach(saved, i, item)
    {
        const char *name = json_string_value(item);
        if (name && !has_tensor_of(p, name, true)) missing = name;
    }
    json_object_foreach((json_t *)(uintptr_t)json_object_get(p->config, "trainable_token_indices"), key, ids)
    {
        if (!has_tensor_of(p, key, false)) missing = key;
    }
    if (!missing) return FRIT_OK;
    return frit_fail_file(FRIT_E_FORMAT,
                          "%s: %s replaces '%.60s' (modules_to_save, trainable_token_indices), but no "
                          "tensor of it is there",
                          p->file->ckpt->path, config_name, missing);
}

static frit_status make_pairs(peft *p)
{
    FRIT_TRY(find_family(p));
    FRIT_TRY(check_announced(p));
    p->file->rope_style = p->hf.family->rope_style;
    for (size_t i = 0; i < p->n; i++) FRIT_TRY(check_module(p, &p->modules[i]));
    for (size_t i = 0; i < p->n; i++) {
        peft_module *m = &p->modules[i];
        if (m->is_parameter) {
            FRIT_TRY(add_parameter(p, m));
            continue;
        }
        if (!m->matrix.row) continue;
        if (has_more(m)) {
            FRIT_TRY(m->whole.name    ? frit_peft_add_whole(p, m)
                     : m->tokens.name ? frit_peft_add_tokens(p, m)
                                      : frit_peft_add_factors(p, m));
            continue;
        }
        if (m->matrix.expert >= 0) {
            FRIT_TRY(add_experts(p, m));
            continue;
        }
        FRIT_TRY(rewrite(p, m));
        FRIT_TRY(add_pair(p, m));
    }
    return FRIT_OK;
}

static frit_status read_tensors(peft *p, const uint8_t *bytes, uint64_t n_bytes)
{
    frit_checkpoint *ckpt = p->file->ckpt;
    FRIT_TRY(read_config(p));
    FRIT_TRY(frit_safetensors_read(ckpt->path, bytes, n_bytes, &ckpt->arena, take, p));
    if (p->n_left_out > 0)
        frit_log_say(p->log, FRIT_LOG_WARNING,
                     "%s: %zu tensors that are not of the text model, such as those of '%s', are left out", ckpt->path,
                     p->n_left_out, p->left_out);
    if (p->n == 0) return frit_fail_file(FRIT_E_FORMAT, "%s: has no tensors", ckpt->path);
    p->file->pairs = frit_arena_new(&ckpt->arena, frit_adapter_pair, 2 * p->n);   // gate and up may be one module
    if (!p->file->pairs) return frit_fail_memory(2 * p->n * sizeof *p->file->pairs, "an adapter");
    p->shown = (frit_checkpoint){.path = ckpt->path, .meta = p->base->meta};
    p->hf = (frit_hf){.ckpt = &p->shown, .path = config_name, .config = p->config};
    return make_pairs(p);
}

frit_status frit_adapter_read_peft(frit_adapter_file *file, const frit_checkpoint *base, const char *config,
                                   size_t n_config, const uint8_t *bytes, uint64_t n_bytes, const frit_log *log)
{
    json_error_t error;
    json_t *root = frit_json_read(config, n_config, 0, &error);
    file->format = "PEFT";
    if (!root || !json_is_object(root)) {
        json_decref(root);
        return frit_fail_file(FRIT_E_FORMAT, "%s/%s: not a JSON object (line %d: %s)", file->ckpt->path, config_name,
                              error.line, root ? "another value" : error.text);
    }
    peft p = {.file = file, .base = base, .config = root, .log = log};
    const frit_status status = read_tensors(&p, bytes, n_bytes);
    frit_map_free(&p.index);
    file->arena = p.shown.arena;
    json_decref(root);
    return status;
}
