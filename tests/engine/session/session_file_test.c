// SPDX-License-Identifier: MIT
// Sessions in files: a loaded session continues bit for bit; damaged files, and files of another model, are refused.
#include "support/engines.h"
#include "support/support.h"

#include "base/checksum.h"
#include "engine/engine.h"
#include "engine/session/saved.h"
#include "support/adapters.h"

#include <sys/stat.h>
#include <unistd.h>

enum { N = 45, N_MORE = 9 };

static void push(frit_session *session, uint64_t seed, size_t n)
{
    frit_token tokens[N + N_MORE];
    frit_rng rng;
    frit_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) tokens[i] = (frit_token)random_between(&rng, 0, TINY_VOCAB - 1);
    assert_ok(frit_session_push(session, tokens, n, NULL));
}

static void assert_same_logits(const frit_session *a, const frit_session *b)
{
    const float *x = frit_session_logits(a), *y = frit_session_logits(b);
    assert_non_null(x);
    assert_non_null(y);
    assert_memory_equal(x, y, TINY_VOCAB * sizeof *x);
}

// ------------------------------------------------------------------------------- there and back

static void memory_holds_what_a_file_does(void **state)
{
    (void)state;
    const frit_engine_options options = {.n_ctx = 128, .n_sessions = 2, .n_threads = 1};
    frit_engine *engine = tiny_engine(&(tiny_options){0}, options);
    frit_session *a = make_session(engine), *b = make_session(engine);
    size_t n_file, n = 0;
    push(a, 1, N);
    run_all(engine);
    assert_ok(frit_session_set_note(a, "note", 4));
    assert_ok(frit_session_save(a, temp_path("a.session")));
    char *file = read_file(temp_path("a.session"), &n_file);
    assert_fails(frit_session_save_memory(a, NULL, 0, &n), FRIT_E_LIMIT, "there is room for 0");
    assert_int_equal(n, n_file);
    char *bytes = malloc(n + 1);
    memset(bytes, '#', n + 1);
    assert_fails(frit_session_save_memory(a, bytes, n - 1, &n), FRIT_E_LIMIT, "there is room for");
    assert_int_equal(bytes[0], '#');
    assert_ok(frit_session_save_memory(a, bytes, n, &n));
    assert_memory_equal(bytes, file, n_file);
    assert_int_equal(bytes[n], '#');
    memmove(bytes + 1, bytes, n);   // an unaligned address
    assert_ok(frit_session_load_memory(b, bytes + 1, n));
    assert_same_logits(a, b);
    push(a, 2, N_MORE);
    push(b, 2, N_MORE);
    run_all(engine);
    assert_same_logits(a, b);
    assert_fails(frit_session_load_memory(b, bytes + 1, n - 1), FRIT_E_FORMAT, "memory: has");
    assert_fails(frit_session_load_memory(b, bytes + 1, 0), FRIT_E_FORMAT, "memory: is no session file");
    bytes[n / 2] ^= 1;
    assert_fails(frit_session_load_memory(b, bytes + 1, n), FRIT_E_FORMAT, "memory: is damaged");
    assert_int_equal(frit_session_length(b), N + N_MORE);
    free(bytes);
    free(file);
    frit_session_free(a);
    frit_session_free(b);
    frit_engine_free(engine);
}

static void a_loaded_session_goes_on_to_the_bit(void **state)
{
    (void)state;
    static const char *const types[][2] = {{NULL, NULL}, {"f32", "bf16"}, {"f16", "f32"}};
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        const frit_engine_options options = {
            .n_ctx = 128, .n_sessions = 2, .n_threads = 1, .cache_type_k = types[i][0], .cache_type_v = types[i][1]};
        frit_engine *here = tiny_engine(&(tiny_options){0}, options), *there = tiny_engine(&(tiny_options){0}, options);
        frit_session *a = make_session(here), *other = make_session(there), *b = make_session(there);
        push(other, 7, 40);   // makes the pages differ
        run_all(there);
        push(a, 1, N);
        run_all(here);
        assert_ok(frit_session_save(a, temp_path("a.session")));
        assert_ok(frit_session_load(b, temp_path("a.session")));
        assert_int_equal(frit_session_length(b), N);
        assert_int_equal(frit_session_pending(b), 0);
        assert_memory_equal(frit_session_tokens(a), frit_session_tokens(b), N * sizeof(frit_token));
        assert_same_logits(a, b);
        push(a, 2, N_MORE);
        push(b, 2, N_MORE);
        run_all(here);
        run_all(there);
        assert_same_logits(a, b);
        frit_session_free(a);
        frit_session_free(b);
        frit_session_free(other);
        frit_engine_free(here);
        frit_engine_free(there);
    }
}

static void what_was_queued_is_queued_again(void **state)
{
    (void)state;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, (frit_engine_options){.n_sessions = 2, .n_ctx = 64});
    frit_session *a = make_session(engine), *b = make_session(engine);
    push(a, 1, 20);
    run_all(engine);
    push(a, 2, 5);
    assert_ok(frit_session_save(a, temp_path("queued")));
    assert_ok(frit_session_load(b, temp_path("queued")));
    assert_int_equal(frit_session_length(b), 25);
    assert_int_equal(frit_session_pending(b), 5);
    assert_null(frit_session_logits(b));
    run_all(engine);
    assert_same_logits(a, b);
    assert_ok(frit_session_truncate(a, 0));
    assert_ok(frit_session_save(a, temp_path("empty")));
    assert_ok(frit_session_load(b, temp_path("empty")));
    assert_int_equal(frit_session_length(b), 0);
    frit_session_free(a);
    frit_session_free(b);
    frit_engine_free(engine);
}

static void a_note_comes_back(void **state)
{
    (void)state;
    size_t n;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, (frit_engine_options){.n_ctx = 64});
    frit_session *session = make_session(engine);
    assert_string_equal(frit_session_note(session, &n), "");
    assert_int_equal(n, 0);
    assert_ok(frit_session_set_note(session, "a\0b", 3));
    assert_ok(frit_session_save(session, temp_path("note")));
    assert_ok(frit_session_set_note(session, "", 0));
    assert_ok(frit_session_load(session, temp_path("note")));
    assert_memory_equal(frit_session_note(session, &n), "a\0b", 4);
    assert_int_equal(n, 3);
    char note[4] = "";   // also without loading the file
    assert_ok(frit_session_file_note(temp_path("note"), note, 3, &n));
    assert_memory_equal(note, "a\0b", 4);
    assert_int_equal(n, 3);
    assert_int_equal(frit_session_file_note(temp_path("note"), note, 2, &n), FRIT_E_LIMIT);
    assert_int_equal(n, 3);
    write_file(temp_path("no-session"), "frit", 4);
    assert_int_equal(frit_session_file_note(temp_path("no-session"), note, 3, &n), FRIT_E_FORMAT);
    assert_int_equal(frit_session_file_note(temp_path("nothing"), note, 3, &n), FRIT_E_NOT_FOUND);
    frit_session_free(session);
    frit_engine_free(engine);
}

// ------------------------------------------------------------------------------- refusals

typedef struct fixture {
    frit_engine *engine;
    frit_session *session;   // a session of 20 tokens, saved
    char *bytes;
    size_t n_bytes;
} fixture;

static fixture save_one(void)
{
    fixture f = {.engine = tiny_engine(&(tiny_options){0}, (frit_engine_options){.n_ctx = 64})};
    f.session = make_session(f.engine);
    push(f.session, 1, 20);
    run_all(f.engine);
    assert_ok(frit_session_save(f.session, temp_path("good")));
    f.bytes = read_file(temp_path("good"), &f.n_bytes);
    return f;
}

static void drop(fixture *f)
{
    assert_int_equal(frit_session_length(f->session), 20);   // unchanged after all attempts
    assert_non_null(frit_session_logits(f->session));
    frit_session_free(f->session);
    frit_engine_free(f->engine);
    free(f->bytes);
}

static void every_wrong_byte_is_noticed(void **state)
{
    (void)state;
    fixture f = save_one();
    for (size_t i = 0; i < f.n_bytes; i += i < 400 ? 1 : 211) {
        f.bytes[i] ^= 4;
        write_file(temp_path("bad"), f.bytes, f.n_bytes);
        f.bytes[i] ^= 4;
        if (frit_session_load(f.session, temp_path("bad")) == FRIT_OK) fail_msg("byte %zu", i);
        if (!strstr(frit_error(), "bad")) fail_msg("byte %zu: '%s' does not name the file", i, frit_error());
    }
    drop(&f);
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    (void)state;
    fixture f = save_one();
    for (size_t n = 0; n < f.n_bytes; n += n < 400 ? 1 : 211) {
        write_file(temp_path("bad"), f.bytes, n);
        assert_fails(frit_session_load(f.session, temp_path("bad")), FRIT_E_FORMAT,
                     n < sizeof(frit_saved_header) + 8 ? "is no session file" : "cut short");
    }
    char *longer = calloc(1, f.n_bytes + 8);
    memcpy(longer, f.bytes, f.n_bytes);
    write_file(temp_path("bad"), longer, f.n_bytes + 8);
    assert_fails(frit_session_load(f.session, temp_path("bad")), FRIT_E_FORMAT, "added to");
    free(longer);
    drop(&f);
}

#define AT(field) offsetof(frit_saved_header, field)

// Changes a value of 4 bytes (8 for some fields) and corrects the checksum.
static const struct {
    size_t at, size;
    uint64_t value;
    frit_status status;
    const char *part;
} faults[] = {
    {AT(magic), 4, 0, FRIT_E_FORMAT, "is no session file"},
    {AT(version), 4, 1, FRIT_E_UNSUPPORTED, "of version 1, version 6 is expected"},
    {AT(version), 4, 5, FRIT_E_UNSUPPORTED, "of version 5, version 6 is expected"},
    {AT(n_bytes), 8, 1, FRIT_E_FORMAT, "1 are expected"},
    {AT(n_bytes), 8, UINT64_MAX, FRIT_E_FORMAT, "cut short"},
    {AT(arch), 4, 0x61616161, FRIT_E_INVALID, "another model: aaaa"},
    {AT(n_layer), 4, 3, FRIT_E_INVALID, "with 3 layers and 64 tokens, this one is llama with 2 and 64"},
    {AT(n_vocab), 4, 65, FRIT_E_INVALID, "65 tokens"},
    {AT(model), 8, 1, FRIT_E_INVALID, "weights or metadata differ"},
    {AT(rotation), 8, 1, FRIT_E_INVALID, "turn by other angles"},
    {AT(adapters), 8, 1, FRIT_E_INVALID, "was saved with adapters, the session has none"},
    {AT(type_k), 4, 0x323366, FRIT_E_INVALID, "f32 and f16 there, f16 and f16 here"},
    {AT(groups[0].position_bytes), 8, 1, FRIT_E_INVALID, "1 bytes for a position"},
    {AT(groups[0].position_bytes), 8, UINT64_MAX, FRIT_E_INVALID, "for a position"},
    {AT(state_bytes), 8, UINT64_MAX, FRIT_E_INVALID, "for a state"},
    {AT(n_tokens), 4, 0, FRIT_E_FORMAT, "more tokens ran"},
    {AT(n_tokens), 4, UINT32_MAX, FRIT_E_FORMAT, "more tokens ran"},
    {AT(n_tokens), 4, 21, FRIT_E_FORMAT, "logits does not suit"},
    {AT(n_done), 4, 21, FRIT_E_FORMAT, "more tokens ran"},
    {AT(n_done), 4, 19, FRIT_E_FORMAT, "logits does not suit"},
    {AT(n_snapshots), 4, 1, FRIT_E_FORMAT, "states does not suit"},
    {AT(n_snapshots), 4, UINT32_MAX, FRIT_E_FORMAT, "states does not suit"},
    {AT(groups[0].window), 4, 32, FRIT_E_INVALID, "keeps a window of 32 positions, 0 are expected"},
    {AT(groups[1].position_bytes), 8, 1, FRIT_E_INVALID, "1 bytes for a position, 0 are expected"},
    {AT(groups[0].of_source), 4, 1, FRIT_E_INVALID, "of a source"},
    {AT(n_source), 4, 1, FRIT_E_FORMAT, "length of the source does not suit"},
    {AT(n_encoded), 4, 1, FRIT_E_FORMAT, "length of the source does not suit"},
    {AT(n_logits), 4, 0, FRIT_E_FORMAT, "do not add up"},
    {AT(n_logits), 4, 63, FRIT_E_FORMAT, "logits does not suit"},
    {AT(self_extend[0]), 4, 2, FRIT_E_UNSUPPORTED, "was saved with self-extend, which frit no longer supports"},
    {AT(self_extend[2]), 4, 1, FRIT_E_UNSUPPORTED, "was saved with self-extend, which frit no longer supports"},
    {AT(n_note_bytes), 8, 1, FRIT_E_FORMAT, "do not add up"},
    {AT(n_note_bytes), 8, UINT64_MAX, FRIT_E_FORMAT, "do not add up"},
    {AT(n_note_bytes), 8, INT64_MAX, FRIT_E_FORMAT, "do not add up"},
    {sizeof(frit_saved_header), 4, 64, FRIT_E_FORMAT, "not in the vocabulary"},
    {sizeof(frit_saved_header) + 76, 4, UINT32_MAX, FRIT_E_FORMAT, "not in the vocabulary"},
    {sizeof(frit_saved_header) + 80, 4, 0x7fc00000, FRIT_E_FORMAT, "not finite"},
};

static void seal(char *bytes, size_t n_bytes)
{
    frit_checksum sum = {0};
    frit_checksum_add(&sum, bytes, n_bytes - 8);
    const uint64_t value = frit_checksum_value(&sum);
    memcpy(bytes + n_bytes - 8, &value, 8);
}

static void every_fault_has_its_sentence(void **state)
{
    (void)state;
    fixture f = save_one();
    for (size_t i = 0; i < FRIT_COUNT(faults); i++) {
        char *bad = malloc(f.n_bytes);
        memcpy(bad, f.bytes, f.n_bytes);
        memcpy(bad + faults[i].at, &faults[i].value, faults[i].size);
        seal(bad, f.n_bytes);
        write_file(temp_path("bad"), bad, f.n_bytes);
        free(bad);
        frit_status status = frit_session_load(f.session, temp_path("bad"));
        if (status != faults[i].status || !strstr(frit_error(), faults[i].part))
            fail_msg("row %zu: got %d \"%s\", expected %d with \"%s\"", i, (int)status, frit_error(),
                     (int)faults[i].status, faults[i].part);
    }
    drop(&f);
}

static void try_load(const tiny_options *tiny, frit_engine_options options, frit_status expected, const char *part)
{
    frit_engine *engine = tiny_engine(tiny, options);
    frit_session *session = make_session(engine);
    assert_fails(frit_session_load(session, temp_path("good")), expected, part);
    frit_session_free(session);
    frit_engine_free(engine);
}

static void the_file_of_something_else_is_refused(void **state)
{
    (void)state;
    fixture f = save_one();
    const frit_engine_options same = {.n_ctx = 64};
    try_load(&(tiny_options){.seed = 5}, same, FRIT_E_INVALID, "its weights or metadata differ");
    try_load(&(tiny_options){.n_ctx = 512}, same, FRIT_E_INVALID, "its weights or metadata differ");
    try_load(&(tiny_options){.n_layer = 3}, same, FRIT_E_INVALID, "with 2 layers");
    try_load(&(tiny_options){0}, (frit_engine_options){.n_ctx = 64, .cache_type_k = "bf16"}, FRIT_E_INVALID,
             "f16 and f16 there, bf16 and f16 here");
    try_load(&(tiny_options){0}, (frit_engine_options){.n_ctx = 16}, FRIT_E_LIMIT,
             "holds 20 tokens, the context is 16");
    assert_fails(frit_session_load(f.session, temp_path("absent")), FRIT_E_NOT_FOUND, "absent");
    assert_fails(frit_session_load(f.session, "/"), FRIT_E_IO, "is a folder");
    assert_fails(frit_session_save(f.session, "/"), FRIT_E_IO, "is a folder");
    assert_fails(frit_session_save(f.session, "/no/such/folder/s"), FRIT_E_NOT_FOUND, "/no/such/folder/s");
    drop(&f);
}

static void a_chat_template_or_a_name_makes_no_other_model(void **state)
{
    (void)state;
    fixture f = save_one();
    frit_engine *engine =
        tiny_engine(&(tiny_options){.chat_template = "{{ messages }}"}, (frit_engine_options){.n_ctx = 64});
    frit_session *session = make_session(engine);
    assert_ok(frit_session_load(session, temp_path("good")));
    assert_same_logits(session, f.session);
    frit_session_free(session);
    frit_engine_free(engine);
    drop(&f);
}

static void a_context_that_turns_otherwise_is_refused(void **state)
{
    (void)state;
    const tiny_options dynamic = {.rope_scaling = "dynamic"};
    frit_engine *engine = tiny_engine(&dynamic, (frit_engine_options){.n_ctx = 300});
    frit_session *session = make_session(engine);
    push(session, 1, 20);
    run_all(engine);
    assert_ok(frit_session_save(session, temp_path("good")));
    frit_session_free(session);
    frit_engine_free(engine);
    try_load(&dynamic, (frit_engine_options){.n_ctx = 700}, FRIT_E_INVALID, "with a context of 300 tokens");
}

static void adapters_and_their_scales_must_be_the_same(void **state)
{
    (void)state;
    const char *model_path = strdup(tiny_model("base.gguf", &(tiny_options){0}));
    frit_model *model;
    frit_engine *engine;
    frit_adapter *adapters[2];
    assert_ok(frit_model_open(&model, model_path, NULL));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 64, .n_sessions = 2}));
    for (int i = 0; i < 2; i++) {
        const char *path = make_adapter("adapter.gguf", model_path, &(adapter_options){.seed = 1 + (uint64_t)i}, NULL);
        assert_ok(frit_adapter_open(&adapters[i], model, path, NULL));
    }
    frit_session *a = make_session(engine), *b = make_session(engine);
    assert_ok(frit_session_set_adapters(a, adapters, (float[]){1, 0.5f}, 2));
    push(a, 1, 20);
    run_all(engine);
    assert_ok(frit_session_save(a, temp_path("adapted")));
    assert_fails(frit_session_load(b, temp_path("adapted")), FRIT_E_INVALID, "with adapters, the session has none");
    assert_ok(frit_session_set_adapters(b, adapters, (float[]){0.5f, 1}, 2));
    assert_fails(frit_session_load(b, temp_path("adapted")), FRIT_E_INVALID, "the session has others, or other scales");
    assert_ok(frit_session_set_adapters(b, adapters, (float[]){1, 0.5f}, 2));
    assert_ok(frit_session_load(b, temp_path("adapted")));
    assert_same_logits(a, b);
    frit_session_free(a);
    frit_session_free(b);
    for (int i = 0; i < 2; i++) frit_adapter_free(adapters[i]);
    frit_engine_free(engine);
    frit_model_free(model);
    free((void *)(uintptr_t)model_path);
}

static void where_others_fill_the_cache_a_session_is_empty(void **state)
{
    (void)state;
    fixture f = save_one();
    frit_session *second = make_session(f.engine);
    assert_ok(frit_session_truncate(f.session, 0));
    push(f.session, 3, 50);
    run_all(f.engine);
    assert_fails(frit_session_load(second, temp_path("good")), FRIT_E_LIMIT, "the cache is full");
    assert_int_equal(frit_session_length(second), 0);
    assert_ok(frit_session_truncate(f.session, 0));
    assert_ok(frit_session_load(second, temp_path("good")));
    frit_session_free(second);
    assert_ok(frit_session_load(f.session, temp_path("good")));
    drop(&f);
}

static void try_in_step(void *ctx, size_t i, const float *values, size_t n)
{
    (void)i, (void)values, (void)n;
    assert_fails(frit_session_save(ctx, temp_path("good")), FRIT_E_INVALID, "row function");
    assert_fails(frit_session_load(ctx, temp_path("good")), FRIT_E_INVALID, "row function");
}

static void a_row_function_can_neither_save_nor_load(void **state)
{
    (void)state;
    fixture f = save_one();
    const frit_push_options all = {.output = FRIT_OUTPUT_ALL, .row = try_in_step, .row_ctx = f.session};
    assert_ok(frit_session_truncate(f.session, 19));
    assert_ok(frit_session_push(f.session, &(frit_token){3}, 1, &all));
    run_all(f.engine);
    drop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loaded_session_goes_on_to_the_bit),
        cmocka_unit_test(memory_holds_what_a_file_does),
        cmocka_unit_test(what_was_queued_is_queued_again),
        cmocka_unit_test(a_note_comes_back),
        cmocka_unit_test(every_wrong_byte_is_noticed),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(every_fault_has_its_sentence),
        cmocka_unit_test(the_file_of_something_else_is_refused),
        cmocka_unit_test(a_chat_template_or_a_name_makes_no_other_model),
        cmocka_unit_test(a_context_that_turns_otherwise_is_refused),
        cmocka_unit_test(adapters_and_their_scales_must_be_the_same),
        cmocka_unit_test(where_others_fill_the_cache_a_session_is_empty),
        cmocka_unit_test(a_row_function_can_neither_save_nor_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
