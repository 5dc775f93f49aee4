// SPDX-License-Identifier: MIT
// Grammars made to need much time or memory: each ends within the budget of steps and 100 MB, with an error or with the
// right answer. Each runs in a process of its own, whose memory the system counts. The limit of processor time suits a
// busy machine, and detects work that is not counted in steps. With --compile KIND FILE it prints the cost of a
// grammar, for bombs.py.
#include "grammar/random_answer.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_SECONDS = 10, MOST_BYTES = 100 << 20 };
enum { REFUSED = 10, FITS, DOES_NOT_FIT, NO_ROOM, OVER_BUDGET };   // exit codes of a process

enum kind { GBNF, REGEX, SCHEMA, TAGS };

typedef struct bomb {
    enum kind kind;
    const char *name;
    void (*write)(frit_buf *text);   // the grammar
    const char *part;                // the text consists of n of these
    int n;
    int expected;   // if the grammar is accepted: FITS or DOES_NOT_FIT
    bool must;      // the grammar must be accepted; others may be refused
} bomb;

static void append_many(frit_buf *text, const char *part, int n)
{
    for (int i = 0; i < n; i++) frit_buf_text(text, part);
}

// ------------------------------------------------------------------------------- grammars

static void gbnf_deep(frit_buf *t)
{
    frit_buf_text(t, "root ::= ");
    append_many(t, "(", 10000);
    frit_buf_text(t, "\"a\"");
    append_many(t, ")", 10000);
}

static void gbnf_chain(frit_buf *t)
{
    frit_buf_text(t, "root ::= r0\n");
    for (int i = 0; i < 10000; i++) frit_buf_printf(t, "r%d ::= \"a\" r%d | \"a\"\n", i, i + 1);
    frit_buf_text(t, "r10000 ::= \"b\"\n");
}

static void gbnf_left(frit_buf *t)
{
    frit_buf_text(t, "root ::= root \"a\" | \"a\"");
}

static void gbnf_hidden_left(frit_buf *t)
{
    frit_buf_text(t, "root ::= x y \"a\"\nx ::= \"\" | \"b\"\ny ::= root | \"c\"");
}

static void gbnf_loops(frit_buf *t)
{
    frit_buf_text(t, "root ::= ");
    append_many(t, "(\"a\"* ", 150);
    append_many(t, ")*", 150);
}

static void gbnf_empty_loops(frit_buf *t)
{
    frit_buf_text(t, "root ::= (\"\"*)* x* \"a\"*\nx ::= (\"\" | y)*\ny ::= \"\"*");
}

static void gbnf_ambiguous(frit_buf *t)
{
    frit_buf_text(t, "root ::= \"a\" root root | \"a\" | \"\"");
}

static void gbnf_nested_text(frit_buf *t)
{
    frit_buf_text(t, "root ::= \"[\" root \"]\" | \"x\"");
}

static void gbnf_counts(frit_buf *t)
{
    frit_buf_text(t, "root ::= ((([a-z]{1,1000}){1,1000}){1,1000}){1,1000}");
}

static void gbnf_subsets(frit_buf *t)
{
    frit_buf_text(t, "root ::= [ab]* \"a\" [ab]{100}");
}

static void regex_deep(frit_buf *t)
{
    append_many(t, "(", 10000);
    frit_buf_text(t, "a");
    append_many(t, ")", 10000);
}

static void regex_stars(frit_buf *t)
{
    append_many(t, "(", 100);
    frit_buf_text(t, "a");
    append_many(t, ")*", 100);
}

static void regex_ambiguous(frit_buf *t)
{
    frit_buf_text(t, "(a|a)*(a|aa)+(a*)*b?");
}

static void regex_optional(frit_buf *t)
{
    append_many(t, "a?", 1000);
    append_many(t, "a", 1000);
}

static void regex_counts(frit_buf *t)
{
    frit_buf_text(t, "((a{1,1000}){1,1000}){1,1000}");
}

static void regex_subsets(frit_buf *t)
{
    frit_buf_text(t, "[ab]*a[ab]{60}");
}

static void schema_deep(frit_buf *t)
{
    append_many(t, "{\"items\":", 10000);
    frit_buf_text(t, "true");
    append_many(t, "}", 10000);
}

static void schema_deep_all_of(frit_buf *t)
{
    append_many(t, "{\"allOf\":[", 180);
    frit_buf_text(t, "{\"type\":\"array\"}");
    append_many(t, "]}", 180);
}

static void schema_loop(frit_buf *t)
{
    frit_buf_text(
        t,
        "{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"$ref\": \"#/$defs/b\"}, \"b\": {\"$ref\": \"#/$defs/a\"}}}");
}

static void schema_recursive(frit_buf *t)
{
    frit_buf_text(t, "{\"type\": \"array\", \"items\": {\"$ref\": \"#\"}}");
}

static void schema_product(frit_buf *t)
{
    frit_buf_text(t, "{\"allOf\": [");
    for (int i = 0; i < 40; i++)
        frit_buf_printf(t, "%s{\"anyOf\": [{\"required\": [\"a%d\"]}, {\"required\": [\"b%d\"]}]}", i ? "," : "", i, i);
    frit_buf_text(t, "]}");
}

static void schema_any_one(frit_buf *t)
{
    frit_buf_text(t, "{\"oneOf\": [");
    for (int i = 0; i < 60; i++)
        frit_buf_printf(t, "%s{\"properties\": {\"p%d\": {\"minLength\": %d}}}", i ? "," : "", i, i);
    frit_buf_text(t, "]}");
}

static void schema_lengths(frit_buf *t)
{
    frit_buf_text(t, "{\"type\": \"string\", \"minLength\": 100000, \"maxLength\": 1000000}");
}

static void schema_items(frit_buf *t)
{
    frit_buf_text(
        t, "{\"type\": \"array\", \"minItems\": 100000, \"maxItems\": 1000000, \"items\": {\"type\": \"array\"}}");
}

static void schema_patterns(frit_buf *t)
{
    frit_buf_text(t, "{\"type\": \"string\", \"allOf\": [");
    for (int i = 2; i < 12; i++) frit_buf_printf(t, "%s{\"pattern\": \"^(a{%d})*$\"}", i > 2 ? "," : "", i + i % 2 + 1);
    frit_buf_text(t, "]}");
}

static void schema_properties(frit_buf *t)
{
    frit_buf_text(t, "{\"type\": \"object\", \"properties\": {");
    for (int i = 0; i < 20000; i++) frit_buf_printf(t, "%s\"p%d\": {\"type\": \"integer\"}", i ? ", " : "", i);
    frit_buf_text(t, "}}");
}

static void schema_required(frit_buf *t)
{
    frit_buf_text(t, "{\"required\": [");
    for (int i = 0; i < 20000; i++) frit_buf_printf(t, "%s\"p%d\"", i ? ", " : "", i);
    frit_buf_text(t, "]}");
}

static void schema_all_of_properties(frit_buf *t)
{
    frit_buf_text(t, "{\"allOf\": [");
    for (int i = 0; i < 4000; i++)
        frit_buf_printf(t, "%s{\"properties\": {\"p%d\": {\"type\": \"integer\"}}}", i ? ", " : "", i);
    frit_buf_text(t, "]}");
}

static void append_conditions(frit_buf *t, int n, const char *format)
{
    frit_buf_text(t, "{\"allOf\": [");
    for (int i = 0; i < n; i++) {
        frit_buf_printf(t, "%s{\"if\": {\"properties\": {\"a\": {\"const\": %d}}, \"required\": [\"a\"]}, \"then\": {",
                        i ? "," : "", i);
        frit_buf_printf(t, format, i);
        frit_buf_text(t, "}}");
    }
    frit_buf_text(t, "]}");
}

static void schema_conditions(frit_buf *t)
{
    append_conditions(t, 300, "\"properties\": {\"b\": {\"const\": %d}}");
}

static void schema_80_conditions(frit_buf *t)
{
    append_conditions(t, 80, "\"required\": [\"b%d\"]");
}

static void schema_few_conditions(frit_buf *t)
{
    append_conditions(t, 20, "\"properties\": {\"b\": {\"const\": %d}}");
}

static void schema_nested_conditions(frit_buf *t)
{
    append_many(t, "{\"if\": ", 12);
    frit_buf_text(t, "{\"required\": [\"a\"]}");
    append_many(t, ", \"then\": {\"required\": [\"b\"]}, \"else\": {\"required\": [\"c\"]}}", 12);
}

static void schema_dependent(frit_buf *t)
{
    frit_buf_text(t, "{\"dependentSchemas\": {");
    for (int i = 0; i < 12; i++)
        frit_buf_printf(t, "%s\"p%d\": {\"properties\": {\"q%d\": {\"type\": \"string\"}}, \"required\": [\"q%d\"]}",
                        i ? ", " : "", i, i, i);
    frit_buf_text(t, "}, \"properties\": {");
    for (int i = 0; i < 12; i++) frit_buf_printf(t, "%s\"p%d\": {\"type\": \"integer\"}", i ? ", " : "", i);
    frit_buf_text(t, "}}");
}

static void schema_contains(frit_buf *t)
{
    frit_buf_text(t, "{\"type\": \"array\", \"allOf\": [");
    for (int i = 0; i < 8; i++)
        frit_buf_printf(t, "%s{\"contains\": {\"const\": %d}, \"minContains\": 50, \"maxContains\": 100}", i ? "," : "",
                        i);
    frit_buf_text(t, "]}");
}

static void schema_few_contains(frit_buf *t)
{
    frit_buf_text(t, "{\"type\": \"array\", \"allOf\": [");
    for (int i = 0; i < 8; i++)
        frit_buf_printf(t, "%s{\"contains\": {\"const\": %d}, \"minContains\": 1, \"maxContains\": 2}", i ? "," : "",
                        i);
    frit_buf_text(t, "]}");
}

static void schema_web(frit_buf *t)
{
    frit_buf_text(t, "{\"$ref\": \"#/$defs/d0\", \"$defs\": {");
    for (int i = 0; i < 30; i++)
        frit_buf_printf(t, "\"d%d\": {\"allOf\": [{\"$ref\": \"#/$defs/d%d\"}, {\"$ref\": \"#/$defs/d%d\"}]}, ", i,
                        i + 1, i + 1);
    frit_buf_text(t, "\"d30\": {\"type\": \"object\"}}}");
}

static void schema_letters(frit_buf *t)
{
    frit_buf_text(t, "{\"type\": \"string\", \"pattern\": \"");
    append_many(t, "\\\\p{L}\\\\p{Lu}", 10000);
    frit_buf_text(t, "\"}");
}

static void schema_enum(frit_buf *t)
{
    frit_buf_text(t, "{\"enum\": [0");
    for (int i = 1; i < 100000; i++) frit_buf_printf(t, ", %d", i);
    frit_buf_text(t, "]}");
}

static void schema_empty(frit_buf *t)
{
    frit_buf_text(t, "{\"anyOf\": [{}");
    append_many(t, ",{}", 1000000);
    frit_buf_text(t, "]}");
}

static void schema_equal_items(frit_buf *t)
{
    frit_buf_text(t, "{\"type\": \"array\", \"uniqueItems\": true, \"items\": {\"enum\": [1");
    append_many(t, ",1", 100000);
    frit_buf_text(t, "]}}");
}

// No item may be one of the listed arrays, which differ in their last number.
static void schema_long_items(frit_buf *t)
{
    frit_buf_text(t, "{\"type\": \"array\", \"uniqueItems\": true, \"items\": {\"type\": \"string\", \"enum\": [\"\"");
    for (int i = 0; i < 1000; i++) {
        frit_buf_text(t, ",[");
        append_many(t, "0,", 2000);
        frit_buf_printf(t, "%d]", i);
    }
    frit_buf_text(t, "]}}");
}

static void tags_of_schemas(frit_buf *t)
{
    frit_buf_text(t, "{\"triggers\": [\"<\"], \"structures\": [");
    for (int i = 0; i < 2000; i++)
        frit_buf_printf(t, "%s{\"begin\": \"<%d>\", \"schema\": {\"pattern\": \"[ab]*a[ab]{9}%d\"}, \"end\": \"</>\"}",
                        i ? "," : "", i, i);
    frit_buf_text(t, "]}");
}

static const bomb bombs[] = {
    {GBNF, "10,000 groups in each other", gbnf_deep, "a", 1, FITS, false},
    {GBNF, "10,000 rules in each other", gbnf_chain, "a", 10000, FITS, false},
    {GBNF, "left recursion", gbnf_left, "a", 100, FITS, false},
    {GBNF, "left recursion after an empty rule", gbnf_hidden_left, "a", 100, FITS, false},
    {GBNF, "150 loops in each other", gbnf_loops, "a", 1000, FITS, true},
    {GBNF, "loops of nothing", gbnf_empty_loops, "a", 1000, FITS, true},
    {GBNF, "ambiguity", gbnf_ambiguous, "a", 3000, FITS, false},
    {GBNF, "a text 10,000 deep", gbnf_nested_text, "[", 10000, FITS, true},
    {GBNF, "counts of counts", gbnf_counts, "a", 1000, FITS, false},
    {GBNF, "2^100 states if made deterministic", gbnf_subsets, "ab", 1000, FITS, false},
    {REGEX, "10,000 groups in each other", regex_deep, "a", 1, FITS, false},
    {REGEX, "100 loops in each other", regex_stars, "a", 10000, FITS, true},
    {REGEX, "ambiguity", regex_ambiguous, "a", 10000, FITS, true},
    {REGEX, "1,000 optional letters", regex_optional, "a", 1500, FITS, false},
    {REGEX, "counts of counts", regex_counts, "a", 1000, FITS, false},
    {REGEX, "2^60 states", regex_subsets, "ab", 1000, FITS, false},
    {SCHEMA, "10,000 subschemas in each other", schema_deep, "[", 10, FITS, false},
    {SCHEMA, "180 times allOf", schema_deep_all_of, "{", 1, DOES_NOT_FIT, false},
    {SCHEMA, "references in a circle", schema_loop, "1", 1, FITS, false},
    {SCHEMA, "arrays of arrays, 10,000 deep", schema_recursive, "[", 10000, FITS, true},
    {SCHEMA, "2^40 alternatives", schema_product, "{", 1, FITS, false},
    {SCHEMA, "one of 60", schema_any_one, "{", 1, FITS, false},
    {SCHEMA, "a million characters", schema_lengths, "a", 1, DOES_NOT_FIT, false},
    {SCHEMA, "a million items", schema_items, "{", 1, DOES_NOT_FIT, false},
    {SCHEMA, "patterns whose lengths have a large common multiple", schema_patterns, "1", 1, DOES_NOT_FIT, false},
    {SCHEMA, "20,000 properties", schema_properties, "{", 1, FITS, false},
    {SCHEMA, "20,000 required names", schema_required, "{", 1, FITS, false},
    {SCHEMA, "4,000 parts with a property", schema_all_of_properties, "{", 1, FITS, false},
    {SCHEMA, "300 conditions", schema_conditions, "{", 1, FITS, false},
    {SCHEMA, "80 conditions with names of their own", schema_80_conditions, "{", 1, FITS, false},
    {SCHEMA, "20 conditions", schema_few_conditions, "{", 1, FITS, true},
    {SCHEMA, "12 conditions in each other", schema_nested_conditions, "{", 1, FITS, false},
    {SCHEMA, "12 schemas of names that depend on others", schema_dependent, "{", 1, FITS, false},
    {SCHEMA, "8 counts of 100 items", schema_contains, "[", 1, FITS, false},
    {SCHEMA, "8 counts of 2 items", schema_few_contains, "[", 1, FITS, true},
    {SCHEMA, "2^30 references", schema_web, "{", 1, FITS, false},
    {SCHEMA, "20,000 classes of letters", schema_letters, "\"", 1, FITS, false},
    {SCHEMA, "100,000 numbers", schema_enum, "1", 5, FITS, true},
    {SCHEMA, "a million empty subschemas", schema_empty, "{", 1, FITS, false},
    {SCHEMA, "100,000 equal unique items", schema_equal_items, "[", 1, FITS, true},
    {SCHEMA, "1,000 long unique items", schema_long_items, "[", 1, FITS, true},
    {TAGS, "2,000 tags with schemas", tags_of_schemas, "a", 100, FITS, false},
};

// ------------------------------------------------------------------------------- running

static const char *const kinds[] = {"gbnf", "regex", "schema", "tags"};

static frit_status compile_text(enum kind what, frit_str text, const frit_budget *budget, frit_automaton **out,
                                int64_t *steps)
{
    frit_rule_builder builder = {.budget = *budget};
    int32_t rule;
    frit_status status = what == GBNF     ? frit_gbnf_add(&builder, text, NULL, &rule)
                         : what == REGEX  ? frit_regex_add(&builder, text, &rule)
                         : what == SCHEMA ? frit_schema_add_text(&builder, text, NULL, NULL, &rule)
                                          : frit_tags_add_text(&builder, text, NULL, &rule);
    *out = NULL;
    if (status == FRIT_OK) status = frit_automaton_compile(out, &builder, rule);
    *steps = builder.budget.steps;
    frit_builder_free(&builder);
    return status;
}

static frit_status compile(const bomb *b, const frit_budget *budget, frit_automaton **out, int64_t *steps)
{
    frit_buf text = {0};
    b->write(&text);
    const frit_status status = compile_text(b->kind, (frit_str){text.data, text.len}, budget, out, steps);
    frit_buf_free(&text);
    return status;
}

static int explode(const bomb *b)
{
    frit_automaton *a = NULL;
    frit_match match;
    size_t n_read;
    int64_t steps;
    const frit_status status = compile(b, &(frit_budget){0}, &a, &steps);
    if (steps > FRIT_BUDGET_STEPS + FRIT_BUDGET_STEPS / 16) return OVER_BUDGET;
    if (status != FRIT_OK) return REFUSED;
    int result = FITS;
    if (frit_match_init(&match, a, 8) != FRIT_OK) return NO_ROOM;
    for (int i = 0; i < b->n && result == FITS; i++) {
        if (frit_match_push(&match, b->part, strlen(b->part), &n_read) != FRIT_OK)
            result = NO_ROOM;
        else if (n_read < strlen(b->part))
            result = DOES_NOT_FIT;
    }
    frit_match_deinit(&match);
    frit_automaton_free(a);
    return result;
}

static void check(const bomb *b)
{
    struct rusage before, used;
    getrusage(RUSAGE_SELF, &before);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(explode(b));
    int status;
    assert_int_equal(wait4(pid, &status, 0, &used), pid);
    if (!WIFEXITED(status)) fail_msg("%s: ended by signal %d", b->name, WTERMSIG(status));
    const int result = WEXITSTATUS(status);
    const double seconds = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    static const char *const names[] = {"refused", "fits", "does not fit", "no room", "over budget"};
    assert_in_range(result, REFUSED, OVER_BUDGET);
    print_message("%-6s %-52s %-12s %5.2f s %6.1f MB\n", kinds[b->kind], b->name, names[result - REFUSED], seconds,
                  (double)used.ru_maxrss / 1024);
    if (result != b->expected && (b->must || (result != REFUSED && result != NO_ROOM)))
        fail_msg("%s: %s", b->name, names[result - REFUSED]);
    if (seconds > MOST_SECONDS * FRIT_TEST_STRIDE) fail_msg("%s: %.2f seconds", b->name, seconds);
    if (!IS_SANITIZED && used.ru_maxrss > before.ru_maxrss + (MOST_BYTES >> 10))
        fail_msg("%s: %ld kB", b->name, used.ru_maxrss);
}

static void bombs_end_within_the_budget_and_100_megabytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(bombs); i++) check(&bombs[i]);
}

static bool cancel_later(void *ctx)
{
    int *n = ctx;
    return --*n == 0;
}

static void compiling_ends_when_it_is_cancelled(void **state)
{
    static const bomb slow[] = {
        {SCHEMA, "conditions", schema_80_conditions, "", 0, 0, false},
        {SCHEMA, "references", schema_web, "", 0, 0, false},
        {SCHEMA, "letters", schema_letters, "", 0, 0, false},
        {GBNF, "subsets", gbnf_subsets, "", 0, 0, false},
        {REGEX, "subsets", regex_subsets, "", 0, 0, false},
        {TAGS, "tags", tags_of_schemas, "", 0, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(slow); i++) {
        frit_automaton *a;
        int64_t steps;
        int n = 3;
        const frit_budget budget = {.cancelled = cancel_later, .ctx = &n};
        if (compile(&slow[i], &budget, &a, &steps) != FRIT_E_CANCELLED) fail_msg("%s", slow[i].name);
        assert_in_range(steps, 1, FRIT_BUDGET_STEPS / 8);
    }
}

// The peak of this process alone, without its parent's memory.
static double peak_megabytes(void)
{
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "VmHWM:", 6) == 0) kib = strtol(line + 6, NULL, 10);
    }
    if (f) fclose(f);
    return (double)kib / 1024;
}

static double used_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static int print_cost(const char *kind_name, const char *path)
{
    size_t n_bytes;
    char *text = read_file(path, &n_bytes);
    frit_automaton *a = NULL;
    int64_t steps;
    int what = 0;
    while (strcmp(kinds[what], kind_name) != 0) what++;
    words w;
    frit_masks *masks = NULL;
    make_words(&w, NULL, 0);
    const double before = peak_megabytes(), start = used_seconds();
    frit_status status = compile_text((enum kind)what, (frit_str){text, n_bytes}, &(frit_budget){0}, &a, &steps);
    if (status == FRIT_OK) status = frit_masks_new(&masks, a, w.trie, 0);
    printf("%.3f\t%.1f\t%lld\t%s\n", used_seconds() - start, peak_megabytes() - before, (long long)steps,
           status == FRIT_OK ? "compiled" : frit_error());
    if (masks) frit_masks_free(masks);
    frit_automaton_free(a);
    free_words(&w);
    free(text);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bombs_end_within_the_budget_and_100_megabytes),
        cmocka_unit_test(compiling_ends_when_it_is_cancelled),
    };
    if (argc == 4 && strcmp(argv[1], "--compile") == 0) return print_cost(argv[2], argv[3]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
