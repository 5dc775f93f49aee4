// SPDX-License-Identifier: MIT
// The workloads of frit bench: options, and one measurement after another.
#include "frit/bench/load.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_VOCAB = 32000, MOST_LANES = 256, MOST_AT_ONCE = 4096 };

#define LOAD(field, ...)                                     \
    {                                                        \
        .offset = offsetof(load_options, field), __VA_ARGS__ \
    }

const frit_option *load_rows(size_t *n_rows)
{
    // clang-format off
    static const frit_option rows[] = {
        LOAD(n_requests, .name = "requests", .type = FRIT_OPTION_INT, .min = 1, .max = 10000000, .metavar = "N",
             .help = "answer N requests, and print throughput and latencies as serving benchmarks do"),
        LOAD(n_in, .name = "in", .type = FRIT_OPTION_INT, .min = 1, .max = 10000000, .fallback = "256", .metavar = "A",
             .help = "tokens of each prompt, random ones"),
        LOAD(n_out, .name = "out", .type = FRIT_OPTION_INT, .min = 1, .max = 10000000, .fallback = "256",
             .metavar = "B", .help = "tokens of each answer"),
        LOAD(concurrency, .name = "concurrency", .type = FRIT_OPTION_TEXT, .fallback = "0", .metavar = "LIST",
             .help = "requests in flight at most, the next one begins when one ends; a measurement for each number; 0: no limit"),
        LOAD(rate, .name = "rate", .type = FRIT_OPTION_FLOAT, .min = 0, .max = 1e6, .metavar = "R",
             .help = "requests that begin each second, a Poisson process; 0: all at once"),
        LOAD(structured, .name = "structured-output-ratio", .type = FRIT_OPTION_FLOAT, .min = 0, .max = 1,
             .fallback = "1", .metavar = "R",
             .help = "with --json-schema, --regex or --grammar: the share of requests whose answers have the grammar"),
        LOAD(seed, .name = "seed", .type = FRIT_OPTION_SEED, .fallback = "1", .metavar = "N",
             .help = "equal seeds give equal requests, in the process and at a server; -1: a random one"),
        LOAD(n_shared, .name = "shared-prefix", .type = FRIT_OPTION_INT, .min = 0, .max = 10000000, .metavar = "P",
             .help = "the first P tokens of all prompts are equal"),
        LOAD(n_warmup, .name = "warmup", .type = FRIT_OPTION_INT, .min = 0, .max = 10000000, .metavar = "W",
             .help = "requests before each measurement, which are not counted"),
        LOAD(n_rounds, .name = "rounds", .type = FRIT_OPTION_INT, .min = 1, .max = 1000, .fallback = "1",
             .metavar = "N", .help = "measurements one after the other, each with new prompts"),
        LOAD(n_vocab, .name = "vocab", .type = FRIT_OPTION_INT, .min = 0, .max = 10000000, .metavar = "V",
             .help = "prompts have token ids below V; 0: 32000, or all of a model that has fewer"),
        LOAD(url, .name = "url", .type = FRIT_OPTION_TEXT, .metavar = "URL",
             .help = "measure the server at this address, which has /v1/completions; --model names its model"),
        LOAD(api_key, .name = "api-key", .type = FRIT_OPTION_TEXT, .metavar = "KEY", .help = "key for the server"),
        LOAD(text, .name = "text", .type = FRIT_OPTION_FLAG,
             .help = "with --url: send prompts as text, A common words that are about A tokens, instead of token ids"),
        LOAD(body, .name = "body", .type = FRIT_OPTION_TEXT, .metavar = "JSON",
             .help = "more fields of each request, as an object; null leaves out a field that is sent otherwise"),
        LOAD(silence_s, .name = "max-silence", .type = FRIT_OPTION_INT, .min = 1, .max = 86400, .fallback = "300",
             .metavar = "S", .help = "a stream from which nothing comes for S seconds has failed"),
        LOAD(json, .name = "json", .type = FRIT_OPTION_FLAG, .help = "print JSON, with the names of vLLM's bench serve"),
    };
    // clang-format on
    *n_rows = CLI_COUNT(rows);
    return rows;
}

int load_check_unused(const bench_args *args)
{
    size_t n;
    const frit_option *rows = load_rows(&n);
    for (size_t i = 0; i < n; i++)
        if (cli_is_typed(&args->common, rows[i].name) && strcmp(rows[i].name, "json") != 0)
            return cli_usage("bench: --%s needs --requests, the number of requests", rows[i].name);
    return CLI_DONE;
}

// ---------------------------------------------------------------------------------------- measurements

typedef struct measurement {
    const bench_args *args;
    load_driver driver;
    bench_list concurrency;
    json_t *results;           // NULL: tables
    load_summary_row *lines;   // [n_lines]: the measurements so far
    size_t n_lines;
    int64_t n_failed;
    int n_cases;
} measurement;

static int32_t vocab_of(const measurement *s)
{
    const int32_t chosen = s->args->load.n_vocab > 0 ? s->args->load.n_vocab : DEFAULT_VOCAB;
    return s->driver.n_vocab > 0 && s->driver.n_vocab < chosen ? s->driver.n_vocab : chosen;
}

static int run_case(measurement *s, load_case *load, load_result *result)
{
    cli_progress progress;
    if (!load_case_init(load)) return cli_no_memory();
    cli_progress_start(&progress, &s->args->common, load->round == 0 ? "warming up" : "measuring");
    const int code = s->driver.run(s->driver.ctx, load, result, &progress);
    cli_progress_end(&progress);
    return code;
}

// Requests of the warm-up have prompts of their own, so that measurements are the same without one.
static int warm_up(measurement *s, load_case load)
{
    load_result result = {0};
    load.n_requests = s->args->load.n_warmup;
    load.first = (uint64_t)1 << 32 | (uint64_t)s->n_cases << 40;
    load.round = 0;
    if (load.n_requests == 0) return CLI_DONE;
    const int code = run_case(s, &load, &result);
    if (code == CLI_DONE && result.n_failed > 0)
        cli_announce("bench: %lld requests of the warm-up failed; the first: %s: %s", (long long)result.n_failed,
                     result.errors[0].kind, result.errors[0].example);
    load_case_deinit(&load);
    load_result_free(&result);
    return code;
}

static int report(measurement *s, const load_case *load, load_result *result)
{
    const load_report report = {&s->driver, load, result};
    s->n_failed += result->n_failed;
    if (s->results) {
        json_t *object = load_json(&report);
        return json_array_append_new(s->results, object) == 0 ? CLI_DONE : cli_no_memory();
    }
    load_summary_row *lines = realloc(s->lines, (s->n_lines + 1) * sizeof *lines);
    if (!lines) return cli_no_memory();
    s->lines = lines;
    if (s->n_lines > 0) cli_print("\n");
    load_print_tables(&report);
    s->lines[s->n_lines++] = load_summary_row_of(&report);
    return CLI_DONE;
}

static int measure(measurement *s, int32_t n_at_once, int32_t round)
{
    const load_options *o = &s->args->load;
    load_result result = {0};
    load_case load = {.n_requests = o->n_requests,
                      .n_in = o->n_in,
                      .n_out = o->n_out,
                      .n_shared = o->n_shared,
                      .n_vocab = vocab_of(s),
                      .n_at_once = n_at_once,
                      .rate = (double)o->rate,
                      .structured = s->driver.has_grammar ? (double)o->structured : 0,
                      .seed = o->seed,
                      .first = (uint64_t)s->n_cases * (uint64_t)o->n_requests,
                      .round = round,
                      .n_rounds = o->n_rounds};
    int code = warm_up(s, load);
    s->n_cases++;
    if (code == CLI_DONE) code = run_case(s, &load, &result);
    if (code == CLI_DONE || (code == CLI_INTERRUPTED && result.n_done + result.n_failed > 0)) {
        const int reported = report(s, &load, &result);
        if (code == CLI_DONE) code = reported;
    }
    load_case_deinit(&load);
    load_result_free(&result);
    return code;
}

static int measure_all(measurement *s)
{
    int code = CLI_DONE;
    cli_note(&s->args->common, "%s", s->driver.what);
    for (int i = 0; i < s->concurrency.n && code == CLI_DONE; i++)
        for (int32_t round = 1; round <= s->args->load.n_rounds && code == CLI_DONE; round++)
            code = measure(s, s->concurrency.values[i], round);
    if (s->n_lines > 1) load_print_summary(s->lines, s->n_lines);
    if (s->results && json_array_size(s->results) > 0) {
        const int printed = cli_print_json(json_incref(s->results), JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        if (code == CLI_DONE) code = printed;
    }
    if (code == CLI_DONE && s->n_failed > 0) code = cli_fail("bench: %lld requests failed", (long long)s->n_failed);
    return code;
}

// ---------------------------------------------------------------------------------------- options

static int check(const bench_args *args)
{
    const load_options *o = &args->load;
    const char *format = args->bench.format;
    if (o->text && !o->url) return cli_usage("bench: --text needs a server; give --url too");
    if (o->n_shared > o->n_in)
        return cli_usage("bench: --shared-prefix %d is more than the %d tokens of a prompt (--in)", o->n_shared,
                         o->n_in);
    if ((int64_t)o->n_in + o->n_out > 1 << 27)
        return cli_usage("bench: a request of %lld tokens is too long", (long long)o->n_in + o->n_out);
    if (strcmp(format, "md") != 0 && strcmp(format, "json") != 0)
        return cli_usage("bench: -o %s: requests are reported as md or json", format);
    if (o->url && args->bench.shape) return cli_usage("bench: --random makes a model, and --url asks a server for one");
    if (args->common.n_positional > (o->url ? 0 : 1))
        return cli_usage(o->url ? "bench: --url: no file is opened; --model names the server's model"
                                : "bench: --requests measures one model");
    return CLI_DONE;
}

// Sessions of an engine: as --parallel says, or as many as requests may be in flight.
static int count_lanes(const measurement *s, int32_t *n_lanes)
{
    const int32_t n_requests = s->args->load.n_requests;
    bench_setup setup;
    int code = bench_single_setup(&setup, s->args);
    *n_lanes = setup.n_sessions;
    for (int i = 0; i < s->concurrency.n && setup.n_sessions == 0; i++) {
        const int32_t n = s->concurrency.values[i] > 0 ? s->concurrency.values[i] : MOST_LANES;
        const int32_t most = n < n_requests ? n : n_requests;
        if (most > *n_lanes) *n_lanes = most;
    }
    return code;
}

int load_run(const bench_args *args)
{
    measurement *s = calloc(1, sizeof *s);
    if (!s) return cli_no_memory();
    s->args = args;
    int32_t n_lanes = 0;
    int code = check(args);
    if (code == CLI_DONE)
        code = bench_list_parse(&s->concurrency, "concurrency", args->load.concurrency, 0, MOST_AT_ONCE);
    if (code == CLI_DONE && !args->load.url) code = count_lanes(s, &n_lanes);
    if (code == CLI_DONE && (args->load.json || strcmp(args->bench.format, "json") == 0)) {
        s->results = json_array();
        if (!s->results) code = cli_no_memory();
    }
    if (code == CLI_DONE)
        code = args->load.url ? load_open_server(&s->driver, args) : load_open_offline(&s->driver, args, n_lanes);
    if (code == CLI_DONE) code = measure_all(s);
    if (s->driver.ctx) s->driver.close(s->driver.ctx);
    json_decref(s->results);
    free(s->lines);
    free(s);
    return code;
}
