// SPDX-License-Identifier: MIT
// Models that see pictures, from files to answers: features, ids, logits and greedy texts beside those of transformers,
// in steps of any size, beside other sessions, and with the prefix cache.
#include "engine/engine.h"
#include "engine/media/golden_media.h"
#include "support/engines.h"

#define TOLERANCE 1e-10

typedef struct model_row {
    const char *name;      // folder of goldens/media
    bool has_text;         // the text is read from a GGUF file of goldens/media-gguf
    bool has_mmproj;       // and the encoder is
    uint32_t max_tokens;   // of a picture, where the folder's limits are lower than those of an mmproj file
} model_row;

static const model_row models[] = {
    {.name = "smolvlm"},
    {.name = "llava"},
    {.name = "mistral3"},
    {.name = "internvl"},
    {.name = "llava_next"},
    {.name = "lfm2_vl"},
    {.name = "llava_onevision"},
    {.name = "llama4"},
    {.name = "smolvlm", .has_mmproj = true},
    {.name = "mistral3", .has_text = true, .has_mmproj = true},
    {.name = "qwen2_vl", .has_text = true, .has_mmproj = true, .max_tokens = 12},
    {.name = "llama4", .has_mmproj = true, .max_tokens = 20},
};

typedef struct fixture {
    const model_row *row;
    media_golden gold;
    frit_model *model;
    frit_engine *engine;
    const json_t *one;   // the case
    frit_media *media[4];
    size_t n_media;
    frit_token *tokens;   // [n]
    size_t n;
    const float *logits;
    size_t n_equal;
    double worst;   // NMSE of a row of logits
} fixture;

static void encode_images(fixture *f)
{
    const json_t *names = json_object_get(f->one, "images"), *name;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)names, i, name)
    {
        frit_image *image;
        assert_ok(frit_image_open(&image, shared_path("goldens/media/images/%s", json_string_value(name)), NULL));
        const frit_media_options limits = {.max_tokens = f->row->max_tokens};
        assert_ok(frit_media_new(&f->media[f->n_media++], f->engine, image, &limits));
        frit_image_free(image);
    }
}

// The prompt of the case, with its pictures in place of the placeholders.
static void read_prompt(fixture *f)
{
    const char *prompt = media_golden_text(f->one, "text");
    frit_token text[1024];
    size_t n;
    assert_ok(frit_tokenize(f->model, prompt, strlen(prompt), FRIT_TEXT_SPECIAL | FRIT_TEXT_PARSE_SPECIAL, text,
                            FRIT_COUNT(text), &n));
    assert_ok(frit_media_place_all(&f->tokens, &f->n, text, n, f->media, f->n_media));
}

static fixture open_fixture(const model_row *row, size_t i_case, frit_engine_options options)
{
    fixture f = {.row = row, .gold = media_golden_open(row->name)};
    const frit_model_options encoder = {
        .mmproj = row->has_mmproj ? shared_path("goldens/media-gguf/%s.mmproj.gguf", row->name) : NULL};
    const char *text = row->has_text ? shared_path("goldens/media-gguf/%s.text.gguf", row->name) : f.gold.folder;
    int64_t n_rows, n_vocab;
    options.cache_type_k = options.cache_type_v = "f32";
    options.n_threads = 2;
    options.n_ctx = 256;
    assert_ok(frit_model_open(&f.model, text, &encoder));
    assert_ok(frit_engine_new(&f.engine, f.model, &options));
    f.one = json_array_get(json_object_get(f.gold.root, "cases"), i_case);
    encode_images(&f);
    read_prompt(&f);
    f.logits = media_golden_array(&f.gold, media_golden_text(f.one, "logits"), &n_rows, &n_vocab);
    assert_int_equal(n_rows, f.n);
    return f;
}

static void close_fixture(fixture *f)
{
    for (size_t i = 0; i < f->n_media; i++) frit_media_free(f->media[i]);
    free(f->tokens);
    frit_engine_free(f->engine);
    frit_model_free(f->model);
    media_golden_close(&f->gold);
}

// "llama4, mmproj".
static const char *name_of(const fixture *f)
{
    static char text[64];
    snprintf(text, sizeof text, "%s%s%s", f->row->name, f->row->has_text ? ", GGUF" : "",
             f->row->has_mmproj ? ", mmproj" : "");
    return text;
}

static void expect_error(const fixture *f, const char *what, double error)
{
    if (!(error <= TOLERANCE))
        fail_msg("%s, %s: NMSE of %s %.3g", name_of(f), media_golden_text(f->one, "name"), what, error);
}

// ------------------------------------------------------------------------------- features

static void compare_features(const fixture *f)
{
    int64_t n, width, at = 0;
    const float *expected = media_golden_array(&f->gold, media_golden_text(f->one, "features"), &n, &width);
    float *features = calloc((size_t)(n * width), sizeof *features);
    for (size_t i = 0; i < f->n_media; i++)
        for (size_t k = 0; k < f->media[i]->n_runs; k++) {
            const frit_soft_run *run = f->media[i]->runs[k];
            assert_int_equal(run->width, width);
            assert_true(at + run->n_tokens <= n);
            memcpy(features + at * width, run->features, (size_t)(run->n_tokens * width) * sizeof *features);
            at += run->n_tokens;
        }
    assert_int_equal(at, n);
    expect_error(f, "features", nmse(features, expected, (size_t)(n * width)));
    free(features);
}

static void features_of_files_equal_those_of_transformers(void **state)
{
    (void)state;
    static const char *const cpus[] = {"reference", NULL};
    for (size_t m = 0; m < FRIT_COUNT(models); m++)
        for (size_t c = 0; c < FRIT_COUNT(cpus); c++)
            for (size_t k = 1; k < 3; k++) {
                fixture f = open_fixture(&models[m], k, (frit_engine_options){.cpu = cpus[c]});
                compare_features(&f);
                close_fixture(&f);
            }
}

// ------------------------------------------------------------------------------- texts

typedef struct expected_rows {
    fixture *f;
    size_t first;   // its token
} expected_rows;

static void compare_row(void *ctx, size_t i, const float *values, size_t n)
{
    expected_rows *e = ctx;
    const double error = nmse(values, e->f->logits + (e->first + i) * n, n);
    if (!(error <= e->f->worst)) e->f->worst = error;
    e->f->n_equal++;
}

static size_t end_of_run(const fixture *f, size_t i)
{
    const bool is_soft = f->tokens[i] >= FRIT_FIRST_SOFT;
    while (i < f->n && (f->tokens[i] >= FRIT_FIRST_SOFT) == is_soft) i++;
    return i;
}

// Pushes the prompt; logits of the rows between pictures are compared.
static void push_and_compare(fixture *f, frit_session *session, expected_rows rows[32])
{
    size_t n_rows = 0;
    for (size_t i = 0, end; i < f->n; i = end) {
        const bool is_soft = f->tokens[i] >= FRIT_FIRST_SOFT;
        end = end_of_run(f, i);
        frit_push_options options = {0};
        if (!is_soft) {
            assert_true(n_rows < 32);
            rows[n_rows] = (expected_rows){f, i};
            options = (frit_push_options){.output = FRIT_OUTPUT_ALL, .row = compare_row, .row_ctx = &rows[n_rows++]};
        }
        assert_ok(frit_session_push(session, f->tokens + i, end - i, is_soft ? NULL : &options));
    }
}

static void expect_answer(const fixture *f, frit_session *session)
{
    const json_t *texts = json_object_get(f->one, "continuation");
    frit_sampler *sampler;
    assert_ok(frit_sampler_new(&sampler, f->model, NULL));
    for (size_t i = 0; i < json_array_size(texts); i++) {
        frit_token token;
        assert_ok(frit_session_next(session, sampler, &token));
        if (token != json_integer_value(json_array_get(texts, i)))
            fail_msg("%s, %s: token %zu of the answer is %d", name_of(f), media_golden_text(f->one, "name"), i, token);
    }
    frit_sampler_free(sampler);
}

// Ids of soft tokens stand where transformers has its placeholder.
static void expect_ids(const fixture *f)
{
    const json_t *ids = json_object_get(f->one, "ids");
    json_int_t soft = -1;
    assert_int_equal(f->n, json_array_size(ids));
    for (size_t i = 0; i < f->n; i++) {
        const json_int_t id = json_integer_value(json_array_get(ids, i));
        if (f->tokens[i] < FRIT_FIRST_SOFT) {
            assert_int_equal(f->tokens[i], id);
            continue;
        }
        if (soft < 0) soft = id;
        assert_int_equal(id, soft);
    }
}

static void compare_case(const model_row *row, size_t i_case, frit_engine_options options)
{
    fixture f = open_fixture(row, i_case, options);
    frit_session *session;
    expected_rows rows[32];
    expect_ids(&f);
    assert_ok(frit_session_new(&session, f.engine));
    push_and_compare(&f, session, rows);
    run_all(f.engine);
    assert_true(f.n_equal > 10);
    expect_error(&f, "logits", f.worst);
    expect_answer(&f, session);
    frit_session_free(session);
    close_fixture(&f);
}

static void texts_about_files_equal_those_of_transformers(void **state)
{
    (void)state;
    for (size_t m = 0; m < FRIT_COUNT(models); m++)
        for (size_t k = 0; k < 3; k++) {
            compare_case(&models[m], k, (frit_engine_options){.cpu = "reference"});
            compare_case(&models[m], k, (frit_engine_options){0});
        }
}

static void prompts_are_cut_by_any_batch_size(void **state)
{
    (void)state;
    for (size_t m = 0; m < FRIT_COUNT(models); m++)
        for (int32_t n = 1; n < 32; n = 2 * n + 3) compare_case(&models[m], 2, (frit_engine_options){.n_batch = n});
}

static void sessions_share_steps_and_forks_go_on(void **state)
{
    (void)state;
    for (size_t m = 0; m < FRIT_COUNT(models); m++) {
        fixture f = open_fixture(&models[m], 1, (frit_engine_options){.n_sessions = 4, .no_prefix_cache = true});
        frit_session *sessions[2], *fork;
        expected_rows rows[2][32];
        for (int i = 0; i < 2; i++) {
            assert_ok(frit_session_new(&sessions[i], f.engine));
            push_and_compare(&f, sessions[i], rows[i]);
        }
        run_all(f.engine);
        expect_error(&f, "logits", f.worst);
        assert_ok(frit_session_fork(&fork, sessions[0]));
        frit_session_free(sessions[0]);
        expect_answer(&f, fork);
        expect_answer(&f, sessions[1]);
        frit_session_free(fork);
        frit_session_free(sessions[1]);
        close_fixture(&f);
    }
}

// The second session finds the pictures in the prefix cache, and computes the last tokens only. The states of LFM2 are
// kept at ends of pages of 32 tokens.
static void the_prefix_cache_knows_tiles(void **state)
{
    (void)state;
    for (size_t m = 0; m < FRIT_COUNT(models); m++) {
        fixture f = open_fixture(&models[m], 2, (frit_engine_options){.n_sessions = 2});
        for (int i = 0; i < 2; i++) {
            frit_session *session;
            assert_ok(frit_session_new(&session, f.engine));
            assert_ok(frit_session_push(session, f.tokens, f.n, NULL));
            expect_answer(&f, session);
            const size_t least = strcmp(f.row->name, "lfm2_vl") == 0 ? 32 : f.media[0]->n;
            if (i == 1 && frit_session_cached(session) < least)
                fail_msg("%s: %zu of %zu tokens were cached", name_of(&f), frit_session_cached(session), f.n);
            frit_session_free(session);
        }
        close_fixture(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_of_files_equal_those_of_transformers),
        cmocka_unit_test(texts_about_files_equal_those_of_transformers),
        cmocka_unit_test(prompts_are_cut_by_any_batch_size),
        cmocka_unit_test(sessions_share_steps_and_forks_go_on),
        cmocka_unit_test(the_prefix_cache_knows_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
