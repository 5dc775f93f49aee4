// SPDX-License-Identifier: MIT
// Expands lists in options to the rows of a benchmark.
#include "frit/bench/bench.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------- lists of numbers

// Reads digits at *at, up to 2^31 - 1, and moves *at after them.
static bool read_number(const char **at, int64_t *out)
{
    if (!isdigit((unsigned char)**at)) return false;
    for (*out = 0; isdigit((unsigned char)**at); (*at)++) {
        *out = *out * 10 + (**at - '0');
        if (*out > INT32_MAX) return false;
    }
    return true;
}

typedef struct range {
    int64_t first, last, step;
    bool multiply;
} range;

// Reads "8", "1-8", "0-8192+2048" or "1-16*2" and moves *at after it.
static bool read_range(const char **at, range *r)
{
    if (!read_number(at, &r->first)) return false;
    *r = (range){r->first, r->first, 1, false};
    if (**at != '-') return true;
    (*at)++;
    if (!read_number(at, &r->last) || r->last < r->first) return false;
    if (**at != '+' && **at != '*') return true;
    r->multiply = *(*at)++ == '*';
    if (!read_number(at, &r->step)) return false;
    return r->multiply ? r->step > 1 && r->first > 0 : r->step > 0;
}

int bench_list_parse(bench_list *list, const char *option, const char *text, int32_t min, int32_t max)
{
    list->n = 0;
    for (const char *at = text;; at++) {
        range r;
        if (!read_range(&at, &r) || (*at && *at != ','))
            return cli_usage("bench: --%s: '%s' is no list of numbers like 512 or 128,512 or 0-8192+2048 or 1-16*2",
                             option, text);
        for (int64_t v = r.first; v <= r.last; v = r.multiply ? v * r.step : v + r.step) {
            if (v < min || v > max)
                return cli_usage("bench: --%s: %lld is not from %d to %d", option, (long long)v, min, max);
            if (list->n == BENCH_MAX_LIST)
                return cli_usage("bench: --%s: '%s' has more than %d values", option, text, BENCH_MAX_LIST);
            list->values[list->n++] = (int32_t)v;
        }
        if (!*at) return CLI_DONE;
    }
}

// ---------------------------------------------------------------------------------------- lists of types

typedef struct types {
    const char *names[16];
    int n;
} types;

// Cuts `text` (which it changes) at commas. Every name must be allowed by the engine's option.
static int types_parse(types *list, const char *option, char *text)
{
    size_t n_rows;
    const frit_option *rows = frit_engine_option_rows(&n_rows);
    list->n = 0;
    for (char *name = text; name;) {
        char *comma = strchr(name, ',');
        if (comma) *comma++ = 0;
        for (size_t i = 0; i < n_rows; i++) {
            frit_engine_options scratch;
            if (strcmp(rows[i].name, option) == 0 && frit_option_set(&rows[i], &scratch, name) != FRIT_OK)
                return cli_usage("bench: %s", frit_error());
        }
        if (list->n == (int)CLI_COUNT(list->names)) return cli_usage("bench: --%s: too many types", option);
        list->names[list->n++] = name;
        name = comma;
    }
    return CLI_DONE;
}

// ---------------------------------------------------------------------------------------- tests

void bench_test_name(const bench_test *test, char out[64])
{
    char parallel[24] = "", depth[24] = "";
    if (test->n_parallel > 1) snprintf(parallel, sizeof parallel, " x %d", test->n_parallel);
    if (test->n_depth > 0) snprintf(depth, sizeof depth, " @ d%d", test->n_depth);
    if (test->n_gen == 0) {
        snprintf(out, 64, "pp%d%s", test->n_prompt, depth);
    } else if (test->n_prompt == 0) {
        snprintf(out, 64, "tg%d%s%s", test->n_gen, parallel, depth);
    } else {
        snprintf(out, 64, "pp%d+tg%d%s", test->n_prompt, test->n_gen, depth);
    }
}

int64_t bench_test_tokens(const bench_test *test)
{
    return (int64_t)test->n_parallel * (test->n_prompt + test->n_gen);
}

// ---------------------------------------------------------------------------------------- rows

typedef struct sweep {
    bench_list prompt, gen, depth, batch, ubatch, threads, parallel, pairs_prompt, pairs_gen;
    types type_k, type_v;
} sweep;

static int add_row(bench_plan *plan, const bench_setup *setup, const bench_test *test)
{
    if (plan->n == BENCH_MAX_ROWS) return cli_usage("bench: the lists have more than %d combinations", BENCH_MAX_ROWS);
    if (plan->n == plan->capacity) {
        int capacity = plan->capacity ? 2 * plan->capacity : 64;
        bench_row *rows = realloc(plan->rows, (size_t)capacity * sizeof *rows);
        if (!rows) return cli_no_memory();
        plan->rows = rows;
        plan->capacity = capacity;
    }
    plan->rows[plan->n++] = (bench_row){.setup = *setup, .test = *test};
    return CLI_DONE;
}

// Adds all tests of one engine.
static int add_tests(bench_plan *plan, const sweep *s, const bench_setup *setup)
{
    int code = CLI_DONE;
    for (int d = 0; d < s->depth.n; d++) {
        for (int b = 0; b < s->batch.n && code == CLI_DONE; b++) {
            const bench_test at = {.n_depth = s->depth.values[d], .n_parallel = 1, .n_batch = s->batch.values[b]};
            for (int i = 0; i < s->prompt.n && code == CLI_DONE; i++) {
                bench_test test = at;
                test.n_prompt = s->prompt.values[i];
                if (test.n_prompt > 0) code = add_row(plan, setup, &test);
            }
            for (int i = 0; i < s->gen.n * s->parallel.n && b == 0 && code == CLI_DONE; i++) {
                bench_test test = at;
                test.n_gen = s->gen.values[i / s->parallel.n];
                test.n_parallel = s->parallel.values[i % s->parallel.n];
                if (test.n_gen > 0) code = add_row(plan, setup, &test);
            }
            for (int i = 0; i < s->pairs_prompt.n && code == CLI_DONE; i++) {
                bench_test test = at;
                test.n_prompt = s->pairs_prompt.values[i];
                test.n_gen = s->pairs_gen.values[i];
                code = add_row(plan, setup, &test);
            }
        }
    }
    return code;
}

static int parse_pair(sweep *s, const char *text)
{
    bench_list pair;
    int code = bench_list_parse(&pair, "prompt-gen", text, 1, 10000000);
    if (code != CLI_DONE) return code;
    if (pair.n != 2) return cli_usage("bench: --prompt-gen: '%s' is not P,N: prompt tokens, then generated ones", text);
    if (s->pairs_prompt.n == BENCH_MAX_LIST) return cli_usage("bench: --prompt-gen: given too often");
    s->pairs_prompt.values[s->pairs_prompt.n++] = pair.values[0];
    s->pairs_gen.values[s->pairs_gen.n++] = pair.values[1];
    return CLI_DONE;
}

static int parse_all(sweep *s, bench_plan *plan, const bench_options *o)
{
    const int32_t many = 10000000;
    const struct {
        bench_list *list;
        const char *option, *text;
        int32_t min, max;
    } lists[] = {
        {&s->prompt, "n-prompt", o->n_prompt, 0, many},     {&s->gen, "n-gen", o->n_gen, 0, many},
        {&s->depth, "n-depth", o->n_depth, 0, many},        {&s->batch, "batch", o->n_batch, 1, many},
        {&s->ubatch, "ubatch", o->n_ubatch, 0, 1 << 16},    {&s->threads, "threads", o->n_threads, 0, 1024},
        {&s->parallel, "parallel", o->n_parallel, 1, 4096},
    };
    int code = CLI_DONE;
    for (size_t i = 0; i < CLI_COUNT(lists) && code == CLI_DONE; i++)
        code = bench_list_parse(lists[i].list, lists[i].option, lists[i].text, lists[i].min, lists[i].max);
    for (size_t i = 0; i < o->pairs.n && code == CLI_DONE; i++) code = parse_pair(s, o->pairs.items[i]);
    // Type names are cut out of copies that live as long as the plan. Without a list there is one row without a type.
    size_t n_k = o->type_k ? strlen(o->type_k) + 1 : 0, n_v = o->type_v ? strlen(o->type_v) + 1 : 0;
    plan->types = malloc(n_k + n_v + 1);
    if (!plan->types) return cli_no_memory();
    s->type_k.n = s->type_v.n = 1;
    if (n_k > 0 && code == CLI_DONE)
        code = types_parse(&s->type_k, "cache-type-k", memcpy(plan->types, o->type_k, n_k));
    if (n_v > 0 && code == CLI_DONE)
        code = types_parse(&s->type_v, "cache-type-v", memcpy(plan->types + n_k, o->type_v, n_v));
    return code;
}

// Sets a context for the longest test, and pages for the largest number of its sequences.
static int fit_context(bench_plan *plan, const bench_args *args)
{
    int64_t n_ctx = args->engine.n_ctx, longest = 0, most = 0;
    for (int i = 0; i < plan->n; i++) {
        const bench_test *test = &plan->rows[i].test;
        int64_t n = (int64_t)test->n_depth + test->n_prompt + test->n_gen;
        int64_t padded = n + 64;   // a page more for each sequence
        if (n > longest) longest = n;
        if (padded * test->n_parallel > most) most = padded * test->n_parallel;
    }
    if (longest == 0) return cli_usage("bench: -p 0 -n 0 leaves nothing to measure");
    if (longest > 1 << 27) return cli_usage("bench: a test of %lld tokens is too long", (long long)longest);
    if (n_ctx > 0 && n_ctx < longest)
        return cli_usage("bench: -c %lld is less than a test of %lld tokens", (long long)n_ctx, (long long)longest);
    if (n_ctx == 0) n_ctx = longest;
    int64_t n_sessions = 1;
    for (int i = 0; i < plan->n; i++)
        if (plan->rows[i].test.n_parallel > 1) n_sessions = (most + n_ctx - 1) / n_ctx;
    for (int i = 0; i < plan->n; i++) {
        plan->rows[i].setup.n_ctx = (int32_t)n_ctx;
        plan->rows[i].setup.n_sessions = (int32_t)n_sessions;
    }
    return CLI_DONE;
}

int bench_plan_make(bench_plan *plan, const bench_args *args, size_t n_models)
{
    sweep *s = calloc(1, sizeof *s);
    if (!s) return cli_no_memory();
    int code = parse_all(s, plan, &args->bench);
    int n_types = s->type_k.n * s->type_v.n, n_setups = s->threads.n * s->ubatch.n * n_types;
    for (size_t m = 0; m < n_models && code == CLI_DONE; m++) {
        for (int i = 0; i < n_setups && code == CLI_DONE; i++) {
            const bench_setup setup = {
                .model = m,
                .n_threads = s->threads.values[i / (s->ubatch.n * n_types)],
                .n_ubatch = s->ubatch.values[i / n_types % s->ubatch.n],
                .type_k = s->type_k.names[i / s->type_v.n % s->type_k.n],
                .type_v = s->type_v.names[i % s->type_v.n],
            };
            code = add_tests(plan, s, &setup);
        }
    }
    if (code == CLI_DONE) code = fit_context(plan, args);
    free(s);
    return code;
}

static bool is_given(const cli_common *common, const char *option)
{
    bool found = false;
    for (int i = 0; i < common->n_given; i++) found = found || strcmp(common->given[i]->name, option) == 0;
    return found;
}

int bench_single_setup(bench_setup *setup, const bench_args *args)
{
    const bench_options *o = &args->bench;
    bench_list threads, ubatch, parallel;
    *setup = (bench_setup){.type_k = o->type_k, .type_v = o->type_v};
    int code = bench_list_parse(&threads, "threads", o->n_threads, 0, 1024);
    if (code == CLI_DONE) code = bench_list_parse(&ubatch, "ubatch", o->n_ubatch, 0, 1 << 16);
    if (code == CLI_DONE) code = bench_list_parse(&parallel, "parallel", o->n_parallel, 1, 4096);
    if (code != CLI_DONE) return code;
    if (threads.n > 1 || ubatch.n > 1 || parallel.n > 1)
        return cli_usage("bench: --requests: one engine answers, so --threads, --ubatch and --parallel are one number");
    setup->n_threads = threads.values[0];
    setup->n_ubatch = ubatch.values[0];
    setup->n_sessions = is_given(&args->common, "parallel") ? parallel.values[0] : 0;
    return CLI_DONE;
}

void bench_plan_free(bench_plan *plan)
{
    for (int i = 0; i < plan->n; i++) free(plan->rows[i].seconds);
    free(plan->rows);
    free(plan->types);
    *plan = (bench_plan){0};
}
