// SPDX-License-Identifier: MIT
// The display of an answer on a terminal: Markdown as weight and colour, for any division into chunks.
#include "support/support.h"

#include "frit/chat/chat.h"

// Shows an answer with reasoning (may be NULL) and text in chunks of `step` bytes; malloc'd.
static char *show(const char *reasoning, const char *text, size_t step, bool fancy)
{
    const char *path = temp_path("screen"), *const parts[] = {text, reasoning};
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    chat_view *view = chat_view_new(file, fancy, 0);
    for (int is_reasoning = 1; is_reasoning >= 0; is_reasoning--) {
        size_t n = parts[is_reasoning] ? strlen(parts[is_reasoning]) : 0;
        for (size_t i = 0; i < n; i += step)
            chat_view_add(view, is_reasoning, parts[is_reasoning] + i, n - i < step ? n - i : step);
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

// Shows an answer on a terminal with a width.
static char *show_wrapped(const char *text, size_t step, bool fancy, int columns)
{
    const char *path = temp_path("screen");
    FILE *file = fopen(path, "wb");
    chat_view *view = chat_view_new(file, fancy, columns);
    const size_t n = strlen(text);
    for (size_t i = 0; i < n; i += step) chat_view_add(view, false, text + i, n - i < step ? n - i : step);
    chat_view_end(view);
    fclose(file);
    chat_view_free(view);
    return read_file(path, NULL);
}

static void expect_wrapped(int columns, const char *text, const char *want)
{
    for (size_t step = 1; step < 9; step++) {
        for (int fancy = 0; fancy < 2; fancy++) {
            char *shown = show_wrapped(text, step, fancy, columns);
            if (strcmp(shown, want) != 0)
                fail_msg("in chunks of %zu, at %d columns '%s' is shown as\n%s\nnot\n%s", step, columns, text, shown,
                         want);
            free(shown);
        }
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
    expect("a **bold\n\nnext", "a " B "bold\n" N "\nnext");   // emphasis ends with its paragraph
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
    // Characters that change the direction of text.
    expect("a\xe2\x80\xae.exe\xe2\x80\xac b\xe2\x81\xa6", "a\xef\xbf\xbd.exe\xef\xbf\xbd b\xef\xbf\xbd");
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
        chat_view *view = chat_view_new(file, fancy, 0);
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

static void lines_break_between_words(void **state)
{
    (void)state;
    expect_wrapped(12, "The frog sat in the well.", "The frog sat\nin the well.");
    expect_wrapped(13, "The frog sat in the well.", "The frog sat\nin the well.");
    expect_wrapped(11, "The frog sat in the well.", "The frog\nsat in the\nwell.");
    expect_wrapped(200, "The frog sat in the well.", "The frog sat in the well.");
    expect_wrapped(12, "one\n\ntwo  three\n", "one\n\ntwo  three\n");
    expect_wrapped(6, "abcdefghijklmno pq", "abcdef\nghijkl\nmno pq");   // wider than a line
    expect_wrapped(6, "ab abcdefgh", "ab\nabcdef\ngh");
    expect_wrapped(5, "abcde fghij\nk", "abcde\nfghij\nk");   // exactly as wide
}

static void wide_characters_count_twice(void **state)
{
    (void)state;
    // Five Chinese characters take ten columns; combining marks take none.
    expect_wrapped(10, "\xe6\xb5\xb7\xe6\xb5\xb7\xe6\xb5\xb7\xe6\xb5\xb7\xe6\xb5\xb7\xe6\xb5\xb7",
                   "\xe6\xb5\xb7\xe6\xb5\xb7\xe6\xb5\xb7\xe6\xb5\xb7\xe6\xb5\xb7\n\xe6\xb5\xb7");
    expect_wrapped(11, "abcdefgh \xe6\xb5\xb7\xe6\xb5\xb7", "abcdefgh \xe6\xb5\xb7\n\xe6\xb5\xb7");
    // A full stop does not begin a line.
    expect_wrapped(4, "\xe6\xb5\xb7\xe6\xb5\xb7\xe3\x80\x82", "\xe6\xb5\xb7\n\xe6\xb5\xb7\xe3\x80\x82");
    expect_wrapped(5,
                   "e\xcc\x81"
                   "e\xcc\x81 \xf0\x9f\x90\xb8 x",
                   "e\xcc\x81"
                   "e\xcc\x81 \xf0\x9f\x90\xb8\nx");
}

static void lines_of_lists_and_quotes_hang(void **state)
{
    (void)state;
    char *shown = show_wrapped("- one two three\n12. four five six\n> said the frog\nplain text here", 3, true, 12);
    assert_string_equal(shown, "\xe2\x80\xa2 one two\n  three\n12. four\n    five six\n\xe2\x94\x82 said the\n"
                               "\xe2\x94\x82 frog\nplain text\nhere");
    free(shown);
    shown = show_wrapped("```\nint main(void) { return 0; }\n```\none two three", 3, true, 12);   // code stays whole
    assert_string_equal(shown, C "\nint main(void) { return 0; }\n" N "\none two\nthree");
    free(shown);
    shown = show_wrapped("a **bold word** here", 3, true, 8);
    assert_string_equal(shown, "a " B "bold\nword" N "\nhere");
    free(shown);
}

// At another width, everything from the answer's first line on is erased and shown again.
static void a_resized_terminal_is_drawn_again(void **state)
{
    (void)state;
    static const char text[] = "The frog sat in the well and sang.";
    const char *path = temp_path("screen");
    FILE *file = fopen(path, "wb");
    chat_view *view = chat_view_new(file, true, 16);
    chat_view_add(view, false, text, strlen(text));
    chat_view_resize(view, 16, 24);   // nothing changed
    chat_view_resize(view, 10, 24);   // 2 lines of 15 and 12 columns: 4 rows
    chat_view_call(view, "f", "{}");
    chat_view_resize(view, 40, 24);
    chat_view_resize(view, 30, 1);   // does not fit on the screen: stays
    chat_view_end(view);
    fclose(file);
    chat_view_free(view);
    char *shown = read_file(path, NULL);
    assert_string_equal(shown, "The frog sat in\nthe well and"
                               "\033[0m\r\033[3A\033[J"
                               "The frog\nsat in the\nwell and\nsang.\n" C "\xe2\x86\x92 f"
                               "\033[0m\r\033[4A\033[J"
                               "The frog sat in the well and sang.\n" C "\xe2\x86\x92 f {}" N);
    free(shown);
}

static void nothing_is_shown_after_an_interrupt(void **state)
{
    (void)state;
    const char *path = temp_path("screen");
    FILE *file = fopen(path, "wb");
    chat_view *view = chat_view_new(file, true, 40);
    chat_view_add(view, true, "one tw", 6);
    chat_view_stop(view);
    chat_view_free(view);
    fclose(file);
    char *shown = read_file(path, NULL);
    assert_string_equal(shown, D "one" N);
    free(shown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_become_styles),
        cmocka_unit_test(what_is_no_mark_stays),
        cmocka_unit_test(control_characters_do_not_reach_the_terminal),
        cmocka_unit_test(reasoning_is_dimmed_and_kept_apart),
        cmocka_unit_test(a_call_has_a_line_of_its_own),
        cmocka_unit_test(lines_break_between_words),
        cmocka_unit_test(wide_characters_count_twice),
        cmocka_unit_test(lines_of_lists_and_quotes_hang),
        cmocka_unit_test(a_resized_terminal_is_drawn_again),
        cmocka_unit_test(nothing_is_shown_after_an_interrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
