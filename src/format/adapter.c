// SPDX-License-Identifier: MIT
// Adapters: opening, checks of their pairs, and adapters in GGUF files.
#include "format/adapter.h"

#include "format/gguf.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_RANK = 1 << 16, MAX_LAYERS = 1 << 16 };

// ------------------------------------------------------------------------------- pairs

static const char table_name[] = "token_embd.weight", head_name[] = "output.weight";

// A tied output head may have its own adapter.
static const frit_tensor *base_of(const frit_checkpoint *base, const char *name)
{
    const frit_tensor *tensor = frit_checkpoint_find(base, name);
    return tensor || strcmp(name, head_name) != 0 ? tensor : frit_checkpoint_find(base, table_name);
}

static frit_status wrong_shape(const frit_adapter_file *file, const frit_tensor *tensor, const char *of,
                               const frit_tensor *w, const char *expected)
{
    char found[96], shape[96];
    return frit_fail_file(FRIT_E_INVALID,
                          "%s: tensor '%s' has the shape %s, expected %s for '%s', which is %s in this model",
                          file->ckpt->path, tensor->name, frit_tensor_shape_text(tensor, found), expected, of,
                          frit_tensor_shape_text(w, shape));
}

// Matrices of rank 1 may lack a dimension.
static void complete(frit_tensor *a, int n_dims)
{
    if (a->n_dims != n_dims - 1 || n_dims != 2) return;
    a->shape[1] = a->shape[0];
    a->shape[0] = 1;
    a->n_dims = 2;
}

frit_status frit_adapter_add_pair(frit_adapter_file *file, const frit_checkpoint *base, const frit_adapter_pair *pair)
{
    frit_adapter_pair *p = &file->pairs[file->n_pairs];
    *p = *pair;
    const frit_tensor *w = base_of(base, p->name);
    if (!w)
        return frit_fail_file(FRIT_E_INVALID, "%s: tensor '%s' is for '%s', which %s does not have", file->ckpt->path,
                              p->a.name, p->name, base->path);
    if (w->n_dims < 2)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: tensor '%s' is for '%s', expected a matrix", file->ckpt->path,
                              p->a.name, p->name);
    const bool is_table = strcmp(p->name, table_name) == 0;
    const int n_dims = w->n_dims, out = n_dims - 2, in = n_dims - 1;
    if (!is_table) complete(&p->a, n_dims);
    const int64_t rank = p->a.shape[is_table ? 1 : out];
    bool a_fits = p->a.n_dims == n_dims, b_fits = p->b.n_dims == n_dims;
    for (int i = 0; i < out; i++) {
        a_fits = a_fits && p->a.shape[i] == w->shape[i];
        b_fits = b_fits && p->b.shape[i] == w->shape[i];
    }
    a_fits = a_fits && (is_table ? p->a.shape[0] == w->shape[0] : p->a.shape[in] == w->shape[in]);
    b_fits = b_fits && p->b.shape[out] == w->shape[is_table ? 1 : out];
    if (!a_fits) return wrong_shape(file, &p->a, p->name, w, is_table ? "[tokens, rank]" : "[rank, columns]");
    if (!b_fits) return wrong_shape(file, &p->b, p->name, w, "[rows, rank]");
    if (rank < 1 || rank > MAX_RANK || p->b.shape[in] != rank)
        return frit_fail_file(
            FRIT_E_FORMAT, "%s: tensor '%s' has the rank %lld and '%s' %lld, expected one from 1 to %d",
            file->ckpt->path, p->a.name, (long long)rank, p->b.name, (long long)p->b.shape[in], MAX_RANK);
    file->n_pairs++;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- GGUF

static frit_status expect_text(const frit_adapter_file *file, const char *key, const char *expected)
{
    frit_str value = {"", 0};
    FRIT_TRY(frit_meta_get_text(&file->ckpt->meta, key, &value, NULL));
    if (frit_str_is(value, expected)) return FRIT_OK;
    return frit_fail_file(FRIT_E_INVALID, "%s: %s is '%.*s', expected '%s' for an adapter of this model",
                          file->ckpt->path, key, (int)(value.len < 60 ? value.len : 60), value.ptr, expected);
}

// "blk.0.attn_q.weight.lora_a" is side 'a' of blk.0.attn_q.weight; returns 0 for other names.
static char side_of(const char *name, size_t *n_base)
{
    const size_t n = strlen(name), n_suffix = strlen(".lora_a");
    if (n <= n_suffix || strncmp(name + n - n_suffix, ".lora_", n_suffix - 1) != 0) return 0;
    *n_base = n - n_suffix;
    return name[n - 1] == 'a' || name[n - 1] == 'b' ? name[n - 1] : 0;
}

static frit_status read_pair(frit_adapter_file *file, const frit_checkpoint *base, const frit_tensor *tensor)
{
    frit_checkpoint *ckpt = file->ckpt;
    size_t n = 0;
    const char side = side_of(tensor->name, &n);
    if (!side)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: tensor '%s' is not the .lora_a or .lora_b of a matrix",
                              ckpt->path, tensor->name);
    char *other_name = frit_arena_text(&ckpt->arena, tensor->name, strlen(tensor->name));
    char *name = frit_arena_text(&ckpt->arena, tensor->name, n);
    if (!other_name || !name) return frit_fail_memory(n, "the names of an adapter");
    other_name[strlen(other_name) - 1] = side == 'a' ? 'b' : 'a';
    const frit_tensor *other = frit_checkpoint_find(ckpt, other_name);
    if (!other)
        return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' needs '%s', which is missing", ckpt->path, tensor->name,
                              other_name);
    if (side == 'b') return FRIT_OK;   // read together with the other side
    frit_adapter_pair pair = {.name = name, .a = *tensor, .b = *other, .scale = 1};
    FRIT_TRY(frit_adapter_add_pair(file, base, &pair));
    const frit_tensor *b = &file->pairs[file->n_pairs - 1].b;
    if (file->alpha != 0) file->pairs[file->n_pairs - 1].scale = file->alpha / (float)b->shape[b->n_dims - 1];
    return FRIT_OK;
}

static frit_status read_lora(frit_adapter_file *file, const frit_checkpoint *base)
{
    const frit_checkpoint *ckpt = file->ckpt;
    static const char invocation[] = "adapter.alora.invocation_tokens";
    frit_str arch = {"", 0};
    double alpha = 0;
    FRIT_TRY(expect_text(file, "general.type", "adapter"));
    FRIT_TRY(frit_meta_get_text(&base->meta, "general.architecture", &arch, NULL));
    char expected[64];
    snprintf(expected, sizeof expected, "%.*s", (int)(arch.len < 63 ? arch.len : 63), arch.ptr);
    FRIT_TRY(expect_text(file, "general.architecture", expected));
    FRIT_TRY(expect_text(file, "adapter.type", "lora"));
    FRIT_TRY(frit_meta_get_f64(&ckpt->meta, "adapter.lora.alpha", &alpha, NULL));
    if (frit_meta_find(&ckpt->meta, invocation))
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %s: adapters that start at certain tokens are not supported",
                              ckpt->path, invocation);
    if (!(alpha >= 0 && alpha < 1e9))
        return frit_fail_file(FRIT_E_FORMAT, "%s: adapter.lora.alpha is %g, expected 0 or more", ckpt->path, alpha);
    file->alpha = (float)alpha;
    for (size_t i = 0; i < ckpt->n_tensors; i++) FRIT_TRY(read_pair(file, base, &ckpt->tensors[i]));
    if (file->n_pairs > 0) return FRIT_OK;
    return frit_fail_file(FRIT_E_FORMAT, "%s: has no tensors", ckpt->path);
}

// ------------------------------------------------------------------------------- control vectors

static frit_status read_direction(frit_adapter_file *file, const frit_tensor *tensor, int64_t n_embd)
{
    static const char prefix[] = "direction.";
    const size_t n_prefix = sizeof prefix - 1;
    char *end = NULL, shape[96];
    const bool named =
        strncmp(tensor->name, prefix, n_prefix) == 0 && tensor->name[n_prefix] >= '0' && tensor->name[n_prefix] <= '9';
    const long layer = named ? strtol(tensor->name + n_prefix, &end, 10) : 0;
    if (!named || *end || layer < 1)
        return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' is not direction.N, N a layer from 1", file->ckpt->path,
                              tensor->name);
    if ((size_t)layer >= file->n_directions)
        return frit_fail_file(FRIT_E_INVALID, "%s: tensor '%s' is for layer %ld, expected 1 to %zu in this model",
                              file->ckpt->path, tensor->name, layer, file->n_directions - 1);
    if (tensor->n_dims != 1 || tensor->shape[0] != n_embd)
        return frit_fail_file(FRIT_E_INVALID, "%s: tensor '%s' has the shape %s, expected [%lld]", file->ckpt->path,
                              tensor->name, frit_tensor_shape_text(tensor, shape), (long long)n_embd);
    if (file->directions[layer])
        return frit_fail_file(FRIT_E_FORMAT, "%s: layer %ld has two directions", file->ckpt->path, layer);
    file->directions[layer] = tensor;
    return FRIT_OK;
}

static frit_status read_vector(frit_adapter_file *file, const frit_checkpoint *base)
{
    frit_checkpoint *ckpt = file->ckpt;
    frit_str arch = {"", 0}, hint = {"", 0};
    int64_t n_layer = 0, n_embd = 0;
    char key[128];
    file->is_vector = true;
    FRIT_TRY(frit_meta_get_text(&base->meta, "general.architecture", &arch, NULL));
    FRIT_TRY(frit_meta_get_text(&ckpt->meta, "controlvector.model_hint", &hint, NULL));
    const int n_arch = (int)(arch.len < 64 ? arch.len : 64);
    snprintf(key, sizeof key, "%.*s.block_count", n_arch, arch.ptr);
    FRIT_TRY(frit_meta_get_i64(&base->meta, key, &n_layer, NULL));
    snprintf(key, sizeof key, "%.*s.embedding_length", n_arch, arch.ptr);
    FRIT_TRY(frit_meta_get_i64(&base->meta, key, &n_embd, NULL));
    if (n_layer < 1 || n_layer > MAX_LAYERS)
        return frit_fail_file(FRIT_E_INVALID, "%s: the model has no layers for a control vector", ckpt->path);
    file->n_directions = (size_t)n_layer;
    file->directions = frit_arena_new(&ckpt->arena, const frit_tensor *, file->n_directions);
    if (!file->directions) return frit_fail_memory(file->n_directions * sizeof(void *), "a control vector");
    for (size_t i = 0; i < ckpt->n_tensors; i++) FRIT_TRY(read_direction(file, &ckpt->tensors[i], n_embd));
    return ckpt->n_tensors > 0 ? FRIT_OK : frit_fail_file(FRIT_E_FORMAT, "%s: has no tensors", ckpt->path);
}

frit_status frit_adapter_read_gguf(frit_adapter_file *file, const frit_checkpoint *base)
{
    frit_checkpoint *ckpt = file->ckpt;
    frit_str arch = {"", 0}, name = {"", 0};
    file->format = ckpt->format;
    FRIT_TRY(frit_meta_get_text(&ckpt->meta, "general.architecture", &arch, NULL));
    FRIT_TRY(frit_meta_get_text(&ckpt->meta, "general.name", &name, NULL));
    file->name = frit_arena_text(&ckpt->arena, name.ptr, name.len);
    file->pairs = frit_arena_new(&ckpt->arena, frit_adapter_pair, ckpt->n_tensors + 1);
    if (!file->name || !file->pairs) return frit_fail_memory(ckpt->n_tensors * sizeof *file->pairs, "an adapter");
    return frit_str_is(arch, "controlvector") ? read_vector(file, base) : read_lora(file, base);
}

// ------------------------------------------------------------------------------- opening

static frit_status open_file(frit_adapter_file *file, const char *path, const frit_checkpoint *base,
                             const frit_checkpoint_options *options)
{
    if (frit_adapter_is_peft(path)) return frit_adapter_open_peft(file, path, base, options);
    FRIT_TRY(frit_checkpoint_open(&file->ckpt, path, options));
    if (strncmp(file->ckpt->format, "GGUF", 4) != 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: found %s, expected a GGUF file or a PEFT folder as adapter",
                              path, file->ckpt->format);
    return frit_adapter_read_gguf(file, base);
}

frit_status frit_adapter_file_open(frit_adapter_file *out, const char *path, const frit_checkpoint *base,
                                   const frit_checkpoint_options *options)
{
    *out = (frit_adapter_file){.format = ""};
    frit_status status = open_file(out, path, base, options);
    if (status == FRIT_OK) return FRIT_OK;
    frit_adapter_file_close(out);
    return frit_fail_in(path, status);
}

void frit_adapter_file_close(frit_adapter_file *file)
{
    frit_checkpoint_close(file->ckpt);
    frit_arena_free(&file->arena);
    *file = (frit_adapter_file){.format = ""};
}
