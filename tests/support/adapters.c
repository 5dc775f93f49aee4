// SPDX-License-Identifier: MIT
// Random adapters, written as GGUF files, and weights with them merged.
#include "support/adapters.h"

#include "format/gguf.h"
#include "support/gguf_builder.h"
#include "support/support.h"

static bool may_be_adapted(const frit_checkpoint *ckpt, const frit_tensor *t, const adapter_options *o)
{
    static const char *const parts[] = {
        "attn_q.",       "attn_k.",        "attn_v.",       "attn_qkv.",      "attn_output.",  "ffn_gate.",
        "ffn_up.",       "ffn_down.",      "ffn_gate_exps", "ffn_up_exps",    "ffn_down_exps", "ffn_gate_up_exps",
        "ffn_gate_inp.", "ffn_gate_shexp", "ffn_up_shexp",  "ffn_down_shexp", "attn_q_a.",     "attn_q_b.",
        "attn_kv_a_mqa", "ssm_in.",        "ssm_out."};
    const size_t n = strlen(t->name);
    if (t->n_dims < 2 || n < 7 || strcmp(t->name + n - 7, ".weight") != 0) return false;
    if ((o->only && !strstr(t->name, o->only)) || (o->without && strstr(t->name, o->without))) return false;
    if (strcmp(t->name, "output.weight") == 0) return true;
    if (strcmp(t->name, "token_embd.weight") == 0)   // it would be merged into a shared output head too
        return frit_checkpoint_find(ckpt, "output.weight") != NULL;
    for (size_t i = 0; i < FRIT_COUNT(parts); i++)
        if (strstr(t->name, parts[i])) return true;
    return false;
}

static void add_side(gguf_builder *b, const frit_tensor *w, const char *suffix, int n_dims, const int64_t *shape,
                     const adapter_options *o, frit_rng *rng)
{
    char name[160];
    int64_t n = 1;
    for (int i = 0; i < n_dims; i++) n *= shape[i];
    float *values = malloc((size_t)n * sizeof *values);
    uint8_t *bytes = malloc((size_t)n * sizeof *values);
    random_normal(rng, values, (size_t)n, 0.1f);
    const frit_dtype type = o->type;
    frit_dtype_get(type)->encode(values, bytes, n, NULL);
    snprintf(name, sizeof name, "%s.%s", w->name, suffix);
    gguf_add_tensor(b, name, type, n_dims, shape, bytes);
    free(bytes);
    free(values);
}

static void save(gguf_builder *b, const char *path)
{
    frit_buf file = gguf_build(b);
    write_file(path, file.data, file.len);
    frit_buf_free(&file);
    gguf_builder_free(b);
}

static void read_arch(const frit_checkpoint *ckpt, char arch[64])
{
    frit_str text = {"", 0};
    assert_ok(frit_meta_get_text(&ckpt->meta, "general.architecture", &text, NULL));
    snprintf(arch, 64, "%.*s", (int)text.len, text.ptr);
}

const char *make_adapter(const char *name, const char *model, const adapter_options *o, size_t *n)
{
    const char *path = temp_path(name);
    frit_checkpoint *ckpt;
    gguf_builder b = {0};
    char arch[64];
    frit_rng rng = {.s = {o->seed + 1, 2, 3, 4}};
    const int64_t rank = o->rank > 0 ? o->rank : 4;
    size_t n_pairs = 0;
    assert_ok(frit_checkpoint_open(&ckpt, model, NULL));
    read_arch(ckpt, arch);
    gguf_add_text(&b, "general.type", "adapter");
    gguf_add_text(&b, "general.architecture", o->arch ? o->arch : arch);
    gguf_add_text(&b, "adapter.type", "lora");
    if (o->alpha != 0) gguf_add_f32(&b, "adapter.lora.alpha", o->alpha);
    for (size_t i = 0; i < ckpt->n_tensors; i++) {
        const frit_tensor *t = &ckpt->tensors[i];
        if (!may_be_adapted(ckpt, t, o)) continue;
        const bool is_table = strcmp(t->name, "token_embd.weight") == 0;
        const int d = t->n_dims;
        int64_t a_shape[4], b_shape[4];
        memcpy(a_shape, t->shape, sizeof a_shape);
        memcpy(b_shape, t->shape, sizeof b_shape);
        if (is_table) {
            a_shape[1] = rank;
            b_shape[0] = t->shape[1], b_shape[1] = rank;
        } else {
            a_shape[d - 2] = rank, a_shape[d - 1] += o->wider;
            b_shape[d - 1] = rank;
        }
        add_side(&b, t, "lora_a", d, a_shape, o, &rng);
        if (!o->lacks_b || n_pairs > 0) add_side(&b, t, "lora_b", d, b_shape, o, &rng);
        n_pairs++;
    }
    frit_checkpoint_close(ckpt);
    save(&b, path);
    if (n) *n = n_pairs;
    return path;
}

const char *make_vector(const char *name, const char *model, uint64_t seed, int first, int last)
{
    const char *path = temp_path(name);
    frit_checkpoint *ckpt;
    gguf_builder b = {0};
    char arch[64], key[96], tensor[32];
    int64_t n_embd = 0;
    frit_rng rng = {.s = {seed + 1, 2, 3, 4}};
    assert_ok(frit_checkpoint_open(&ckpt, model, NULL));
    read_arch(ckpt, arch);
    snprintf(key, sizeof key, "%s.embedding_length", arch);
    assert_ok(frit_meta_get_i64(&ckpt->meta, key, &n_embd, NULL));
    frit_checkpoint_close(ckpt);
    gguf_add_text(&b, "general.architecture", "controlvector");
    gguf_add_text(&b, "controlvector.model_hint", arch);
    float *values = malloc((size_t)n_embd * sizeof *values);
    for (int i = first; i <= last; i++) {
        random_normal(&rng, values, (size_t)n_embd, 0.3f);
        snprintf(tensor, sizeof tensor, "direction.%d", i);
        gguf_add_tensor(&b, tensor, FRIT_DTYPE_F32, 1, &n_embd, values);
    }
    free(values);
    save(&b, path);
    return path;
}

const char *without_scales(const char *name, const char *model)
{
    const char *path = temp_path(name);
    frit_checkpoint *ckpt;
    size_t n = 0;
    assert_ok(frit_checkpoint_open(&ckpt, model, NULL));
    for (size_t i = 0; i < ckpt->n_tensors; i++)
        if (!strstr(ckpt->tensors[i].name, ".scale")) ckpt->tensors[n++] = ckpt->tensors[i];
    assert_ok(frit_gguf_write_contents(&(frit_gguf_contents){&ckpt->meta, ckpt->tensors, n, NULL, NULL}, path));
    frit_checkpoint_close(ckpt);
    return path;
}

// ------------------------------------------------------------------------------- merging

static float *decode(const frit_tensor *t)
{
    const int64_t n = frit_tensor_n_elems(t), width = t->shape[t->n_dims - 1];
    float *values = malloc((size_t)n * sizeof *values);
    for (int64_t row = 0; row < n / width; row++) frit_tensor_decode_row(t, row, values + row * width);
    return values;
}

static void merge(const frit_tensor *w, double *sum, const frit_checkpoint *adapter, float scale)
{
    char name[160];
    double alpha = 0;
    snprintf(name, sizeof name, "%s.lora_a", w->name);
    const frit_tensor *a = frit_checkpoint_find(adapter, name);
    snprintf(name, sizeof name, "%s.lora_b", w->name);
    const frit_tensor *b = frit_checkpoint_find(adapter, name);
    if (!a) return;
    assert_non_null(b);
    assert_ok(frit_meta_get_f64(&adapter->meta, "adapter.lora.alpha", &alpha, NULL));
    const bool is_table = strcmp(w->name, "token_embd.weight") == 0;
    const int d = w->n_dims;
    const int64_t rank = b->shape[d - 1], n_out = w->shape[d - 2], n_in = w->shape[d - 1];
    const int64_t n = frit_tensor_n_elems(w) / n_out / n_in;
    const double factor = scale * (alpha != 0 ? alpha / (double)rank : 1);
    float *as = decode(a), *bs = decode(b);
    for (int64_t m = 0; m < n; m++)
        for (int64_t o = 0; o < n_out; o++)
            for (int64_t i = 0; i < n_in; i++)
                for (int64_t j = 0; j < rank; j++)
                    sum[(m * n_out + o) * n_in + i] +=
                        factor * (is_table ? (double)as[o * rank + j] * bs[i * rank + j]
                                           : (double)as[(m * rank + j) * n_in + i] * bs[(m * n_out + o) * rank + j]);
    free(as);
    free(bs);
}

const char *merge_adapters(const char *name, const char *model, const char *const *adapters, const float *scales,
                           size_t n)
{
    const char *path = temp_path(name);
    frit_checkpoint *ckpt, *files[8];
    assert_true(n <= FRIT_COUNT(files));
    assert_ok(frit_checkpoint_open(&ckpt, model, NULL));
    for (size_t i = 0; i < n; i++) assert_ok(frit_checkpoint_open(&files[i], adapters[i], NULL));
    for (size_t k = 0; k < ckpt->n_tensors; k++) {
        frit_tensor *t = &ckpt->tensors[k];
        if (t->n_dims < 2) continue;
        const size_t n_elems = (size_t)frit_tensor_n_elems(t);
        float *values = decode(t);
        double *sum = malloc(n_elems * sizeof *sum);
        for (size_t i = 0; i < n_elems; i++) sum[i] = values[i];
        for (size_t i = 0; i < n; i++) merge(t, sum, files[i], scales[i]);
        float *kept = frit_arena_new(&ckpt->arena, float, n_elems);
        for (size_t i = 0; i < n_elems; i++) kept[i] = (float)sum[i];
        t->dtype = FRIT_DTYPE_F32;
        t->data = kept;
        t->n_bytes = n_elems * sizeof *kept;
        free(sum);
        free(values);
    }
    assert_ok(frit_gguf_write(ckpt, path));
    for (size_t i = 0; i < n; i++) frit_checkpoint_close(files[i]);
    frit_checkpoint_close(ckpt);
    return path;
}
