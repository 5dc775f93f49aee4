// SPDX-License-Identifier: MIT
// Translates the keys and tensor names of other GGUF writers, current and old, into the usual ones, so that no other
// code knows them. Several are from Ollama's library, whose files also contain encoders of images and sounds.
#include "format/gguf_shard.h"

#include "format/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *from, *to;
} archs[] = {
    {"gptoss", "gpt-oss"},        {"qwen25vl", "qwen2vl"}, {"olmo3", "olmo2"}, {"nemotron_h_omni", "nemotron_h_moe"},
    {"glm4moelite", "deepseek2"},
};

// Names of keys after "ARCH.".
static const struct {
    const char *from, *to;
} keys[] = {
    {"rope.scale_linear", "rope.scaling.factor"},   // of 2023
    {"rope.mrope_section", "rope.dimension_sections"},
    {"rope.scaling.beta_fast", "rope.scaling.yarn_beta_fast"},
    {"rope.scaling.beta_slow", "rope.scaling.yarn_beta_slow"},
    {"rope.scaling.extrapolation_factor", "rope.scaling.yarn_ext_factor"},
    {"rope.scaling.mscale_all_dim", "rope.scaling.yarn_log_multiplier"},
    {"rope.scaling_beta", "attention.temperature_scale"},
    {"rope.global.freq_base", "rope.freq_base"},
    {"rope.local.freq_base", "rope.freq_base_swa"},
    {"rope.freq_base_local", "rope.freq_base_swa"},
};

// Text values to replace: where the file has `is` (NULL: has no value, or "default"), the key gets `text`.
static const struct {
    const char *arch, *key, *is, *text;
} texts[] = {
    {"gpt-oss", "gpt-oss.rope.scaling.type", NULL, "yarn"}, {"gpt-oss", "tokenizer.ggml.pre", NULL, "gpt-4o"},
    {"lfm2", "tokenizer.ggml.pre", NULL, "lfm2"},           {"mistral3", "tokenizer.ggml.pre", NULL, "tekken"},
    {"gemma4", "tokenizer.ggml.model", "llama", "gemma4"},
};

// Parts of tensor names to replace; "$" matches the end.
static const struct {
    const char *arch, *from, *to;
} tensors[] = {
    {"gpt-oss", ".attn_out.", ".attn_output."},
    {"gpt-oss", ".attn_sinks$", ".attn_sinks.weight"},
    {"gpt-oss", ".ffn_norm.", ".post_attention_norm."},
    {"qwen35", ".ssm_dt$", ".ssm_dt.bias"},
    {"qwen35moe", ".ssm_dt$", ".ssm_dt.bias"},
    {"qwen3next", ".ssm_dt$", ".ssm_dt.bias"},
    {"lfm2", "output_norm.weight$", "token_embd_norm.weight"},
    {"gemma4", ".ffn_gate_inp.per_expert_scale", ".ffn_down_exps.scale"},
};

// Tensors to leave out: encoders, projectors, and layers for multi-token prediction.
static const char *const left_out[] = {"v.", "mm.", "a.", "model.vision_tower.", "mtp."};

typedef struct spelling {
    frit_checkpoint *ckpt;
    const char *found, *arch;   // the architecture's name: in the file, and the usual one
    char key[200];
    int64_t n_expert, n_singles, n_stacks;   // tensors of single experts, and stacks that they are parts of
} spelling;

static frit_pair *find_pair(const spelling *s, const char *key)
{
    int64_t at;
    return frit_map_get(&s->ckpt->meta.index, frit_str_of(key), &at) ? &s->ckpt->meta.pairs[at] : NULL;
}

static const char *key_of(spelling *s, const char *rest)
{
    snprintf(s->key, sizeof s->key, "%s.%s", s->arch, rest);
    return s->key;
}

static bool is_of(const spelling *s, const char *arch)
{
    return strcmp(arch, s->arch) == 0;
}

static frit_status copy_text(const spelling *s, const char *text, size_t n, frit_str *out)
{
    const char *copy = frit_arena_text(&s->ckpt->arena, text, n);
    *out = (frit_str){copy, n};
    return copy ? FRIT_OK : frit_fail_memory(n, "a metadata key");
}

static frit_status index_pairs(frit_meta *meta)
{
    frit_map index = {0};
    bool done = frit_map_reserve(&index, meta->n);
    for (size_t i = 0; i < meta->n && done; i++) done = frit_map_put(&index, meta->pairs[i].key, (int64_t)i);
    if (!done) {
        frit_map_free(&index);
        return frit_fail_memory(meta->n * 32, "metadata keys");
    }
    frit_map_free(&meta->index);
    meta->index = index;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- metadata

// "gptoss.block_count" becomes "gpt-oss.block_count".
static frit_status rename_arch(spelling *s, const char *from, const char *to)
{
    frit_meta *meta = &s->ckpt->meta;
    const size_t n_from = strlen(from), n_to = strlen(to);
    FRIT_TRY(copy_text(s, to, n_to, &find_pair(s, "general.architecture")->value.text));
    for (size_t i = 0; i < meta->n; i++) {
        const frit_str key = meta->pairs[i].key;
        if (key.len <= n_from || memcmp(key.ptr, from, n_from) != 0 || key.ptr[n_from] != '.') continue;
        frit_buf name = {0};
        frit_buf_append(&name, to, n_to);
        frit_buf_append(&name, key.ptr + n_from, key.len - n_from);
        const bool is_new = !name.failed && !find_pair(s, name.data);
        frit_status status = name.failed ? frit_fail_memory(name.len, "a metadata key") : FRIT_OK;
        if (is_new) status = copy_text(s, name.data, name.len, &meta->pairs[i].key);
        frit_buf_free(&name);
        FRIT_TRY(status);
    }
    return index_pairs(meta);
}

static frit_status rename_keys(spelling *s)
{
    for (size_t i = 0; i < FRIT_COUNT(keys); i++) {
        frit_pair *pair = find_pair(s, key_of(s, keys[i].from));
        if (!pair || find_pair(s, key_of(s, keys[i].to))) continue;
        FRIT_TRY(copy_text(s, s->key, strlen(s->key), &pair->key));
        FRIT_TRY(index_pairs(&s->ckpt->meta));
    }
    return FRIT_OK;
}

static frit_status set_texts(const spelling *s)
{
    frit_meta *meta = &s->ckpt->meta;
    const frit_pair *kind = find_pair(s, "tokenizer.ggml.model");
    const bool is_cut = kind && kind->value.type == FRIT_VALUE_TEXT && frit_str_is(kind->value.text, "gpt2");
    for (size_t i = 0; i < FRIT_COUNT(texts); i++) {
        if (strcmp(texts[i].arch, s->found) != 0) continue;
        if (strcmp(texts[i].key, "tokenizer.ggml.pre") == 0 && !is_cut) continue;
        frit_pair *pair = find_pair(s, texts[i].key);
        const bool is_text = pair && pair->value.type == FRIT_VALUE_TEXT;
        const char *is = texts[i].is ? texts[i].is : "default";
        if (is_text && (frit_str_is(pair->value.text, is) || (!texts[i].is && pair->value.text.len == 0)))
            pair->value.text = frit_str_of(texts[i].text);
        else if (!pair && !texts[i].is)
            FRIT_TRY(frit_meta_add_text(meta, texts[i].key, texts[i].text));
    }
    return FRIT_OK;
}

static frit_status add_number(spelling *s, const char *rest, double value)
{
    return find_pair(s, key_of(s, rest)) ? FRIT_OK : frit_meta_add_f64(&s->ckpt->meta, s->key, value);
}

static int64_t number_of(spelling *s, const char *rest)
{
    int64_t value = 0;
    return frit_meta_get_i64(&s->ckpt->meta, key_of(s, rest), &value, NULL) == FRIT_OK ? value : 0;
}

static frit_status set_number(spelling *s, const char *rest, int64_t value)
{
    FRIT_TRY(frit_meta_remove(&s->ckpt->meta, key_of(s, rest)));
    return frit_meta_add_u64(&s->ckpt->meta, s->key, (uint64_t)value);
}

// Removes tokens beyond the rows of the embedding table, which stand for images and sounds.
static void cut_tokens(const spelling *s, int64_t n)
{
    static const char *const lists[] = {"tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type"};
    for (size_t i = 0; i < FRIT_COUNT(lists); i++) {
        frit_pair *pair = find_pair(s, lists[i]);
        if (pair && pair->value.type == FRIT_VALUE_ARRAY && pair->value.array.n > (uint64_t)n)
            pair->value.array.n = (uint64_t)n;
    }
}

static frit_tensor *find_tensor(const spelling *s, const char *name)
{
    int64_t at;
    return frit_map_get(&s->ckpt->tensor_index, frit_str_of(name), &at) ? &s->ckpt->tensors[at] : NULL;
}

static frit_status fix_gemma3(spelling *s)
{
    const frit_tensor *table = find_tensor(s, "token_embd.weight");
    if (table && table->n_dims == 2) cut_tokens(s, table->shape[0]);
    if (find_pair(s, key_of(s, "attention.layer_norm_rms_epsilon"))) return FRIT_OK;
    FRIT_TRY(add_number(s, "attention.layer_norm_rms_epsilon", 1e-6));
    FRIT_TRY(add_number(s, "rope.freq_base", 1e6));
    if (number_of(s, "context_length") < 131072 || find_pair(s, key_of(s, "rope.scaling.type"))) return FRIT_OK;
    return add_number(s, "rope.scaling.factor", 8);
}

// Gemma 3n's per-layer tables have no rows for image and audio tokens.
static frit_status fix_gemma3n(spelling *s)
{
    frit_tensor *table = find_tensor(s, "token_embd.weight");
    const frit_tensor *layers = find_tensor(s, "per_layer_token_embd.weight");
    if (!table || !layers || table->n_dims != 2 || layers->n_dims != 2 || layers->shape[0] >= table->shape[0])
        return FRIT_OK;
    *table = frit_tensor_cut(table, 0, layers->shape[0]);
    cut_tokens(s, table->shape[0]);
    return FRIT_OK;
}

// Writes the head sizes of expanded attention, where the usual keys have the sizes of the latent vectors.
static frit_status fix_latent(spelling *s)
{
    const int64_t head = number_of(s, "attention.key_length"), rank = number_of(s, "attention.kv_lora_rank");
    if (head == 0 || rank == 0) return FRIT_OK;
    FRIT_TRY(set_number(s, "attention.head_count_kv", 1));
    FRIT_TRY(set_number(s, "attention.key_length", rank + number_of(s, "rope.dimension_count")));
    FRIT_TRY(set_number(s, "attention.value_length", rank));
    FRIT_TRY(set_number(s, "attention.key_length_mla", head));
    return set_number(s, "attention.value_length_mla", head);
}

static const struct {
    const char *arch;
    frit_status (*fix)(spelling *s);
} fixes[] = {
    {"gemma3", fix_gemma3},
    {"gemma3n", fix_gemma3n},
    {"glm4moelite", fix_latent},
};

// ------------------------------------------------------------------------------------- tensors

static frit_status rename_tensor(const spelling *s, frit_tensor *tensor, const char *from, const char *to)
{
    const size_t n_from = strcspn(from, "$");
    const char *at = tensor->name;
    char part[64], name[256];
    snprintf(part, sizeof part, "%.*s", (int)n_from, from);
    at = strstr(at, part);
    if (!at || (from[n_from] == '$' && at[n_from] != 0)) return FRIT_OK;
    const int n = snprintf(name, sizeof name, "%.*s%s%s", (int)(at - tensor->name), tensor->name, to, at + n_from);
    if (n >= (int)sizeof name || find_tensor(s, name)) return FRIT_OK;
    const char *copy = frit_arena_text(&s->ckpt->arena, name, strlen(name));
    if (!copy) return frit_fail_memory(strlen(name), "a tensor name");
    tensor->name = copy;
    return FRIT_OK;
}

static bool is_left_out(const char *name)
{
    for (size_t i = 0; i < FRIT_COUNT(left_out); i++)
        if (strncmp(name, left_out[i], strlen(left_out[i])) == 0) return true;
    return false;
}

// "blk.3.ffn_up.7.weight": returns the position of ".7" and sets 7; NULL for other names.
static const char *expert_of(const char *name, long *expert)
{
    static const char *const parts[] = {".ffn_gate.", ".ffn_up.", ".ffn_down."};
    for (size_t i = 0; i < FRIT_COUNT(parts); i++) {
        const char *at = strstr(name, parts[i]);
        if (strncmp(name, "blk.", 4) != 0 || !at) continue;
        at += strlen(parts[i]) - 1;
        if (at[1] < '0' || at[1] > '9') continue;
        char *end;
        *expert = strtol(at + 1, &end, 10);
        return strcmp(end, ".weight") == 0 ? at : NULL;
    }
    return NULL;
}

// Files of early 2024 have the experts of Mixtral one by one: "blk.0.ffn_up.7.weight" is a part of
// "blk.0.ffn_up_exps.weight".
static frit_status join_expert(spelling *s, const frit_tensor *part, const char *at, long expert)
{
    char name[160];
    snprintf(name, sizeof name, "%.*s_exps.weight", (int)(at - part->name), part->name);
    frit_tensor *whole = find_tensor(s, name);
    if (!whole && ++s->n_stacks * s->n_expert > s->n_singles)   // checked before memory is allocated for the stack
        return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' lacks some of its %lld experts", s->ckpt->path, name,
                              (long long)s->n_expert);
    if (!whole) {
        if (part->n_dims >= FRIT_MAX_DIMS)
            return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' has %d dimensions, expected a matrix", s->ckpt->path,
                                  part->name, part->n_dims);
        frit_tensor tensor = {.name = frit_arena_text(&s->ckpt->arena, name, strlen(name))};
        if (!tensor.name) return frit_fail_memory(strlen(name), "a tensor name");
        FRIT_TRY(frit_stack_new(&s->ckpt->arena, &tensor, part, s->n_expert));
        FRIT_TRY(frit_checkpoint_add_tensor(s->ckpt, &tensor));
        whole = find_tensor(s, name);
    }
    const bool is_stack = !whole->data && expert < whole->shape[0];
    const frit_status status =
        is_stack ? frit_stack_set(whole, expert, part)
                 : frit_fail(FRIT_E_FORMAT, "tensor '%s' is of an expert beyond the %lld of the model", part->name,
                             (long long)s->n_expert);
    return frit_fail_in(s->ckpt->path, status);
}

static frit_status check_stacks(const spelling *s)
{
    for (size_t i = 0; i < s->ckpt->n_tensors; i++) {
        const frit_tensor *tensor = &s->ckpt->tensors[i];
        if (!tensor->data && tensor->recipe && !frit_stack_is_whole(tensor))
            return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' lacks some of its %lld experts", s->ckpt->path,
                                  tensor->name, (long long)tensor->shape[0]);
    }
    return FRIT_OK;
}

// Lists the tensors again, without those that are left out, and with experts as stacks.
static frit_status list_tensors(spelling *s, const frit_tensor *old, size_t n_old, size_t *n_left)
{
    for (size_t i = 0; i < n_old; i++) {
        long expert = 0;
        const char *at = s->n_expert > 0 ? expert_of(old[i].name, &expert) : NULL;
        if (is_left_out(old[i].name))
            ++*n_left;
        else if (at)
            FRIT_TRY(join_expert(s, &old[i], at, expert));
        else
            FRIT_TRY(frit_checkpoint_add_tensor(s->ckpt, &old[i]));
    }
    return check_stacks(s);
}

static frit_status change_tensors(spelling *s, const frit_log *log)
{
    enum { MOST_EXPERTS = 1 << 16 };
    frit_checkpoint *ckpt = s->ckpt;
    const frit_tensor *old = ckpt->tensors;
    const size_t n_old = ckpt->n_tensors;
    const int64_t n_found = number_of(s, "expert_count");
    const char *first = NULL;
    size_t n_left = 0;
    s->n_expert = n_found <= MOST_EXPERTS ? n_found : 0;
    for (size_t i = 0; i < n_old; i++) {
        long expert;
        if (is_left_out(old[i].name) && !first) first = old[i].name;
        s->n_singles += s->n_expert > 0 && expert_of(old[i].name, &expert);
    }
    if (!first && s->n_singles == 0) return FRIT_OK;
    frit_map_free(&ckpt->tensor_index);
    ckpt->tensor_index = (frit_map){0};
    ckpt->tensors = NULL;
    ckpt->n_tensors = ckpt->tensor_capacity = 0;
    FRIT_TRY(list_tensors(s, old, n_old, &n_left));
    if (n_left > 0)
        frit_log_say(log, FRIT_LOG_WARNING,
                     "%s: %zu tensors that do not belong to the text model, such as '%s', are left out", ckpt->path,
                     n_left, first);
    return FRIT_OK;
}

static frit_status rename_tensors(const spelling *s)
{
    frit_checkpoint *ckpt = s->ckpt;
    bool has_rows = false;
    for (size_t i = 0; i < FRIT_COUNT(tensors); i++) {
        if (!is_of(s, tensors[i].arch)) continue;
        for (size_t k = 0; k < ckpt->n_tensors; k++)
            FRIT_TRY(rename_tensor(s, &ckpt->tensors[k], tensors[i].from, tensors[i].to));
        has_rows = true;
    }
    if (!has_rows) return FRIT_OK;
    frit_map index = {0};
    bool done = frit_map_reserve(&index, ckpt->n_tensors);
    for (size_t i = 0; i < ckpt->n_tensors && done; i++)
        done = frit_map_put(&index, frit_str_of(ckpt->tensors[i].name), (int64_t)i);
    if (!done) {
        frit_map_free(&index);
        return frit_fail_memory(ckpt->n_tensors * 32, "the names of tensors");
    }
    frit_map_free(&ckpt->tensor_index);
    ckpt->tensor_index = index;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- the whole

static frit_status fix_all(spelling *s)
{
    for (size_t i = 0; i < FRIT_COUNT(fixes); i++)
        if (strcmp(fixes[i].arch, s->found) == 0) FRIT_TRY(fixes[i].fix(s));
    return FRIT_OK;
}

frit_status frit_gguf_respell(frit_checkpoint *ckpt, const frit_log *log)
{
    enum { MOST_NAME = 64 };
    char arch[MOST_NAME + 1];
    spelling s = {.ckpt = ckpt, .found = arch, .arch = arch};
    const frit_value *value = frit_meta_find(&ckpt->meta, "general.architecture");
    if (!value || value->type != FRIT_VALUE_TEXT || value->text.len > MOST_NAME) return FRIT_OK;
    snprintf(arch, sizeof arch, "%.*s", (int)value->text.len, value->text.ptr);
    for (size_t i = 0; i < FRIT_COUNT(archs); i++) {
        if (strcmp(arch, archs[i].from) != 0) continue;
        FRIT_TRY(rename_arch(&s, archs[i].from, archs[i].to));
        s.arch = archs[i].to;
        break;
    }
    FRIT_TRY(rename_keys(&s));
    FRIT_TRY(set_texts(&s));
    if (!find_tensor(&s, "token_embd.weight")) return FRIT_OK;   // a projector, or no model
    FRIT_TRY(rename_tensors(&s));
    FRIT_TRY(fix_all(&s));
    return change_tensors(&s, log);
}
