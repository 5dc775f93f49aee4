// SPDX-License-Identifier: MIT
// The command line as a person uses it: what is printed where, and every exit code.
#include "support/classifier.h"
#include "support/command_posix.h"
#include "support/tiny_model.h"

#include <frit_tools.h>

static void run_tells_the_tale_from_the_bundled_model(void **state)
{
    (void)state;
    outcome o = frit("run -p 'Tell me the tale of Rapunzel.' --temp 0 -n 60", NULL);
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "There once lived a man and his wife, who had long wished for a child"));
    assert_non_null(strstr(o.err, "tokens/s"));
    outcome_free(&o);
}

static void run_takes_the_prompt_from_every_place(void **state)
{
    (void)state;
    outcome by_option = frit("run -q --temp 0 -n 12 -p 'Tell me a story.'", NULL);
    assert_int_equal(by_option.code, 0);
    assert_string_equal(by_option.err, "");
    const char *ways[] = {"run -q --temp 0 -n 12", "run -q --temp 0 -n 12 -", "run -q --temp 0 -n 12 -f -"};
    for (size_t i = 0; i < FRIT_COUNT(ways); i++) expect(ways[i], "Tell me a story.\n", 0, by_option.out, NULL);
    char command[1024];
    snprintf(command, sizeof command, "run '%s' 'Tell me a story.' -q --temp 0 -n 12",
             project_path("models/fable.gguf"));
    expect(command, NULL, 0, by_option.out, NULL);
    snprintf(command, sizeof command, "run -m '%s' -q --temp 0 -n 12 'Tell me a story.'",
             project_path("models/fable.gguf"));
    expect(command, NULL, 0, by_option.out, NULL);
    outcome_free(&by_option);
}

static void the_same_seed_gives_the_same_text(void **state)
{
    (void)state;
    outcome a = frit("run -q --raw -p 'Once upon a time' -n 20 --temp 1 --seed 7", NULL);
    expect("run -q --raw -p 'Once upon a time' -n 20 --temp 1 --seed 7", NULL, 0, a.out, NULL);
    outcome b = frit("run -q --raw -p 'Once upon a time' -n 20 --temp 1 --seed 8", NULL);
    assert_string_not_equal(a.out, b.out);
    outcome_free(&a);
    outcome_free(&b);
}

static void the_sampling_that_the_file_recommends_is_used_unless_given(void **state)
{
    (void)state;
    // The bundled model asks for temperature 0.
    outcome greedy = frit("run -q -p 'Tell me the tale of Rapunzel.' --temp 0 -n 60", NULL);
    expect("run -q -p 'Tell me the tale of Rapunzel.' -n 60", NULL, 0, greedy.out, NULL);
    outcome warm =
        frit("run -q -p 'Tell me the tale of Rapunzel.' --temp 3 --top-k 0 --top-p 0 --min-p 0 --seed 1 -n 60", NULL);
    assert_string_not_equal(greedy.out, warm.out);
    outcome_free(&greedy);
    outcome_free(&warm);
}

static void a_raw_prompt_is_continued_with_its_space(void **state)
{
    (void)state;
    char command[1024];
    snprintf(command, sizeof command, "run '%s' -q --raw --temp 0 -n 4 -p 'Once upon a'",
             shared_path("models/stories260k-f32.gguf"));
    outcome o = frit(command, NULL);
    assert_int_equal(o.code, 0);
    assert_memory_equal(o.out, " time, there", 12);
    outcome_free(&o);
}

static void a_healed_prompt_goes_on_within_its_last_word(void **state)
{
    (void)state;
    char command[1024];
    const char *cuts[] = {"Once upon a ti", "Once upon a t", "Once upon", "Once upo"};
    const char *whole = "Once upon a time, there";
    for (size_t i = 0; i < FRIT_COUNT(cuts); i++) {
        snprintf(command, sizeof command, "run '%s' -q --raw --heal --temp 0 -n 12 -p '%s'",
                 shared_path("models/stories260k-f32.gguf"), cuts[i]);
        outcome o = frit(command, NULL);
        assert_int_equal(o.code, 0);
        size_t n = strlen(cuts[i]);
        if (strncmp(o.out, whole + n, strlen(whole) - n) != 0) fail_msg("'%s' goes on with '%s'", cuts[i], o.out);
        outcome_free(&o);
    }
    expect("run --heal -p x", NULL, 2, NULL, "it needs --raw");
}

static void a_stop_string_ends_the_answer_before_it(void **state)
{
    (void)state;
    outcome whole = frit("run -q --raw --temp 0 -n 40 -p 'Once upon a time'", NULL);
    assert_int_equal(whole.code, 0);
    // A stop string from the middle of the text, across token borders.
    size_t at = strlen(whole.out) / 2;
    char stop[8] = {0}, command[256];
    memcpy(stop, whole.out + at, 6);
    char *first = strstr(whole.out, stop);
    if (strpbrk(stop, "'\"\n\\")) skip_because("the answer's middle, '%s', cannot be quoted for a shell", stop);
    snprintf(command, sizeof command, "run -q --raw --temp 0 -n 40 -p 'Once upon a time' --stop '%s' --stop unseen",
             stop);
    outcome cut = frit(command, NULL);
    assert_int_equal(cut.code, 0);
    assert_int_equal(strlen(cut.out), (size_t)(first - whole.out) + 1);   // and the final newline
    assert_memory_equal(cut.out, whole.out, (size_t)(first - whole.out));
    outcome_free(&whole);
    outcome_free(&cut);
}

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
    expect("bench --random llama-1b --type q9", NULL, 2, NULL, "nvfp4, q4_k_m or q5_k_m");
    expect("bench --random llama-1b model.gguf", NULL, 2, NULL, "none can be named beside it");
    expect("bench --layers 2", NULL, 2, NULL, "bench: --layers is of --random");
    expect("bench --save a.gguf", NULL, 2, NULL, "bench: --save is of --random");
    const frit_random_shape *shape;
    for (size_t i = 0; (shape = frit_random_shape_get(i)); i++) expect("bench --help", NULL, 0, shape->name, NULL);
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
    // The same model on the file's text: the codes of the file are all that differs.
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
    // Another model is further away; a cut file is refused.
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
    // The head promises a billion tokens: the memory for them is not asked for before they come.
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
    snprintf(command, sizeof command, "kl '%s' '%s' '%s' -c 16 -f - --json --type q2_k", model, model, model);
    outcome o = frit(command, text);
    assert_int_equal(o.code, 0);
    double kl = 1, same = 0;
    int n_models = 0;
    for (const char *at = o.out; (at = strstr(at, "\"kl_divergence\": ")); at++, n_models++) {
        assert_int_equal(sscanf(at, "\"kl_divergence\": %lf", &kl), 1);
        assert_true(kl > -1e-6 && kl < 1e-6);   // both are the same model in the same type
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

static void a_session_runs_only_what_its_file_does_not_hold(void **state)
{
    (void)state;
    char command[1024], path[512];
    snprintf(path, sizeof path, "%s", temp_path("talk.frit"));
    outcome whole = frit("run --temp 0 -n 30 -p 'Tell me the tale of Rapunzel.'", NULL);
    snprintf(command, sizeof command, "run --temp 0 -n 12 -p 'Tell me the tale of Rapunzel.' --session '%s'", path);
    expect(command, NULL, 0, "There once lived", "prompt: 25 tokens");
    snprintf(command, sizeof command, "run --temp 0 -n 30 -p 'Tell me the tale of Rapunzel.' --session '%s'", path);
    expect(command, NULL, 0, whole.out, "prompt: 1 tokens");
    snprintf(command, sizeof command, "run --temp 0 -n 0 --raw -p 'Once upon a time' --session '%s'", path);
    expect(command, NULL, 0, NULL, "prompt: 4 tokens");
    expect(command, NULL, 0, NULL, "prompt: 0 tokens");
    snprintf(command, sizeof command, "run -n 1 -p x --session '%s' -ctk f32", path);
    expect(command, NULL, 1, NULL, "f16 and f16 there, f32 and f16 here");
    snprintf(command, sizeof command, "chat --session '%s'", path);
    expect(command, "", 1, NULL, "but not of a chat");
    write_file(path, "not this", 8);
    snprintf(command, sizeof command, "run -n 1 -p x --session '%s'", path);
    expect(command, NULL, 1, NULL, "is no session file");
    outcome_free(&whole);
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
    expect("run -p x -c 134217728", NULL, 4, NULL, "MiB are free; a context of ");
    expect("run -p x -n 1 --temp 0 -c 100 --fit off", NULL, 0, NULL, NULL);
    expect("run -p x --fit maybe", NULL, 2, NULL, "fit: 'maybe' is not one of on|off");
    expect("info --tensors", NULL, 0, "blk.0.attn_q.weight", NULL);
    expect("info --ops", NULL, 0, "rms_norm", NULL);
    expect("info --architectures", NULL, 0, "qwen3moe", NULL);
}

static void tokenize_takes_stdin_to_the_byte(void **state)
{
    (void)state;
    outcome a = frit("tokenize --ids", "Once upon a time");
    outcome b = frit("tokenize --ids", "Once upon a time\n");
    assert_int_equal(a.code, 0);
    assert_string_not_equal(a.out, b.out);
    expect("tokenize --ids --special", "Once upon a time", 0, "0 7599", NULL);
    expect("tokenize", "Once upon", 0, "\"Once\"", NULL);
    expect("tokenize --ids", "", 0, "\n", NULL);
    outcome_free(&a);
    outcome_free(&b);
}

// A file of this content.
static const char *file_with(const char *name, const char *content)
{
    const char *path = temp_path(name);
    write_file(path, content, strlen(content));
    return path;
}

static void tokenize_shows_where_each_token_begins(void **state)
{
    (void)state;
    outcome o = frit("tokenize -q", "Gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\xb8!");
    assert_int_equal(o.code, 0);
    size_t end = 0, n_lines = 0;
    for (char *line = strtok(o.out, "\n"); line; line = strtok(NULL, "\n"), n_lines++) {
        size_t at;
        int id;
        assert_int_equal(sscanf(line, "%zu %d", &at, &id), 2);
        assert_true(n_lines == 0 ? at == 0 : at > end);
        end = at;
    }
    assert_true(n_lines > 3 && end < 12);
    outcome_free(&o);
    // What is added around a text has no place in it; parts of characters are shown as bytes.
    expect("tokenize --special", "Once", 0, "       0        0  \"<", NULL);
    expect("tokenize", "\xf0\x9f\x90\xb8", 0, "\\x9f", NULL);
}

static void tokenize_finds_the_first_difference(void **state)
{
    (void)state;
    outcome ids = frit("tokenize --ids", "Once upon a time there was");
    char command[1024], *rest = strchr(strchr(ids.out, ' ') + 1, ' '), other[256];
    snprintf(command, sizeof command, "tokenize --compare '%s'", file_with("ids", ids.out));
    expect(command, "Once upon a time there was", 0, "equal: ", NULL);
    snprintf(other, sizeof other, "[%.*s, 7%s]", (int)(strchr(ids.out, ' ') - ids.out), ids.out, rest);
    snprintf(command, sizeof command, "tokenize --compare '%s'", file_with("ids", other));
    expect(command, "Once upon a time there was", 1, "token 1 differs, at byte 4", NULL);
    snprintf(command, sizeof command, "tokenize --compare '%s'", file_with("ids", ""));
    expect(command, "Once", 1, "the end, after 0 tokens", NULL);
    snprintf(command, sizeof command, "tokenize --compare '%s'", file_with("ids", "1 two"));
    expect(command, "Once", 2, NULL, "'two' is not a token id");
    outcome_free(&ids);
}

static void detokenize_gives_the_text_back(void **state)
{
    (void)state;
    const char *text = "Gr\xc3\xbc\xc3\x9f dich, \xf0\x9f\x90\xb8!\n\n  Es war einmal.";
    char command[1024];
    outcome ids = frit("tokenize --ids", text);
    expect("detokenize", ids.out, 0, text, NULL);
    ids.out[strcspn(ids.out, "\n")] = 0;
    snprintf(command, sizeof command, "detokenize %s", ids.out);
    outcome o = frit(command, NULL);
    assert_string_equal(o.out, text);
    outcome_free(&o);
    snprintf(command, sizeof command, "detokenize '%s' '[%s]'", project_path("models/fable.gguf"), ids.out);
    expect(command, NULL, 0, text, NULL);
    outcome_free(&ids);
    // Half a character: U+FFFD, or its bytes.
    outcome frog = frit("tokenize --ids", "\xf0\x9f\x90\xb8");
    char first[16];
    snprintf(first, sizeof first, "%d", atoi(frog.out));
    expect("detokenize", first, 0, "\xef\xbf\xbd", NULL);
    expect("detokenize --bytes", first, 0, "\xf0", NULL);
    outcome_free(&frog);
    expect("detokenize 0", NULL, 0, "", NULL);
    expect("detokenize --special 0", NULL, 0, "<", NULL);
    expect("detokenize 12 x3", NULL, 2, NULL, "'x3' is not a token id");
    expect("detokenize", "12 -3", 2, NULL, "'-3' is not a token id");
    expect("detokenize 8192", NULL, 2, NULL, "ids are 0 to 8191");
}

static void a_bare_tokenizer_file_is_model_enough_for_text(void **state)
{
    (void)state;
    const char *names[] = {"tokenizer/real/llama3", "tokenizer/spm-bpe.model", "tokenizer/wordpiece.json",
                           "tokenizer/gpt-2.gguf"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        char command[1024];
        snprintf(command, sizeof command, "tokenize '%s' --ids", shared_path("goldens/%s", names[i]));
        outcome ids = frit(command, "the cat sat");
        assert_int_equal(ids.code, 0);
        snprintf(command, sizeof command, "detokenize '%s'", shared_path("goldens/%s", names[i]));
        expect(command, ids.out, 0, "the cat sat", NULL);
        outcome_free(&ids);
    }
    char command[1024];
    snprintf(command, sizeof command, "run '%s' -p x", shared_path("goldens/tokenizer/spm-bpe.model"));
    outcome o = frit(command, NULL);
    assert_int_not_equal(o.code, 0);
    assert_int_equal(o.out[0], 0);
    outcome_free(&o);
}

static void template_prints_the_prompt(void **state)
{
    (void)state;
    const char *talk = "[{\"role\": \"user\", \"content\": \"Gr\xc3\xbc\xc3\x9f dich\"}]";
    char command[2048], source[512], tools[512];
    expect("template --messages -", talk, 0, "Gr\xc3\xbc\xc3\x9f dich", NULL);
    outcome opened = frit("template --messages -", talk),
            closed = frit("template --messages - --no-generation-prompt", talk);
    assert_true(strlen(closed.out) < strlen(opened.out));
    assert_memory_equal(opened.out, closed.out, strlen(closed.out));
    outcome_free(&opened);
    outcome_free(&closed);
    snprintf(source, sizeof source, "%s",
             file_with("t.jinja", "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
                                  "{{ tools | length if tools }}{{ mood }}{{ add_generation_prompt }}"));
    snprintf(tools, sizeof tools, "%s", file_with("tools.json", "[{\"name\": \"add\"}, {}]"));
    snprintf(command, sizeof command, "template --template '%s' --messages - --tools '%s' --vars '{\"mood\": 1.0}'",
             source, tools);
    outcome o = frit(command, talk);
    assert_string_equal(o.out, "[user]Gr\xc3\xbc\xc3\x9f dich21.0True");
    outcome_free(&o);
    // An object of messages and more, as a conversation is saved; the model's BOS where a model is named.
    snprintf(command, sizeof command, "template '%s' --template '%s' --messages -", project_path("models/fable.gguf"),
             source);
    expect(command, "{\"mood\": \"good\", \"messages\": []}", 0, ">goodTrue", NULL);

    expect("template", NULL, 2, NULL, "--messages FILE is missing");
    expect("template --messages /nonexistent.json", NULL, 1, NULL, "/nonexistent.json");
    expect("template --messages -", "[{]", 1, NULL, "not JSON");
    expect("template --messages -", "7", 1, NULL, "neither a list of messages");
    expect("template --messages - --vars '[]'", talk, 2, NULL, "--vars: not a JSON object");
    snprintf(command, sizeof command, "template --messages - --tools '%s'", file_with("tools.json", "{}"));
    expect(command, talk, 1, NULL, "not a list of tools");
    snprintf(command, sizeof command, "template --messages - --template '%s'", file_with("t.jinja", "a\n{% if %}"));
    expect(command, talk, 3, NULL, "line 2");
    snprintf(command, sizeof command, "template --messages - --template '%s'",
             file_with("t.jinja", "{{ raise_exception('No: ' ~ messages[0].role) }}"));
    expect(command, talk, 1, NULL, "No: user");
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

static void a_prompt_says_how_much_of_it_was_there(void **state)
{
    (void)state;
    char line[2048];
    const char *folder = temp_path("pages");
    const char *const shown[] = {"tokens, ", "tokens (32 cached), "};
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line,
                 "run --raw -n 1 --no-color --prefix-cache-disk '%s' -p 'Once upon a time there was a king who had a "
                 "daughter, and a frog lived in the well near his castle, and nobody knew where it came from.'",
                 folder);
        expect(line, NULL, 0, NULL, shown[i]);
    }
    strcat(line, " --json");
    expect(line, NULL, 0, "\"cached_tokens\": 32,", NULL);
}

static void encoder_decoders_read_one_text_and_write_another(void **state)
{
    (void)state;
    char line[1200], model[512], out[512];
    snprintf(model, sizeof model, "%s", shared_path("goldens/hf/t5"));
    snprintf(out, sizeof out, "%s", temp_path("decoder.f32"));
    snprintf(line, sizeof line, "run '%s' -p 'Hello there.' -n 5 --temp 0 --json -q", model);
    expect(line, NULL, 0, "\"answer_tokens\": 5", NULL);
    outcome first, second;
    snprintf(out, sizeof out, "%s", temp_path("t5.session"));
    snprintf(line, sizeof line, "run '%s' -p 'Hello there.' -n 5 --temp 0 -q --session '%s'", model, out);
    first = frit(line, NULL);
    second = frit(line, NULL);   // reads nothing again
    assert_int_equal(first.code + second.code, 0);
    assert_string_equal(first.out, second.out);
    outcome_free(&first);
    outcome_free(&second);
    remove(out);
    snprintf(out, sizeof out, "%s", temp_path("decoder.f32"));
    snprintf(line, sizeof line, "logits '%s' --ids 5,6,7 --decoder-ids 3,9 -o '%s'", model, out);
    expect(line, NULL, 0, NULL, "[2, 512] float32");
    snprintf(line, sizeof line, "logits '%s' --ids 5,6,7 -o '%s'", model, out);
    expect(line, NULL, 2, NULL, "logits: --decoder-ids is missing");
    snprintf(line, sizeof line, "chat '%s'", model);
    expect(line, "", 2, NULL, "does not chat");
    snprintf(line, sizeof line, "info '%s'", model);
    expect(line, NULL, 0, "encoder-decoder", NULL);
    remove(out);
}

static void speculation_does_not_change_the_answer(void **state)
{
    (void)state;
    static const char prompt[] = "run -q --raw -p 'one two three one two three one two three one two' -n 60 --temp 0";
    char line[256];
    snprintf(line, sizeof line, "%s --speculate none", prompt);
    outcome plain = frit(line, NULL);
    assert_int_equal(plain.code, 0);
    expect(prompt, NULL, 0, plain.out, NULL);
    snprintf(line, sizeof line, "%s --speculate ngram --draft-max 4 --stop xyz", prompt);
    expect(line, NULL, 0, plain.out, NULL);
    expect("run -q -p x --speculate magic", NULL, 2, NULL, "not one of auto|ngram|draft|mtp|none");
    expect("run -q -p x --speculate draft", NULL, 2, NULL, "needs --model-draft");
    expect("run --raw -p x -n 4 --speculate ngram --model-draft nothing.gguf", NULL, 0, NULL,
           "nothing.gguf is not opened");
    expect("run -q -p x --model-draft /nowhere.gguf", NULL, 3, NULL, "/nowhere.gguf");
    expect("run -q -p x --draft-max 0", NULL, 2, NULL, "a whole number from 1 to 64");
    outcome_free(&plain);
}

static void multi_token_prediction_does_not_change_the_answer(void **state)
{
    (void)state;
    char path[160], line[512];
    const tiny_options tiny = {.next = TINY_NEXT_TIED, .chain = true, .seed = 1};
    snprintf(path, sizeof path, "%s", tiny_model("next.gguf", &tiny));
    snprintf(line, sizeof line, "run -q --raw -m %s -p abc -n 40 --temp 0 --speculate none", path);
    outcome plain = frit(line, NULL);
    assert_int_equal(plain.code, 0);
    snprintf(line, sizeof line, "run -q --raw -m %s -p abc -n 40 --temp 0 --speculate mtp", path);
    expect(line, NULL, 0, plain.out, NULL);
    snprintf(line, sizeof line, "run -q --raw -m %s -p abc --speculate mtp --model-draft %s", path, path);
    expect(line, NULL, 2, NULL, "without --model-draft");
    snprintf(line, sizeof line, "info %s", path);
    expect(line, NULL, 0, "1 for multi-token prediction", NULL);
    expect("run --raw -p x -n 4 --speculate mtp", NULL, 0, NULL, "it answers without speculation");
    outcome_free(&plain);
}

static void beams_print_the_likeliest_answer(void **state)
{
    (void)state;
    outcome greedy = frit("run -q --raw -p 'Once upon a time' -n 12 --temp 0", NULL);
    expect("run -q --raw -p 'Once upon a time' -n 12 --beams 1", NULL, 0, greedy.out, NULL);
    outcome first = frit("run -q --raw -p 'Once upon a time' -n 12 --beams 4 --seed 1 --temp 2", NULL);
    expect("run -q --raw -p 'Once upon a time' -n 12 --beams 4 --seed 2", NULL, 0, first.out, NULL);
    assert_int_equal(first.code, 0);
    assert_memory_equal(first.out, greedy.out, 1);
    expect("run -q --raw --heal -p 'Once upon a ti' --beams 4", NULL, 2, NULL, "not with --beams");
    expect("run -q -p x --beams -1", NULL, 2, NULL, "a whole number from 0 to 1024");
    outcome_free(&greedy);
    outcome_free(&first);
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
        cmocka_unit_test(embed_prints_a_vector_for_each_text),
        cmocka_unit_test(speculation_does_not_change_the_answer),
        cmocka_unit_test(multi_token_prediction_does_not_change_the_answer),
        cmocka_unit_test(beams_print_the_likeliest_answer),
        cmocka_unit_test(rerank_prints_documents_by_their_scores),
        cmocka_unit_test(encoder_decoders_read_one_text_and_write_another),
        cmocka_unit_test(run_tells_the_tale_from_the_bundled_model),
        cmocka_unit_test(run_takes_the_prompt_from_every_place),
        cmocka_unit_test(the_same_seed_gives_the_same_text),
        cmocka_unit_test(the_sampling_that_the_file_recommends_is_used_unless_given),
        cmocka_unit_test(a_raw_prompt_is_continued_with_its_space),
        cmocka_unit_test(a_healed_prompt_goes_on_within_its_last_word),
        cmocka_unit_test(a_stop_string_ends_the_answer_before_it),
        cmocka_unit_test(json_output_is_one_object),
        cmocka_unit_test(bench_measures_every_combination_of_its_lists),
        cmocka_unit_test(bench_refuses_what_is_no_list),
        cmocka_unit_test(bench_tells_where_the_time_goes),
        cmocka_unit_test(predictions_are_kept_and_compared),
        cmocka_unit_test(models_are_compared_side_by_side),
        cmocka_unit_test(a_session_runs_only_what_its_file_does_not_hold),
        cmocka_unit_test(a_chat_goes_on_where_its_session_ended),
        cmocka_unit_test(chat_answers_every_line_of_a_pipe),
        cmocka_unit_test(info_shows_model_and_ops),
        cmocka_unit_test(tokenize_takes_stdin_to_the_byte),
        cmocka_unit_test(tokenize_shows_where_each_token_begins),
        cmocka_unit_test(tokenize_finds_the_first_difference),
        cmocka_unit_test(detokenize_gives_the_text_back),
        cmocka_unit_test(a_bare_tokenizer_file_is_model_enough_for_text),
        cmocka_unit_test(template_prints_the_prompt),
        cmocka_unit_test(logits_have_the_documented_size),
        cmocka_unit_test(help_names_every_option_and_its_default),
        cmocka_unit_test(completions_are_valid_bash),
        cmocka_unit_test(the_environment_sets_options_and_the_command_line_wins),
        cmocka_unit_test(wrong_usage_exits_with_2_and_says_what_is_possible),
        cmocka_unit_test(failures_exit_with_1),
        cmocka_unit_test(a_bad_model_file_exits_with_3),
        cmocka_unit_test(too_little_memory_exits_with_4),
        cmocka_unit_test(a_prompt_says_how_much_of_it_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
