// SPDX-License-Identifier: MIT
// Reranking: tokens of pairs, and scores against the classifier's formula over hidden states of the golden BERT.
#include "support/classifier.h"
#include "support/gguf_builder.h"
#include "support/support.h"

#include "format/checkpoint.h"
#include "frit.h"

#include <math.h>
#include <stdlib.h>

enum { N_EMBD = CLASSIFIER_WIDTH, MAX_TOKENS = 64, N_DOCUMENTS = 5 };

static const char query[] = "the king of the sea";
static const char *const documents[N_DOCUMENTS] = {"a fish swims", "the queen", "", "the king of the sea is old",
                                                   "[SEP] [CLS]"};

typedef struct fixture {
    frit_model *body, *model;
    frit_engine *body_engine, *engine;
    char *folder;
    float out[1][N_EMBD], bias[1];
} fixture;

static int set_up(void **state)
{
    static fixture f;
    const frit_engine_options options = {.n_ctx = 64, .cache_type_k = "f32", .cache_type_v = "f32"};
    f.folder = make_classifier("reranker", 1, f.out, f.bias);
    assert_ok(frit_model_open(&f.body, shared_path("goldens/hf/bert"), NULL));
    assert_ok(frit_engine_new(&f.body_engine, f.body, &options));
    assert_ok(frit_model_open(&f.model, f.folder, NULL));
    assert_ok(frit_engine_new(&f.engine, f.model, &options));
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    frit_engine_free(f->engine);
    frit_model_free(f->model);
    frit_engine_free(f->body_engine);
    frit_model_free(f->body);
    free(f->folder);
    return 0;
}

static size_t pair_of(const frit_model *model, const char *document, frit_token *tokens)
{
    size_t n;
    assert_ok(frit_rerank_tokenize(model, query, strlen(query), document, strlen(document), tokens, MAX_TOKENS, &n));
    return n;
}

// Checks the tokens of the query "ab" and the document "b" in a vocabulary of these texts.
static void check_pair(gguf_builder *b, const char *kind, const char *const *pieces, const int32_t *types, size_t n,
                       const frit_token *expected, size_t n_expected)
{
    static const float scores[16];
    frit_model *model;
    frit_token tokens[16], one;
    size_t n_tokens;
    gguf_add_text(b, "general.architecture", "bert");
    gguf_add_text(b, "tokenizer.ggml.model", kind);
    gguf_add_texts(b, "tokenizer.ggml.tokens", n, pieces);
    gguf_add_array(b, "tokenizer.ggml.scores", FRIT_VALUE_F32, n, scores);
    gguf_add_array(b, "tokenizer.ggml.token_type", FRIT_VALUE_I32, n, types);
    frit_buf file = gguf_build(b);
    assert_ok(frit_model_open_memory(&model, file.data, file.len, &(frit_model_options){.vocab_only = true}));
    assert_ok(frit_rerank_tokenize(model, "a b", 3, "b", 1, tokens, 16, &n_tokens));
    assert_int_equal(n_tokens, n_expected);
    assert_memory_equal(tokens, expected, n_expected * sizeof *tokens);
    assert_fails(frit_rerank_tokenize(model, "a b", 3, "b", 1, &one, 1, &n_tokens), FRIT_E_LIMIT, "room for 1");
    assert_int_equal(n_tokens, n_expected);
    frit_model_free(model);
    frit_buf_free(&file);
    gguf_builder_free(b);
}

// BERT: [CLS] query [SEP] document [SEP]. XLM-RoBERTa: <s> query </s></s> document </s>.
static void a_pair_has_the_special_tokens_of_its_vocabulary(void **state)
{
    (void)state;
    static const char *const bert[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u2581a", "\u2581b"};
    static const int32_t bert_types[] = {3, 3, 3, 3, 1, 1};
    gguf_builder b = {0};
    gguf_add_u32(&b, "tokenizer.ggml.bos_token_id", 2);
    gguf_add_u32(&b, "tokenizer.ggml.seperator_token_id", 3);
    gguf_add_u32(&b, "tokenizer.ggml.unknown_token_id", 1);
    gguf_add_u32(&b, "tokenizer.ggml.padding_token_id", 0);
    check_pair(&b, "bert", bert, bert_types, 6, (const frit_token[]){2, 4, 5, 3, 5, 3}, 6);
    static const char *const roberta[] = {"<s>", "<pad>", "</s>", "<unk>", "\u2581a", "\u2581b"};
    static const int32_t roberta_types[] = {3, 3, 3, 2, 1, 1};
    gguf_builder r = {0};
    gguf_add_u32(&r, "tokenizer.ggml.bos_token_id", 0);
    gguf_add_u32(&r, "tokenizer.ggml.eos_token_id", 2);
    gguf_add_u32(&r, "tokenizer.ggml.seperator_token_id", 2);
    gguf_add_u32(&r, "tokenizer.ggml.unknown_token_id", 3);
    gguf_add_u32(&r, "tokenizer.ggml.padding_token_id", 1);
    gguf_add_bool(&r, "tokenizer.ggml.add_bos_token", true);
    gguf_add_bool(&r, "tokenizer.ggml.add_eos_token", true);
    gguf_add_bool(&r, "tokenizer.ggml.add_sep_token", true);
    check_pair(&r, "t5", roberta, roberta_types, 6, (const frit_token[]){0, 4, 5, 2, 2, 5, 2}, 7);
}

static void take(void *ctx, size_t item, size_t i, const float *values, size_t n)
{
    (void)item, (void)i;
    memcpy(ctx, values, n * sizeof *values);
}

// out tanh(dense x + b) + c, where x is the state of the first token, from the embeddings of the model.
static double score_of(const fixture *f, const frit_checkpoint *ckpt, const char *document)
{
    frit_token tokens[MAX_TOKENS];
    const frit_embed_item item = {.tokens = tokens, .n_tokens = pair_of(f->model, document, tokens)};
    float x[N_EMBD], row[N_EMBD], b[N_EMBD];
    assert_ok(frit_embed_texts(f->body_engine, &item, 1, &(frit_embed_options){.pooling = "cls", .normalize = "none"},
                               take, x));
    double score = (double)f->bias[0];
    frit_tensor_decode_row(frit_checkpoint_find(ckpt, "cls.bias"), 0, b);
    for (int i = 0; i < N_EMBD; i++) {
        double sum = (double)b[i];
        frit_tensor_decode_row(frit_checkpoint_find(ckpt, "cls.weight"), i, row);
        for (int k = 0; k < N_EMBD; k++) sum += (double)row[k] * (double)x[k];
        score += (double)f->out[0][i] * tanh(sum);
    }
    return score;
}

static void scores_are_those_of_the_head(void **state)
{
    const fixture *f = *state;
    frit_checkpoint *ckpt;
    frit_embed_item items[N_DOCUMENTS] = {{0}};
    float scores[N_DOCUMENTS], raw[N_DOCUMENTS], by_tokens[N_DOCUMENTS];
    assert_ok(frit_checkpoint_open(&ckpt, f->folder, &(frit_checkpoint_options){0}));
    for (int i = 0; i < N_DOCUMENTS; i++)
        items[i] = (frit_embed_item){.text = documents[i], .n_bytes = strlen(documents[i])};
    const size_t n_query = strlen(query);
    assert_ok(frit_rerank_texts(f->engine, query, n_query, items, N_DOCUMENTS, NULL, scores));
    assert_ok(frit_rerank_texts(f->engine, query, n_query, items, N_DOCUMENTS,
                                &(frit_rerank_options){.raw_scores = true}, raw));
    for (int i = 0; i < N_DOCUMENTS; i++) {
        const double expected = score_of(f, ckpt, documents[i]);
        assert_true(fabs((double)raw[i] - expected) < 1e-4);
        assert_true(fabs((double)scores[i] - 1 / (1 + exp(-expected))) < 1e-4);
        frit_token tokens[MAX_TOKENS];
        const frit_embed_item item = {.tokens = tokens, .n_tokens = pair_of(f->model, documents[i], tokens)};
        assert_ok(frit_rerank_texts(f->engine, NULL, 0, &item, 1, NULL, &by_tokens[i]));
    }
    assert_memory_equal(by_tokens, scores, sizeof scores);
    assert_true(raw[0] != raw[1] && raw[1] != raw[3]);
    frit_checkpoint_close(ckpt);
}

static void models_that_cannot_rerank_are_refused(void **state)
{
    const fixture *f = *state;
    float out[3][N_EMBD], bias[3], score;
    char *folder = make_classifier("three", 3, out, bias);
    const frit_embed_item item = {.text = "a", .n_bytes = 1};
    frit_model *model;
    frit_engine *engine;
    assert_fails(frit_rerank_texts(f->body_engine, "a", 1, &item, 1, NULL, &score), FRIT_E_UNSUPPORTED,
                 "has no classification head");
    assert_ok(frit_model_open(&model, folder, NULL));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 64}));
    assert_fails(frit_rerank_texts(engine, "a", 1, &item, 1, NULL, &score), FRIT_E_UNSUPPORTED,
                 "has 3 scores; a reranker has one");
    static char text[1000];
    for (size_t i = 0; i + 1 < sizeof text; i++) text[i] = i % 2 ? ' ' : 'a';
    const frit_embed_item late = {.text = text, .n_bytes = sizeof text - 1};
    assert_fails(frit_rerank_texts(f->engine, "a", 1, &late, 1, NULL, &score), FRIT_E_INVALID, "the context is 64");
    frit_engine_free(engine);
    frit_model_free(model);
    free(folder);
}

// Letters and a control token: text of the template becomes the token, text of a document does not.
static void a_template_of_the_file_is_used(void **state)
{
    (void)state;
    static const char *const pieces[] = {"<unk>", "<s>", "</s>", "<x>", "a", "b", "q", ":", "<", "x", ">"};
    enum { N = FRIT_COUNT(pieces) };
    float scores[N] = {0};
    int32_t types[N] = {2, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1};
    gguf_builder b = {0};
    gguf_add_text(&b, "general.architecture", "llama");
    gguf_add_text(&b, "tokenizer.ggml.model", "llama");
    gguf_add_texts(&b, "tokenizer.ggml.tokens", N, pieces);
    gguf_add_array(&b, "tokenizer.ggml.scores", FRIT_VALUE_F32, N, scores);
    gguf_add_array(&b, "tokenizer.ggml.token_type", FRIT_VALUE_I32, N, types);
    gguf_add_bool(&b, "tokenizer.ggml.add_space_prefix", false);
    gguf_add_text(&b, "tokenizer.chat_template.rerank", "<x>q:{query}<x>{document}{other}");
    frit_buf file = gguf_build(&b);
    frit_model *model;
    frit_token tokens[32];
    size_t n;
    assert_ok(frit_model_open_memory(&model, file.data, file.len, &(frit_model_options){.vocab_only = true}));
    assert_ok(frit_rerank_tokenize(model, "ab", 2, "<x>a", 4, tokens, 32, &n));
    static const frit_token begin[] = {3, 6, 7, 4, 5, 3, 8, 9, 10, 4};
    assert_true(n > FRIT_COUNT(begin));   // "{other}" stays as it is
    assert_memory_equal(tokens, begin, sizeof begin);
    frit_model_free(model);
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_has_the_special_tokens_of_its_vocabulary),
        cmocka_unit_test(scores_are_those_of_the_head),
        cmocka_unit_test(models_that_cannot_rerank_are_refused),
        cmocka_unit_test(a_template_of_the_file_is_used),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
