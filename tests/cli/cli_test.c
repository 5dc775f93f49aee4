// SPDX-License-Identifier: MIT
// The command line: what is printed to which stream, and every exit code.
#include "support/classifier.h"
#include "support/command_posix.h"
#include "support/tiny_model.h"

#include <frit_tools.h>

static void json_output_is_one_object(void **state)
{
    (void)state;
    expect("run --json -q --temp 0 -n 8 -p Hello", NULL, 0, "\"answer_tokens\": ", NULL);
    expect("info --json", NULL, 0, "\"architecture\": \"llama\"", NULL);
    expect("info --json --tensors", NULL, 0, "\"shape\"", NULL);
    expect("bench -p 16 -n 4 -r 2 -o json --no-probe", NULL, 0, "\"test\": \"pp16\"", NULL);
}

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

static void bench_measures_every_combination_of_its_lists(void **state)
{
    (void)state;
    outcome o = frit("bench -p 4,6 -n 2-3 -d 0-8+8 -npl 1-4*4 -pg 4,2 -t 1,2 -r 1 --no-probe -o csv", NULL);
    assert_int_equal(o.code, 0);
    assert_int_equal(count_lines(o.out), 1 + 2 * 2 * (2 + 2 * 2 + 1));
    const char *tests[] = {"pp4", "pp6 @ d8", "tg2", "tg3 x 4 @ d8", "pp4+tg2"};
    for (size_t i = 0; i < FRIT_COUNT(tests); i++) {
        char cell[64];
        snprintf(cell, sizeof cell, "\"%s\",", tests[i]);
        if (!strstr(o.out, cell)) fail_msg("no %s in\n%s", cell, o.out);
    }
    outcome_free(&o);
    char command[1024];
    const char *model = project_path("models/fable.gguf");
    snprintf(command, sizeof command, "bench '%s' '%s' -p 4 -n 0 -b 2 -ub 1-4*2 -r 2 --no-probe -o jsonl", model,
             model);
    o = frit(command, NULL);
    assert_int_equal(o.code, 0);
    assert_int_equal(count_lines(o.out), 2 * 3);
    assert_non_null(strstr(o.out, "\"n_ubatch\":4"));
    outcome_free(&o);
}

static void bench_refuses_what_is_no_list(void **state)
{
    (void)state;
    const char *lists[] = {"-p x",  "-p 1,",          "-p 8-4",  "-p 1-8*1",  "-p 0-8*2", "-p 1-8+0",
                           "-p 1-", "-p 99999999999", "-d -1",   "-n 1-1000", "-t 5000",  "-npl 0",
                           "-pg 4", "-pg 4,0",        "-ctk q9", "-p ''"};
    for (size_t i = 0; i < FRIT_COUNT(lists); i++) {
        char command[64];
        snprintf(command, sizeof command, "bench %s", lists[i]);
        expect(command, NULL, 2, NULL, "bench: ");
    }
    expect("bench -ub", NULL, 2, NULL, "-ub: needs a value (LIST)");
    expect("bench -p 1-256 -d 1-256 -t 1-256", NULL, 2, NULL, "the lists have more than 65536 combinations");
    expect("bench --random qwen3", NULL, 2, NULL, "unknown shape 'qwen3'; the nearest are qwen3-0.6b");
    expect("bench --random llama-1b --layers 17", NULL, 2, NULL, "llama-1b has 16 layers, 17 are requested");
    expect("bench --random llama-1b --type q9", NULL, 2, NULL, "nvfp4, q4_k_m, q5_k_m or fp8");
    expect("bench --random llama-1b model.gguf", NULL, 2, NULL, "none can be named beside it");
    expect("bench --layers 2", NULL, 2, NULL, "bench: --layers is an option of --random");
    expect("bench --save a.gguf", NULL, 2, NULL, "bench: --save is an option of --random");
    const frit_random_shape *shape;
    for (size_t i = 0; (shape = frit_random_shape_get(i)); i++)
        expect("bench --help --all", NULL, 0, shape->name, NULL);
}

static void bench_tells_where_the_time_goes(void **state)
{
    (void)state;
    outcome o = frit("bench -p 8 -n 2 -r 1 --no-probe --profile", NULL);
    assert_int_equal(o.code, 0);
    const char *words[] = {
        "| pp8 ", "pp8: a step of 8 rows takes", "tg2: a step of 1 row takes", "| attend ", "| between steps",
        "| all "};
    for (size_t i = 0; i < FRIT_COUNT(words); i++)
        if (!strstr(o.out, words[i])) fail_msg("no '%s' in\n%s", words[i], o.out);
    outcome_free(&o);
}

static void predictions_are_kept_and_compared(void **state)
{
    (void)state;
    char base[512], command[2048];
    snprintf(base, sizeof base, "%s", temp_path("predictions"));
    const char *text = "Once upon a time there was a king who had a great forest near his palace, full of all kinds of "
                       "wild animals. One day he sent out a huntsman to shoot him a roe, but he did not come back.";
    snprintf(command, sizeof command, "perplexity -c 16 -f - --kl-divergence-base '%s'", base);
    expect(command, text, 0, "perplexity ", NULL);
    // The model that wrote the file reads the file's text again: only the codes in the file differ.
    snprintf(command, sizeof command, "perplexity --kl-divergence-base '%s' --kl-divergence", base);
    outcome o = frit(command, NULL);
    assert_int_equal(o.code, 0);
    double kl = 1;
    const char *at = strstr(o.out, "KL divergence ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "KL divergence %lf", &kl), 1);
    assert_true(kl < 1e-5);
    assert_non_null(strstr(o.out, "same likeliest token at 100.000 +- 0.000 %"));
    outcome_free(&o);
    // Another model has a larger divergence; a truncated file is refused.
    snprintf(command, sizeof command, "perplexity --kl-divergence-base '%s' --kl-divergence --cpu reference -c 8",
             base);
    expect(command, NULL, 2, NULL, "windows of 16 tokens");
    size_t n = 0;
    char *bytes = read_file(base, &n);
    write_file(base, bytes, n - 10);
    snprintf(command, sizeof command, "perplexity --kl-divergence-base '%s' --kl-divergence", base);
    expect(command, NULL, 1, NULL, "ends within its predictions");
    write_file(base, bytes, 30);
    expect(command, NULL, 1, NULL, "ends within its");
    write_file(base, "GGUF", 4);
    expect(command, NULL, 1, NULL, "is not a file of log-probabilities");
    // The header promises a billion tokens: their memory is not allocated before they are read.
    write_file(base, "_logits_\0\4\0\0\0\1\0\0\0\0\20\0", 20);
    char limited[4096];
    snprintf(limited, sizeof limited,
             "ulimit -v 1000000; '%s/frit' %s 2>&1 | grep -q 'ends within its 1073741824 tokens'", FRIT_BUILD_DIR,
             command);
    if (FRIT_TEST_STRIDE == 1) assert_int_equal(system(limited), 0);   // sanitizers need more than the limit
    free(bytes);
    expect("perplexity --kl-divergence", NULL, 2, NULL, "--kl-divergence-base");
}

static void models_are_compared_side_by_side(void **state)
{
    (void)state;
    const char *text = "Once upon a time there was a king who had a great forest near his palace, full of all kinds of "
                       "wild animals. One day he sent out a huntsman to shoot him a roe, but he did not come back.";
    char model[512], command[2048];
    snprintf(model, sizeof model, "%s", project_path("models/fable.gguf"));
    snprintf(command, sizeof command, "kl '%s' '%s' -c 16 -f - --cpu reference", model, model);
    expect(command, text, 0, "fable.gguf", NULL);
    size_t n_bytes;
    char field[64];
    free(read_file(model, &n_bytes));
    snprintf(field, sizeof field, "\"bytes\": %zu,", n_bytes);   // of the file, not of its tensors
    snprintf(command, sizeof command, "kl '%s' '%s' -c 16 -f - --json --windows 1", model, model);
    expect(command, text, 0, field, NULL);
    snprintf(command, sizeof command, "kl '%s' '%s' '%s' -c 16 -f - --json --type q2_k", model, model, model);
    outcome o = frit(command, text);
    assert_int_equal(o.code, 0);
    double kl = 1, same = 0;
    int n_models = 0;
    for (const char *at = o.out; (at = strstr(at, "\"kl_divergence\": ")); at++, n_models++) {
        assert_int_equal(sscanf(at, "\"kl_divergence\": %lf", &kl), 1);
        assert_true(kl > -1e-6 && kl < 1e-6);   // both have the same model in the same type
    }
    assert_int_equal(n_models, 2);
    assert_non_null(strstr(o.out, "\"same_top\": "));
    assert_int_equal(sscanf(strstr(o.out, "\"same_top\": "), "\"same_top\": %lf", &same), 1);
    assert_true(same > 0.999);
    outcome_free(&o);
    snprintf(command, sizeof command, "kl '%s' '%s' -c 16 -f - --plot '%s'", model, model, temp_path("plot.svg"));
    expect(command, text, 1, NULL, "there is nothing to draw");
    expect("quantize a.gguf b.gguf --size 1M --mix q4_k_m", NULL, 2, NULL, "--size and --bits choose types");
    expect("quantize a.gguf b.gguf -f text", NULL, 2, NULL, "give --size or --bits too");
    expect("quantize a.gguf b.gguf --size 1M --fast --refine text", NULL, 2, NULL, "--refine cannot be given too");
    expect("quantize a.gguf b.gguf --mix q4_k_m --fast", NULL, 2, NULL, "--fast is for --size and --bits");
    expect("imatrix", NULL, 2, NULL, "MODEL, --merge FILE or --show FILE is missing");
    expect("kl a.gguf -f x", NULL, 2, NULL, "expected two models or more");
    expect("kl a.gguf b.gguf", NULL, 2, NULL, "-f FILE is missing");
    expect("kl a.gguf b.gguf -f - -c 2", "x", 2, NULL, "a window needs at least 4 tokens");
    snprintf(command, sizeof command, "kl '%s' /nonexistent.gguf -f - -c 16", model);
    expect(command, text, 3, NULL, "/nonexistent.gguf");
    snprintf(command, sizeof command, "kl '%s' '%s' -f -", model, model);
    expect(command, "too short", 1, NULL, "one window needs 512");
}

static void a_chat_goes_on_where_its_session_ended(void **state)
{
    (void)state;
    char command[1024], path[512];
    snprintf(path, sizeof path, "%s", temp_path("chat.frit"));
    outcome both = frit("chat --temp 0 -n 10 -q", "Tell me a story.\nGo on.\n");
    snprintf(command, sizeof command, "chat --temp 0 -n 10 --session '%s'", path);
    outcome first = frit(command, "Tell me a story.\n"), second = frit(command, "Go on.\n");
    assert_int_equal(first.code, 0);
    assert_int_equal(second.code, 0);
    assert_non_null(strstr(second.err, "2 messages"));
    assert_int_equal(strncmp(both.out, first.out, strlen(first.out)), 0);
    assert_string_equal(both.out + strlen(first.out), second.out);
    expect("chat --session a --load b", "", 2, NULL, "--load and --session");
    outcome_free(&both);
    outcome_free(&first);
    outcome_free(&second);
}

static void chat_answers_every_line_of_a_pipe(void **state)
{
    (void)state;
    outcome o = frit("chat --temp 0 -n 10 -q", "Hello there.\nTell me more.\n");
    assert_int_equal(o.code, 0);
    size_t n_lines = 0;
    for (const char *c = o.out; *c; c++) n_lines += *c == '\n';
    assert_true(n_lines >= 2);
    outcome_free(&o);
}

static void info_shows_model_and_ops(void **state)
{
    (void)state;
    expect("info", NULL, 0, "architecture   llama", NULL);
    expect("info -ctk q8_0 -ctv q8_0 --json", NULL, 0, "\"kv_bytes_per_token\"", NULL);
    expect("info -ctk q2_k", NULL, 2, NULL, "q2_k");
    expect("info --estimate -c 512", NULL, 0, "It fits.", NULL);
    expect("info --estimate -c 512 --json", NULL, 0, "\"fits\": true", NULL);
    expect("info --estimate -c 134217728", NULL, 4, "does not fit into the memory of cpu: a context of 134217728",
           NULL);
    expect("run -p x -c 134217728", NULL, 4, NULL, "iB are free; a context of ");
    expect("run -p x -n 1 --temp 0 -c 100 --fit off", NULL, 0, NULL, NULL);
    expect("run -p x --fit maybe", NULL, 2, NULL, "fit: 'maybe' is not one of on|off");
    expect("info --tensors", NULL, 0, "blk.0.attn_q.weight", NULL);
    expect("info --ops", NULL, 0, "rms_norm", NULL);
    expect("info --architectures", NULL, 0, "qwen3moe", NULL);
}

static void logits_have_the_documented_size(void **state)
{
    (void)state;
    char path[512], command[1024];
    snprintf(path, sizeof path, "%s", temp_path("l.f32"));
    snprintf(command, sizeof command, "logits --ids 0,1,2 -o '%s' --cpu reference", path);
    expect(command, NULL, 0, NULL, "[3, 8192] float32");
    size_t n;
    free(read_file(path, &n));
    assert_int_equal(n, 3 * 8192 * 4);
    snprintf(command, sizeof command, "logits --ids 0,1,2 -o '%s' --embeddings", path);
    expect(command, NULL, 0, NULL, "[3, 512] float32");
}

static void help_names_every_option_and_its_default(void **state)
{
    (void)state;
    expect("", NULL, 0, "Commands:", NULL);
    expect("help", NULL, 0, "perplexity", NULL);
    expect("help run", NULL, 0, "--top-k", NULL);
    expect("run --help", NULL, 0, "--stop STR", NULL);
    expect("help --man", NULL, 0, ".TH FRIT 1", NULL);
    expect("completions bash", NULL, 0, "complete -o filenames -F _frit frit", NULL);
    expect("completions zsh", NULL, 0, "#compdef frit", NULL);
    expect("completions fish", NULL, 0, "-l top-k", NULL);
    expect("--version", NULL, 0, frit_version(), NULL);
}

static void completions_are_valid_bash(void **state)
{
    (void)state;
    char command[1024];
    snprintf(command, sizeof command, "'%s/frit' completions bash | bash -n", FRIT_BUILD_DIR);
    assert_int_equal(system(command), 0);
}

static void the_environment_sets_options_and_the_command_line_wins(void **state)
{
    (void)state;
    outcome one = frit("run -q --temp 0 -n 1 -p Hello", NULL);
    setenv("FRIT_N_PREDICT", "1", 1);
    expect("run -q --temp 0 -p Hello", NULL, 0, one.out, NULL);
    setenv("FRIT_N_PREDICT", "many", 1);
    expect("run -q --temp 0 -p Hello", NULL, 2, NULL, "FRIT_N_PREDICT");
    unsetenv("FRIT_N_PREDICT");
    outcome_free(&one);
}

static void wrong_usage_exits_with_2_and_says_what_is_possible(void **state)
{
    (void)state;
    expect("rnu", NULL, 2, NULL, "did you mean 'frit run'?");
    expect("frobnicate", NULL, 2, NULL, "'frit help' lists them");
    expect("run --tpo-k 3 -p x", NULL, 2, NULL, "did you mean '--top-k'?");
    expect("run -Z -p x", NULL, 2, NULL, "no option '-Z'");
    expect("run -p x --top-k", NULL, 2, NULL, "needs a value");
    expect("run -p x --top-k many", NULL, 2, NULL, "top-k");
    expect("run -p x --top-p 1.5", NULL, 2, NULL, "top-p");
    expect("run -p x -t 100000000", NULL, 2, NULL, "threads");
    expect("run -p x --cpu pentium", NULL, 2, NULL, "pentium");
    expect("run -p x --samplers top-k,fancy", NULL, 2, NULL, "fancy");
    expect("run -p x -ctk q9", NULL, 2, NULL, "cache-type-k: 'q9' is not one of f32|f16|bf16|fp8|q8_0");
    expect("run -p x -ctv", NULL, 2, NULL, "-ctv: needs a value");
    expect("run -p x -f y", NULL, 2, NULL, "once");
    expect("run -p ''", NULL, 2, NULL, "empty");
    expect("bench -o xml", NULL, 2, NULL, "xml");
    expect("bench -p 0 -n 0", NULL, 2, NULL, "nothing to measure");
    expect("logits --ids 1,x -o /dev/null", NULL, 2, NULL, "not a token id");
    expect("logits --ids 999999 -o /dev/null", NULL, 2, NULL, "999999");
    expect("logits --ids 1", NULL, 2, NULL, "--output is missing");
    expect("perplexity", NULL, 2, NULL, "-f FILE is missing");
    expect("info a b", NULL, 2, NULL, "unexpected argument 'b'");
    expect("completions tcsh", NULL, 2, NULL, "tcsh");
    expect("help frobnicate", NULL, 2, NULL, "no command");
}

static void failures_exit_with_1(void **state)
{
    (void)state;
    expect("run -f /nonexistent/file", NULL, 1, NULL, "/nonexistent/file");
    expect("logits --ids 1 -o /nonexistent/out", NULL, 1, NULL, "/nonexistent/out");
    expect("perplexity -f -", "too short", 1, NULL, "one window needs");
}

static void a_bad_model_file_exits_with_3(void **state)
{
    (void)state;
    char path[512], command[1024];
    snprintf(path, sizeof path, "%s", temp_path("bad.gguf"));
    expect("run /nonexistent.gguf -p x", NULL, 3, NULL, "/nonexistent.gguf");
    expect("info /tmp", NULL, 3, NULL, "/tmp");
    write_file(path, "", 0);
    snprintf(command, sizeof command, "info '%s'", path);
    expect(command, NULL, 3, NULL, "bad.gguf");
    write_file(path, "GGUF\3\0\0\0", 8);
    expect(command, NULL, 3, NULL, "bad.gguf");
    size_t n;
    char *model = read_file(project_path("models/fable.gguf"), &n);
    write_file(path, model, n / 2);
    free(model);
    snprintf(command, sizeof command, "run '%s' -p x", path);
    expect(command, NULL, 3, NULL, "bad.gguf");
}

static void too_little_memory_exits_with_4(void **state)
{
    (void)state;
    expect("run -p x -c 134217728", NULL, 4, NULL, "a context of 134217728 tokens for 1 session needs");
}

static void rerank_prints_documents_by_their_scores(void **state)
{
    (void)state;
    float out[1][CLASSIFIER_WIDTH], bias[1];
    char *folder = make_classifier("cli-ranker", 1, out, bias), line[6000];
    snprintf(line, sizeof line, "rerank '%s' -q 'the king' 'a fish' 'the old king' 'the queen'", folder);
    outcome o = frit(line, NULL);
    assert_int_equal(o.code, 0);
    double last = 1;
    int n_lines = 0;
    for (const char *at = o.out; *at; at = strchr(at, '\n') + 1, n_lines++) {
        const double score = strtod(at, NULL);
        assert_true(score <= last && score > 0);
        last = score;
    }
    assert_int_equal(n_lines, 3);
    snprintf(line, sizeof line, "rerank -q -m '%s' 'the king' -f -", folder);
    expect(line, "a fish\nthe old king\n\nthe queen\n", 0, o.out, NULL);
    snprintf(line, sizeof line, "rerank '%s' -q 'the king' 'a fish' 'the old king' --json --top 1", folder);
    expect(line, NULL, 0, "\"relevance_score\"", NULL);
    snprintf(line, sizeof line, "rerank '%s' -q 'the king' a -f b", folder);
    expect(line, NULL, 2, NULL, "give the documents once");
    snprintf(line, sizeof line, "rerank '%s'", folder);
    expect(line, NULL, 2, NULL, "no query");
    snprintf(line, sizeof line, "rerank '%s' -q 'the king' -f -", folder);
    expect(line, "\n", 2, NULL, "there are no documents");
    snprintf(line, sizeof line, "rerank '%s' -q a b", shared_path("goldens/hf/bert"));
    expect(line, NULL, 1, NULL, "has no classification head");
    outcome_free(&o);
    free(folder);
}

static void embed_prints_a_vector_for_each_text(void **state)
{
    (void)state;
    char line[1200], model[512];
    snprintf(model, sizeof model, "%s", shared_path("goldens/hf/bert"));
    snprintf(line, sizeof line, "embed '%s' -q", model);
    outcome o = frit(line, "Hello.\n\nThe sun rises.\n");
    assert_int_equal(o.code, 0);
    size_t n_lines = 0, n_numbers = 0;
    for (const char *c = o.out; *c; c++) {
        n_lines += *c == '\n';
        n_numbers += *c == '\n' || *c == ' ';
    }
    assert_int_equal(n_lines, 2);
    assert_int_equal(n_numbers, 2 * 64);
    outcome_free(&o);
    snprintf(line, sizeof line, "embed '%s' -q -p Hello. --json --pooling cls --dims 8", model);
    expect(line, NULL, 0, "\"pooling\": \"cls\"", NULL);
    snprintf(line, sizeof line, "embed '%s' -q", model);
    expect(line, "\n\n", 2, NULL, "there is no text");
    snprintf(line, sizeof line, "embed '%s' -p a -f b", model);
    expect(line, NULL, 2, NULL, "by -p or by -f");
    snprintf(line, sizeof line, "run '%s' -p Hello", model);
    expect(line, NULL, 2, NULL, "an encoder gives embeddings and generates no text");
    snprintf(line, sizeof line, "info '%s'", model);
    expect(line, NULL, 0, "encoder: gives embeddings", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_output_is_one_object),
        cmocka_unit_test(bench_measures_every_combination_of_its_lists),
        cmocka_unit_test(bench_refuses_what_is_no_list),
        cmocka_unit_test(bench_tells_where_the_time_goes),
        cmocka_unit_test(predictions_are_kept_and_compared),
        cmocka_unit_test(models_are_compared_side_by_side),
        cmocka_unit_test(a_chat_goes_on_where_its_session_ended),
        cmocka_unit_test(chat_answers_every_line_of_a_pipe),
        cmocka_unit_test(info_shows_model_and_ops),
        cmocka_unit_test(logits_have_the_documented_size),
        cmocka_unit_test(help_names_every_option_and_its_default),
        cmocka_unit_test(completions_are_valid_bash),
        cmocka_unit_test(the_environment_sets_options_and_the_command_line_wins),
        cmocka_unit_test(wrong_usage_exits_with_2_and_says_what_is_possible),
        cmocka_unit_test(failures_exit_with_1),
        cmocka_unit_test(a_bad_model_file_exits_with_3),
        cmocka_unit_test(too_little_memory_exits_with_4),
        cmocka_unit_test(rerank_prints_documents_by_their_scores),
        cmocka_unit_test(embed_prints_a_vector_for_each_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
