// SPDX-License-Identifier: MIT
// frit/bench/bench.h: the parts of frit bench: choosing tests (bench_sweep.c), measuring (bench_run.c), printing
// figures (bench_print.c) and times by op (bench_profile.c). load.h has workloads of many requests.
//
// Options contain lists. All combinations are expanded to rows before anything runs, so that the widths of the table's
// columns are known. Rows are printed as they are measured.
#pragma once
#include "frit/cli/cli.h"

enum { BENCH_MAX_LIST = 256, BENCH_MAX_REPEATS = 1000, BENCH_MAX_ROWS = 1 << 16 };

// ---------------------------------------------------------------------------------------- what to measure

typedef struct bench_options {
    const char *n_prompt, *n_gen, *n_depth, *n_batch, *n_ubatch, *n_threads, *n_parallel, *type_k, *type_v;   // lists
    frit_option_list pairs;   // "P,N" each
    int32_t n_repeats;
    const char *format;
    bool no_probe, profile;
    const char *shape, *save;   // of a model with random weights, and the file to store it in
    int32_t n_layers;
} bench_options;

typedef struct load_options {   // of workloads (load.h)
    int32_t n_requests, n_in, n_out, n_shared, n_warmup, n_rounds, n_vocab, silence_s;
    float rate, structured;    // structured: share of requests with a grammar
    const char *concurrency;   // a list
    uint64_t seed;
    const char *url, *api_key, *body;   // url NULL: an engine in this process
    bool json, text;
} load_options;

typedef struct bench_args {
    cli_common common;
    bench_options bench;
    load_options load;
    cli_grammar_options grammar;   // of answers of workloads
    cli_adapter_options adapters;
    frit_engine_options engine;   // for options that are not lists
    frit_model_options model;
} bench_args;

typedef struct bench_list {
    int32_t values[BENCH_MAX_LIST];
    int n;
} bench_list;

// Parses "512", "128,512", "1-8", "0-8192+2048", "1-16*2" and lists of them with commas. Returns CLI_USAGE after
// printing an error.
int bench_list_parse(bench_list *list, const char *option, const char *text, int32_t min, int32_t max);

typedef struct bench_test {
    int32_t n_prompt, n_gen;   // tokens run at once, then one by one
    int32_t n_depth;           // tokens in the cache before, not counted
    int32_t n_parallel;        // sequences that advance together
    int32_t n_batch;           // prompt tokens queued at once
} bench_test;

// Writes "pp512", "tg128 x 4 @ d2048" or "pp512+tg128".
void bench_test_name(const bench_test *test, char out[64]);
int64_t bench_test_tokens(const bench_test *test);   // counted tokens in all sequences

typedef struct bench_setup {   // an engine is made for each different setup
    size_t model;              // index
    int32_t n_threads, n_ubatch, n_ctx, n_sessions;
    const char *type_k, *type_v;   // NULL: the engine's choice
} bench_setup;

typedef struct bench_row {
    bench_setup setup;
    bench_test test;
    // Results:
    const frit_model_info *model;
    frit_engine_info engine;
    frit_machine machine;
    double *seconds;   // [n_samples]
    int n_samples;
    double n_bytes, n_ops;   // of one token, as the backend counts them
} bench_row;

// The setup of options whose lists have one value each; n_sessions: of --parallel, 0 if it is not given. Returns an
// exit code after printing any error.
int bench_single_setup(bench_setup *setup, const bench_args *args);
// Opens the i-th model that is named, or makes the one of --random. Returns an exit code after printing any error.
int bench_open_model(frit_model **model, const bench_args *args, size_t i);

typedef struct bench_plan {
    bench_row *rows;
    int n, capacity;
    char *types;    // storage of type_k and type_v of the rows
    bool profile;   // a table of times by op follows each row
} bench_plan;

int bench_plan_make(bench_plan *plan, const bench_args *args, size_t n_models);
void bench_plan_free(bench_plan *plan);

// ---------------------------------------------------------------------------------------- measuring

typedef struct bench_run {
    const bench_args *args;
    cli_progress progress;
    int n_done, n_rows;   // for the progress
    frit_model *model;
    frit_engine *engine;
    frit_session **sessions;   // [n_parallel] of the test
    cli_adapters adapters;     // of the engine's model
    int32_t n_parallel;
    frit_token *tokens;          // random ones, for the longest test
    frit_sampler *sampler;       // greedy; NULL: the model has no logits
    bool encodes;                // the model has no logits
    frit_profile_row *profile;   // of the last counted run
    size_t n_profile;
} bench_run;

// Runs the row's test: once to warm up and count, then the requested number of times. With FRIT_E_CANCELLED the row has
// the finished samples.
frit_status bench_measure(bench_run *run, bench_row *row);
// Runs the test once more with the profile on, which counts bytes and operations. *n_steps and *seconds belong to the
// counted part.
frit_status bench_count(bench_run *run, const bench_row *row, int64_t *n_steps, double *seconds);
void bench_run_free(bench_run *run);

// ---------------------------------------------------------------------------------------- printing

typedef struct bench_figures {
    double mean_ts, sd_ts, median_ts, min_ts, max_ts, mean_ns, sd_ns;
    double gbps, tops;   // achieved
} bench_figures;
bench_figures bench_figures_of(const bench_row *row);

typedef struct bench_printer {
    const char *name;
    void (*begin)(const bench_plan *plan);   // the models' infos are known, nothing is measured yet
    void (*row)(const bench_plan *plan, const bench_row *row);
    void (*end)(const bench_plan *plan);
} bench_printer;
const bench_printer *bench_printer_find(const char *name);   // md, json, jsonl, csv
extern const char bench_printer_names[];                     // "md|json|jsonl|csv"

// A column of a table that is aligned and valid Markdown.
typedef struct bench_column {
    const char *title;
    int width;   // minimum; titles and cells may widen it before printing
    bool left;
} bench_column;
void bench_table_widen(bench_column *column, const char *text);
void bench_table_head(bench_column *columns, size_t n);
void bench_table_cell(const bench_column *column, const char *text);   // "| text "
void bench_table_end_row(void);

// Prints the times by op of one step of the test.
void bench_profile_print(const bench_run *run, const bench_row *row, int64_t n_steps, double seconds);

// ---------------------------------------------------------------------------------------- workloads

const frit_option *load_rows(size_t *n_rows);
int load_check_unused(const bench_args *args);   // refuses options of workloads where none is asked for
int load_run(const bench_args *args);            // returns an exit code after printing any error
