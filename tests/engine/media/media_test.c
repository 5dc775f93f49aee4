// SPDX-License-Identifier: MIT
// Pictures from files to answers: processor, encoder, template and session beside transformers' ids and greedy texts.
#include "engine/engine.h"
#include "engine/media/golden_media.h"
#include "support/engines.h"

static const char template_text[] =
    "{%- for message in messages -%}<|im_start|>{{ message.role }}\n"
    "{% for part in message.content %}{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

typedef struct fixture {
    media_golden gold;
    frit_model *model;
    frit_engine *engine;
    const json_t *one;
    frit_media *media[4];
    size_t n_media;
} fixture;

static fixture open_fixture(const char *name, size_t i_case)
{
    fixture f = {.gold = media_golden_open(name)};
    const char *path = temp_path("template.jinja");
    write_file(path, template_text, strlen(template_text));
    assert_ok(frit_model_open(&f.model, f.gold.folder, &(frit_model_options){.chat_template = path}));
    assert_ok(frit_engine_new(&f.engine, f.model,
                              &(frit_engine_options){.n_ctx = 128, .cache_type_k = "f32", .cache_type_v = "f32"}));
    f.one = json_array_get(json_object_get(f.gold.root, "cases"), i_case);
    return f;
}

static void close_fixture(fixture *f)
{
    for (size_t i = 0; i < f->n_media; i++) frit_media_free(f->media[i]);
    frit_engine_free(f->engine);
    frit_model_free(f->model);
    media_golden_close(&f->gold);
}

static void encode_images(fixture *f)
{
    const json_t *names = json_object_get(f->one, "images"), *name;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)names, i, name)
    {
        frit_image *image;
        assert_ok(frit_image_open(&image, shared_path("goldens/media/images/%s", json_string_value(name)), NULL));
        assert_ok(frit_media_new(&f->media[f->n_media++], f->engine, image, NULL));
        frit_image_free(image);
    }
}

// The conversation of a case: its text is one user's message, with a mark for each picture.
static char *conversation_of(const fixture *f)
{
    static const char mark[] = "<|vision_start|><|image_pad|><|vision_end|>";
    json_t *parts = json_array();
    const char *text = strstr(media_golden_text(f->one, "text"), "user\n") + 5;
    const char *end = strstr(text, "<|im_end|>");
    while (text < end) {
        const char *next = strstr(text, mark);
        if (!next || next > end) next = end;
        if (next > text)
            json_array_append_new(
                parts, json_pack("{s:s, s:o}", "type", "text", "text", json_stringn(text, (size_t)(next - text))));
        if (next < end) json_array_append_new(parts, json_pack("{s:s}", "type", "image"));
        text = next < end ? next + strlen(mark) : end;
    }
    json_t *request = json_pack("{s:[{s:s, s:o}]}", "messages", "role", "user", "content", parts);
    char *out = json_dumps(request, 0);
    json_decref(request);
    return out;
}

static frit_token *tokens_of(fixture *f, size_t *n)
{
    char *conversation = conversation_of(f);
    frit_turn *turn;
    frit_token *tokens = calloc(512, sizeof *tokens);
    assert_ok(frit_turn_new_with_media(&turn, f->model, conversation, strlen(conversation), f->media, f->n_media));
    assert_ok(frit_turn_tokenize(turn, NULL, tokens, 512, n));
    assert_int_equal(frit_turn_tokenize(turn, NULL, tokens, *n - 1, n), FRIT_E_LIMIT);
    frit_turn_free(turn);
    free(conversation);
    return tokens;
}

static void expect_ids(const fixture *f, const frit_token *tokens, size_t n)
{
    const json_t *ids = json_object_get(f->one, "ids"), *types = json_object_get(f->one, "token_types");
    assert_int_equal(n, json_array_size(ids));
    for (size_t i = 0; i < n; i++) {
        const bool is_soft = tokens[i] >= FRIT_FIRST_SOFT;
        if (types) assert_int_equal(is_soft, json_integer_value(json_array_get(types, i)) != 0);
        if (is_soft && !types) assert_int_equal(json_integer_value(json_array_get(ids, i)), f->media[0]->placeholder);
        if (!is_soft) assert_int_equal(tokens[i], json_integer_value(json_array_get(ids, i)));
    }
}

static void expect_answer(fixture *f, const frit_token *tokens, size_t n)
{
    const json_t *texts = json_object_get(f->one, "continuation");
    frit_session *session;
    frit_sampler *sampler;
    assert_ok(frit_session_new(&session, f->engine));
    assert_ok(frit_sampler_new(&sampler, f->model, NULL));
    assert_ok(frit_session_push(session, tokens, n, NULL));
    for (size_t i = 0; i < json_array_size(texts); i++) {
        frit_token token;
        assert_ok(frit_session_next(session, sampler, &token));
        assert_int_equal(token, json_integer_value(json_array_get(texts, i)));
    }
    frit_sampler_free(sampler);
    frit_session_free(session);
}

static void answers_about_files_equal_those_of_transformers(void **state)
{
    (void)state;
    static const char *const models[] = {"qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5"};
    for (size_t m = 0; m < FRIT_COUNT(models); m++)
        for (size_t k = 1; k < 3; k++) {
            fixture f = open_fixture(models[m], k);
            size_t n;
            encode_images(&f);
            frit_token *tokens = tokens_of(&f, &n);
            expect_ids(&f, tokens, n);
            expect_answer(&f, tokens, n);
            free(tokens);
            close_fixture(&f);
        }
}

// The prompts of these models are texts with placeholders. A picture has several tiles with marks between, or one tile
// without marks.
static void pictures_of_tiles_equal_those_of_transformers(void **state)
{
    (void)state;
    static const char *const models[] = {"smolvlm", "llava", "mistral3", "gemma3", "gemma4", "gemma4_small"};
    for (size_t m = 0; m < FRIT_COUNT(models); m++)
        for (size_t k = 1; k < 3; k++) {
            fixture f = open_fixture(models[m], k);
            size_t n = 0, n_all;
            frit_token *text = calloc(1024, sizeof *text), *all;
            frit_buf prompt = {0};
            frit_spans untrusted = {0};
            frit_buf_text(&prompt, media_golden_text(f.one, "text"));
            encode_images(&f);
            assert_ok(frit_media_surround(&prompt, &untrusted, f.media, f.n_media));
            assert_ok(frit_tokenize(f.model, prompt.data, prompt.len, FRIT_TEXT_SPECIAL | FRIT_TEXT_PARSE_SPECIAL, text,
                                    1024, &n));
            assert_ok(frit_media_place_all(&all, &n_all, text, n, f.media, f.n_media));
            expect_ids(&f, all, n_all);
            expect_answer(&f, all, n_all);
            free(text);
            free(all);
            frit_buf_free(&prompt);
            frit_spans_free(&untrusted);
            close_fixture(&f);
        }
}

static void a_picture_is_encoded_once(void **state)
{
    (void)state;
    fixture f = open_fixture("qwen2_vl", 1);
    encode_images(&f);
    encode_images(&f);
    size_t n;
    assert_int_equal(f.engine->soft.n, 1);
    assert_ptr_equal(f.media[0]->runs[0], f.media[1]->runs[0]);
    assert_int_equal(frit_media_tokens(f.media[0], &n)[0], f.media[1]->tokens[0]);
    frit_media_free(f.media[--f.n_media]);
    assert_int_equal(f.engine->soft.n, 1);
    frit_media_free(f.media[--f.n_media]);
    assert_int_equal(f.engine->soft.n, 0);
    close_fixture(&f);
}

// Limits change the size to which a picture is resized, and so its tokens and their ids.
static void fewer_tokens_may_be_asked_for(void **state)
{
    (void)state;
    fixture f = open_fixture("qwen2_5_vl", 1);
    frit_image *image;
    size_t n_all, n;
    encode_images(&f);
    const frit_token first = frit_media_tokens(f.media[0], &n_all)[0];
    assert_ok(frit_image_open(&image, shared_path("goldens/media/images/j444.jpg"), NULL));
    assert_ok(frit_media_new(&f.media[f.n_media++], f.engine, image,
                             &(frit_media_options){.max_tokens = (uint32_t)n_all / 2}));
    const frit_token second = frit_media_tokens(f.media[1], &n)[0];
    assert_in_range(n, 1, n_all / 2);
    assert_int_not_equal(first, second);
    frit_media *none;
    assert_int_equal(frit_media_new(&none, f.engine, image, &(frit_media_options){.min_tokens = 9, .max_tokens = 8}),
                     FRIT_E_INVALID);
    frit_image_free(image);
    close_fixture(&f);
}

// A session keeps its pictures after the caller has freed them.
static void sessions_keep_their_pictures(void **state)
{
    (void)state;
    fixture f = open_fixture("qwen2_5_vl", 1);
    frit_session *session;
    size_t n;
    encode_images(&f);
    frit_token *tokens = tokens_of(&f, &n);
    assert_ok(frit_session_new(&session, f.engine));
    assert_ok(frit_session_push(session, tokens, n, NULL));
    frit_media_free(f.media[--f.n_media]);
    assert_int_equal(f.engine->soft.n, 1);
    run_all(f.engine);
    frit_session_free(session);
    assert_int_equal(f.engine->soft.n, 0);
    assert_ok(frit_session_new(&session, f.engine));
    assert_int_equal(frit_session_push(session, tokens, n, NULL), FRIT_E_INVALID);
    assert_non_null(strstr(frit_error(), "begins no picture of this engine"));
    frit_session_free(session);
    free(tokens);
    close_fixture(&f);
}

static void expect_turn_refused(fixture *f, const char *conversation, size_t n_media, const char *words)
{
    frit_turn *turn;
    frit_token tokens[64];
    size_t n;
    frit_status status =
        frit_turn_new_with_media(&turn, f->model, conversation, strlen(conversation), f->media, n_media);
    if (status == FRIT_OK) status = frit_turn_tokenize(turn, NULL, tokens, 64, &n);
    assert_int_equal(status, FRIT_E_INVALID);
    if (!strstr(frit_error(), words)) fail_msg("'%s' lacks '%s'", frit_error(), words);
    frit_turn_free(turn);
}

static void the_number_of_pictures_must_fit(void **state)
{
    (void)state;
    fixture f = open_fixture("qwen2_vl", 1);
    encode_images(&f);
    expect_turn_refused(&f, "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image\"}]}]}", 0,
                        "only parts of type 'text'");
    expect_turn_refused(&f,
                        "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"\"}]}]}",
                        1, "0 parts of type 'image'");
    expect_turn_refused(
        &f, "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image\"}, {\"type\": \"image\"}]}]}", 1,
        "2 parts of type 'image'");
    expect_turn_refused(&f, "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"video\"}]}]}", 1,
                        "'text' and 'image'");
    close_fixture(&f);
}

static void a_template_that_drops_pictures_is_refused(void **state)
{
    (void)state;
    fixture f = open_fixture("qwen2_vl", 1);
    encode_images(&f);
    const char *path = temp_path("drops.jinja"), *text = "{% for m in messages %}{{ m.role }}{% endfor %}";
    write_file(path, text, strlen(text));
    frit_model *model;
    assert_ok(frit_model_open(&model, f.gold.folder, &(frit_model_options){.chat_template = path}));
    frit_model *own = f.model;
    f.model = model;
    expect_turn_refused(&f, "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image\"}]}]}", 1,
                        "0 places for pictures");
    f.model = own;
    frit_model_free(model);
    close_fixture(&f);
}

static void models_of_text_and_files_of_gguf_take_no_pictures(void **state)
{
    (void)state;
    frit_model *model;
    frit_engine *engine;
    frit_image *image;
    frit_media *media;
    const uint8_t black[3] = {0};
    assert_ok(frit_image_from_rgb(&image, 1, 1, black));
    assert_ok(frit_model_open(&model, shared_path("goldens/hf/qwen2"), NULL));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 64}));
    assert_int_equal(frit_media_new(&media, engine, image, NULL), FRIT_E_UNSUPPORTED);
    assert_null(media);
    frit_engine_free(engine);
    frit_model_free(model);
    frit_image_free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_about_files_equal_those_of_transformers),
        cmocka_unit_test(pictures_of_tiles_equal_those_of_transformers),
        cmocka_unit_test(a_picture_is_encoded_once),
        cmocka_unit_test(fewer_tokens_may_be_asked_for),
        cmocka_unit_test(sessions_keep_their_pictures),
        cmocka_unit_test(the_number_of_pictures_must_fit),
        cmocka_unit_test(a_template_that_drops_pictures_is_refused),
        cmocka_unit_test(models_of_text_and_files_of_gguf_take_no_pictures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
