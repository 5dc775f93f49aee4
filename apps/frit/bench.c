// SPDX-License-Identifier: MIT
// frit bench: how fast a model runs, next to how fast this machine could read and calculate.
//
// pp rows run a prompt of random tokens in one go; tg rows run one token per step. A probe measures memory and
// arithmetic in the same run, so every figure comes with its share of the machine.
#include "cli.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REPEATS = 1000 };

typedef struct bench_options {
    int32_t n_prompt, n_gen, n_repeats;
    const char *format;
    bool no_probe;
} bench_options;

typedef struct bench_args {
    cli_common common;
    bench_options bench;
    frit_engine_options engine;
    frit_model_options model;
} bench_args;

typedef struct result {
    char test[32];
    int32_t n_prompt, n_gen;
    int n_samples;
    double seconds[MAX_REPEATS];
    double mean_ts, sd_ts, mean_ns, sd_ns;
    double gbps, tops;   // achieved
} result;

typedef struct report {
    const bench_args *args;
    frit_model_info model;
    frit_engine_info engine;
    frit_machine machine;
    result *results;
    int n_results;
} report;

static const frit_option *bench_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "n-prompt",
         .letter = 'p',
         .type = FRIT_OPTION_INT,
         .offset = offsetof(bench_options, n_prompt),
         .min = 0,
         .max = 1e7,
         .fallback = "512",
         .metavar = "N",
         .help = "tokens of the prompt test; 0: leave it out"},
        {.name = "n-gen",
         .letter = 'n',
         .type = FRIT_OPTION_INT,
         .offset = offsetof(bench_options, n_gen),
         .min = 0,
         .max = 1e7,
         .fallback = "128",
         .metavar = "N",
         .help = "tokens of the generation test; 0: leave it out"},
        {.name = "repetitions",
         .letter = 'r',
         .type = FRIT_OPTION_INT,
         .offset = offsetof(bench_options, n_repeats),
         .min = 1,
         .max = MAX_REPEATS,
         .fallback = "5",
         .metavar = "N",
         .help = "how often each test runs"},
        {.name = "output",
         .letter = 'o',
         .type = FRIT_OPTION_CHOICE,
         .offset = offsetof(bench_options, format),
         .choices = "md|json|csv",
         .fallback = "md",
         .help = "format"},
        {.name = "no-probe",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(bench_options, no_probe),
         .help = "do not measure the machine; shares are left out"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static frit_status run_once(frit_engine *engine, frit_session *session, const frit_token *tokens, const result *test,
                            double *seconds)
{
    frit_status status = frit_session_truncate(session, 0);
    uint64_t start = cli_now_ns();
    size_t n = (size_t)(test->n_prompt + test->n_gen), chunk = test->n_gen > 0 ? 1 : n;
    for (size_t i = 0; i < n && status == FRIT_OK; i += chunk) {
        status = frit_session_push(session, tokens + i, chunk, NULL);
        while (status == FRIT_OK && frit_session_pending(session) > 0) {
            int32_t n_rows;
            status = frit_engine_step(engine, &n_rows);
            if (cli_interrupted)
                return frit_session_truncate(session, 0) == FRIT_OK ? FRIT_E_CANCELLED : FRIT_E_INTERNAL;
        }
    }
    *seconds = (double)(cli_now_ns() - start) * 1e-9;
    return status;
}

static void summarize(result *r, const frit_model_info *model)
{
    double n_tokens = r->n_prompt + r->n_gen, sum_ts = 0, sum_ns = 0, squares_ts = 0, squares_ns = 0;
    for (int i = 0; i < r->n_samples; i++) {
        sum_ts += n_tokens / r->seconds[i];
        sum_ns += r->seconds[i] * 1e9;
    }
    r->mean_ts = sum_ts / r->n_samples;
    r->mean_ns = sum_ns / r->n_samples;
    for (int i = 0; i < r->n_samples; i++) {
        squares_ts += pow(n_tokens / r->seconds[i] - r->mean_ts, 2);
        squares_ns += pow(r->seconds[i] * 1e9 - r->mean_ns, 2);
    }
    if (r->n_samples > 1) {
        r->sd_ts = sqrt(squares_ts / (r->n_samples - 1));
        r->sd_ns = sqrt(squares_ns / (r->n_samples - 1));
    }
    // A generated token reads all weights once; a prompt reads them once for each step of n_batch rows.
    r->gbps = r->n_gen > 0 ? r->mean_ts * (double)model->bytes_per_token * 1e-9 : 0;
    r->tops = r->mean_ts * (double)model->ops_per_token * 1e-12;
}

static frit_status measure(result *r, frit_engine *engine, const report *rep)
{
    size_t n = (size_t)(r->n_prompt + r->n_gen);
    frit_token *tokens = malloc((n + 1) * sizeof *tokens);
    frit_session *session = NULL;
    frit_status status = tokens ? frit_session_new(&session, engine) : FRIT_E_MEMORY;
    uint64_t random = 1;
    for (size_t i = 0; i < n && tokens; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        tokens[i] = (frit_token)((random >> 33) % (uint64_t)rep->model.n_vocab);
    }
    double warm_up;
    if (status == FRIT_OK) status = run_once(engine, session, tokens, r, &warm_up);
    for (r->n_samples = 0; status == FRIT_OK && r->n_samples < rep->args->bench.n_repeats; r->n_samples++) {
        status = run_once(engine, session, tokens, r, &r->seconds[r->n_samples]);
    }
    frit_session_free(session);
    free(tokens);
    if (status == FRIT_OK) summarize(r, &rep->model);
    return status;
}

// "12.3 GB/s (45 %)", or "" where it says nothing.
static void share_text(char out[32], double achieved, double possible, const char *unit)
{
    out[0] = 0;
    if (achieved > 0 && possible > 0) {
        snprintf(out, 32, "%.3g %s (%.0f %%)", achieved, unit, 100 * achieved / possible);
    } else if (achieved > 0) {
        snprintf(out, 32, "%.3g %s", achieved, unit);
    }
}

static void print_md(const report *rep)
{
    char size[32], params[32];
    cli_size_text(rep->model.n_bytes, size);
    cli_count_text(rep->model.n_params, params);
    printf("| model | size | params | backend | threads | test | t/s | memory | arithmetic |\n"
           "| --- | ---: | ---: | --- | ---: | --- | ---: | ---: | ---: |\n");
    for (int i = 0; i < rep->n_results; i++) {
        const result *r = &rep->results[i];
        char memory[32], arithmetic[32];
        share_text(memory, r->gbps, rep->machine.read_gbps, "GB/s");
        share_text(arithmetic, r->tops, rep->machine.int8_tops, "TOPS");
        printf("| %s %s | %s | %s | %s %s | %d | %s | %.2f +- %.2f | %s | %s |\n", rep->model.architecture,
               rep->model.file_type, size, params, rep->engine.backend, rep->engine.isa, rep->engine.n_threads, r->test,
               r->mean_ts, r->sd_ts, memory, arithmetic);
    }
    if (!rep->args->bench.no_probe) {
        printf("\n%s: reads %.1f GB/s, int8 %.2f TOPS (measured, %d threads)\n", rep->machine.cpu_name,
               rep->machine.read_gbps, rep->machine.int8_tops, rep->engine.n_threads);
    }
}

static json_t *result_json(const report *rep, const result *r)
{
    json_t *ns = json_array(), *ts = json_array();
    for (int i = 0; i < r->n_samples; i++) {
        json_array_append_new(ns, json_integer((json_int_t)(r->seconds[i] * 1e9)));
        json_array_append_new(ts, json_real((r->n_prompt + r->n_gen) / r->seconds[i]));
    }
    char type[128];
    snprintf(type, sizeof type, "%s %s", rep->model.architecture, rep->model.file_type);
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I}", "test", r->test, "cpu_info",
                            rep->machine.cpu_name, "backends", rep->engine.backend, "isa", rep->engine.isa,
                            "model_filename", rep->model.path, "model_type", type, "model_size",
                            (json_int_t)rep->model.n_bytes, "model_n_params", (json_int_t)rep->model.n_params);
    json_t *more =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "n_batch",
                  rep->engine.n_batch, "n_threads", rep->engine.n_threads, "n_prompt", r->n_prompt, "n_gen", r->n_gen,
                  "n_depth", 0, "avg_ns", (json_int_t)r->mean_ns, "stddev_ns", (json_int_t)r->sd_ns, "avg_ts",
                  r->mean_ts, "stddev_ts", r->sd_ts, "gbps", r->gbps, "tops", r->tops, "machine_gbps",
                  rep->machine.read_gbps, "machine_tops", rep->machine.int8_tops, "samples_ns", ns, "samples_ts", ts);
    if (row && more) json_object_update(row, more);
    json_decref(more);
    return row;
}

static int print_json(const report *rep)
{
    json_t *list = json_array();
    for (int i = 0; i < rep->n_results; i++) json_array_append_new(list, result_json(rep, &rep->results[i]));
    int code = json_dumpf(list, stdout, JSON_INDENT(2)) == 0 ? CLI_DONE : cli_fail("could not write JSON");
    putchar('\n');
    json_decref(list);
    return code;
}

static void print_csv(const report *rep)
{
    printf(
        "test,model_filename,model_type,model_size,model_n_params,backends,isa,n_threads,n_batch,n_prompt,n_gen,avg_ts,"
        "stddev_ts,gbps,tops,machine_gbps,machine_tops\n");
    for (int i = 0; i < rep->n_results; i++) {
        const result *r = &rep->results[i];
        printf("%s,\"%s\",\"%s %s\",%llu,%lld,%s,%s,%d,%d,%d,%d,%.4f,%.4f,%.4f,%.6f,%.4f,%.6f\n", r->test,
               rep->model.path, rep->model.architecture, rep->model.file_type, (unsigned long long)rep->model.n_bytes,
               (long long)rep->model.n_params, rep->engine.backend, rep->engine.isa, rep->engine.n_threads,
               rep->engine.n_batch, r->n_prompt, r->n_gen, r->mean_ts, r->sd_ts, r->gbps, r->tops,
               rep->machine.read_gbps, rep->machine.int8_tops);
    }
}

static int measure_all(const bench_args *args, frit_model *model, frit_engine *engine, result results[2])
{
    report rep = {.args = args, .results = results};
    frit_model_get_info(model, &rep.model);
    frit_engine_get_info(engine, &rep.engine);
    frit_status status = frit_machine_probe(&rep.machine, args->bench.no_probe ? 0 : rep.engine.n_threads);
    if (args->bench.n_prompt > 0) {
        result *r = &results[rep.n_results++];
        *r = (result){.n_prompt = args->bench.n_prompt};
        snprintf(r->test, sizeof r->test, "pp%d", r->n_prompt);
    }
    if (args->bench.n_gen > 0) {
        result *r = &results[rep.n_results++];
        *r = (result){.n_gen = args->bench.n_gen};
        snprintf(r->test, sizeof r->test, "tg%d", r->n_gen);
    }
    for (int i = 0; i < rep.n_results && status == FRIT_OK; i++) status = measure(&results[i], engine, &rep);
    if (status == FRIT_E_CANCELLED) return CLI_INTERRUPTED;
    if (status != FRIT_OK) return cli_report(status);
    if (strcmp(args->bench.format, "json") == 0) return print_json(&rep);
    if (strcmp(args->bench.format, "csv") == 0) {
        print_csv(&rep);
    } else {
        print_md(&rep);
    }
    return CLI_DONE;
}

static int run(void *ctx)
{
    bench_args *args = ctx;
    int32_t longest = args->bench.n_prompt > args->bench.n_gen ? args->bench.n_prompt : args->bench.n_gen;
    if (longest == 0) return cli_usage("bench: -p 0 -n 0 leaves nothing to measure");
    if (args->engine.n_ctx == 0) args->engine.n_ctx = longest;
    if (args->engine.n_ctx < longest)
        return cli_usage("bench: -c %d is less than a test of %d tokens", args->engine.n_ctx, longest);
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    result *results = calloc(2, sizeof *results);
    const char *path = args->common.n_positional > 0 ? args->common.positional[0] : NULL;
    int code = results ? cli_open_model(&model, &args->common, &args->model, path) : CLI_NO_MEMORY;
    if (code == CLI_DONE) code = cli_open_engine(&engine, model, &args->engine);
    if (code == CLI_DONE) code = measure_all(args, model, engine, results);
    frit_engine_free(engine);
    frit_model_free(model);
    free(results);
    return code;
}

static const cli_group groups[] = {
    {"Tests", bench_rows, offsetof(bench_args, bench)},
    {"Engine", frit_engine_option_rows, offsetof(bench_args, engine)},
    {"Model", frit_model_option_rows, offsetof(bench_args, model)},
    {"General", cli_common_rows, offsetof(bench_args, common)},
};

const cli_command cli_command_bench = {
    .name = "bench",
    .usage = "[MODEL] [options]",
    .summary = "measure how fast a model runs",
    .details = "pp: tokens/s of a prompt; tg: tokens/s of generation; each with the share of what a probe measures on\n"
               "this machine in the same run.\n"
               "\n"
               "  frit bench model.gguf -p 512 -n 128 -r 5 -o json",
    .max_positional = 1,
    .args_bytes = sizeof(bench_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
