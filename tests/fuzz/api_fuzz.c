// SPDX-License-Identifier: MIT
// Calls of the library in any order, with any numbers: each input is a program of calls on a few sessions, samplers and
// other objects of one small model. Nothing may crash; every failure has an error text; counts and results must be
// consistent.
#include "format/gguf.h"
#include "frit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

enum { N_VOCAB = 48, N_EMBD = 32, N_FF = 32, N_CTX = 40, N_SLOTS = 3, MAX_CALLS = 200 };

static uint8_t *file;   // the model
static size_t n_file;

static void require(bool good)
{
    if (!good) abort();
}

// ------------------------------------------------------------------------------- the model

typedef struct making {
    frit_arena arena;
    frit_meta meta;
    frit_tensor tensors[16];
    size_t n_tensors;
} making;

static void add_tensor(making *m, const char *name, int64_t rows, int64_t columns)
{
    float *values = malloc((size_t)(rows * columns) * sizeof *values);
    for (int64_t i = 0; i < rows * columns; i++)
        values[i] = columns == 1 ? 1 : (float)((i * 2654435761u + m->n_tensors * 40503u) % 1000) / 2500 - 0.2f;
    m->tensors[m->n_tensors++] = (frit_tensor){.name = name,
                                               .dtype = FRIT_DTYPE_F32,
                                               .n_dims = columns == 1 ? 1 : 2,
                                               .shape = {rows, columns, 1, 1},
                                               .data = values,
                                               .n_bytes = (uint64_t)(rows * columns) * sizeof *values};
}

static void add_array(making *m, const char *key, frit_value_type type, const void *items)
{
    frit_value value = {.type = FRIT_VALUE_ARRAY};
    value.array.type = type;
    value.array.n = N_VOCAB;
    value.array.items = items;
    require(frit_meta_add(&m->meta, frit_str_of(key), value) == FRIT_OK);
}

static void add_vocab(making *m)
{
    static char texts[N_VOCAB][8] = {"<unk>", "<s>", "</s>", "\xe2\x96\x81"};
    static frit_str pieces[N_VOCAB];
    static float scores[N_VOCAB];
    static int32_t kinds[N_VOCAB];
    for (int i = 0; i < N_VOCAB; i++) {
        if (i >= 4) texts[i][0] = (char)('a' + i % 26), texts[i][1] = i < 30 ? 0 : (char)('a' + i % 7);
        pieces[i] = frit_str_of(texts[i]);
        scores[i] = (float)-i;
        kinds[i] = i == 0 ? 2 : i < 3 ? 3 : 1;
    }
    add_array(m, "tokenizer.ggml.tokens", FRIT_VALUE_TEXT, pieces);
    add_array(m, "tokenizer.ggml.scores", FRIT_VALUE_F32, scores);
    add_array(m, "tokenizer.ggml.token_type", FRIT_VALUE_I32, kinds);
}

static void describe(making *m)
{
    static const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"llama.context_length", N_CTX},     {"llama.embedding_length", N_EMBD}, {"llama.block_count", 1},
        {"llama.feed_forward_length", N_FF}, {"llama.attention.head_count", 2},  {"llama.attention.head_count_kv", 1},
        {"llama.rope.dimension_count", 16},  {"tokenizer.ggml.bos_token_id", 1}, {"tokenizer.ggml.eos_token_id", 2},
    };
    static const struct {
        const char *name;
        int64_t rows, columns;
    } tensors[] = {
        {"token_embd.weight", N_VOCAB, N_EMBD}, {"output_norm.weight", N_EMBD, 1},
        {"output.weight", N_VOCAB, N_EMBD},     {"blk.0.attn_norm.weight", N_EMBD, 1},
        {"blk.0.attn_q.weight", 32, N_EMBD},    {"blk.0.attn_k.weight", 16, N_EMBD},
        {"blk.0.attn_v.weight", 16, N_EMBD},    {"blk.0.attn_output.weight", N_EMBD, 32},
        {"blk.0.ffn_norm.weight", N_EMBD, 1},   {"blk.0.ffn_gate.weight", N_FF, N_EMBD},
        {"blk.0.ffn_up.weight", N_FF, N_EMBD},  {"blk.0.ffn_down.weight", N_EMBD, N_FF},
    };
    require(frit_meta_add_text(&m->meta, "general.architecture", "llama") == FRIT_OK);
    require(frit_meta_add_text(&m->meta, "tokenizer.ggml.model", "llama") == FRIT_OK);
    require(frit_meta_add_f64(&m->meta, "llama.attention.layer_norm_rms_epsilon", 1e-5) == FRIT_OK);
    for (size_t i = 0; i < FRIT_COUNT(numbers); i++)
        require(frit_meta_add_u64(&m->meta, numbers[i].key, numbers[i].value) == FRIT_OK);
    for (size_t i = 0; i < FRIT_COUNT(tensors); i++)
        add_tensor(m, tensors[i].name, tensors[i].rows, tensors[i].columns);
    ((float *)(uintptr_t)m->tensors[0].data)[40 * N_EMBD] = NAN;   // sessions with token 40 fail
    add_vocab(m);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    static making m;
    char path[64];
    snprintf(path, sizeof path, "/tmp/frit-api-fuzz-%ld.gguf", (long)getpid());
    frit_meta_init(&m.meta, &m.arena);
    describe(&m);
    const frit_gguf_contents contents = {.meta = &m.meta, .tensors = m.tensors, .n_tensors = m.n_tensors};
    char *bytes = NULL;
    require(frit_gguf_write_contents(&contents, path) == FRIT_OK);
    require(frit_file_read(path, 1 << 20, &bytes, &n_file) == FRIT_OK);
    require(remove(path) == 0);
    file = (uint8_t *)bytes;
    return 0;
}

// ------------------------------------------------------------------------------- the world

typedef struct world {
    const uint8_t *bytes;
    size_t left;
    frit_model *model;
    frit_engine *engine;
    frit_session *sessions[N_SLOTS];   // NULL: a call with NULL
    frit_sampler *samplers[N_SLOTS];
    frit_text_stream *stream;
    frit_turn *turn;
} world;

static unsigned take(world *w)
{
    if (w->left == 0) return 0;
    w->left--;
    return *w->bytes++;
}

// Numbers around every limit.
static size_t take_size(world *w, size_t most)
{
    const unsigned n = take(w);
    return n < 250 ? n % (most + 2) : n < 253 ? SIZE_MAX : most;
}

static frit_status check(frit_status status)
{
    require(status <= FRIT_OK && status >= FRIT_E_TIMEOUT && status != FRIT_E_INTERNAL);
    require(status == FRIT_OK || frit_error()[0]);
    return status;
}

static frit_session **some_session(world *w, size_t *i)
{
    *i = take(w) % N_SLOTS;
    return &w->sessions[*i];
}

static frit_token take_token(world *w)
{
    const unsigned n = take(w);
    return n == 255 ? INT32_MAX : n == 254 ? -1 : (frit_token)(n % (N_VOCAB + 1));
}

static size_t take_tokens(world *w, frit_token tokens[2 * N_CTX])
{
    const size_t n = take(w) % (2 * N_CTX);
    for (size_t i = 0; i < n; i++) tokens[i] = i < 4 ? take_token(w) : (frit_token)(i % 40);
    return n;
}

// ------------------------------------------------------------------------------- calls

static void count_row(void *ctx, size_t i, const float *values, size_t n)
{
    require(values && n > 0 && i < N_CTX);
    ++*(size_t *)ctx;
}

static size_t n_rows_seen;

static void new_engine(world *w)
{
    const frit_engine_options options = {.n_ctx = N_CTX, .n_sessions = 2, .n_threads = 1, .n_batch = 8};
    frit_engine_free(w->engine);
    if (check(frit_engine_new(&w->engine, w->model, &options)) != FRIT_OK) require(!w->engine);
}

static void new_session(world *w)
{
    size_t i;
    frit_session **session = some_session(w, &i);
    frit_session_free(*session);
    if (check(frit_session_new(session, w->engine)) != FRIT_OK) require(!*session);
}

static void free_session(world *w)
{
    size_t i;
    frit_session **session = some_session(w, &i);
    frit_session_free(*session);
    *session = NULL;
}

static void push(world *w)
{
    size_t i;
    frit_token tokens[2 * N_CTX];
    const size_t n = take_tokens(w, tokens);
    frit_session *session = *some_session(w, &i);
    const frit_push_options options = {
        .output = (frit_output)(take(w) % 6), .row = take(w) % 4 ? count_row : NULL, .row_ctx = &n_rows_seen};
    const size_t before = frit_session_length(session);
    const frit_status status = check(frit_session_push(session, n ? tokens : NULL, n, take(w) % 2 ? &options : NULL));
    require(frit_session_length(session) == before + (status == FRIT_OK ? n : 0));
}

static void step(world *w)
{
    int32_t n_rows = -1;
    check(frit_engine_step(w->engine, take(w) % 2 ? &n_rows : NULL));
}

static void next(world *w)
{
    size_t i;
    frit_token token = -7;
    frit_session *session = *some_session(w, &i);
    const frit_status status = check(frit_session_next(session, w->samplers[take(w) % N_SLOTS], &token));
    require(status == FRIT_OK ? token >= 0 && token < N_VOCAB : token == -7);
}

static void truncate_session(world *w)
{
    size_t i;
    frit_session *session = *some_session(w, &i);
    const size_t n = take_size(w, N_CTX);
    if (check(frit_session_truncate(session, n)) != FRIT_OK) return;
    require(frit_session_length(session) == n && frit_session_status(session) == FRIT_OK);
    require(frit_session_pending(session) <= n);
}

static void look_at_session(world *w)
{
    size_t i, n = 9;
    const frit_session *session = *some_session(w, &i);
    const frit_status status = check(frit_session_status(session));
    const float *logits = frit_session_logits(session);
    const size_t length = frit_session_length(session);
    frit_logprob top[4];
    require(frit_session_pending(session) <= length && length <= N_CTX);
    require(!logits || (status == FRIT_OK && frit_session_pending(session) == 0));
    require(!session || (frit_session_tokens(session) && frit_session_note(session, &n)));
    for (size_t k = 0; k < length; k++) require(frit_session_tokens(session)[k] < N_VOCAB);
    const size_t n_top = take_size(w, 4) % 5;
    if (check(frit_logprobs_top(logits, N_VOCAB, top, n_top)) != FRIT_OK) return;
    for (size_t k = 0; k < n_top; k++) require(top[k].logprob <= 0 && (k == 0 || top[k].logprob <= top[k - 1].logprob));
}

static void fork_session(world *w)
{
    size_t i, k;
    frit_session *session = *some_session(w, &i), **to = some_session(w, &k), *fork = NULL;
    if (i == k) return;
    frit_session_free(*to);
    *to = NULL;
    if (check(frit_session_fork(&fork, session)) != FRIT_OK) return;
    require(frit_session_length(fork) == frit_session_length(session));
    require(frit_session_pending(fork) == frit_session_pending(session));
    *to = fork;
}

static void save_and_load(world *w)
{
    size_t i, k, n = 0;
    const frit_session *from = *some_session(w, &i);
    frit_session *to = *some_session(w, &k);
    if (check(frit_session_save_memory(from, NULL, 0, &n)) != FRIT_E_LIMIT) return;
    uint8_t *bytes = malloc(n);
    require(bytes && frit_session_save_memory(from, bytes, n, &n) == FRIT_OK);
    const bool damaged = take(w) % 4 == 0;
    if (damaged) bytes[(take(w) * 251u) % n] ^= (uint8_t)(1 + take(w) % 255);
    const frit_status status = check(frit_session_load_memory(to, bytes, n));
    require(!damaged || status != FRIT_OK);
    if (status == FRIT_OK) require(frit_session_length(to) == frit_session_length(from));
    free(bytes);
}

static size_t own_stage(void *ctx, frit_candidate *candidates, size_t n)
{
    const unsigned kind = *(unsigned *)ctx;
    if (kind == 1) candidates[0].logit = NAN;
    if (kind == 2) candidates[0].token = N_VOCAB;
    return kind == 3 ? 0 : kind == 4 ? n + 1 : (n + 1) / 2;
}

static void new_sampler(world *w)
{
    static const char *const orders[] = {NULL, "temp", "custom,top-k,temp", "top-k,,", "top-p,min-p,custom", ""};
    static unsigned kinds[N_SLOTS];
    const size_t i = take(w) % N_SLOTS;
    kinds[i] = take(w) % 6;
    const frit_sampler_options options = {
        .temp = (float)(take(w) % 5) - 1,
        .top_k = (int32_t)(take(w) % 60) - 2,
        .top_p = (float)(take(w) % 12) / 10,
        .repeat_penalty = (float)(take(w) % 3),
        .repeat_last_n = (int32_t)(take(w) % 70) - 2,
        .samplers = orders[take(w) % FRIT_COUNT(orders)],
        .stage = take(w) % 2 ? own_stage : NULL,
        .stage_ctx = &kinds[i],
        .reserved = {take(w) == 255},
    };
    frit_sampler_free(w->samplers[i]);
    if (check(frit_sampler_new(&w->samplers[i], w->model, &options)) != FRIT_OK) require(!w->samplers[i]);
}

static void use_sampler(world *w)
{
    size_t i, n_keep;
    frit_token tokens[2 * N_CTX], token;
    frit_sampler *sampler = w->samplers[take(w) % N_SLOTS];
    check(frit_sampler_accept(sampler, take_token(w)));
    check(frit_sampler_sample(sampler, frit_session_logits(*some_session(w, &i)), &token));
    const size_t n = take_tokens(w, tokens);
    if (take(w) % 4 == 0 && check(frit_sampler_heal(sampler, w->model, tokens, n, &n_keep)) == FRIT_OK)
        require(n_keep <= n);
    if (take(w) % 4 == 0) check(frit_sampler_reset(sampler));
    if (take(w) % 4 == 0) check(frit_sampler_set_position(sampler, (uint64_t)take(w) << 28));
}

static void use_stream(world *w)
{
    const char *text = "";
    size_t n = 0;
    if (take(w) % 4 == 0) {
        frit_text_stream_free(w->stream);
        check(frit_text_stream_new(&w->stream, w->model, take(w)));
    }
    frit_status status = check(frit_text_stream_push(w->stream, take_token(w), &text, &n));
    if (status == FRIT_OK) require(text[n] == 0);
    if (take(w) % 4 == 0) check(frit_text_stream_flush(w->stream, &text, &n));
}

static void use_turn(world *w)
{
    static const char *const requests[] = {
        "{\"messages\":[{\"role\":\"user\",\"content\":\"ab\"}]}", "{}", "{\"messages\":[]}",
        ("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"tools\":[{\"type\":\"function\",\"function\":"
         "{\"name\":\"f\",\"parameters\":{}}}],\"tool_choice\":\"required\"}")};
    frit_part part;
    size_t n;
    if (take(w) % 4 == 0) {
        const char *request = requests[take(w) % FRIT_COUNT(requests)];
        frit_turn_free(w->turn);
        if (check(frit_turn_new(&w->turn, w->model, request, strlen(request))) != FRIT_OK) require(!w->turn);
    }
    const char *prompt = frit_turn_prompt(w->turn, &n);
    require(!prompt || strlen(prompt) == n);
    frit_token tokens[2 * N_CTX];
    const frit_tokenize_limits limits = {.max_tokens = take(w) % 32};
    const size_t capacity = take(w) % FRIT_COUNT(tokens);
    const frit_status status = check(frit_turn_tokenize(w->turn, &limits, tokens, capacity, &n));
    require(status != FRIT_OK || n <= capacity);
    require(status != FRIT_E_LIMIT || n > capacity || n > limits.max_tokens);
    check(frit_turn_push(w->turn, "<tool_call>{\"na", take(w) % 16));
    if (take(w) % 2) check(frit_turn_end(w->turn));
    while (frit_turn_next(w->turn, &part)) require(part.text && part.text[part.n_bytes] == 0);
    frit_turn_shows(w->turn, take_token(w));
}

static void use_text(world *w)
{
    frit_token tokens[2 * N_CTX];
    char text[64];
    size_t n = 0, n_tokens = take_tokens(w, tokens);
    const size_t capacity = take(w) % sizeof text;
    frit_status status = check(frit_detokenize(w->model, tokens, n_tokens, take(w), text, capacity, &n));
    if (status == FRIT_OK) {
        status = check(frit_tokenize(w->model, text, n, take(w), tokens, 2 * N_CTX, &n_tokens));
        require(status != FRIT_OK || n_tokens <= 2 * N_CTX);
        const frit_message message = {.role = "user", .content = "ab<eos>"};
        status = check(frit_chat_tokenize(w->model, &message, 1, NULL, tokens, capacity, &n_tokens));
        require(status != FRIT_OK || n_tokens <= capacity);
    }
    frit_token_info info;
    check(frit_token_get_info(w->model, take_token(w), &info));
    const frit_token special = frit_token_of_role(w->model, (frit_token_role)take(w));
    require(special >= -1 && special < N_VOCAB);
}

static void use_metadata(world *w)
{
    static const char *const keys[] = {
        "general.architecture", "llama.block_count", "tokenizer.ggml.tokens", "tokenizer.ggml.scores", "", "nothing"};
    const char *key = keys[take(w) % FRIT_COUNT(keys)], *text;
    const uint64_t i = take_size(w, N_VOCAB);
    int64_t number;
    double real;
    size_t n;
    frit_meta_info info;
    const frit_status status = check(frit_model_find_meta(w->model, key, &info));
    const bool inside = status == FRIT_OK && i < info.n_items;
    require(inside || check(frit_model_meta_int(w->model, key, i, &number)) != FRIT_OK);
    require(inside || check(frit_model_meta_float(w->model, key, i, &real)) != FRIT_OK);
    require((check(frit_model_meta_text(w->model, key, i, &text, &n)) == FRIT_OK) ==
            (inside && info.type == FRIT_META_TEXT));
}

static void embed_row(void *ctx, size_t item, size_t i, const float *values, size_t n)
{
    require(item < 2 && i < N_CTX && values && n > 0);
    ++*(size_t *)ctx;
}

static void embed(world *w)
{
    static const char *const poolings[] = {NULL, "none", "mean", "last", "rank", "x"};
    frit_token tokens[2 * N_CTX];
    const size_t n = take_tokens(w, tokens);
    const frit_embed_item items[] = {{.text = "ab", .n_bytes = 2}, {.tokens = tokens, .n_tokens = n}};
    const frit_embed_options options = {.pooling = poolings[take(w) % FRIT_COUNT(poolings)],
                                        .n_dims = (int32_t)(take(w) % 40) - 1};
    check(frit_embed_texts(w->engine, items, 1 + take(w) % 2, &options, embed_row, &n_rows_seen));
}

static void change_session(world *w)
{
    size_t i;
    frit_session *session = *some_session(w, &i);
    frit_token tokens[2 * N_CTX];
    const size_t n = take_tokens(w, tokens);
    check(frit_session_set_note(session, "note", take(w) % 5));
    check(frit_session_set_adapters(session, NULL, NULL, take(w) % 2));
    check(frit_session_encode(session, tokens, n, NULL));
}

static void free_engine(world *w)
{
    frit_engine_free(w->engine);
    w->engine = NULL;
}

// The engine, streams and turns keep the old model; samplers that heal must not outlive it.
static void reopen_model(world *w)
{
    for (size_t i = 0; i < N_SLOTS; i++) {
        frit_sampler_free(w->samplers[i]);
        w->samplers[i] = NULL;
    }
    frit_model_free(w->model);
    const size_t n = take(w) == 255 ? n_file / 2 : n_file;
    if (check(frit_model_open_memory(&w->model, file, n, NULL)) != FRIT_OK) require(!w->model);
}

static void (*const calls[])(world *w) = {
    new_engine,
    new_session,
    new_session,
    free_session,
    push,
    push,
    push,
    step,
    step,
    next,
    next,
    next,
    use_text,
    use_metadata,
    truncate_session,
    look_at_session,
    look_at_session,
    fork_session,
    save_and_load,
    new_sampler,
    new_sampler,
    use_sampler,
    use_stream,
    use_turn,
    embed,
    change_session,
    free_engine,
    reopen_model,
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    world w = {.bytes = bytes, .left = n_bytes};
    require(frit_model_open_memory(&w.model, file, n_file, NULL) == FRIT_OK);
    new_engine(&w);
    for (int i = 0; i < N_SLOTS; i++) require(frit_session_new(&w.sessions[i], w.engine) == FRIT_OK);
    require(frit_sampler_new(&w.samplers[0], w.model, NULL) == FRIT_OK);
    for (int i = 0; i < MAX_CALLS && w.left > 0; i++) calls[take(&w) % FRIT_COUNT(calls)](&w);
    // The input chooses the order: sessions may outlive their engine, engines their model.
    const unsigned order = take(&w);
    if (order % 2) frit_model_free(w.model);
    if (order % 4 < 2) frit_engine_free(w.engine);
    for (int i = 0; i < N_SLOTS; i++) {
        frit_session_free(w.sessions[i]);
        frit_sampler_free(w.samplers[i]);
    }
    if (order % 4 >= 2) frit_engine_free(w.engine);
    frit_text_stream_free(w.stream);
    frit_turn_free(w.turn);
    if (order % 2 == 0) frit_model_free(w.model);
    return 0;
}
