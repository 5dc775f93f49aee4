// SPDX-License-Identifier: MIT
// frit quantize: errors before the work, and its output about sizes, states and texts.
#include "support/command_posix.h"
#include "support/tiny_model.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char source[512], target[512], brief[512], text[512];

static int make_inputs(void **state)
{
    (void)state;
    char words[3000];
    for (size_t i = 0; i < sizeof words; i++) words[i] = (char)('a' + (i * i + i / 7) % 26);
    snprintf(source, sizeof source, "%s", tiny_model("source.gguf", &(tiny_options){0}));
    snprintf(target, sizeof target, "%s", temp_path("target.gguf"));
    snprintf(brief, sizeof brief, "%s", temp_path("brief.txt"));
    snprintf(text, sizeof text, "%s", temp_path("text.txt"));
    write_file(brief, words, 600);
    write_file(text, words, sizeof words);
    return 0;
}

// BRIEF and TEXT are files of about 600 and 3,000 tokens. The model's context is 256.
static outcome quantize(const char *model, const char *options)
{
    static const struct {
        const char *word, *path;
    } words[] = {{"BRIEF", brief}, {"TEXT", text}};
    char line[4096];
    size_t n = (size_t)snprintf(line, sizeof line, "quantize '%s' '%s' -t 1 ", model, target);
    while (*options && n + 600 < sizeof line) {
        size_t w = 0;
        while (w < FRIT_COUNT(words) && strncmp(options, words[w].word, strlen(words[w].word)) != 0) w++;
        if (w < FRIT_COUNT(words)) {
            n += (size_t)snprintf(line + n, sizeof line - n, "'%s'", words[w].path);
            options += strlen(words[w].word);
        } else
            line[n++] = *options++;
    }
    line[n] = 0;
    return frit(line, NULL);
}

static void expect_said(const char *model, const char *options, int code, const char *said, const char *not_said)
{
    remove(target);
    outcome o = quantize(model, options);
    if (o.code != code) fail_msg("%s: %d, %s", options, o.code, o.err);
    if (!strstr(o.err, said)) fail_msg("%s: '%s' is missing in '%s'", options, said, o.err);
    if (not_said && strstr(o.err, not_said)) fail_msg("%s: '%s'", options, o.err);
    outcome_free(&o);
    if (code != 0) assert_int_equal(access(target, F_OK), -1);
}

static void what_cannot_be_refined_is_refused_before_the_work(void **state)
{
    (void)state;
    expect_said(source, "--size 40K -f TEXT --split-max-size 10K", 2, "cannot be rounded again; expected --fast",
                "of a");
    expect_said(source, "--mix q4_0 --refine TEXT --split-max-size 10K", 2, "expected no --refine, or one file", NULL);
    expect_said(source, "--mix q4_0 --refine BRIEF", 2, "refining needs a text of at least 2048 tokens, found 602",
                "is written");
    expect_said(source, "--bits 14 -f TEXT --refine BRIEF", 2, "at least 2048 tokens, found 602", "is written");
    expect_said(source, "--mix q4_0 --refine own --windows 2", 2, "at least 2048 tokens, found 512", "is written");
    expect_said(source, "--mix q4_0 --refine TEXT --windows 7", 2, "at least 2048 tokens, found 1792", "is written");
    expect_said(shared_path("goldens/hf/llama"), "--mix q8_0 --refine TEXT", 1,
                "refining needs the model as a GGUF file; 'frit convert' makes one", "is written");
    outcome o = quantize(source, "--bits 14 -f TEXT --fast --split-max-size 20K");
    assert_int_equal(o.code, 0);
    outcome_free(&o);
}

static void options_without_effect_are_refused(void **state)
{
    (void)state;
    expect_said(source, "--mix q4_0 --windows 4", 2, "--windows limits a text; give --size, --bits or --refine", NULL);
    expect_said(source, "--mix q4_0 --types all", 2, "--types is for --size and --bits", NULL);
    expect_said(source, "--types k", 2, "--types is for --size and --bits", NULL);
    setenv("FRIT_WINDOWS", "4", 1);   // the variable applies to all commands
    expect_said(source, "--mix q4_0", 0, "is written", NULL);
    unsetenv("FRIT_WINDOWS");
    expect_said(source, "--bits 0", 2, "--bits is 0, expected a number above 0 and up to 32", NULL);
}

static void wrong_values_are_named(void **state)
{
    (void)state;
    expect_said(source, "--mix q4_0 --keep '(=q8_0'", 2, "keep: '(=q8_0': regex '('", NULL);
    expect_said(source, "--mix q4_0 --importance nofile", 1, "--importance: there is no file 'nofile'",
                "names of models");
    expect_said(source, "--size 1K -f TEXT", 2, "expected a larger size, or types all", NULL);
    expect_said(source, "--size 1K -f TEXT --types all", 2, "expected a larger size", "types all");
}

static void no_more_of_a_text_is_read_than_asked_for(void **state)
{
    (void)state;
    char line[700];
    expect_said(source, "--mix q4_0 --refine TEXT --windows 9", 0, "matrices are refined", NULL);
    snprintf(line, sizeof line, "info '%s'", target);
    expect(line, NULL, 0, "quantize.refine.tokens                       2304\n", NULL);
}

static void a_size_and_its_file_are_said_in_bytes(void **state)
{
    (void)state;
    char said[700];
    struct stat info;
    outcome o = quantize(source, "--size 60K -f TEXT");
    assert_int_equal(o.code, 0);
    assert_int_equal(stat(target, &info), 0);
    assert_true(info.st_size <= 60000);
    snprintf(said, sizeof said, "%s has %lld bytes, at most 60K are allowed", target, (long long)info.st_size);
    if (!strstr(o.err, said)) fail_msg("'%s' is not said, but %s", said, o.err);
    outcome_free(&o);
    o = quantize(source, "--size 60K -f TEXT --plan");
    assert_int_equal(o.code, 0);
    const char *at = strstr(o.err, "the file would have ");
    long long n_bytes = 0;
    assert_non_null(at);
    assert_int_equal(sscanf(at, "the file would have %lld bytes, at most 60000 are allowed", &n_bytes), 1);
    assert_true(n_bytes <= (long long)info.st_size && n_bytes + 300 >= (long long)info.st_size);   // and labels
    outcome_free(&o);
    expect_said(source, "--bits 14 -f TEXT --fast", 0, "bytes for a requested 14 bits a number", NULL);
    expect_said(source, "--size 400G -f TEXT", 0, "no matrix needs quantizing", "0 of 0");
}

static void the_text_of_a_state_serves_where_none_is_named(void **state)
{
    (void)state;
    char kept[512], options[1200];
    size_t n, n_again;
    snprintf(kept, sizeof kept, "%s", temp_path("kept.state"));
    snprintf(options, sizeof options, "--plan --bits 14 -f TEXT --state '%s'", kept);
    outcome o = quantize(source, options);
    assert_int_equal(o.code, 0);
    outcome_free(&o);
    char *bytes = read_file(kept, &n);
    snprintf(options, sizeof options, "--plan --bits 12 --state '%s'", kept);
    o = quantize(source, options);
    assert_int_equal(o.code, 0);
    if (!strstr(o.err, "the text of the state is used, because none is given")) fail_msg("%s", o.err);
    outcome_free(&o);
    char *again = read_file(kept, &n_again);
    assert_int_equal(n, n_again);
    assert_memory_equal(bytes, again, n);
    free(bytes);
    free(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_refined_is_refused_before_the_work),
        cmocka_unit_test(options_without_effect_are_refused),
        cmocka_unit_test(wrong_values_are_named),
        cmocka_unit_test(no_more_of_a_text_is_read_than_asked_for),
        cmocka_unit_test(a_size_and_its_file_are_said_in_bytes),
        cmocka_unit_test(the_text_of_a_state_serves_where_none_is_named),
    };
    return cmocka_run_group_tests(tests, make_inputs, NULL);
}
