// SPDX-License-Identifier: MIT
// --context-shift of run and chat: texts continue past the context, and errors explain what to do.
#include "support/command_posix.h"

static void run_continues_past_the_context(void **state)
{
    (void)state;
    static const char run[] = "run -p 'Tell me the tale of Rapunzel.' --temp 0 -n 300 -c 128 -t 2 --deterministic";
    char command[1024];
    outcome ends = frit(run, NULL);
    assert_int_equal(ends.code, 0);
    assert_non_null(strstr(ends.err, "the context is full; --context-shift drops its oldest half"));
    assert_non_null(strstr(ends.err, "-c 512 gives more room: "));
    assert_non_null(strstr(ends.err, " with -ctk q8_0 -ctv q8_0"));
    snprintf(command, sizeof command, "%s --context-shift", run);
    outcome shifted = frit(command, NULL);
    assert_int_equal(shifted.code, 0);
    assert_non_null(strstr(shifted.err, "answer: 300 tokens"));
    assert_non_null(strstr(shifted.err, "cut off by -n]"));
    const size_t n_same = strlen(ends.out) - 1;   // without the newline
    assert_true(strlen(shifted.out) > 2 * n_same);
    assert_memory_equal(shifted.out, ends.out, n_same);
    snprintf(command, sizeof command, "%s --context-shift --speculate none -q", run);
    expect(command, NULL, 0, shifted.out, NULL);   // the drafts do not change the text
    outcome_free(&ends);
    outcome_free(&shifted);
}

static void a_saved_answer_that_was_shifted_loads(void **state)
{
    (void)state;
    char command[2048];
    snprintf(command, sizeof command,
             "run -q -p 'Tell me a story.' --temp 0 -n 200 -c 128 --context-shift --keep -1 --session '%s'",
             temp_path("shifted.frit"));
    outcome first = frit(command, NULL), again = frit(command, NULL);
    assert_int_equal(first.code, 0);
    assert_int_equal(again.code, 0);
    assert_string_equal(again.out, first.out);   // the prompt is in the kept part
    outcome_free(&first);
    outcome_free(&again);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *command;
        int code;
        const char *said;
    } rows[] = {
        {"run -p a --keep 40", 2, "--keep 40: says what a context shift keeps; give --context-shift too"},
        {"run -p a -c 128 --context-shift --keep 100", 2, "that keeps 128 tokens needs a context of 192 at least"},
        {"run -p a --context-shift --beams 2", 2, "not with --beams"},
        {"run -p a --context-shift --keep -2", 2, "whole number from -1"},
        {"run -p a --grp-attn-n 4", 2, "--rope-scaling yarn makes contexts longer"},
        {"chat --context-shift --no-context-shift", 2, "expected one"},
        {"run -p 'More words than there is any room for in a context as short as this one' -c 8", 1,
         "-c 512 gives more room"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        outcome o = frit(rows[i].command, "");
        if (!strstr(o.err, rows[i].said)) fail_msg("%s: %s", rows[i].command, o.err);
        assert_int_equal(o.code, rows[i].code);
        outcome_free(&o);
    }
}

// Drops tokens within the answer, but no turn, and runs no token again.
static void an_answer_of_a_chat_continues(void **state)
{
    (void)state;
    outcome o = frit("chat -c 128 -n 300 --temp 0 --context-shift --verbose",
                     "Tell me a story.\nTell me the tale of Rapunzel.\n");
    assert_int_equal(o.code, 0);
    const char *first = strstr(o.err, "answer      300 tokens");
    assert_non_null(first);
    assert_null(strstr(o.err, "the context is full"));
    const char *left = strstr(o.err, "no longer sees the oldest 2 messages");   // before the second question
    assert_true(left && left > first);
    assert_non_null(strstr(left, "answer      300 tokens"));
    outcome_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_continues_past_the_context),
        cmocka_unit_test(a_saved_answer_that_was_shifted_loads),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(an_answer_of_a_chat_continues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
