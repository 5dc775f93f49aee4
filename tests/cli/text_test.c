// SPDX-License-Identifier: MIT
// Texts and tokens on the command line: frit tokenize, detokenize and template.
#include "support/command_posix.h"

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

// Makes a file with this content.
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
    // Tokens that are added around a text have no position in it; parts of characters are shown as bytes.
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
    // Part of a character: U+FFFD, or its bytes.
    outcome frog = frit("tokenize --ids", "\xf0\x9f\x90\xb8");
    char first[16];
    snprintf(first, sizeof first, "%d", atoi(frog.out));
    expect("detokenize", first, 0, "\xef\xbf\xbd", NULL);
    expect("detokenize --bytes", first, 0, "\xf0", NULL);
    outcome_free(&frog);
    char marked[sizeof first + 3];
    snprintf(marked, sizeof marked, "\xef\xbb\xbf%s", first);
    expect("detokenize", marked, 0, "\xef\xbf\xbd", NULL);
    expect("detokenize", "\xef\xbb\xbf", 0, "", NULL);
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
    // An object of messages and other members, as in a saved conversation; the model's BOS if a model is named.
    snprintf(command, sizeof command, "template '%s' --template '%s' --messages -", project_path("models/fable.gguf"),
             source);
    expect(command, "{\"mood\": \"good\", \"messages\": []}", 0, ">goodTrue", NULL);

    // The prompt of a chat: contents are parts if the template needs them, and tools are rendered in any case.
    snprintf(source, sizeof source, "%s",
             file_with("typed.jinja",
                       "{% for m in messages %}{{ m.role }}: {% for p in m.content %}{% if p.type == 'text' "
                       "%}{{ p.text }}{% endif %}{% endfor %}\n{% endfor %}"));
    snprintf(command, sizeof command, "template --template '%s' --messages -", source);
    o = frit(command, "[{\"role\": \"user\", \"content\": \"hi\"}]");
    assert_string_equal(o.out, "user: hi");
    outcome_free(&o);
    snprintf(tools, sizeof tools, "%s",
             file_with("tools.json", "[{\"type\": \"function\", \"function\": {\"name\": \"add\"}}]"));
    snprintf(command, sizeof command, "template --template '%s' --messages - --tools '%s'", source, tools);
    expect(command, talk, 0, "{\"name\": \"add\"}\n", NULL);
    expect(command,
           "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": "
           "\"The sky \"}], \"continue_final_message\": true}",
           0, "assistant: The sky ", NULL);

    expect("template", NULL, 2, NULL, "--messages FILE is missing");
    expect("template --messages /nonexistent.json", NULL, 1, NULL, "/nonexistent.json");
    expect("template --messages -", "[{]", 1, NULL, "not JSON");
    expect("template --messages -", "7", 1, NULL, "neither a list of messages");
    expect("template --messages - --vars '[]'", talk, 2, NULL, "--vars: expected a JSON object");
    snprintf(command, sizeof command, "template --messages - --tools '%s'", file_with("tools.json", "{}"));
    expect(command, talk, 1, NULL, "expected a list of tools");
    snprintf(command, sizeof command, "template --messages - --template '%s'", file_with("t.jinja", "a\n{% if %}"));
    expect(command, talk, 3, NULL, "line 2");
    snprintf(command, sizeof command, "template --messages - --template '%s'",
             file_with("t.jinja", "{{ raise_exception('No: ' ~ messages[0].role) }}"));
    expect(command, talk, 1, NULL, "No: user");
}

// Windows' editors and shells begin text files with U+FEFF.
static void a_byte_order_mark_is_no_part_of_a_text(void **state)
{
    (void)state;
#define MARK "\xef\xbb\xbf"
    static const struct {
        const char *command, *content, *in_out;   // the file's name follows the command
    } rows[] = {
        {"template --messages", MARK "[{\"role\": \"user\", \"content\": \"hi there\"}]", "hi there"},
        {"template --messages /dev/null --template", MARK "{{ messages }}", NULL},
        {"run --raw -n 0 --json -f", MARK "Once", "\"prompt_tokens\": 2,"},
        {"run --raw -n 0 --json -f", "Once", "\"prompt_tokens\": 2,"},
        {"run --raw -p Once -n 1 --grammar", MARK "root ::= \"a\"", "a"},
        {"run --raw -p Once -n 1 -j", MARK "{\"const\": 1}", "1"},
        {"run --raw -p Once -n 1 --structural-tag", MARK "{\"format\": {\"type\": \"const_string\", \"value\": \"a\"}}",
         "a"},
        {"run -p Once -n 0 --json --chat-template", MARK "Once", "\"prompt_tokens\": 1,"},
        {"tokenize --ids -f", MARK "Once", "7599"},
        {"perplexity -c 16 -f", MARK "Once upon a time there was a king who had a daughter and she was more lovely",
         ""},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        char command[1024];
        snprintf(command, sizeof command, "%s '%s'", rows[i].command, file_with("mark.txt", rows[i].content));
        outcome o = frit(command, NULL);
        if (rows[i].in_out && (o.code != 0 || !strstr(o.out, rows[i].in_out)))
            fail_msg("%s: %d: %s%s", rows[i].command, o.code, o.out, o.err);
        assert_null(strstr(o.out, "\xef\xbb\xbf"));
        outcome_free(&o);
    }
    expect("tokenize --ids", MARK "Once", 0, "7599", NULL);
    char command[1024];
    snprintf(command, sizeof command, "run -f '%s'", temp_path("wide.txt"));
    write_file(temp_path("wide.txt"), "\xff\xfeh\0i\0", 6);
    expect(command, NULL, 1, NULL, "is text in UTF-16; expected UTF-8");
}

static void files_of_windows_are_read_as_others(void **state)
{
    (void)state;
    static const struct {
        const char *command, *file, *in_out;   // for commands whose first argument is a model
    } rows[] = {
        {"run '%s' --raw -p x -n 3 -j '%s'", "schema.json", NULL},
        {"run '%s' --raw -p x -n 3 --grammar '%s'", "rules.gbnf", "a"},
        {"template '%s' --messages '%s'", "messages.json", "hi"},
        {"run '%s' --raw -n 1 --json -f '%s'", "prompt.txt", "\"answer_tokens\": 1"},
        {"template '%s' --messages /dev/stdin --template '%s'", "t.jinja", "hi"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        char command[2048], model[512];
        snprintf(model, sizeof model, "%s", shared_path("bugs/15-text-files-with-a-bom/m.gguf"));
        snprintf(command, sizeof command, rows[i].command, model,
                 shared_path("bugs/15-text-files-with-a-bom/%s", rows[i].file));
        outcome o = frit(command, "[{\"role\": \"user\", \"content\": \"hi\"}]");
        if (o.code != 0 || (rows[i].in_out && !strstr(o.out, rows[i].in_out)))
            fail_msg("%s: %d: %s%s", command, o.code, o.out, o.err);
        assert_null(strstr(o.out, "\xef\xbb\xbf"));
        assert_null(strstr(o.err, "\xef\xbb\xbf"));
        outcome_free(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokenize_takes_stdin_to_the_byte),
        cmocka_unit_test(tokenize_shows_where_each_token_begins),
        cmocka_unit_test(tokenize_finds_the_first_difference),
        cmocka_unit_test(detokenize_gives_the_text_back),
        cmocka_unit_test(a_bare_tokenizer_file_is_model_enough_for_text),
        cmocka_unit_test(template_prints_the_prompt),
        cmocka_unit_test(a_byte_order_mark_is_no_part_of_a_text),
        cmocka_unit_test(files_of_windows_are_read_as_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
