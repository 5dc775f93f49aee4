// SPDX-License-Identifier: MIT
// arch/tiny.h: makes a small llama file in memory, complete or with one change.
#pragma once
#include "arch/arch.h"
#include "support/gguf_builder.h"
#include "support/support.h"

enum { TINY_VOCAB = 20, TINY_EMBD = 32, TINY_FF = 48, TINY_HEADS = 4, TINY_HEADS_KV = 2, TINY_LAYERS = 2 };

typedef enum tiny_kind { TINY_NONE, TINY_NUMBER, TINY_FLOAT, TINY_TEXT, TINY_ARRAY, TINY_FLOATS } tiny_kind;

// One difference from the complete file.
typedef struct tiny_change {
    const char *without;   // a key or tensor that is left out
    const char *key;       // a key that is added, or has another value
    tiny_kind kind;
    double value;         // NUMBER, FLOAT
    const char *text;     // TEXT
    uint32_t n_items;     // ARRAY of u32, FLOATS: number of items with the value
    const char *tensor;   // a tensor that is added, or has another shape, type or content
    int64_t shape[2];     // shape[1] of 0: a vector; both 0: unchanged
    frit_dtype dtype;     // 0 (f32): unchanged
    float poison;         // if not 0: the last number of the tensor
} tiny_change;

typedef struct tiny_pair {
    const char *key;
    tiny_kind kind;
    double value;
    const char *text;
} tiny_pair;

typedef struct tiny_tensor {
    const char *name;
    int64_t shape[2];
} tiny_tensor;

static inline void tiny_add_pair(gguf_builder *b, const tiny_pair *pair, uint32_t n_items)
{
    uint32_t numbers[64];
    float floats[64];
    assert_in_range(n_items, 0, 64);
    for (uint32_t i = 0; i < n_items; i++) {
        numbers[i] = (uint32_t)(int64_t)pair->value;
        floats[i] = (float)pair->value;
    }
    switch (pair->kind) {
    case TINY_NUMBER:
        if (pair->value < 0)
            gguf_add_i32(b, pair->key, (int32_t)pair->value);
        else
            gguf_add_u32(b, pair->key, (uint32_t)pair->value);
        break;
    case TINY_FLOAT:
        gguf_add_f32(b, pair->key, (float)pair->value);
        break;
    case TINY_TEXT:
        gguf_add_text(b, pair->key, pair->text);
        break;
    case TINY_ARRAY:
        gguf_add_array(b, pair->key, FRIT_VALUE_U32, n_items, numbers);
        break;
    case TINY_FLOATS:
        gguf_add_array(b, pair->key, FRIT_VALUE_F32, n_items, floats);
        break;
    case TINY_NONE:
        break;
    }
}

static inline void tiny_add_tensor(gguf_builder *b, const char *name, const int64_t *shape, const tiny_change *change)
{
    bool changed = change->tensor && strcmp(change->tensor, name) == 0;
    frit_dtype dtype = changed ? change->dtype : FRIT_DTYPE_F32;
    if (changed && change->shape[0] > 0) shape = change->shape;
    size_t n = (size_t)(shape[0] * (shape[1] ? shape[1] : 1));
    frit_rng rng;
    frit_rng_init(&rng, n + strlen(name));
    float *values = calloc(n, sizeof *values);
    void *data = calloc(n, sizeof *values);
    random_normal(&rng, values, n, 0.2f);
    for (size_t i = 0; i < n && shape[1] == 0; i++) values[i] += 1;   // vectors are mostly norms and factors
    if (changed && change->poison != 0) values[n - 1] = change->poison;
    frit_dtype_get(dtype)->encode(values, data, (int64_t)n, NULL);
    gguf_add_tensor(b, name, dtype, shape[1] ? 2 : 1, shape, data);
    free(values);
    free(data);
}

static inline bool tiny_is(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static inline void tiny_add_pairs(gguf_builder *b, const tiny_change *change)
{
    static const tiny_pair pairs[] = {
        {"general.architecture", TINY_TEXT, 0, "llama"},
        {"llama.block_count", TINY_NUMBER, TINY_LAYERS, NULL},
        {"llama.context_length", TINY_NUMBER, 64, NULL},
        {"llama.embedding_length", TINY_NUMBER, TINY_EMBD, NULL},
        {"llama.feed_forward_length", TINY_NUMBER, TINY_FF, NULL},
        {"llama.attention.head_count", TINY_NUMBER, TINY_HEADS, NULL},
        {"llama.attention.head_count_kv", TINY_NUMBER, TINY_HEADS_KV, NULL},
        {"llama.attention.layer_norm_rms_epsilon", TINY_FLOAT, 1e-5, NULL},
        {"llama.vocab_size", TINY_NUMBER, TINY_VOCAB, NULL},
    };
    for (size_t i = 0; i < FRIT_COUNT(pairs); i++) {
        bool skip = tiny_is(pairs[i].key, change->without) || tiny_is(pairs[i].key, change->key);
        if (!skip) tiny_add_pair(b, &pairs[i], 0);
    }
    if (change->key)
        tiny_add_pair(b, &(tiny_pair){change->key, change->kind, change->value, change->text}, change->n_items);
}

static inline void tiny_add_tensors(gguf_builder *b, const tiny_change *change)
{
    static const tiny_tensor model[] = {
        {"token_embd", {TINY_VOCAB, TINY_EMBD}}, {"output_norm", {TINY_EMBD, 0}}, {"output", {TINY_VOCAB, TINY_EMBD}}};
    static const tiny_tensor layer[] = {
        {"attn_norm", {TINY_EMBD, 0}},      {"attn_q", {TINY_EMBD, TINY_EMBD}}, {"attn_k", {16, TINY_EMBD}},
        {"attn_v", {16, TINY_EMBD}},        {"ffn_norm", {TINY_EMBD, 0}},       {"attn_output", {TINY_EMBD, TINY_EMBD}},
        {"ffn_gate", {TINY_FF, TINY_EMBD}}, {"ffn_up", {TINY_FF, TINY_EMBD}},   {"ffn_down", {TINY_EMBD, TINY_FF}},
    };
    bool there = false;   // the changed tensor is one of the usual ones
    for (int i = -1; i < TINY_LAYERS; i++) {
        const tiny_tensor *tensors = i < 0 ? model : layer;
        size_t n = i < 0 ? FRIT_COUNT(model) : FRIT_COUNT(layer);
        for (size_t k = 0; k < n; k++) {
            char name[64];
            if (i < 0)
                snprintf(name, sizeof name, "%s.weight", tensors[k].name);
            else
                snprintf(name, sizeof name, "blk.%d.%s.weight", i, tensors[k].name);
            there = there || tiny_is(name, change->tensor);
            if (!tiny_is(name, change->without)) tiny_add_tensor(b, name, tensors[k].shape, change);
        }
    }
    if (change->tensor && !there) tiny_add_tensor(b, change->tensor, change->shape, change);
}

typedef struct tiny_model {
    frit_checkpoint *ckpt;
    frit_arena arena;
    const frit_arch *arch;
    frit_hparams hp;
    frit_weights weights;
} tiny_model;

static inline frit_status tiny_read(tiny_model *m)
{
    FRIT_TRY(frit_arch_of(&m->arch, m->ckpt));
    FRIT_TRY(frit_hparams_read(&m->hp, m->arch, m->ckpt, &m->arena));
    FRIT_TRY(frit_weights_bind(&m->weights, m->arch, &m->hp, m->ckpt, &m->arena));
    return frit_rope_init(&m->hp, m->hp.n_ctx_train, &m->arena);
}

// Writes the file, opens it as a checkpoint, and reads it as a model. Call tiny_close after success and failure.
static inline frit_status tiny_open(tiny_model *m, const tiny_change *change)
{
    *m = (tiny_model){0};
    gguf_builder b = {0};
    tiny_add_pairs(&b, change);
    tiny_add_tensors(&b, change);
    frit_buf file = gguf_build(&b);
    const char *path = temp_path("tiny.gguf");
    write_file(path, file.data, file.len);
    frit_buf_free(&file);
    gguf_builder_free(&b);
    assert_ok(frit_checkpoint_open(&m->ckpt, path, &(frit_checkpoint_options){0}));
    return tiny_read(m);
}

static inline void tiny_close(tiny_model *m)
{
    frit_arena_free(&m->arena);
    frit_checkpoint_close(m->ckpt);
}
