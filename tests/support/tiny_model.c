// SPDX-License-Identifier: MIT
// Metadata, vocabulary and weights of the tiny model.
#include "support/tiny_model.h"

#include "support/support.h"

#include <math.h>

enum { N_EMBD = TINY_EMBD, N_HEAD = 4, N_HEAD_KV = 2, HEAD_DIM = N_EMBD / N_HEAD, N_FF = 48 };

typedef struct building {
    int32_t times;   // factor of the width
    gguf_builder b;
    const tiny_options *options;
    frit_rng rng;
} building;

static bool is_left_out(const building *t, const char *name)
{
    return t->options->without && strcmp(t->options->without, name) == 0;
}

static void add_number(building *t, const char *key, int32_t value)
{
    if (!is_left_out(t, key)) gguf_add_u32(&t->b, key, (uint32_t)value);
}

static void make_chain(const char *name, float *values, int64_t rows, int64_t columns)
{
    const bool is_proj = strstr(name, "eh_proj"), is_norm = strstr(name, "nextn.enorm");
    if (!is_proj && !is_norm && !strstr(name, "attn_output") && !strstr(name, "ffn_down")) return;
    for (int64_t i = 0; i < rows * columns; i++)
        values[i] = is_norm || (is_proj && i % columns == i / columns) ? 1 : 0;   // [1 0]
}

static void add_matrix(building *t, const char *name, int64_t rows, int64_t columns)
{
    const tiny_options *o = t->options;
    if (is_left_out(t, name)) return;
    size_t n = (size_t)(rows * columns);
    float *values = malloc(n * sizeof *values);
    random_normal(&t->rng, values, n, columns == 1 ? 0.1f : 1 / sqrtf((float)columns));
    if (columns == 1)
        for (size_t i = 0; i < n; i++) values[i] += 1;   // weight of a norm
    if (o->chain) make_chain(name, values, rows, columns);
    if (o->damaged && strcmp(o->damaged, name) == 0) values[n / 2] = NAN;
    bool transposed = o->transposed && strcmp(o->transposed, name) == 0;
    const int64_t shape[2] = {transposed ? columns : rows, transposed ? rows : columns};
    gguf_add_tensor(&t->b, name, FRIT_DTYPE_F32, columns == 1 && !transposed ? 1 : 2, shape, values);
    free(values);
}

static void add_vocab(building *t, int32_t n)
{
    char(*pieces)[8] = calloc((size_t)n, sizeof *pieces);
    const char **tokens = calloc((size_t)n, sizeof *tokens);
    float *scores = calloc((size_t)n, sizeof *scores);
    int32_t *kinds = calloc((size_t)n, sizeof *kinds);
    static const char *const first[] = {"<unk>", "<s>", "</s>", "\xe2\x96\x81"};
    for (int32_t i = 0; i < n; i++) {
        tokens[i] = pieces[i];
        scores[i] = (float)-i;
        kinds[i] = i == 0 ? 2 : i < 3 ? 3 : 1;
        if (i < 4)
            strcpy(pieces[i], first[i]);
        else if (i < 30)
            snprintf(pieces[i], sizeof *pieces, "%c", 'a' + i - 4);
        else
            snprintf(pieces[i], sizeof *pieces, "x%d", i % 100000);
    }
    gguf_add_text(&t->b, "tokenizer.ggml.model", "llama");
    gguf_add_texts(&t->b, "tokenizer.ggml.tokens", (uint64_t)n, tokens);
    gguf_add_array(&t->b, "tokenizer.ggml.scores", FRIT_VALUE_F32, (uint64_t)n, scores);
    gguf_add_array(&t->b, "tokenizer.ggml.token_type", FRIT_VALUE_I32, (uint64_t)n, kinds);
    gguf_add_u32(&t->b, "tokenizer.ggml.bos_token_id", 1);
    gguf_add_u32(&t->b, "tokenizer.ggml.eos_token_id", 2);
    if (t->options->adds_eos) gguf_add_bool(&t->b, "tokenizer.ggml.add_eos_token", true);
    if (t->options->chat_template) gguf_add_text(&t->b, "tokenizer.chat_template", t->options->chat_template);
    free(pieces);
    free(tokens);
    free(scores);
    free(kinds);
}

static void add_layer(building *t, int32_t i)
{
    const int64_t n_embd = t->times * N_EMBD, n_q = n_embd, n_kv = t->times * N_HEAD_KV * HEAD_DIM,
                  n_ff = t->times * N_FF;
    const struct {
        const char *name;
        int64_t rows, columns;
    } weights[] = {
        {"attn_norm", n_embd, 1},   {"attn_q", n_q, n_embd},      {"attn_k", n_kv, n_embd},
        {"attn_v", n_kv, n_embd},   {"attn_output", n_embd, n_q}, {"ffn_norm", n_embd, 1},
        {"ffn_gate", n_ff, n_embd}, {"ffn_up", n_ff, n_embd},     {"ffn_down", n_embd, n_ff},
    };
    for (size_t w = 0; w < FRIT_COUNT(weights); w++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.%s.weight", i, weights[w].name);
        add_matrix(t, name, weights[w].rows, weights[w].columns);
    }
}

static void add_next(building *t, int32_t i, int64_t n_vocab)
{
    const int64_t n_embd = t->times * N_EMBD;
    const struct {
        const char *name;
        int64_t rows, columns;
        bool is_own;
    } weights[] = {
        {"eh_proj", n_embd, 2 * n_embd, false},
        {"enorm", n_embd, 1, false},
        {"hnorm", n_embd, 1, false},
        {"embed_tokens", n_vocab, n_embd, true},
        {"shared_head_head", n_vocab, n_embd, true},
        {"shared_head_norm", n_embd, 1, true},
    };
    add_layer(t, i);
    for (size_t w = 0; w < FRIT_COUNT(weights); w++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.nextn.%s.weight", i, weights[w].name);
        if (t->options->next == TINY_NEXT || !weights[w].is_own)
            add_matrix(t, name, weights[w].rows, weights[w].columns);
    }
}

const char *tiny_model(const char *name, const tiny_options *options)
{
    building t = {.options = options, .times = options->times ? options->times : 1};
    frit_rng_init(&t.rng, options->seed);
    const int32_t n_vocab = options->n_vocab ? options->n_vocab : TINY_VOCAB;
    const int32_t n_layer = options->n_layer ? options->n_layer : 2;
    if (!is_left_out(&t, "general.architecture"))
        gguf_add_text(&t.b, "general.architecture", options->arch ? options->arch : "llama");
    gguf_add_text(&t.b, "general.name", "tiny");
    add_number(&t, "llama.context_length", options->n_ctx ? options->n_ctx : TINY_CTX);
    add_number(&t, "llama.embedding_length", t.times * N_EMBD);
    add_number(&t, "llama.block_count", n_layer + (options->next ? 1 : 0));
    if (options->next) add_number(&t, "llama.nextn_predict_layers", 1);
    add_number(&t, "llama.feed_forward_length", t.times * N_FF);
    add_number(&t, "llama.attention.head_count", N_HEAD);
    add_number(&t, "llama.attention.head_count_kv", N_HEAD_KV);
    add_number(&t, "llama.rope.dimension_count", t.times * HEAD_DIM);
    if (!is_left_out(&t, "llama.attention.layer_norm_rms_epsilon"))
        gguf_add_f32(&t.b, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    if (options->rope_scaling) {
        gguf_add_text(&t.b, "llama.rope.scaling.type", options->rope_scaling);
        gguf_add_f32(&t.b, "llama.rope.scaling.factor", 4);
    }
    if (options->n_pieces >= 0) add_vocab(&t, options->n_pieces ? options->n_pieces : n_vocab);
    if (!options->no_tensors) {
        add_matrix(&t, "token_embd.weight", n_vocab, t.times * N_EMBD);
        add_matrix(&t, "output_norm.weight", t.times * N_EMBD, 1);
        add_matrix(&t, "output.weight", n_vocab, t.times * N_EMBD);
        for (int32_t i = 0; i < n_layer; i++) add_layer(&t, i);
        if (options->next) add_next(&t, n_layer, n_vocab);
    }
    frit_buf file = gguf_build(&t.b);
    const char *path = temp_path(name);
    write_file(path, file.data, file.len);
    frit_buf_free(&file);
    gguf_builder_free(&t.b);
    return path;
}
