// SPDX-License-Identifier: MIT
// Pictures that are encoded when sessions have to run them: in pieces, beside other sessions, and kept after their use.
#include "engine/engine.h"
#include "engine/media/golden_media.h"
#include "engine/media/picture.h"
#include "support/engines.h"

typedef struct fixture {
    media_golden gold;
    const json_t *one;   // the first case with a picture
    frit_model *model;
    frit_engine *engine;
    frit_media *media;
    frit_token *tokens;
    size_t n;
} fixture;

static frit_image *open_image(const json_t *one)
{
    frit_image *image;
    const char *name = json_string_value(json_array_get(json_object_get(one, "images"), 0));
    assert_ok(frit_image_open(&image, shared_path("goldens/media/images/%s", name), NULL));
    return image;
}

// Makes the prompt of the case with a picture that is not encoded.
static void prepare(fixture *f, const char *salt)
{
    frit_image *image = open_image(f->one);
    frit_token text[512];
    const char *prompt = media_golden_text(f->one, "text");
    size_t n;
    assert_ok(frit_media_prepare(&f->media, f->model, image, &(frit_media_options){.salt = salt}));
    frit_image_free(image);
    assert_ok(
        frit_tokenize(f->model, prompt, strlen(prompt), FRIT_TEXT_SPECIAL | FRIT_TEXT_PARSE_SPECIAL, text, 512, &n));
    assert_ok(frit_media_place_all(&f->tokens, &f->n, text, n, &f->media, 1));
}

static fixture open_fixture(const char *name, bool no_prefix_cache)
{
    fixture f = {.gold = media_golden_open(name)};
    const frit_engine_options options = {.n_ctx = 256,
                                         .n_sessions = 3,
                                         .cache_type_k = "f32",
                                         .cache_type_v = "f32",
                                         .no_prefix_cache = no_prefix_cache};
    f.one = json_array_get(json_object_get(f.gold.root, "cases"), 1);
    assert_ok(frit_model_open(&f.model, f.gold.folder, NULL));
    assert_ok(frit_engine_new(&f.engine, f.model, &options));
    prepare(&f, NULL);
    return f;
}

static void close_fixture(fixture *f)
{
    frit_media_free(f->media);
    free(f->tokens);
    frit_engine_free(f->engine);
    frit_model_free(f->model);
    media_golden_close(&f->gold);
}

static frit_status push(fixture *f, frit_session *session)
{
    return frit_session_push(session, f->tokens, f->n, &(frit_push_options){.media = &f->media, .n_media = 1});
}

static frit_session *begin(fixture *f)
{
    frit_session *session;
    assert_ok(frit_session_new(&session, f->engine));
    assert_ok(push(f, session));
    return session;
}

static uint64_t count_encoded(const fixture *f)
{
    frit_engine_media_info info;
    assert_ok(frit_engine_get_media_info(f->engine, &info));
    return info.n_encoded;
}

static void expect_answer(const fixture *f, frit_session *session)
{
    const json_t *ids = json_object_get(f->one, "continuation");
    frit_sampler *sampler;
    assert_ok(frit_sampler_new(&sampler, f->model, NULL));
    for (size_t i = 0; i < json_array_size(ids); i++) {
        frit_token token;
        assert_ok(frit_session_next(session, sampler, &token));
        assert_int_equal(token, json_integer_value(json_array_get(ids, i)));
    }
    frit_sampler_free(sampler);
}

static void a_picture_is_encoded_when_its_tokens_run(void **state)
{
    (void)state;
    static const char *const models[] = {"qwen2_5_vl", "smolvlm", "llava"};
    for (size_t m = 0; m < FRIT_COUNT(models); m++) {
        fixture f = open_fixture(models[m], false);
        frit_session *session = begin(&f);
        assert_int_equal(count_encoded(&f), 0);
        expect_answer(&f, session);
        assert_int_equal(count_encoded(&f), 1);
        frit_session_free(session);
        assert_int_equal(f.engine->soft.n, 0);
        close_fixture(&f);
    }
}

// A picture of several tiles takes as many calls; a session without pictures has a row in each step between.
static void other_sessions_run_between_two_tiles(void **state)
{
    (void)state;
    fixture f = open_fixture("smolvlm", false);
    frit_session *session = begin(&f), *other;
    assert_ok(frit_session_new(&other, f.engine));
    const size_t n_tiles = f.media->picture->plan.n_tiles;
    assert_true(n_tiles > 2);
    size_t n_calls = 0, n_other = 0;
    for (; frit_session_pending(session) > 0 && n_calls < 100; n_calls++) {
        const frit_token token = 40;
        int32_t n_rows;
        const bool waits = frit_session_soft_awaits(session) != NULL;
        assert_ok(frit_session_push(other, &token, 1, NULL));
        assert_ok(frit_engine_advance(f.engine, &n_rows));
        if (waits) assert_int_equal(n_rows, 1);
        n_other += waits && n_rows == 1;
    }
    assert_int_equal(n_other, n_tiles);
    assert_true(n_calls > n_tiles);
    expect_answer(&f, session);
    frit_session_free(other);
    frit_session_free(session);
    close_fixture(&f);
}

static void sessions_that_wait_for_a_picture_share_it(void **state)
{
    (void)state;
    fixture f = open_fixture("qwen2_5_vl", true);
    frit_session *a = begin(&f), *b = begin(&f);
    assert_int_equal(f.engine->soft.n, 1);
    expect_answer(&f, a);
    expect_answer(&f, b);
    assert_int_equal(count_encoded(&f), 1);
    frit_session_free(a);
    frit_session_free(b);
    close_fixture(&f);
}

// A session that leaves takes the begun encoding with it.
static void a_picture_that_nobody_waits_for_is_given_up(void **state)
{
    (void)state;
    fixture f = open_fixture("smolvlm", true);
    frit_session *session = begin(&f);
    int32_t n_rows;
    assert_ok(frit_engine_advance(f.engine, &n_rows));
    assert_int_equal(n_rows, 0);
    frit_session_free(session);
    assert_int_equal(f.engine->soft.n, 0);
    assert_ok(frit_engine_advance(f.engine, &n_rows));
    assert_int_equal(count_encoded(&f), 0);
    session = begin(&f);
    expect_answer(&f, session);
    assert_int_equal(count_encoded(&f), 1);
    frit_session_free(session);
    close_fixture(&f);
}

static void tokens_in_the_prefix_cache_need_no_encoding(void **state)
{
    (void)state;
    fixture f = open_fixture("qwen2_5_vl", false);
    for (int i = 0; i < 2; i++) {
        frit_session *session = begin(&f);
        expect_answer(&f, session);
        assert_int_equal(frit_session_cached(session) > 0, i > 0);
        frit_session_free(session);
        assert_int_equal(f.engine->soft.n, 0);
        assert_int_equal(count_encoded(&f), 1);
    }
    close_fixture(&f);
}

static void features_are_kept_within_the_cache(void **state)
{
    (void)state;
    fixture f = open_fixture("qwen2_5_vl", true);
    const uint64_t bytes = f.media->picture->plan.n_soft * (uint64_t)f.engine->hp.n_embd * sizeof(float);
    frit_engine_media_info info;
    assert_ok(frit_engine_set_media(f.engine, &(frit_engine_media_options){.cache_bytes = bytes + 1}));
    for (int i = 0; i < 2; i++) {
        frit_session *session = begin(&f);
        expect_answer(&f, session);
        frit_session_free(session);
        assert_ok(frit_engine_get_media_info(f.engine, &info));
        assert_int_equal(info.n_encoded, 1);
        assert_int_equal(info.cache_bytes, bytes);
    }
    // For another caller the picture is encoded again, and takes the room of the first.
    const frit_token first = f.tokens[6];
    frit_media_free(f.media);
    free(f.tokens);
    prepare(&f, "another");
    assert_int_not_equal(first, f.tokens[6]);
    frit_session *session = begin(&f);
    expect_answer(&f, session);
    assert_int_equal(f.engine->soft.n, 2);
    frit_session_free(session);
    assert_int_equal(f.engine->soft.n, 1);
    assert_int_equal(count_encoded(&f), 2);
    assert_ok(frit_engine_set_media(f.engine, NULL));
    assert_int_equal(f.engine->soft.n, 0);
    close_fixture(&f);
}

// The encoder's failure is that of the session, and other sessions go on.
static void an_encoder_that_fails_ends_the_session(void **state)
{
    (void)state;
    fixture f = open_fixture("qwen2_5_vl", true);
    f.media->picture->plan.patch_values++;
    frit_session *session = begin(&f), *other;
    const frit_token token = 40;
    assert_ok(frit_session_new(&other, f.engine));
    assert_ok(frit_session_push(other, &token, 1, NULL));
    assert_ok(frit_engine_step(f.engine, NULL));
    assert_int_equal(frit_session_status(session), FRIT_E_FORMAT);
    assert_non_null(strstr(frit_error(), "the model's processor cuts patches of"));
    assert_int_equal(frit_session_pending(other), 0);
    assert_ok(frit_session_status(other));
    frit_session_free(other);
    frit_session_free(session);
    close_fixture(&f);
}

static void pictures_are_pushed_with_their_tokens(void **state)
{
    (void)state;
    fixture f = open_fixture("qwen2_5_vl", true);
    frit_session *session;
    assert_ok(frit_session_new(&session, f.engine));
    assert_int_equal(frit_session_push(session, f.tokens, f.n, NULL), FRIT_E_INVALID);
    assert_non_null(strstr(frit_error(), "begins no picture of this engine"));
    frit_media *none = NULL;
    assert_int_equal(frit_session_push(session, f.tokens, f.n, &(frit_push_options){.media = &none, .n_media = 1}),
                     FRIT_E_INVALID);
    assert_ok(push(&f, session));
    assert_true(frit_media_bytes(f.media) > 0);
    frit_session_free(session);
    assert_int_equal(f.engine->soft.n, 0);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_picture_is_encoded_when_its_tokens_run),
        cmocka_unit_test(other_sessions_run_between_two_tiles),
        cmocka_unit_test(sessions_that_wait_for_a_picture_share_it),
        cmocka_unit_test(a_picture_that_nobody_waits_for_is_given_up),
        cmocka_unit_test(tokens_in_the_prefix_cache_need_no_encoding),
        cmocka_unit_test(features_are_kept_within_the_cache),
        cmocka_unit_test(an_encoder_that_fails_ends_the_session),
        cmocka_unit_test(pictures_are_pushed_with_their_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
