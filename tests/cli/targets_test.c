// SPDX-License-Identifier: MIT
// The command refuses to overwrite files that it reads, under any name.
#include "support/command_posix.h"
#include "support/tiny_model.h"

#include <unistd.h>

static const char chat_template[] = "{% for m in messages %}{{ m.content }}{% endfor %}";

typedef struct input {
    char path[512];
    char *bytes;
    size_t n;
} input;

static input model, text, importance, sums, parts[2];
static input *const inputs[] = {&model, &text, &importance, &sums, &parts[0], &parts[1]};
static char hard[512], out[512];

static void keep_input(input *in)
{
    in->bytes = read_file(in->path, &in->n);
}

static void expect_kept(const input *in)
{
    size_t n;
    char *bytes = read_file(in->path, &n);
    if (n != in->n || memcmp(bytes, in->bytes, n) != 0) fail_msg("%s was changed", in->path);
    free(bytes);
}

// Replaces the capitals M, H (another name of M), T, I, S, P, Q (parts of a set), O by paths.
static void fill(char *line, size_t size, const char *format)
{
    static const struct {
        char letter;
        const char *path;
    } names[] = {{'M', model.path}, {'H', hard},          {'T', text.path},     {'I', importance.path},
                 {'S', sums.path},  {'P', parts[0].path}, {'Q', parts[1].path}, {'O', out}};
    size_t n = 0;
    for (; *format && n + 600 < size; format++) {
        size_t i = 0;
        while (i < FRIT_COUNT(names) && names[i].letter != *format) i++;
        if (i < FRIT_COUNT(names))
            n += (size_t)snprintf(line + n, size - n, "'%s'", names[i].path);
        else
            line[n++] = *format;
    }
    line[n] = 0;
}

static void expect_refused(const char *format, const char *typed, const char *sentence)
{
    char line[4096];
    fill(line, sizeof line, format);
    outcome o = frit(line, typed);
    if (!strstr(o.err, sentence)) fail_msg("frit %s: '%s' does not say '%s'", line, o.err, sentence);
    if (!typed) assert_int_equal(o.code, 2);
    outcome_free(&o);
    for (size_t i = 0; i < FRIT_COUNT(inputs); i++) expect_kept(inputs[i]);
}

static int make_inputs(void **state)
{
    (void)state;
    char line[4096], words[2400];
    for (size_t i = 0; i < sizeof words; i++) words[i] = (char)('a' + (i * i + i / 7) % 26);
    const char *made = tiny_model("model.gguf", &(tiny_options){.chat_template = chat_template});
    snprintf(model.path, sizeof model.path, "%s", made);
    snprintf(hard, sizeof hard, "%s", temp_path("hard.gguf"));
    snprintf(out, sizeof out, "%s", temp_path("out.gguf"));
    snprintf(text.path, sizeof text.path, "%s", temp_path("text.txt"));
    snprintf(importance.path, sizeof importance.path, "%s", temp_path("importance.gguf"));
    snprintf(sums.path, sizeof sums.path, "%s", temp_path("sums.gguf.state"));
    snprintf(parts[0].path, sizeof parts[0].path, "%s", temp_path("set-00001-of-00002.gguf"));
    snprintf(parts[1].path, sizeof parts[1].path, "%s", temp_path("set-00002-of-00002.gguf"));
    write_file(text.path, words, sizeof words);
    assert_int_equal(link(model.path, hard), 0);
    fill(line, sizeof line, "imatrix M I -f T -c 64");
    expect(line, NULL, 0, NULL, "is written");
    fill(line, sizeof line, "imatrix M S -f T -c 64");
    expect(line, NULL, 0, NULL, "is written");
    keep_input(&model);
    snprintf(line, sizeof line, "convert '%s' '%s' --split-max-size %zu", model.path, temp_path("set.gguf"),
             model.n * 6 / 10);
    expect(line, NULL, 0, NULL, "the first of 2 files");
    free(model.bytes);
    for (size_t i = 0; i < FRIT_COUNT(inputs); i++) keep_input(inputs[i]);
    return 0;
}

static int free_inputs(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(inputs); i++) free(inputs[i]->bytes);
    return 0;
}

static void what_is_read_is_not_replaced(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "imatrix M M -f T -c 64",
        "imatrix M H -f T -c 64",
        "imatrix -m M H -f T -c 64",
        "imatrix M T -f T -c 64",
        "imatrix I --merge I",
        "imatrix M I -f T --merge I -c 64",
        "perplexity M -f T -c 64 --kl-divergence-base M",
        "perplexity M -f T -c 64 --kl-divergence-base H",
        "perplexity M -f T -c 64 --kl-divergence-base T",
        "perplexity P -f T -c 64 --kl-divergence-base Q",
        "logits M --ids 1,2 -o H",
        "logits P --ids 1,2 -o Q",
        "kl M M -f T -c 64 --plot H",
        "kl M M -f T -c 64 --plot T",
        "kl M P -f T -c 64 --plot Q",
        "serve M --port 0 --access-log H",
        "quantize M H",
        "quantize M I --importance I",
        "quantize M T --bits 14 -f T",
        "quantize M T --mix q4_0 --refine T",
        "quantize M O --bits 14 -f T --state T",
        "quantize M O --bits 14 --state H",
        "quantize M --plan --bits 14 --state I --importance I",
    };
    for (size_t i = 0; i < FRIT_COUNT(lines); i++)
        expect_refused(lines[i], NULL, "is an input too; expected another name");
    // The state of the measurement is in OUT.gguf.state by default, and is removed at the end.
    snprintf(out, sizeof out, "%.*s", (int)(strlen(sums.path) - strlen(".state")), sums.path);
    expect_refused("quantize M O --bits 14 --importance S", NULL, "is an input too; expected another name");
    snprintf(out, sizeof out, "%s", temp_path("out.gguf"));
    expect_refused("quantize M O --bits 14 --state O", NULL, "the file to write; expected another name");
    assert_int_equal(access(out, F_OK), -1);
}

static void a_model_is_not_taken_for_the_file_to_write(void **state)
{
    (void)state;
    expect_refused("imatrix M -f T", NULL, "is a model, expected the name of the importance file to write after it");
    expect_refused("imatrix P Q -f T -c 64", NULL, "is a model, expected the name of the importance file to write");
    expect_refused("imatrix M", NULL, "imatrix: OUT.gguf is missing");
    expect_refused("imatrix", NULL, "imatrix: MODEL, --merge FILE or --show FILE is missing");
}

static void a_conversation_is_not_saved_over_its_model(void **state)
{
    (void)state;
    char line[700];
    snprintf(line, sizeof line, "/save %s\n", hard);
    expect_refused("chat M -q -n 1", line, "is an input too; expected another name");
}

// A state of another model, and a file of another format.
static void a_file_that_cannot_be_added_is_named(void **state)
{
    (void)state;
    char line[4096], other[512], old[512], sentence[700];
    snprintf(other, sizeof other, "%s", temp_path("other.gguf"));
    snprintf(old, sizeof old, "%s", temp_path("old.dat"));
    fill(line, sizeof line, "imatrix M -f T -c 64 --legacy ");
    snprintf(line + strlen(line), sizeof line - strlen(line), "'%s'", old);
    expect(line, NULL, 0, NULL, "is written");
    snprintf(line, sizeof line, "imatrix '%s' '%s' -f '%s' -c 64", tiny_model("wide.gguf", &(tiny_options){.times = 2}),
             other, text.path);
    expect(line, NULL, 0, NULL, "is written");
    snprintf(line, sizeof line, "imatrix '%s' --merge '%s' --merge '%s'", out, importance.path, other);
    snprintf(sentence, sizeof sentence, "frit: %s: importance of 'blk.0.", other);
    expect(line, NULL, 2, NULL, sentence);
    snprintf(line, sizeof line, "imatrix '%s' --merge '%s' --merge '%s'", out, importance.path, old);
    snprintf(sentence, sizeof sentence, "frit: %s: a legacy file counts calls", old);
    expect(line, NULL, 2, NULL, sentence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_not_replaced),
        cmocka_unit_test(a_model_is_not_taken_for_the_file_to_write),
        cmocka_unit_test(a_conversation_is_not_saved_over_its_model),
        cmocka_unit_test(a_file_that_cannot_be_added_is_named),
    };
    return cmocka_run_group_tests(tests, make_inputs, free_inputs);
}
