// SPDX-License-Identifier: MIT
// A Hugging Face folder as a checkpoint: keys from config.json, tensors from the shards, both under GGUF's names.
//
//     folder/config.json                        hf_config.c, hf_rope.c, and the family's rows
//     folder/model.safetensors, or an index     safetensors_folder.c
//
// Tokenizer files are not read here and do not become keys (text/vocab/vocab_file.h).
#include "base/grow.h"
#include "format/hf/quant/hf_quant.h"
#include "format/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const uint64_t max_config_bytes = 16 << 20;

typedef struct folder {
    frit_hf hf;
    frit_hf_quant quant;
    const frit_checkpoint_options *options;
    frit_safetensors_entry *entries;
    size_t n_entries, capacity;
    frit_map index;   // name -> index in entries
    size_t n_unplaced;
    const char *unplaced;   // the first tensor without a row in the family
    bool is_of_base;        // written by a base class
    double n_stacked;       // number of parts of the current stack
    uint64_t n_expert_parts, n_expert_wanted;
} folder;

// ---------------------------------------------------------------------------------------- names

typedef struct place_of {   // parsed from a tensor's name
    const frit_hf_tensor *row;
    int64_t layer, expert;   // -1: none
    const char *part;        // "weight", "bias", or "" for whole names
    bool is_of_base;         // the name lacks the prefix that base_prefix returns
} place_of;

// Matches "model.layers.12.mlp.up_proj.weight" with "model.layers.*.mlp.up_proj"; the rest is "weight" or "bias".
static bool match(const char *name, const frit_hf_tensor *row, place_of *at)
{
    *at = (place_of){.row = row, .layer = -1, .expert = -1};
    for (const char *pattern = row->name; *pattern; pattern++) {
        if (*pattern != '*' && *pattern != '@') {
            if (*name++ != *pattern) return false;
            continue;
        }
        if (*name < '0' || *name > '9' || (*name == '0' && name[1] >= '0' && name[1] <= '9')) return false;
        int64_t *number = *pattern == '*' ? &at->layer : &at->expert;
        for (*number = 0; *name >= '0' && *name <= '9' && *number < 1000000; name++)
            *number = 10 * *number + (*name - '0');
    }
    const bool whole = row->whole || row->is_key;
    at->part = whole ? name : name + 1;
    if (*name != (whole ? 0 : '.')) return false;
    if (strcmp(at->part, "gamma") == 0) at->part = "weight";   // name in old files
    if (strcmp(at->part, "beta") == 0) at->part = "bias";
    return true;
}

static void write_gguf_name(char *text, size_t size, const char *pattern, int64_t layer, const char *part)
{
    const char *star = strchr(pattern, '*'), *dot = *part ? "." : "";
    if (!star)
        snprintf(text, size, "%s%s%s", pattern, dot, part);
    else
        snprintf(text, size, "%.*s%" PRId64 "%s%s%s", (int)(star - pattern), pattern, layer, star + 1, dot, part);
}

enum { NAME_BYTES = 128 };

// ---------------------------------------------------------------------------------------- tensors

static bool may_have_bias(const frit_hf_tensor *row)
{
    return row->bias_if && strcmp(row->bias_if, FRIT_HF_MAYBE) == 0;
}

static frit_status has_bias(const frit_hf *hf, const frit_hf_tensor *row, bool *out)
{
    *out = false;
    if (may_have_bias(row)) return FRIT_OK;
    *out = row->bias_if && strcmp(row->bias_if, FRIT_HF_ALWAYS) == 0;
    if (!row->bias_if || *out) return FRIT_OK;
    return frit_hf_get_flag(hf, hf->config, "", row->bias_if, out);
}

static int64_t n_layers_of(const frit_hf *hf, const frit_hf_tensor *row)
{
    const double n_dec = strncmp(row->gguf, "dec.", 4) == 0 ? frit_hf_written(hf, "decoder_block_count") : 0;
    return (int64_t)(n_dec > 0 ? n_dec : frit_hf_written(hf, "block_count"));
}

// Returns the length of the first part of names in files of classes that generate, such as "transformer." of
// "transformer.wte"; 0: none. Files of base classes leave it out.
static size_t base_prefix(const frit_hf_family *family, const char **prefix)
{
    const frit_hf_tensor *row;
    for (size_t i = 0; (row = frit_hf_tensor_get(family, i)); i++)
        if (row->name && strcmp(row->gguf, "token_embd") == 0) break;
    const char *dot = row && !family->prefix ? strchr(row->name, '.') : NULL;
    *prefix = row ? row->name : "";
    return dot ? (size_t)(dot + 1 - row->name) : 0;
}

// True for rows of a head that the model's class does not have.
static bool is_left_out(const frit_hf *hf, const frit_hf_tensor *row)
{
    return (row->of_classifier && !frit_hf_is_classifier(hf)) || (row->of_masked_lm && !frit_hf_is_masked_lm(hf));
}

static frit_status find_row(const frit_hf *hf, const char *name, place_of *at)
{
    const frit_hf_tensor *row;
    for (size_t i = 0; (row = frit_hf_tensor_get(hf->family, i)); i++) {
        if (row->none || !match(name, row, at) || is_left_out(hf, row)) continue;
        if (at->layer >= n_layers_of(hf, row) + hf->n_next) continue;
        if (row->of_attention && !frit_hf_has_attention(hf, at->layer)) continue;
        if (row->whole || row->is_key || strcmp(at->part, "weight") == 0) return FRIT_OK;
        bool biased = false;
        FRIT_TRY(has_bias(hf, row, &biased));
        if ((biased || may_have_bias(row)) && strcmp(at->part, "bias") == 0) return FRIT_OK;
    }
    at->row = NULL;
    return FRIT_OK;
}

// The row for a tensor's name; at->row is NULL without one.
static frit_status find_place(const frit_hf *hf, const char *name, place_of *at)
{
    const char *prefix = hf->family->prefix;
    if (prefix && strncmp(name, prefix, strlen(prefix)) == 0) name += strlen(prefix);
    FRIT_TRY(find_row(hf, name, at));
    const size_t n = base_prefix(hf->family, &prefix);
    if (at->row || n == 0) return FRIT_OK;
    frit_buf whole = {0};
    frit_buf_printf(&whole, "%.*s%s", (int)n, prefix, name);
    const frit_status status = whole.failed ? frit_fail_memory(whole.len, name) : find_row(hf, whole.data, at);
    // `part` points into a buffer that does not outlive this function.
    if (at->row) at->part = !*at->part ? "" : strcmp(at->part, "bias") == 0 ? "bias" : "weight";
    at->is_of_base = at->row != NULL;
    frit_buf_free(&whole);
    return status;
}

frit_status frit_hf_find_matrix(const frit_hf *hf, const char *name, frit_hf_matrix *out)
{
    place_of at;
    *out = (frit_hf_matrix){0};
    FRIT_TRY(find_place(hf, name, &at));
    if (!at.row || strcmp(at.part, "bias") == 0) return FRIT_OK;
    out->row = at.row;
    out->expert = at.expert;
    write_gguf_name(out->name, sizeof out->name, at.row->gguf, at.layer, at.part);
    return FRIT_OK;
}

// True for tables that old versions of transformers saved although the configuration determines them.
static bool is_redundant(const char *name)
{
    static const char *const suffixes[] = {
        ".inv_freq",       ".original_inv_freq", ".slope_rate", ".query_decay",     ".key_decay",
        ".diagonal_decay", ".masked_bias",       ".attn.bias",  ".attention.bias",  ".self_attn.bias",
        ".cos_cached",     ".sin_cached",        ".scale_attn", ".embed_positions",
    };
    const size_t n = strlen(name);
    for (size_t i = 0; i < FRIT_COUNT(suffixes); i++) {
        const size_t n_suffix = strlen(suffixes[i]);
        if (n >= n_suffix && strcmp(name + n - n_suffix, suffixes[i]) == 0) return true;
    }
    return false;
}

// True for parts of a class that frit does not load.
static bool is_ignored(const frit_hf_family *family, const char *name)
{
    const char *prefix = family->prefix;
    if (prefix && strncmp(name, prefix, strlen(prefix)) == 0) name += strlen(prefix);
    for (const char *at = family->ignored; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (strncmp(name, at, strcspn(at, "|")) == 0) return true;
    return false;
}

// An expert's tensor becomes a part of the stack of all experts, which the first expert creates.
static frit_status place_expert(folder *f, const frit_tensor *one, const char *name, int64_t expert)
{
    enum { MOST = 1 << 16 };
    frit_checkpoint *ckpt = f->hf.ckpt;
    const frit_tensor *all = frit_checkpoint_find(ckpt, name);
    if (!all) {
        const double n = f->n_stacked;
        if (n < 1 || n > MOST || one->n_dims == FRIT_MAX_DIMS)
            return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s': expert_count is %.0f, expected 1 or more",
                                  ckpt->path, name, n);
        frit_tensor made = {.name = frit_arena_text(&ckpt->arena, name, strlen(name))};
        if (!made.name) return frit_fail_memory(strlen(name), "a tensor name");
        FRIT_TRY(frit_stack_new(&ckpt->arena, &made, one, (int64_t)n));
        FRIT_TRY(frit_checkpoint_add_tensor(ckpt, &made));
        all = frit_checkpoint_find(ckpt, name);
        f->n_expert_wanted += (uint64_t)n;
    }
    f->n_expert_parts++;
    if (all->data || frit_stack_set(all, expert, one) != FRIT_OK)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: tensor '%s' of expert %" PRId64 " has another shape or type than other experts",
                              ckpt->path, name, expert);
    return FRIT_OK;
}

// Returns the number of norms of heads, matrices of streams except the first, or experts.
static double count_stacked(const frit_hf *hf, const char *gguf)
{
    if (strstr(gguf, "_norm"))
        return frit_hf_written(hf, strstr(gguf, "_q_") ? "attention.head_count" : "attention.head_count_kv");
    return strstr(gguf, "altup_") ? frit_hf_written(hf, "altup.num_inputs") - 1 : frit_hf_written(hf, "expert_count");
}

// The list of one number for each layer. Missing numbers stay NaN, which later checks refuse.
static frit_status make_list(folder *f, const char *key)
{
    frit_checkpoint *ckpt = f->hf.ckpt;
    const size_t n = (size_t)frit_hf_written(&f->hf, "block_count");
    if (frit_meta_find(&ckpt->meta, key)) return FRIT_OK;
    float *values = frit_arena_new(&ckpt->arena, float, n);
    if (!values) return frit_fail_memory(n * sizeof *values, key);
    for (size_t i = 0; i < n; i++) values[i] = NAN;
    const frit_value list = {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_F32, n, values}};
    return frit_meta_add(&ckpt->meta, frit_str_of(key), list);
}

static frit_status place_number(folder *f, const place_of *at, const frit_tensor *tensor)
{
    const char *key = at->row->gguf;
    if (frit_tensor_n_elems(tensor) != 1 || frit_dtype_get(tensor->dtype)->block_elems != 1)
        return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' is not a single number", f->hf.ckpt->path, tensor->name);
    FRIT_TRY(make_list(f, key));
    float *values = (float *)(uintptr_t)frit_meta_find(&f->hf.ckpt->meta, key)->array.items;
    return frit_tensor_decode_rows(tensor, 0, 1, &values[at->layer]);
}

// In a multimodal model "language_model.model.norm.weight" or "model.language_model.norm.weight" is "model.norm.weight"
// of the text model.
static frit_status name_in_text_model(const folder *f, const char **name)
{
    static const struct {
        const char *there, *here;
    } prefixes[] = {{"model.language_model.", "model."}, {"language_model.", ""}, {"model.text_model.", "model."}};
    for (size_t i = 0; i < FRIT_COUNT(prefixes) && f->hf.config != f->hf.whole; i++) {
        const size_t n = strlen(prefixes[i].there), n_here = strlen(prefixes[i].here), n_rest = strlen(*name);
        if (strncmp(*name, prefixes[i].there, n) != 0) continue;
        char *copy = frit_arena_alloc(&f->hf.ckpt->arena, n_here + n_rest + 1, 1);
        if (!copy) return frit_fail_memory(n_rest, "a tensor name");
        memcpy(copy, prefixes[i].here, n_here);
        memcpy(copy + n_here, *name + n, n_rest - n + 1);
        *name = copy;
        return FRIT_OK;
    }
    return FRIT_OK;
}

// Returns the length of `start` if the name begins with it, or with its rest after the prefix that a base class leaves
// out; 0: it does not.
static size_t begins_with(const folder *f, const char *name, const char *start)
{
    const char *prefix;
    const size_t n = base_prefix(f->hf.family, &prefix), n_start = strlen(start);
    if (strncmp(name, start, n_start) == 0) return n_start;
    if (n == 0 || strncmp(start, prefix, n) != 0) return 0;
    return strncmp(name, start + n, n_start - n) == 0 ? n_start - n : 0;
}

static bool has_tensor(const folder *f, const char *name)
{
    const char *prefix;
    int64_t at;
    const size_t n = base_prefix(f->hf.family, &prefix);
    return frit_map_get(&f->index, frit_str_of(name), &at) ||
           (n > 0 && strncmp(name, prefix, n) == 0 && frit_map_get(&f->index, frit_str_of(name + n), &at));
}

// Names the layer for multi-token prediction as the layer after the last one, whatever name the family's files use.
static frit_status name_in_next_layer(const folder *f, const char **name)
{
    const int64_t layer = (int64_t)frit_hf_written(&f->hf, "block_count");
    char here[NAME_BYTES];
    for (const frit_hf_prefix *p = f->hf.family->next; p && p->there; p++) {
        const size_t n = begins_with(f, *name, p->there);
        if (n == 0) continue;
        write_gguf_name(here, sizeof here, p->here, layer, "");
        frit_buf whole = {0};
        frit_buf_printf(&whole, "%s%s", here, *name + n);
        if (!whole.failed) *name = frit_arena_text(&f->hf.ckpt->arena, whole.data, whole.len);
        frit_buf_free(&whole);
        return *name && !whole.failed ? FRIT_OK : frit_fail_memory(NAME_BYTES, "a tensor name");
    }
    return FRIT_OK;
}

// Returns the number of consecutive layers that share the weights of a layer in the files.
static frit_status count_sharing(const frit_hf *hf, int64_t *n)
{
    double n_groups = 0;
    const char *key = hf->family->groups_key;
    *n = 1;
    if (!key) return FRIT_OK;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", key, FRIT_HF_LAYERS, &n_groups));
    const int64_t n_layer = (int64_t)frit_hf_written(hf, "block_count"), n_group = (int64_t)n_groups;
    if (n_group < 1 || n_layer % n_group != 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %s is %.0f, expected a divisor of the %lld layers", hf->path,
                              key, n_groups, (long long)n_layer);
    *n = n_layer / n_group;
    return FRIT_OK;
}

static frit_status add_tensors(folder *f, const place_of *at, frit_tensor *tensor)
{
    int64_t n;
    char name[NAME_BYTES];
    FRIT_TRY(count_sharing(&f->hf, &n));
    if (at->layer < 0) n = 1;
    for (int64_t i = 0; i < n; i++) {
        write_gguf_name(name, sizeof name, at->row->gguf, at->layer * n + i, at->part);
        tensor->name = frit_arena_text(&f->hf.ckpt->arena, name, strlen(name));
        if (!tensor->name) return frit_fail_memory(strlen(name), "a tensor name");
        FRIT_TRY(frit_checkpoint_add_tensor(f->hf.ckpt, tensor));
    }
    return FRIT_OK;
}

static frit_status place(folder *f, const frit_safetensors_entry *entry)
{
    place_of at;
    const char *stands_for;
    FRIT_TRY(frit_hf_quant_name(&f->quant, entry, &stands_for));
    if (!stands_for) return FRIT_OK;
    FRIT_TRY(name_in_text_model(f, &stands_for));
    FRIT_TRY(name_in_next_layer(f, &stands_for));
    FRIT_TRY(find_place(&f->hf, stands_for, &at));
    if (!at.row) {
        const bool is_meant = is_redundant(stands_for) || is_ignored(f->hf.family, stands_for);
        if (!is_meant && f->n_unplaced++ == 0) f->unplaced = stands_for;
        return FRIT_OK;
    }
    f->is_of_base |= at.is_of_base;
    frit_tensor tensor;
    FRIT_TRY(frit_hf_quant_tensor(&f->quant, entry, stands_for, &tensor));
    if (at.row->is_key) return place_number(f, &at, &tensor);
    if (at.row->is_part) return FRIT_OK;
    if (at.row->rewrite) FRIT_TRY(at.row->rewrite(&f->hf, &tensor, strcmp(at.part, "bias") == 0));
    char name[NAME_BYTES];
    write_gguf_name(name, sizeof name, at.row->gguf, at.layer, at.part);
    if (at.expert >= 0) {
        f->n_stacked = count_stacked(&f->hf, at.row->gguf);
        return place_expert(f, &tensor, name, at.expert);
    }
    return add_tensors(f, &at, &tensor);
}

// The `find` of frit_hf, which is the first member of a folder.
static frit_status find_tensor(const frit_hf *hf, const char *name, frit_tensor *out)
{
    const folder *f = (const folder *)(const void *)hf;
    int64_t at;
    if (frit_map_get(&f->index, frit_str_of(name), &at)) return frit_safetensors_to_tensor(&f->entries[at], out);
    return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' is missing", hf->ckpt->path, name);
}

static frit_status keep(void *ctx, const frit_safetensors_entry *entry)
{
    folder *f = ctx;
    FRIT_TRY(FRIT_GROW(f->entries, f->capacity, f->n_entries + 1, "the list of tensors"));
    if (!frit_map_put(&f->index, frit_str_of(entry->name), (int64_t)f->n_entries))
        return frit_fail_memory(64, "the index of tensors");
    f->entries[f->n_entries++] = *entry;
    return FRIT_OK;
}

// Sets the number of layers for multi-token prediction: as many as config.json says, if the files have their tensors,
// which copies often lack. Families that name the layer apart have one at most.
static frit_status find_next_layers(folder *f)
{
    char name[NAME_BYTES];
    double n = 0;
    const frit_hf_tensor *row;
    for (size_t i = 0; (row = frit_hf_tensor_get(f->hf.family, i)); i++)
        if (strcmp(row->gguf, FRIT_HF_NEXT_PROJ) == 0) break;
    if (!row) return FRIT_OK;
    const frit_hf_prefix *apart = f->hf.family->next;
    if (apart) {
        snprintf(name, sizeof name, "%sweight", apart->there);
        f->hf.n_next = has_tensor(f, name);
        return FRIT_OK;
    }
    FRIT_TRY(frit_hf_get_number(&f->hf, f->hf.config, "", "num_mtp_layers", FRIT_HF_COUNT, &n));
    for (; f->hf.n_next < (int64_t)n; f->hf.n_next++) {
        write_gguf_name(name, sizeof name, row->name, n_layers_of(&f->hf, row) + f->hf.n_next, "weight");
        if (!has_tensor(f, name)) break;
    }
    return FRIT_OK;
}

// GGUF files count these layers among all layers.
static frit_status count_next_layers(const frit_hf *hf)
{
    if (hf->n_next == 0) return FRIT_OK;
    const double n = frit_hf_written(hf, "block_count") + (double)hf->n_next;
    FRIT_TRY(frit_hf_set_number(hf, "block_count", FRIT_HF_LAYERS, n));
    return frit_hf_add_number(hf, "nextn_predict_layers", FRIT_HF_COUNT, (double)hf->n_next);
}

// Parts of one tensor may be in several files, so all files are listed before any tensor is placed.
static frit_status read_tensors(folder *f)
{
    frit_checkpoint *ckpt = f->hf.ckpt;
    FRIT_TRY(frit_safetensors_read_folder(ckpt, ckpt->path, f->options, keep, f));
    f->quant.entries = f->entries;
    f->quant.index = &f->index;
    FRIT_TRY(find_next_layers(f));
    for (size_t i = 0; i < f->n_entries; i++) FRIT_TRY(place(f, &f->entries[i]));
    return FRIT_OK;
}

static frit_status check_present(const folder *f, const frit_hf_tensor *row, int64_t layer, const char *part)
{
    char name[NAME_BYTES];
    write_gguf_name(name, sizeof name, row->gguf, layer, part);
    if (frit_checkpoint_find(f->hf.ckpt, name)) return FRIT_OK;
    write_gguf_name(name, sizeof name, row->name, layer, part);
    return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' is missing", f->hf.ckpt->path, name);
}

// Warns if a base class wrote the files: it saves no output matrix, and the architecture then uses the embeddings.
static void warn_of_base(const folder *f)
{
    const frit_hf_tensor *row;
    for (size_t i = 0; (row = frit_hf_tensor_get(f->hf.family, i)); i++)
        if (row->may_be_tied && f->is_of_base && !frit_checkpoint_find(f->hf.ckpt, "output.weight"))
            frit_log_say(
                f->options ? f->options->log : NULL, FRIT_LOG_WARNING,
                "%s: has no output matrix, as files of base classes; with the table of embeddings in its place, "
                "embeddings are right and generated text is not",
                f->hf.ckpt->path);
}

static frit_status check_complete(const folder *f)
{
    const frit_hf *hf = &f->hf;
    bool tied = false;
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "tie_word_embeddings", &tied));
    FRIT_TRY(frit_hf_get_flag(hf, hf->whole, "", "tie_word_embeddings", &tied));
    const frit_hf_tensor *row;
    for (size_t i = 0; (row = frit_hf_tensor_get(hf->family, i)); i++) {
        if ((row->may_be_tied && (tied || f->is_of_base)) || row->may_be_absent || row->none || row->is_key ||
            row->is_part)
            continue;
        bool biased = false;
        FRIT_TRY(has_bias(hf, row, &biased));
        for (int64_t layer = 0; layer < (strchr(row->name, '*') ? n_layers_of(hf, row) : 1); layer++) {
            FRIT_TRY(check_present(f, row, layer, row->whole ? "" : "weight"));
            if (biased) FRIT_TRY(check_present(f, row, layer, "bias"));
        }
    }
    if (!tied) warn_of_base(f);
    if (f->n_expert_parts == f->n_expert_wanted) return FRIT_OK;
    return frit_fail_file(FRIT_E_FORMAT, "%s: %" PRIu64 " tensors of single experts are missing", f->hf.ckpt->path,
                          f->n_expert_wanted - f->n_expert_parts);
}

// ---------------------------------------------------------------------------------------- the folder

// general.name: the last component of the path.
static frit_status add_name(frit_checkpoint *ckpt)
{
    const char *path = ckpt->path, *end = path + strlen(path);
    while (end > path && end[-1] == '/') end--;
    const char *begin = end;
    while (begin > path && begin[-1] != '/') begin--;
    size_t n = (size_t)(end - begin);
    if (n == 0 || *begin == '.') return FRIT_OK;
    const char *name = frit_arena_text(&ckpt->arena, begin, n);
    if (!name) return frit_fail_memory(n, "the model's name");
    return frit_meta_add_text(&ckpt->meta, "general.name", name);
}

// Models of this class have no tokenizer keys.
static frit_status add_tokenizer(folder *f)
{
    return frit_meta_add_text(&f->hf.ckpt->meta, "tokenizer.ggml.model", "none");
}

static frit_status read_folder(folder *f)
{
    frit_checkpoint *ckpt = f->hf.ckpt;
    f->hf.find = find_tensor;
    FRIT_TRY(frit_hf_read_config(&f->hf));
    const bool is_text = f->hf.part == FRIT_CHECKPOINT_TEXT;
    if (is_text) FRIT_TRY(frit_hf_add_pooling(&f->hf, ckpt->path, f->options));
    if (is_text) FRIT_TRY(frit_hf_add_sampling(&f->hf, ckpt->path));
    FRIT_TRY(frit_hf_quant_read(&f->quant, &f->hf));
    FRIT_TRY(add_name(ckpt));
    FRIT_TRY(add_tokenizer(f));
    FRIT_TRY(read_tensors(f));
    if (f->n_unplaced > 0)
        frit_log_say(f->options->log, FRIT_LOG_WARNING,
                     "%s: %zu tensors are unknown in a model of type '%s' and ignored: '%s'%s", ckpt->path,
                     f->n_unplaced, f->hf.family->model_type, f->unplaced, f->n_unplaced > 1 ? " and others" : "");
    FRIT_TRY(check_complete(f));
    return count_next_layers(&f->hf);
}

static frit_status load_config(const char *folder_path, const char *path, json_t **config)
{
    if (frit_path_get_kind(path) != FRIT_PATH_FILE)
        return frit_fail_file(FRIT_E_NOT_FOUND, "%s: has no config.json, expected a Hugging Face model's folder",
                              folder_path);
    char *text;
    size_t n_bytes;
    FRIT_TRY(frit_file_read(path, max_config_bytes, &text, &n_bytes));
    json_error_t error;
    *config = frit_json_read(text, n_bytes, 0, &error);
    free(text);
    if (!*config)
        return frit_fail_file(FRIT_E_FORMAT, "%s: not valid JSON in line %d: %s", path, error.line, error.text);
    return FRIT_OK;
}

static bool recognises(const char *path)
{
    return frit_path_get_kind(path) == FRIT_PATH_FOLDER;
}

static frit_status open_folder(frit_checkpoint *ckpt, const char *path, const frit_checkpoint_options *options)
{
    frit_buf config_path = {0};
    json_t *config = NULL;
    frit_buf_printf(&config_path, "%s/config.json", path);
    frit_status status =
        config_path.failed ? frit_fail_memory(config_path.len, "a path") : load_config(path, config_path.data, &config);
    if (status == FRIT_OK) {
        ckpt->format = "safetensors";
        folder f = {.hf = {.ckpt = ckpt, .path = config_path.data, .part = options->part, .config = config},
                    .options = options};
        status = read_folder(&f);
        free(f.entries);
        frit_map_free(&f.index);
    }
    json_decref(config);
    frit_buf_free(&config_path);
    return status;
}

const frit_checkpoint_source frit_source_folder = {"Hugging Face folder", recognises, open_folder};
