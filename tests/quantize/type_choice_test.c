// SPDX-License-Identifier: MIT
// Files of a size: the size is met, the bytes do not depend on the number of threads, and bad options are refused.
#include "quantize/type_choice.h"
#include "format/checkpoint.h"
#include "frit_tools.h"
#include "support/support.h"
#include "support/tiny_model.h"

static const char text[] = "ab cd ef gh ij kl mn op qr st uv wx yz ab ba cd dc ef fe gh hg ij ji kl lk mn nm op po qr ";

static char *many_texts(size_t *n)
{
    frit_buf all = {0};
    for (int i = 0; i < 12; i++) frit_buf_printf(&all, "%s%d", text + 7 * i, i);
    *n = all.len;
    return all.data;
}

static frit_status make_file(const char *source, const char *target, int32_t n_threads,
                             const frit_allocate_options *options)
{
    const frit_convert_options convert = {.n_threads = n_threads};
    return frit_allocate(source, target, &convert, options);
}

static size_t size_of(const char *path)
{
    size_t n;
    free(read_file(path, &n));
    return n;
}

// Samples, a text, and a conversation if the model has a template.
static void bytes_do_not_depend_on_threads(void **state)
{
    (void)state;
    static const char chat[] = "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}[end]{% endfor %}"
                               "{% if add_generation_prompt %}[assistant]{% endif %}";
    size_t n_text;
    char *words = many_texts(&n_text), one[600];
    for (int kind = 0; kind < 3; kind++) {
        const char *model = tiny_model("source.gguf", &(tiny_options){.chat_template = kind == 1 ? chat : NULL});
        char source[600];
        snprintf(source, sizeof source, "%s", model);
        const frit_allocate_options options = {
            .bits = 14, .text = kind == 2 ? words : NULL, .n_text = n_text, .n_windows = 2, .types = "all"};
        snprintf(one, sizeof one, "%s", temp_path("one.gguf"));
        assert_ok(make_file(source, one, 1, &options));
        static const int32_t n_threads[] = {2, 16};
        for (size_t i = 0; i < FRIT_COUNT(n_threads); i++) {
            char more[600];
            snprintf(more, sizeof more, "%s", temp_path("more.gguf"));
            assert_ok(make_file(source, more, n_threads[i], &options));
            expect_equal_files(one, more);
        }
    }
    free(words);
}

static void files_have_the_size_and_say_how_they_were_made(void **state)
{
    (void)state;
    char source[600], target[600], size[32];
    snprintf(source, sizeof source, "%s", tiny_model("source.gguf", &(tiny_options){0}));
    snprintf(target, sizeof target, "%s", temp_path("sized.gguf"));
    const size_t n_source = size_of(source), n_wanted = n_source * 3 / 5;
    snprintf(size, sizeof size, "%zu", n_wanted);
    const frit_allocate_options options = {.size = size, .n_windows = 2};
    assert_ok(make_file(source, target, 2, &options));
    const size_t n = size_of(target);
    assert_true(n <= n_wanted);
    assert_true(n * 100 >= n_wanted * 90);   // the matrices are small, and there are few
    frit_checkpoint *ckpt;
    frit_str method, hash;
    int64_t bytes;
    bool found;
    assert_ok(frit_checkpoint_open(&ckpt, target, &(frit_checkpoint_options){0}));
    assert_ok(frit_meta_get_text(&ckpt->meta, "quantize.method", &method, &found));
    assert_true(found && frit_str_is(method, "prices"));
    assert_ok(frit_meta_get_text(&ckpt->meta, "quantize.calibration.sha256", &hash, &found));
    assert_true(found && hash.len == 64);
    assert_ok(frit_meta_get_i64(&ckpt->meta, "quantize.target_bytes", &bytes, &found));
    assert_true(found && (size_t)bytes == n_wanted);
    assert_null(frit_meta_find(&ckpt->meta, "general.file_type"));
    frit_checkpoint_close(ckpt);
}

// Tokens without texts can be sampled too.
static void a_model_without_a_vocabulary_gets_a_size(void **state)
{
    (void)state;
    char source[600], target[600];
    snprintf(source, sizeof source, "%s", tiny_model("source.gguf", &(tiny_options){.n_pieces = -1}));
    snprintf(target, sizeof target, "%s", temp_path("sized.gguf"));
    assert_ok(make_file(source, target, 2, &(frit_allocate_options){.bits = 14, .n_windows = 1}));
    assert_true(size_of(target) < size_of(source));
}

static void large_models_are_priced_with_fewer_tokens(void **state)
{
    (void)state;
    const frit_priced_text small = frit_type_choice_priced_text(1e9, 256, 512, 4096),
                           wide = frit_type_choice_priced_text(1e9, 256, 512, 128256),
                           large = frit_type_choice_priced_text(1e11, 256, 512, 32000),
                           larger = frit_type_choice_priced_text(3.5e12, 256, 512, 32000),
                           huge = frit_type_choice_priced_text(1e15, 256, 512, 32000),
                           brief = frit_type_choice_priced_text(1e15, 2, 32, 32000);
    assert_int_equal(small.n_windows, 8);
    assert_int_equal(small.n_tokens, 512);
    assert_int_equal(small.n_rows, 448);
    assert_int_equal(wide.n_windows, 2);   // base predictions take 230 MB per window
    assert_int_equal(large.n_windows, 8);
    assert_int_equal(frit_type_choice_priced_text(2.5e11, 256, 512, 32000).n_windows, 3);
    assert_int_equal(larger.n_windows, 1);
    assert_int_equal(larger.n_tokens, 142);
    assert_int_equal(huge.n_tokens, 128);
    assert_int_equal(huge.n_rows, 64);
    assert_int_equal(brief.n_windows, 1);
    assert_int_equal(brief.n_tokens, 32);
}

typedef struct seen {
    const char *part;
    char type[16];
    size_t n;
    double kl;
} seen;

static void look(void *ctx, const frit_planned_tensor *tensor, double kl)
{
    seen *s = ctx;
    s->n++;
    s->kl += kl;
    if (strstr(tensor->name, s->part)) snprintf(s->type, sizeof s->type, "%s", tensor->to);
}

static void kept_types_are_kept_and_fewer_bytes_cost_more(void **state)
{
    (void)state;
    char source[600];
    snprintf(source, sizeof source, "%s", tiny_model("source.gguf", &(tiny_options){0}));
    const char *const rules[] = {"blk.1.attn_output=q5_1"};
    const frit_quantize_options quantize = {.keep = {rules, 1}, .embedding_type = "q8_0"};
    const frit_convert_options convert = {.n_threads = 2, .quantize = &quantize};
    double kl = 0;
    for (float bits = 20; bits >= 12; bits -= 4) {
        seen kept = {.part = "blk.1.attn_output"};
        frit_allocate_options options = {.bits = bits, .n_windows = 2, .plan = look, .plan_ctx = &kept};
        assert_ok(frit_allocate(source, NULL, &convert, &options));
        assert_string_equal(kept.type, "q5_1");
        assert_true(kept.n > 10 && kept.kl >= kl);
        kl = kept.kl;
        seen table = {.part = "token_embd"};
        options.plan_ctx = &table;
        assert_ok(frit_allocate(source, NULL, &convert, &options));
        assert_string_equal(table.type, "q8_0");
    }
    assert_true(kl > 0);
}

static int n_reports;

static bool count(void *ctx, double done)
{
    (void)ctx, (void)done;
    n_reports++;
    return true;
}

static void bad_input_is_refused(void **state)
{
    (void)state;
    char source[600], target[600];
    snprintf(source, sizeof source, "%s", tiny_model("source.gguf", &(tiny_options){0}));
    snprintf(target, sizeof target, "%s", temp_path("refused.gguf"));
    static const struct {
        frit_allocate_options options;
        const char *says;
    } rows[] = {
        {{.size = "5x"}, "size is '5x', expected a number of bytes"},
        {{.size = "100"}, "bytes at least"},
        {{.size = "1M", .bits = 4}, "expected one of them"},
        {{.bits = 0}, "bits is 0, expected a number above 0"},
        {{.bits = 4, .types = "best"}, "types is 'best', expected k or all"},
        {{.bits = 4, .text = "ab", .n_text = 2}, "the text has "},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_allocate_options options = rows[i].options;
        options.n_windows = 1;
        assert_int_equal(make_file(source, target, 2, &options), FRIT_E_INVALID);
        if (!strstr(frit_error(), rows[i].says)) fail_msg("'%s' does not say '%s'", frit_error(), rows[i].says);
    }
    const frit_convert_options counted = {.progress = count};
    n_reports = 0;
    assert_int_equal(frit_allocate(source, target, &counted, &(frit_allocate_options){.size = "1K"}), FRIT_E_INVALID);
    assert_int_equal(n_reports, 0);   // before anything is measured
    const frit_allocate_options options = {.bits = 8, .n_windows = 1};
    assert_int_equal(make_file(source, source, 2, &options), FRIT_E_INVALID);
    assert_non_null(strstr(frit_error(), "the target is the source file"));
    const frit_convert_options typed = {.type = "q4_0"};
    assert_int_equal(frit_allocate(source, target, &typed, &options), FRIT_E_INVALID);
    assert_int_equal(make_file("/nonexistent.gguf", target, 1, &options), FRIT_E_NOT_FOUND);
    FILE *file = fopen(target, "rb");
    assert_null(file);
}

static bool stop(void *ctx, double done)
{
    (void)done;
    return --*(int *)ctx > 0;
}

static void it_can_be_cancelled_in_any_phase(void **state)
{
    (void)state;
    char source[600], target[600];
    snprintf(source, sizeof source, "%s", tiny_model("source.gguf", &(tiny_options){0}));
    snprintf(target, sizeof target, "%s", temp_path("cancelled.gguf"));
    const frit_allocate_options options = {.bits = 14, .n_windows = 2};
    for (int n = 1; n < 4000; n = n * 2 + 1) {
        int left = n;
        const frit_convert_options convert = {.n_threads = 2, .progress = stop, .progress_ctx = &left};
        const frit_status status = frit_allocate(source, target, &convert, &options);
        if (status == FRIT_OK) return;
        assert_int_equal(status, FRIT_E_CANCELLED);
        assert_null(fopen(target, "rb"));
    }
    fail_msg("it never came to an end");
}

static void a_stopped_run_goes_on_with_the_same_bytes(void **state)
{
    (void)state;
    char source[600], whole[600], again[600], kept[600];
    snprintf(source, sizeof source, "%s", tiny_model("source.gguf", &(tiny_options){0}));
    snprintf(whole, sizeof whole, "%s", temp_path("whole.gguf"));
    snprintf(again, sizeof again, "%s", temp_path("again.gguf"));
    snprintf(kept, sizeof kept, "%s", temp_path("kept.state"));
    frit_allocate_options options = {.bits = 14, .n_windows = 2};
    assert_ok(make_file(source, whole, 2, &options));
    options.state = kept;
    int n_stopped = 0;
    for (int n = 2; n < 4000; n = n * 3 / 2 + 1) {
        int left = n;
        remove(kept);
        const frit_convert_options convert = {.n_threads = 2, .progress = stop, .progress_ctx = &left};
        const frit_status status = frit_allocate(source, again, &convert, &options);
        if (status == FRIT_OK) break;
        assert_int_equal(status, FRIT_E_CANCELLED);
        n_stopped++;
        assert_ok(make_file(source, again, 1, &options));
        expect_equal_files(whole, again);
    }
    assert_true(n_stopped > 5);
}

static void what_was_measured_serves_other_sizes(void **state)
{
    (void)state;
    char source[600], other[600], target[600], again[600], kept[600];
    snprintf(source, sizeof source, "%s", tiny_model("source.gguf", &(tiny_options){0}));
    snprintf(target, sizeof target, "%s", temp_path("target.gguf"));
    snprintf(again, sizeof again, "%s", temp_path("again.gguf"));
    snprintf(kept, sizeof kept, "%s", temp_path("kept.state"));
    remove(kept);
    const frit_convert_options convert = {.n_threads = 2, .progress = count};
    frit_allocate_options options = {.bits = 14, .n_windows = 2, .state = kept};
    n_reports = 0;
    assert_ok(frit_allocate(source, target, &convert, &options));
    const int n_first = n_reports;
    options.bits = 11;
    n_reports = 0;
    assert_ok(frit_allocate(source, target, &convert, &options));
    assert_true(4 * n_reports < 3 * n_first);   // nothing was measured
    options.state = NULL;
    assert_ok(make_file(source, again, 2, &options));
    expect_equal_files(target, again);
    // Rules do not change measurements of other matrices, and lose nothing of the matrices that they keep.
    const char *const rules[] = {"ffn_down=q8_0"};
    const frit_quantize_options quantize = {.keep = {rules, 1}, .embedding_type = "q8_0"};
    frit_convert_options ruled = {.n_threads = 2, .progress = count, .quantize = &quantize};
    options.state = kept;
    n_reports = 0;
    assert_ok(frit_allocate(source, target, &ruled, &options));
    assert_true(4 * n_reports < 3 * n_first);
    options.state = NULL;
    assert_ok(frit_allocate(source, again, &ruled, &options));
    expect_equal_files(target, again);
    options.state = kept;
    n_reports = 0;
    assert_ok(frit_allocate(source, target, &convert, &options));
    assert_true(4 * n_reports < 3 * n_first);
    // A state of another model is not used.
    snprintf(other, sizeof other, "%s", tiny_model("other.gguf", &(tiny_options){.seed = 7}));
    assert_ok(make_file(other, target, 2, &options));
    options.state = NULL;
    assert_ok(make_file(other, again, 2, &options));
    expect_equal_files(target, again);
}

// A state keeps text and windows, for other sizes and after other runs. A text that is given is measured.
static void the_text_of_a_state_serves_where_none_is_named(void **state)
{
    (void)state;
    char source[600], target[600], again[600], kept[600];
    size_t n_text;
    char *words = many_texts(&n_text);
    snprintf(source, sizeof source, "%s", tiny_model("source.gguf", &(tiny_options){0}));
    snprintf(target, sizeof target, "%s", temp_path("target.gguf"));
    snprintf(again, sizeof again, "%s", temp_path("again.gguf"));
    snprintf(kept, sizeof kept, "%s", temp_path("kept.state"));
    remove(kept);
    const frit_convert_options convert = {.n_threads = 2, .progress = count};
    frit_allocate_options options = {.bits = 14, .text = words, .n_text = n_text, .n_windows = 1, .state = kept};
    n_reports = 0;
    assert_ok(frit_allocate(source, target, &convert, &options));
    const int n_first = n_reports;
    for (int i = 0; i < 2; i++) {
        frit_allocate_options bare = {.bits = 14, .n_windows = i, .state = kept};
        n_reports = 0;
        assert_ok(frit_allocate(source, again, &convert, &bare));
        assert_true(10 * n_reports < 9 * n_first);   // nothing was measured, but tensors were checked and written
        expect_equal_files(target, again);
    }
    n_reports = 0;
    assert_ok(frit_allocate(source, again, &convert, &options));
    assert_true(10 * n_reports < 9 * n_first);
    options.n_text -= 20;
    n_reports = 0;
    assert_ok(frit_allocate(source, again, &convert, &options));
    assert_true(10 * n_reports > 9 * n_first);
    free(words);
}

static void damaged_states_are_refused(void **state)
{
    (void)state;
    char source[600], target[600], kept[600];
    size_t n;
    snprintf(source, sizeof source, "%s", tiny_model("source.gguf", &(tiny_options){0}));
    snprintf(target, sizeof target, "%s", temp_path("refused.gguf"));
    snprintf(kept, sizeof kept, "%s", temp_path("kept.state"));
    remove(kept);
    const frit_allocate_options options = {.bits = 14, .n_windows = 1, .state = kept};
    assert_ok(make_file(source, target, 2, &options));
    char *bytes = read_file(kept, &n);
    for (size_t part = 0; part < 16; part++) {
        FILE *file = fopen(kept, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, n * part / 16, file), n * part / 16);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(make_file(source, target, 2, &options), FRIT_E_FORMAT);
        assert_non_null(strstr(frit_error(), "kept.state"));
    }
    free(bytes);
    // An importance file is not a state.
    frit_importance *importance;
    assert_ok(frit_importance_new(&importance));
    assert_ok(frit_importance_write(importance, kept, NULL));
    frit_importance_free(importance);
    assert_int_equal(make_file(source, target, 2, &options), FRIT_E_FORMAT);
    assert_non_null(strstr(frit_error(), "has no prices"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_do_not_depend_on_threads),
        cmocka_unit_test(files_have_the_size_and_say_how_they_were_made),
        cmocka_unit_test(a_model_without_a_vocabulary_gets_a_size),
        cmocka_unit_test(large_models_are_priced_with_fewer_tokens),
        cmocka_unit_test(kept_types_are_kept_and_fewer_bytes_cost_more),
        cmocka_unit_test(bad_input_is_refused),
        cmocka_unit_test(it_can_be_cancelled_in_any_phase),
        cmocka_unit_test(a_stopped_run_goes_on_with_the_same_bytes),
        cmocka_unit_test(what_was_measured_serves_other_sizes),
        cmocka_unit_test(the_text_of_a_state_serves_where_none_is_named),
        cmocka_unit_test(damaged_states_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
