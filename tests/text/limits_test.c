// SPDX-License-Identifier: MIT
// Invalid input costs little: it is refused with an error within a second of processor time and 100 MB. Each case runs
// in a process of its own, whose time and memory the system counts.
#include "support/support.h"

#include "text/chat/chat.h"
#include "text/template/template.h"
#include "text/tokenizer/tokenizer.h"
#include "text/vocab/vocab_file.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// Invalid input takes less than a second of processor time on an idle machine, and minutes if a limit is missing.
enum { MOST_SECONDS = 10, MOST_MEGABYTES = 100 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool is_measured = false;   // sanitizers cost more than the tested code
#else
static const bool is_measured = true;
#endif

typedef struct bad_case {
    const char *name;
    frit_status (*run)(const char *text);   // runs in the child process, which then has an error
    const char *unit;                       // of the text: head, unit n times, tail
    size_t n;
    const char *head, *tail;
    bool may_pass;   // the input may be accepted, within the same limits
} bad_case;

static frit_status render(const char *source)
{
    static const struct tm now = {.tm_year = 126, .tm_mday = 2};
    json_t *variables = json_pack("{s:[{s:s, s:s}]}", "messages", "role", "user", "content", "Hello");
    frit_template *template;
    frit_status status = frit_template_new(&template, frit_str_of(source));
    frit_buf out = {0};
    if (status == FRIT_OK) status = frit_template_render(template, variables, &now, &out, NULL);
    frit_buf_free(&out);
    frit_template_free(template);
    json_decref(variables);
    return status;
}

// Opens a template as a model's own: sample conversations are rendered to find the features that it supports. A
// template that cannot be used is replaced, so the error is the text of a warning.
static void keep_sentence(void *ctx, frit_log_level level, const char *sentence)
{
    (void)ctx;
    (void)level;
    frit_fail_say("%s", sentence);
}

static frit_status open_chat(const char *source)
{
    frit_chat *chat;
    const frit_log log = {keep_sentence, NULL};
    const frit_status status = frit_chat_new(&chat, frit_str_of(source), (frit_chat_tokens){.begins = false}, &log);
    if (status == FRIT_OK) frit_chat_free(chat);
    return status;
}

// Opens a tokenizer.json and encodes a quarter of a megabyte of one letter with it.
static frit_status tokenize(const char *json)
{
    const char *path = temp_path("tokenizer.json");
    write_file(path, json, strlen(json));
    frit_arena arena = {0};
    frit_vocab vocab;
    frit_tokenizer *tokenizer = NULL;
    frit_status status = frit_vocab_open(&vocab, path, 0, &arena, NULL);
    bool open = status == FRIT_OK;
    if (open) status = frit_tokenizer_new(&tokenizer, &vocab, NULL);
    if (status == FRIT_OK) {
        enum { N = 1 << 18 };
        char *text = malloc(N);
        memset(text, 'a', N);
        frit_ids ids = {0};
        status = frit_tokenizer_encode(tokenizer, (frit_str){text, N}, FRIT_TEXT_SPECIAL, &ids);
        frit_ids_free(&ids);
        free(text);
    }
    frit_tokenizer_free(tokenizer);
    if (open) frit_vocab_deinit(&vocab);
    frit_arena_free(&arena);
    remove(path);
    return status;
}

#define AB "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"aa\":3},\"merges\":[\"a b\",\"a a\"]}"
#define SPLIT(regex) \
    "{" AB ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex "\"},\"behavior\":\"Isolated\"}}"

static const bad_case cases[] = {
    // Templates that do not end.
    {.name = "loops in loops",
     .run = render,
     .head = "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}"},
    {.name = "a macro that calls itself", .run = render, .head = "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"},
    {.name = "a recursive loop over itself",
     .run = render,
     .head = "{% set l = [1] %}{% for x in l recursive %}{{ loop(l) }}{% endfor %}"},
    {.name = "lists in lists, compared",
     .run = render,
     .head = "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}"
             "{{ ns.a == ns.a }}"},
    {.name = "searching for what is nearly there",
     .run = render,
     .head = "{% set a = 'a' * 1000000 %}{% for i in range(100000) %}{{ a.find(a + 'b') }}{% endfor %}"},
    {.name = "a dictionary that grows by copies",
     .run = render,
     .head = "{% set ns = namespace(d=dict()) %}{% for i in range(100000) %}"
             "{% set ns.d = dict(ns.d, **{i|string: i}) %}{% endfor %}"},
    {.name = "hyphens without end, wrapped",
     .run = render,
     .may_pass = true,
     .head = "{{ ('-' * 1000000) | wordwrap(9) }}"},
    {.name = "sorting what cannot be compared fast",
     .run = render,
     .head = "{% set s = 'x' * 100000 %}{{ range(100000) | map('string') | map('replace', '', s) | sort }}"},
    // Templates that would print or store a gigabyte each.
    {.name = "a gigabyte in a loop",
     .run = render,
     .head = "{% for i in range(100000) %}{{ 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' * 320 }}{% endfor %}"},
    {.name = "a gigabyte of plain text",
     .run = render,
     .head = "{% for i in range(100000) %}{% for j in range(200) %}"
             "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{% endfor %}{% endfor %}"},
    {.name = "a gigabyte by repetition", .run = render, .head = "{{ 'x' * 1000000000 }}"},
    {.name = "a gigabyte by doubling",
     .run = render,
     .head = "{% set ns = namespace(a='x') %}{% for i in range(30) %}{% set ns.a = ns.a + ns.a %}{% endfor %}"},
    {.name = "a gigabyte by join", .run = render, .head = "{{ range(100000) | map('string') | join('x' * 10000) }}"},
    {.name = "a gigabyte by replace", .run = render, .head = "{{ ('a' * 100000) | replace('a', 'x' * 10000) }}"},
    {.name = "a gigabyte by padding", .run = render, .head = "{{ '%1000000000d' % 1 }}{{ 'x'.ljust(1000000000) }}"},
    {.name = "a gigabyte by indent", .run = render, .head = "{{ ('\\n' * 100000) | indent(10000, blank=true) }}"},
    {.name = "a gigabyte of JSON",
     .run = render,
     .head = "{% for i in range(100000) %}{{ range(10000) | list | tojson }}{% endfor %}"},
    {.name = "a gigabyte by a recursive macro",
     .run = render,
     .head = "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% else %}xxxxxxxxxx{% endif %}{% endmacro %}"
             "{{ m(27) }}"},
    // Nesting.
    {.name = "10,000 parentheses", .run = render, .head = "{{ ", .unit = "(", .n = 10000, .tail = "1 }}"},
    {.name = "10,000 lists", .run = render, .head = "{{ ", .unit = "[", .n = 10000, .tail = " }}"},
    {.name = "10,000 ifs", .run = render, .unit = "{% if 1 %}", .n = 10000},
    {.name = "10,000 loops", .run = render, .unit = "{% for x in y %}", .n = 10000},
    {.name = "10,000 nots", .run = render, .head = "{{ ", .unit = "not ", .n = 10000, .tail = "1 }}"},
    {.name = "10,000 filters",
     .run = render,
     .head = "{{ 'x'",
     .unit = "|upper",
     .n = 10000,
     .tail = " }}",
     .may_pass = true},
    {.name = "10,000 additions",
     .run = render,
     .head = "{{ 1",
     .unit = "+1",
     .n = 10000,
     .tail = " }}",
     .may_pass = true},
    {.name = "10,000 attributes", .run = render, .head = "{{ messages", .unit = ".x", .n = 10000, .tail = " }}"},
    {.name = "10,000 elifs",
     .run = render,
     .head = "{% if 0 %}",
     .unit = "{% elif 0 %}",
     .n = 10000,
     .tail = "{% endif %}",
     .may_pass = true},
    // Templates of a model.
    {.name = "opened: loops in loops",
     .run = open_chat,
     .may_pass = true,
     .head = "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}"},
    {.name = "opened: lists in lists, printed",
     .run = open_chat,
     .may_pass = true,
     .head =
         "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a }}"},
    {.name = "opened: lists in lists, as JSON with long indents",
     .run = open_chat,
     .may_pass = true,
     .head = "{% set ns = namespace(a=[1]) %}{% for i in range(400) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}"
             "{{ ns.a | tojson(indent='x' * 1000000) }}"},
    {.name = "opened: calls of a megabyte of brackets",
     .run = open_chat,
     .may_pass = true,
     .head = "{% for m in messages %}{{ m.content }}{% if m.tool_calls %}{{ '[' * 1000000 }}"
             "{{ m.tool_calls | tojson }}{% endif %}{% endfor %}"},
    {.name = "opened: 10 MB of outputs", .run = open_chat, .may_pass = true, .unit = "{{a}}", .n = 2000000},
    {.name = "opened: 1 MB of outputs", .run = open_chat, .may_pass = true, .unit = "{{a}}", .n = 200000},
    {.name = "opened: a megabyte of additions",
     .run = open_chat,
     .may_pass = true,
     .head = "{{ 1",
     .unit = "+1",
     .n = 500000,
     .tail = " }}"},
    // Tokenizer files.
    {.name = "merges that go in a circle",
     .run = tokenize,
     .head = "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\":1},\"merges\":[[\"\",\"a\"],[\"a\",\"\"]]}}"},
    {.name = "a bad regex", .run = tokenize, .head = SPLIT("(a")},
    {.name = "catastrophic backtracking", .run = tokenize, .head = SPLIT("(a+)+b"), .may_pass = true},
    {.name = "more of it", .run = tokenize, .head = SPLIT("(?:a|a|aa)*c|(?:(?:a+)*)*d"), .may_pass = true},
    {.name = "backtracking by references", .run = tokenize, .head = SPLIT("(a*)\\\\1*(a*)\\\\2*e"), .may_pass = true},
    {.name = "looking ahead from every place", .run = tokenize, .head = SPLIT("(?=a*[bc])a")},
    {.name = "looking ahead in a loop", .run = tokenize, .head = SPLIT("(?:(?=a*)a)*[bc]")},
    {.name = "10,000 groups",
     .run = tokenize,
     .head = "{" AB ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"",
     .unit = "(",
     .n = 10000,
     .tail = "a\"},\"behavior\":\"Isolated\"}}"},
    {.name = "10,000 normalizers in each other",
     .run = tokenize,
     .head = "{" AB ",\"normalizer\":",
     .unit = "{\"type\":\"Sequence\",\"normalizers\":[",
     .n = 10000,
     .tail = "]}}"},
    {.name = "normalizers that double the text",
     .run = tokenize,
     .head = "{" AB ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[",
     .unit = "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aa\"},",
     .n = 30,
     .tail = "{\"type\":\"NFC\"}]}}"},
    {.name = "brackets without end", .run = tokenize, .head = "{\"model\":", .unit = "[", .n = 1 << 20},
};

static char *text_of(const bad_case *c)
{
    frit_buf text = {0};
    if (c->head) frit_buf_text(&text, c->head);
    for (size_t i = 0; i < c->n; i++) frit_buf_text(&text, c->unit);
    if (c->tail) frit_buf_text(&text, c->tail);
    assert_false(text.failed);
    return text.data;
}

// The child writes its results to a pipe: the status, then the error.
static void run_child(const bad_case *c, const char *text, int to)
{
    char report[FRIT_ERROR_BYTES + 16];
    frit_status status = c->run(text);
    int n = snprintf(report, sizeof report, "%d %s", (int)status, status == FRIT_OK ? "" : frit_error());
    _exit(write(to, report, (size_t)n) == n ? 0 : 1);
}

static void bad_input_costs_seconds_and_100_megabytes_at_most(void **state)
{
    (void)state;
    int n_wrong = 0;
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        const bad_case *c = &cases[i];
        char *text = text_of(c), report[FRIT_ERROR_BYTES + 17] = "";
        int ends[2], wait_status;
        assert_int_equal(pipe(ends), 0);
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) run_child(c, text, ends[1]);
        close(ends[1]);
        ssize_t n = read(ends[0], report, sizeof report - 1);
        close(ends[0]);
        struct rusage used;
        assert_int_equal(wait4(child, &wait_status, 0, &used), child);
        double seconds = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec),
               megabytes = (double)used.ru_maxrss * 1024e-6;
        char *sentence = n > 0 ? strchr(report, ' ') + 1 : report;
        int status = n > 0 ? (int)strtol(report, NULL, 10) : 1;
        bool answered = n > 0 && WIFEXITED(wait_status) && (status == 0 ? c->may_pass : sentence[0] != 0);
        bool cheap = !is_measured || (seconds <= MOST_SECONDS && megabytes <= MOST_MEGABYTES);
        print_message("%-42s %5.2f s %5.0f MB  %.90s\n", c->name, seconds, megabytes,
                      status == 0 ? "(served)" : sentence);
        if (!answered || !cheap) print_message("  ^ %s\n", answered ? "too much" : "no sentence");
        n_wrong += !answered || !cheap;
        free(text);
    }
    assert_int_equal(n_wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bad_input_costs_seconds_and_100_megabytes_at_most)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
