// SPDX-License-Identifier: MIT
// How an answer looks on a terminal: Markdown as weight and colour, however its bytes come.
#include "support/support.h"

#include "frit/chat.h"

// What is shown of an answer with reasoning (may be NULL) and text in chunks of `step` bytes, malloc'd.
static char *show(const char *reasoning, const char *text, size_t step, bool fancy)
{
    const char *path = temp_path("screen"), *const parts[] = {text, reasoning};
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    chat_view *view = chat_view_new(file, fancy);
    for (int reasons = 1; reasons >= 0; reasons--) {
        size_t n = parts[reasons] ? strlen(parts[reasons]) : 0;
        for (size_t i = 0; i < n; i += step)
            chat_view_add(view, reasons, parts[reasons] + i, n - i < step ? n - i : step);
    }
    chat_view_end(view);
    fclose(file);
    chat_view_free(view);
    return read_file(path, NULL);
}

static void expect(const char *text, const char *want)
{
    for (size_t step = 1; step < 9; step++) {
        char *shown = show(NULL, text, step, true);
        if (strcmp(shown, want) != 0)
            fail_msg("in chunks of %zu, '%s' is shown as\n%s\nnot\n%s", step, text, shown, want);
        free(shown);
    }
}

#define B "\033[0;1m"
#define I "\033[0;3m"
#define C "\033[0;36m"
#define D "\033[0;2m"
#define N "\033[0m"

static void marks_become_styles(void **state)
{
    (void)state;
    expect("plain text.\n", "plain text.\n");
    expect("a **bold** b", "a " B "bold" N " b");
    expect("*it* _it_ __strong__ ***both***", I "it" N " " I "it" N " " B "strong" N " \033[0;1;3mboth" N);
    expect("`code *x*` ``a ` b``", C "code *x*" N " " C "a ` b" N);
    expect("# Title\ntext", B "Title" N "\ntext");
    expect("###### Low `c`\n", B "Low \033[0;1;36mc" N "\n");
    expect("- one\n* two\n  + three\n", "\xe2\x80\xa2 one\n\xe2\x80\xa2 two\n  \xe2\x80\xa2 three\n");
    expect("> said\n", "\xe2\x94\x82 said\n");
    expect("```c\nint *p; // **x**\n# no\n```\nafter", C "c\nint *p; // **x**\n# no\n" N "\nafter");
}

static void what_is_no_mark_stays(void **state)
{
    (void)state;
    expect("2*3*4 and a * b * c, snake_case_name, #5, -1, +2, a_b",
           "2*3*4 and a * b * c, snake_case_name, #5, -1, +2, a_b");
    expect("#hash\n-dash\n1. first\n", "#hash\n-dash\n1. first\n");
    expect("a ** b ** c **", "a ** b ** c **");
    expect("an end*", "an end*");
    expect("****", "****");
    expect("a **bold\n\nnext", "a " B "bold\n" N "\nnext");   // no emphasis goes beyond a paragraph
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
    (void)state;
    expect("a\033[31mred\x07\rb\x7f\tc", "a\xef\xbf\xbd[31mred\xef\xbf\xbd\xef\xbf\xbd"
                                         "b\tc");
    char *shown = show(NULL,
                       "x\xc2\x9b"
                       "31m",
                       1, true);
    assert_null(strstr(shown, "\xc2\x9b"));
    free(shown);
}

static void reasoning_is_dimmed_and_kept_apart(void **state)
{
    (void)state;
    for (size_t step = 1; step < 40; step += 3) {
        char *shown = show("Is it *so*? a < b", "Yes: <think> is a **tag**.", step, true);
        assert_string_equal(shown, D "Is it \033[0;2;3mso" D "? a < b" N "\n\nYes: <think> is a " B "tag" N ".");
        free(shown);
        shown = show("Is it *so*?\n```\nopen", "Yes: **so**.", step, false);
        assert_string_equal(shown, "<think>\nIs it *so*?\n```\nopen\n</think>\n\nYes: **so**.");
        free(shown);
        shown = show("Only thought", NULL, step, false);
        assert_string_equal(shown, "<think>\nOnly thought\n</think>");
        free(shown);
    }
}

static void a_call_has_a_line_of_its_own(void **state)
{
    (void)state;
    static const char *const want[] = {
        "Let me\n{\"name\": \"get \\\"x\", \"arguments\": {\"a\": 1}}\n{\"name\": \"f\", \"arguments\": {}}",
        "Let me\n" C "\xe2\x86\x92 get \"x {\"a\": 1}" N "\n" C "\xe2\x86\x92 f {}" N};
    for (int fancy = 0; fancy < 2; fancy++) {
        const char *path = temp_path("screen");
        FILE *file = fopen(path, "wb");
        chat_view *view = chat_view_new(file, fancy);
        chat_view_add(view, false, "Let me", 6);
        chat_view_call(view, "get \"x", "{\"a\": 1}");
        chat_view_call(view, "f", "{}");
        chat_view_end(view);
        chat_view_free(view);
        fclose(file);
        char *shown = read_file(path, NULL);
        assert_string_equal(shown, want[fancy]);
        free(shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_become_styles),
        cmocka_unit_test(what_is_no_mark_stays),
        cmocka_unit_test(control_characters_do_not_reach_the_terminal),
        cmocka_unit_test(reasoning_is_dimmed_and_kept_apart),
        cmocka_unit_test(a_call_has_a_line_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
