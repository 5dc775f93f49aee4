// SPDX-License-Identifier: MIT
// Vocabulary and weights of the scripted model.
#include "support/scripted_model.h"

#include "support/support.h"

enum { N_EMBD = 64, N_FF = 32, N_HEAD = 4, EOS = 2, FIRST_BYTE = 3, FIRST_PIECE = FIRST_BYTE + 256, MAX_PIECES = 120 };
enum { KIND_UNKNOWN = 2, KIND_CONTROL = 3, KIND_USER = 4, KIND_BYTE = 6 };

typedef struct writing {
    gguf_builder b;
    const char *tokens[FIRST_PIECE + MAX_PIECES];
    int32_t kinds[FIRST_PIECE + MAX_PIECES];
    char bytes[256][8];
    int32_t n, n_directions;
    float *embd, *output;
} writing;

static int32_t add_token(writing *w, const char *text, int32_t kind)
{
    assert_true(w->n < FIRST_PIECE + MAX_PIECES);
    w->tokens[w->n] = text;
    w->kinds[w->n] = kind;
    return w->n++;
}

// Makes `next` follow `token`.
static void add_step(writing *w, int32_t token, int32_t next)
{
    int32_t direction = ++w->n_directions;
    assert_true(direction < N_EMBD);
    w->embd[token * N_EMBD] = 0;
    w->embd[token * N_EMBD + direction] = 1;
    w->output[next * N_EMBD + direction] = 1;
}

static void add_script(writing *w, const script *s)
{
    int32_t token = s->begin[1] ? add_token(w, s->begin, KIND_CONTROL) : FIRST_BYTE + (unsigned char)s->begin[0];
    for (int i = 0; i < SCRIPT_PIECES && s->pieces[i]; i++) {
        int32_t next = add_token(w, s->pieces[i], KIND_USER);
        add_step(w, token, next);
        token = next;
    }
    add_step(w, token, EOS);
}

static void add_matrix(writing *w, const char *name, int64_t rows, int64_t columns, const float *values)
{
    float *made = values ? NULL : calloc((size_t)(rows * columns), sizeof *made);
    for (int64_t i = 0; made && columns == 1 && i < rows; i++) made[i] = 1;   // weight of a norm
    gguf_add_tensor(&w->b, name, FRIT_DTYPE_F32, columns == 1 ? 1 : 2, (const int64_t[]){rows, columns},
                    values ? values : made);
    free(made);
}

static void add_metadata(writing *w, const char *chat_template)
{
    static const struct {
        const char *key;
        uint32_t value;
    } numbers[] = {
        {"llama.context_length", 4096},
        {"llama.embedding_length", N_EMBD},
        {"llama.block_count", 1},
        {"llama.feed_forward_length", N_FF},
        {"llama.attention.head_count", N_HEAD},
        {"llama.attention.head_count_kv", N_HEAD},
        {"llama.rope.dimension_count", N_EMBD / N_HEAD},
    };
    gguf_add_text(&w->b, "general.architecture", "llama");
    gguf_add_text(&w->b, "general.name", "scripted");
    for (size_t i = 0; i < FRIT_COUNT(numbers); i++) gguf_add_u32(&w->b, numbers[i].key, numbers[i].value);
    gguf_add_f32(&w->b, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    gguf_add_text(&w->b, "tokenizer.ggml.model", "llama");
    gguf_add_texts(&w->b, "tokenizer.ggml.tokens", (uint64_t)w->n, w->tokens);
    float *scores = calloc((size_t)w->n, sizeof *scores);
    gguf_add_array(&w->b, "tokenizer.ggml.scores", FRIT_VALUE_F32, (uint64_t)w->n, scores);
    free(scores);
    gguf_add_array(&w->b, "tokenizer.ggml.token_type", FRIT_VALUE_I32, (uint64_t)w->n, w->kinds);
    gguf_add_u32(&w->b, "tokenizer.ggml.bos_token_id", 1);
    gguf_add_u32(&w->b, "tokenizer.ggml.eos_token_id", EOS);
    gguf_add_text(&w->b, "tokenizer.chat_template", chat_template);
}

static void add_layer(writing *w)
{
    add_matrix(w, "blk.0.attn_norm.weight", N_EMBD, 1, NULL);
    add_matrix(w, "blk.0.attn_q.weight", N_EMBD, N_EMBD, NULL);
    add_matrix(w, "blk.0.attn_k.weight", N_EMBD, N_EMBD, NULL);
    add_matrix(w, "blk.0.attn_v.weight", N_EMBD, N_EMBD, NULL);
    add_matrix(w, "blk.0.attn_output.weight", N_EMBD, N_EMBD, NULL);
    add_matrix(w, "blk.0.ffn_norm.weight", N_EMBD, 1, NULL);
    add_matrix(w, "blk.0.ffn_gate.weight", N_FF, N_EMBD, NULL);
    add_matrix(w, "blk.0.ffn_up.weight", N_FF, N_EMBD, NULL);
    add_matrix(w, "blk.0.ffn_down.weight", N_EMBD, N_FF, NULL);
}

void scripted_model(const char *path, const char *chat_template, const script *scripts, size_t n_scripts)
{
    writing *w = calloc(1, sizeof *w);
    const size_t n_max = (size_t)(FIRST_PIECE + MAX_PIECES) * N_EMBD;
    w->embd = calloc(n_max, sizeof *w->embd);
    w->output = calloc(n_max, sizeof *w->output);
    for (size_t i = 0; i < n_max; i += N_EMBD) w->embd[i] = 1;   // direction 0: no script
    add_token(w, "<unk>", KIND_UNKNOWN);
    add_token(w, "<s>", KIND_CONTROL);
    add_token(w, "</s>", KIND_CONTROL);
    for (int i = 0; i < 256; i++) {
        snprintf(w->bytes[i], sizeof w->bytes[i], "<0x%02X>", (unsigned)i);
        add_token(w, w->bytes[i], KIND_BYTE);
    }
    for (size_t i = 0; i < n_scripts; i++) add_script(w, &scripts[i]);
    w->output[EOS * N_EMBD] = 1;   // without a script the answer ends
    add_metadata(w, chat_template);
    add_matrix(w, "token_embd.weight", w->n, N_EMBD, w->embd);
    add_matrix(w, "output_norm.weight", N_EMBD, 1, NULL);
    add_matrix(w, "output.weight", w->n, N_EMBD, w->output);
    add_layer(w);
    frit_buf file = gguf_build(&w->b);
    write_file(path, file.data, file.len);
    frit_buf_free(&file);
    gguf_builder_free(&w->b);
    free(w->embd);
    free(w->output);
    free(w);
}
