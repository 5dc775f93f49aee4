// SPDX-License-Identifier: MIT
// Embeddings: every pooling against hidden states computed by transformers, with any other work in the steps.
#include "arch/golden.h"
#include "support/classifier.h"
#include "support/sentence_folder.h"

#include "format/checkpoint.h"

#include <math.h>

enum { MAX_ITEMS = 40 };

typedef struct found {
    float values[MAX_ITEMS][64 * 48];
    size_t n_rows[MAX_ITEMS], width;
} found;

static found got;

static void keep(void *ctx, size_t item, size_t i, const float *values, size_t n)
{
    found *f = ctx;
    f->width = n;
    f->n_rows[item]++;
    memcpy(f->values[item] + i * n, values, n * sizeof *values);
}

typedef struct fixture {
    golden g;
    frit_model *model;
    frit_engine *engine;
} fixture;

static fixture open_golden(const char *name)
{
    fixture f = {0};
    size_t i = 0;
    while (strcmp(golden_name(i), name) != 0) i++;
    f.g = golden_load(i);
    const frit_engine_options options = {.n_ctx = 64, .cache_type_k = "f32", .cache_type_v = "f32", .n_batch = 100};
    assert_ok(frit_model_open(&f.model, f.g.path, NULL));
    assert_ok(frit_engine_new(&f.engine, f.model, &options));
    memset(&got, 0, sizeof got);
    return f;
}

static void close_golden(fixture *f)
{
    frit_engine_free(f->engine);
    frit_model_free(f->model);
    golden_free(&f->g);
}

static frit_status embed(fixture *f, const frit_embed_options *options)
{
    const frit_embed_item item = {.tokens = f->g.tokens, .n_tokens = f->g.n_tokens};
    memset(&got, 0, sizeof got);
    return frit_embed_texts(f->engine, &item, 1, options, keep, &got);
}

static void check(const float *values, const float *wanted, size_t n)
{
    assert_int_equal(got.width, n);
    assert_true(nmse(values, wanted, n) <= 1e-6);
}

static void every_pooling_takes_its_rows(void **state)
{
    (void)state;
    static const char *const models[] = {"bert", "xlm-roberta", "modernbert", "eurobert"};
    for (size_t m = 0; m < FRIT_COUNT(models); m++) {
        fixture f = open_golden(models[m]);
        const size_t n = f.g.n_vocab, n_tokens = f.g.n_tokens;   // width of hidden states
        float mean[64] = {0};
        for (size_t t = 0; t < n_tokens; t++)
            for (size_t k = 0; k < n; k++) mean[k] += f.g.logits[t * n + k] / (float)n_tokens;
        assert_ok(embed(&f, &(frit_embed_options){.pooling = "mean", .normalize = "none"}));
        check(got.values[0], mean, n);
        assert_ok(embed(&f, &(frit_embed_options){.normalize = "none"}));   // for encoders
        check(got.values[0], mean, n);
        assert_ok(embed(&f, &(frit_embed_options){.pooling = "cls", .normalize = "none"}));
        check(got.values[0], f.g.logits, n);
        assert_ok(embed(&f, &(frit_embed_options){.pooling = "last", .normalize = "none"}));
        check(got.values[0], f.g.logits + (n_tokens - 1) * n, n);
        assert_ok(embed(&f, &(frit_embed_options){.pooling = "none", .normalize = "none"}));
        assert_int_equal(got.n_rows[0], n_tokens);
        assert_true(nmse(got.values[0], f.g.logits, n_tokens * n) <= 1e-6);
        close_golden(&f);
    }
}

static void poolings_are_concatenated_in_order(void **state)
{
    (void)state;
    fixture f = open_golden("mpnet");
    const size_t n = f.g.n_vocab, n_tokens = f.g.n_tokens;
    float wanted[3 * 64] = {0};
    for (size_t k = 0; k < n; k++) {
        double most = -INFINITY, sum = 0, weighted = 0;
        for (size_t t = 0; t < n_tokens; t++) {
            const double x = f.g.logits[t * n + k];
            most = fmax(most, x);
            sum += x;
            weighted += (double)(t + 1) * x;
        }
        wanted[k] = (float)(weighted / ((double)n_tokens * (double)(n_tokens + 1) / 2));
        wanted[n + k] = (float)most;
        wanted[2 * n + k] = (float)(sum / sqrt((double)n_tokens));
    }
    assert_ok(embed(&f, &(frit_embed_options){.pooling = "weighted_mean+max+mean_sqrt_len", .normalize = "none"}));
    check(got.values[0], wanted, 3 * n);
    assert_fails(embed(&f, &(frit_embed_options){.pooling = "mean+none"}), FRIT_E_INVALID,
                 "'none' cannot be joined with others");
    assert_fails(embed(&f, &(frit_embed_options){.pooling = "splade"}), FRIT_E_UNSUPPORTED, "no masked-LM head");
    assert_fails(embed(&f, &(frit_embed_options){.prompt_name = "query"}), FRIT_E_INVALID, "has no prompts");
    close_golden(&f);
}

static void splade_weighs_the_tokens_of_the_vocabulary(void **state)
{
    (void)state;
    fixture f = open_golden("bert-splade");
    const size_t n = f.g.n_vocab;
    float wanted[512] = {0}, sums[512] = {0};
    for (size_t t = 0; t < f.g.n_tokens; t++)
        for (size_t k = 0; k < n; k++) {
            const float x = log1pf(fmaxf(f.g.logits[t * n + k], 0));
            wanted[k] = fmaxf(wanted[k], x);
            sums[k] += x;
        }
    assert_ok(embed(&f, &(frit_embed_options){.pooling = "splade"}));
    check(got.values[0], wanted, n);
    assert_ok(embed(&f, &(frit_embed_options){.pooling = "splade_sum"}));
    check(got.values[0], sums, n);
    close_golden(&f);
}

static double sum_of(double (*of)(double x), size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += of(got.values[0][k]);
    return sum;
}

static double square(double x)
{
    return x * x;
}

static void vectors_are_made_comparable(void **state)
{
    (void)state;
    fixture f = open_golden("bert");
    assert_ok(embed(&f, NULL));
    assert_true(fabs(sum_of(square, 64) - 1) < 1e-5);
    assert_ok(embed(&f, &(frit_embed_options){.normalize = "l1"}));
    assert_true(fabs(sum_of(fabs, 64) - 1) < 1e-5);
    assert_ok(embed(&f, &(frit_embed_options){.normalize = "max"}));
    double most = 0;
    for (size_t k = 0; k < 64; k++) most = fmax(most, fabs((double)got.values[0][k]));
    assert_true(fabs(most - 1) < 1e-6);
    assert_ok(embed(&f, &(frit_embed_options){.n_dims = 10}));
    assert_int_equal(got.width, 10);
    assert_true(fabs(sum_of(square, 10) - 1) < 1e-5);
    close_golden(&f);
}

// Long and short items, more than there is room for at a time.
static void items_share_steps_and_change_nothing(void **state)
{
    (void)state;
    fixture f = open_golden("modernbert");
    frit_embed_item items[MAX_ITEMS];
    static float alone[MAX_ITEMS][64];
    for (size_t i = 0; i < MAX_ITEMS; i++) {
        const size_t n = 1 + i * 7 % f.g.n_tokens;
        items[i] = (frit_embed_item){.tokens = f.g.tokens + (i % (f.g.n_tokens - n + 1)), .n_tokens = n};
        memset(&got, 0, sizeof got);
        assert_ok(frit_embed_texts(f.engine, &items[i], 1, NULL, keep, &got));
        memcpy(alone[i], got.values[0], sizeof alone[i]);
    }
    memset(&got, 0, sizeof got);
    assert_ok(frit_embed_texts(f.engine, items, MAX_ITEMS, NULL, keep, &got));
    for (size_t i = 0; i < MAX_ITEMS; i++) {
        assert_int_equal(got.n_rows[i], 1);
        assert_memory_equal(got.values[i], alone[i], sizeof alone[i]);
    }
    close_golden(&f);
}

static void decoders_give_their_last_state(void **state)
{
    (void)state;
    fixture f = open_golden("qwen3");
    static found rows;
    memset(&rows, 0, sizeof rows);
    frit_model_info info;
    frit_model_get_info(f.model, &info);
    assert_int_equal(info.kind, FRIT_KIND_DECODER);
    assert_string_equal(info.pooling, "last");
    assert_ok(embed(&f, &(frit_embed_options){.pooling = "none", .normalize = "none"}));
    memcpy(rows.values[0], got.values[0], sizeof rows.values[0]);
    assert_int_equal(got.n_rows[0], f.g.n_tokens);
    assert_ok(embed(&f, &(frit_embed_options){.normalize = "none"}));
    assert_true(nmse(got.values[0], rows.values[0] + (f.g.n_tokens - 1) * got.width, got.width) <= 1e-9);
    close_golden(&f);
}

enum { N_LABELS = 3, N_EMBD = CLASSIFIER_WIDTH };

// The pooler and the classifier applied to tanh of the first token's state.
static void scores_are_those_of_the_head(void **state)
{
    (void)state;
    float out[N_LABELS][N_EMBD], bias[N_LABELS], hidden[N_EMBD], row[N_EMBD], scores[N_LABELS];
    fixture f = open_golden("bert"), c = {0};
    char *folder = make_classifier("classifier", N_LABELS, out, bias);
    assert_ok(frit_model_open(&c.model, folder, NULL));
    assert_ok(frit_engine_new(&c.engine, c.model,
                              &(frit_engine_options){.n_ctx = 64, .cache_type_k = "f32", .cache_type_v = "f32"}));
    frit_checkpoint *ckpt;
    assert_ok(frit_checkpoint_open(&ckpt, folder, &(frit_checkpoint_options){0}));
    const frit_tensor *dense = frit_checkpoint_find(ckpt, "cls.weight"), *b = frit_checkpoint_find(ckpt, "cls.bias");
    assert_non_null(dense);
    frit_tensor_decode_row(b, 0, row);
    memcpy(hidden, row, sizeof hidden);
    for (int i = 0; i < N_EMBD; i++) {
        frit_tensor_decode_row(dense, i, row);
        for (int k = 0; k < N_EMBD; k++) hidden[i] += row[k] * f.g.logits[k];
        hidden[i] = tanhf(hidden[i]);
    }
    for (int i = 0; i < N_LABELS; i++) {
        scores[i] = bias[i];
        for (int k = 0; k < N_EMBD; k++) scores[i] += out[i][k] * hidden[k];
    }
    frit_model_info info;
    frit_model_get_info(c.model, &info);
    assert_string_equal(info.pooling, "rank");
    c.g = f.g;
    assert_ok(embed(&c, NULL));
    check(got.values[0], scores, N_LABELS);
    frit_checkpoint_close(ckpt);
    frit_engine_free(c.engine);
    frit_model_free(c.model);
    close_golden(&f);
    free(folder);
}

// Texts are cut as sentence-transformers does; the token after a text stays.
static void a_folder_says_where_texts_and_vectors_end(void **state)
{
    (void)state;
    enum { MOST = 6, DIMS = 5 };
    static const char text[] = "Hello there, my friend of the garden.";
    char *folder = sentence_folder("cut", "{\"max_seq_length\": 6}", "{\"truncate_dim\": 5}");
    fixture f = {0};
    frit_token tokens[64];
    float wanted[DIMS];
    size_t n, n_width;
    frit_model_info info;
    assert_ok(frit_model_open(&f.model, folder, NULL));
    assert_ok(frit_engine_new(&f.engine, f.model, &(frit_engine_options){.n_ctx = 64}));
    frit_model_get_info(f.model, &info);
    assert_int_equal(info.n_embed_tokens, MOST);
    assert_ok(frit_tokenize(f.model, text, strlen(text), FRIT_TEXT_SPECIAL, tokens, 64, &n));
    assert_true(n > MOST + 2 && tokens[0] == SENTENCE_FIRST && tokens[n - 1] == SENTENCE_LAST);
    const frit_embed_item whole = {.text = text, .n_bytes = strlen(text)};
    frit_token cut[64];
    memcpy(cut, tokens, sizeof cut);
    cut[MOST - 1] = SENTENCE_LAST;
    const frit_embed_item first = {.tokens = cut, .n_tokens = MOST};
    assert_ok(frit_embed_texts(f.engine, &first, 1, NULL, keep, &got));
    assert_int_equal(got.width, DIMS);
    memcpy(wanted, got.values[0], sizeof wanted);
    assert_ok(frit_embed_texts(f.engine, &whole, 1, NULL, keep, &got));
    assert_memory_equal(got.values[0], wanted, sizeof wanted);
    // a caller's limit counts if it is lower, and a caller's number of dimensions counts
    assert_ok(frit_embed_cut(f.model, 100, tokens, &n));
    assert_int_equal(n, MOST);
    assert_memory_equal(tokens, cut, MOST * sizeof *cut);
    assert_ok(frit_embed_cut(f.model, 3, tokens, &n));
    assert_true(n == 3 && tokens[2] == SENTENCE_LAST);
    assert_ok(frit_embed_width(f.model, &(frit_embed_options){.n_dims = 64}, &n_width));
    assert_int_equal(n_width, 64);
    frit_engine_free(f.engine);
    frit_model_free(f.model);
    free(folder);
}

// A text's vector is the mean of its tokens' rows; no token is put around a text, whatever the tokenizer says.
static void static_embeddings_average_rows_of_a_table(void **state)
{
    (void)state;
    enum { N = 512, DIM = 12 };
    static const char config[] =
        "{\"model_type\": \"model2vec\", \"architectures\": [\"StaticModel\"], \"hidden_dim\": 12}";
    static const char modules[] = "[{\"path\": \".\", \"type\": \"sentence_transformers.models.StaticEmbedding\"},"
                                  " {\"path\": \"1_Normalize\", \"type\": \"sentence_transformers.models.Normalize\"}]";
    static const char text[] = "Hello there, my friend of the garden.";
    static float table[N][DIM];
    char *folder = sentence_folder("static", "{}", "{}"), *file = strdup(temp_path("static.gguf"));
    frit_buf weights = {0};
    const char *header = "{\"embeddings\":{\"dtype\":\"F32\",\"shape\":[512,12],\"data_offsets\":[0,24576]}}";
    const uint64_t n_header = strlen(header);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < DIM; k++) table[i][k] = sinf((float)(i * DIM + k));
    frit_buf_append(&weights, &n_header, sizeof n_header);
    frit_buf_text(&weights, header);
    frit_buf_append(&weights, table, sizeof table);
    sentence_write(folder, "model.safetensors", weights.data, weights.len);
    sentence_write(folder, "config.json", config, strlen(config));
    sentence_write(folder, "modules.json", modules, strlen(modules));
    assert_ok(frit_convert(folder, file, NULL));
    for (int f = 0; f < 2; f++) {
        fixture s = {0};
        frit_token tokens[64];
        size_t n;
        float wanted[DIM] = {0};
        double length = 0;
        assert_ok(frit_model_open(&s.model, f == 0 ? folder : file, NULL));
        assert_ok(frit_engine_new(&s.engine, s.model, &(frit_engine_options){.n_ctx = 64}));
        assert_ok(frit_tokenize(s.model, text, strlen(text), FRIT_TEXT_SPECIAL, tokens, 64, &n));
        assert_true(n > 4 && tokens[0] != SENTENCE_FIRST && tokens[n - 1] != SENTENCE_LAST);
        for (size_t i = 0; i < n; i++)
            for (int k = 0; k < DIM; k++) wanted[k] += table[tokens[i]][k] / (float)n;
        for (int k = 0; k < DIM; k++) length += wanted[k] * wanted[k];
        for (int k = 0; k < DIM; k++) wanted[k] /= (float)sqrt(length);
        const frit_embed_item item = {.text = text, .n_bytes = strlen(text)};
        assert_ok(frit_embed_texts(s.engine, &item, 1, NULL, keep, &got));
        check(got.values[0], wanted, DIM);
        frit_engine_free(s.engine);
        frit_model_free(s.model);
    }
    // a table whose rows have factors
    const char *scaled = "{\"embeddings\":{\"dtype\":\"F32\",\"shape\":[512,12],\"data_offsets\":[0,24576]},"
                         "\"weights\":{\"dtype\":\"F32\",\"shape\":[512],\"data_offsets\":[24576,26624]}}";
    const uint64_t n_scaled = strlen(scaled);
    frit_model *model;
    frit_buf_clear(&weights);
    frit_buf_append(&weights, &n_scaled, sizeof n_scaled);
    frit_buf_text(&weights, scaled);
    frit_buf_append(&weights, table, sizeof table);
    frit_buf_append(&weights, table, N * sizeof(float));
    sentence_write(folder, "model.safetensors", weights.data, weights.len);
    assert_fails(frit_model_open(&model, folder, NULL), FRIT_E_UNSUPPORTED, "tensor 'weights' beside 'embeddings'");
    frit_buf_free(&weights);
    free(folder);
    free(file);
}

static void bad_requests_are_refused(void **state)
{
    (void)state;
    fixture f = open_golden("bert");
    size_t n;
    assert_fails(embed(&f, &(frit_embed_options){.pooling = "most"}), FRIT_E_INVALID,
                 "pooling is 'most', expected none, mean, cls, last, rank, max");
    assert_fails(embed(&f, &(frit_embed_options){.normalize = "l3"}), FRIT_E_INVALID,
                 "normalize is 'l3', expected l2, l1, max or none");
    assert_fails(embed(&f, &(frit_embed_options){.n_dims = 65}), FRIT_E_INVALID, "this model's have 64");
    assert_fails(embed(&f, &(frit_embed_options){.pooling = "rank"}), FRIT_E_UNSUPPORTED, "classification head");
    assert_ok(frit_embed_width(f.model, NULL, &n));
    assert_int_equal(n, 64);
    frit_token many[65] = {0};
    frit_embed_item item = {.tokens = many, .n_tokens = 65};
    assert_fails(frit_embed_texts(f.engine, &item, 1, NULL, keep, &got), FRIT_E_INVALID,
                 "65 tokens, the context is 64");
    item.n_tokens = 0;
    assert_fails(frit_embed_texts(f.engine, &item, 1, NULL, keep, &got), FRIT_E_INVALID, "item 0 has no tokens");
    many[0] = 512;
    item.n_tokens = 1;
    assert_fails(frit_embed_texts(f.engine, &item, 1, NULL, keep, &got), FRIT_E_INVALID,
                 "this model's ids are 0 to 511");
    assert_ok(embed(&f, NULL));
    close_golden(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pooling_takes_its_rows),
        cmocka_unit_test(poolings_are_concatenated_in_order),
        cmocka_unit_test(splade_weighs_the_tokens_of_the_vocabulary),
        cmocka_unit_test(vectors_are_made_comparable),
        cmocka_unit_test(items_share_steps_and_change_nothing),
        cmocka_unit_test(decoders_give_their_last_state),
        cmocka_unit_test(scores_are_those_of_the_head),
        cmocka_unit_test(a_folder_says_where_texts_and_vectors_end),
        cmocka_unit_test(static_embeddings_average_rows_of_a_table),
        cmocka_unit_test(bad_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
