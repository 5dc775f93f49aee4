// SPDX-License-Identifier: MIT
// frit bench: the speed of models, compared with the memory and arithmetic speed of the machine.
//
// pp rows run a prompt of random tokens at once; tg rows run one token per step and sequence. A probe measures memory
// and arithmetic speed in the same run, so every figure is also given as a part of the machine's speed.
#include "frit/bench/bench.h"

#include <stdlib.h>
#include <string.h>

#define BENCH(field, ...)                                     \
    {                                                         \
        .offset = offsetof(bench_options, field), __VA_ARGS__ \
    }

// clang-format off
static const frit_option rows[] = {
    BENCH(n_prompt, .name = "n-prompt", .letter = 'p', .type = FRIT_OPTION_TEXT, .fallback = "512", .metavar = "LIST",
          .help = "tokens of prompt tests; 0: none"),
    BENCH(n_gen, .name = "n-gen", .letter = 'n', .type = FRIT_OPTION_TEXT, .fallback = "128", .metavar = "LIST",
          .help = "tokens of generation tests; 0: none"),
    BENCH(pairs, .name = "prompt-gen", .letters = "pg", .type = FRIT_OPTION_LIST, .metavar = "P,N",
          .help = "a test of a prompt and the generation after it; any number of times"),
    BENCH(n_parallel, .name = "parallel", .letters = "npl", .type = FRIT_OPTION_TEXT, .fallback = "1",
          .metavar = "LIST", .help = "sequences that generate together, one row of each step for each"),
    BENCH(n_depth, .name = "n-depth", .letter = 'd', .type = FRIT_OPTION_TEXT, .fallback = "0", .metavar = "LIST",
          .help = "tokens in the cache before the test, not counted"),
    BENCH(n_batch, .name = "batch", .letter = 'b', .aliases = "batch-size", .type = FRIT_OPTION_TEXT, .fallback = "2048",
          .metavar = "LIST",
          .help = "prompt tokens handed over at once"),
    BENCH(n_ubatch, .name = "ubatch", .letters = "ub", .aliases = "ubatch-size", .type = FRIT_OPTION_TEXT, .fallback = "0",
          .metavar = "LIST",
          .help = "tokens that one step runs at most; 0: 512, on GPUs with much memory 2048"),
    BENCH(type_k, .name = "cache-type-k", .letters = "ctk", .type = FRIT_OPTION_TEXT, .metavar = "LIST",
          .help = "types of cached keys"),
    BENCH(type_v, .name = "cache-type-v", .letters = "ctv", .type = FRIT_OPTION_TEXT, .metavar = "LIST",
          .help = "types of cached values"),
    BENCH(n_threads, .name = "threads", .letter = 't', .type = FRIT_OPTION_TEXT, .fallback = "0", .metavar = "LIST",
          .help = "threads; 0: one for each core that this process may use"),
    BENCH(n_repeats, .name = "repetitions", .letter = 'r', .type = FRIT_OPTION_INT, .min = 1,
          .max = BENCH_MAX_REPEATS, .fallback = "5", .metavar = "N", .help = "how often each test runs"),
    BENCH(format, .name = "output", .letter = 'o', .type = FRIT_OPTION_CHOICE, .choices = bench_printer_names,
          .fallback = "md", .help = "form of the results: md, json, jsonl or csv"),
    BENCH(profile, .name = "profile", .type = FRIT_OPTION_FLAG,
          .help = "also show where the time of each test's steps goes (md only)"),
    BENCH(no_probe, .name = "no-probe", .type = FRIT_OPTION_FLAG,
          .help = "do not measure the machine; shares are left out"),
};

static const frit_option random_options[] = {
    BENCH(shape, .name = "random", .type = FRIT_OPTION_TEXT, .metavar = "SHAPE",
          .help = "a model of this shape with random weights, in the type that --type names (q4_k_m)"),
    BENCH(n_layers, .name = "layers", .type = FRIT_OPTION_INT, .min = 0, .max = 65536, .fallback = "0",
          .metavar = "N", .help = "with --random: only the first N layers; 0: all"),
    BENCH(save, .name = "save", .type = FRIT_OPTION_TEXT, .metavar = "FILE",
          .help = "with --random: write the model to FILE as GGUF, which other engines read too, and measure the file"),
};
// clang-format on

static const frit_option *bench_rows(size_t *n_rows)
{
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static const frit_option *random_rows(size_t *n_rows)
{
    *n_rows = CLI_COUNT(random_options);
    return random_options;
}

// The engine's options, except those that are lists in this command.
static const frit_option *engine_rows(size_t *n_rows)
{
    static frit_option left[64];
    size_t n_all, n = 0;
    const frit_option *all = frit_engine_option_rows(&n_all);
    for (size_t i = 0; i < n_all && n < CLI_COUNT(left); i++) {
        bool is_list = false;
        for (size_t j = 0; j < CLI_COUNT(rows); j++) is_list = is_list || strcmp(rows[j].name, all[i].name) == 0;
        if (!is_list) left[n++] = all[i];
    }
    *n_rows = n;
    return left;
}

// ---------------------------------------------------------------------------------------- running

typedef struct bench {
    const bench_args *args;
    bench_plan plan;
    frit_model *models[CLI_MAX_POSITIONAL];
    frit_model_info infos[CLI_MAX_POSITIONAL];
    size_t n_models;
    bench_run run;
    frit_machine machine;   // as probed with the threads of the previous engine
    int32_t probed_threads;
} bench;

static bool same_setup(const bench_setup *a, const bench_setup *b)
{
    return a->model == b->model && a->n_threads == b->n_threads && a->n_ubatch == b->n_ubatch &&
           a->type_k == b->type_k && a->type_v == b->type_v;
}

static int open_engine(bench *b, const bench_setup *setup)
{
    frit_engine_options options = b->args->engine;
    bench_run_free(&b->run);
    b->run.model = b->models[setup->model];
    options.n_ctx = setup->n_ctx;
    options.n_sessions = setup->n_sessions;
    options.n_threads = setup->n_threads;
    options.n_batch = setup->n_ubatch;
    options.cache_type_k = setup->type_k;
    options.cache_type_v = setup->type_v;
    options.no_prefix_cache = true;   // prompts are repeated
    int code = cli_open_adapters(&b->run.adapters, b->models[setup->model], &b->args->common, &b->args->adapters);
    if (code == CLI_DONE) code = cli_open_engine(&b->run.engine, &b->args->common, b->models[setup->model], &options);
    if (code != CLI_DONE || b->args->bench.no_probe) return code;
    frit_engine_info info;
    frit_engine_get_info(b->run.engine, &info);
    if (info.n_threads == b->probed_threads) return CLI_DONE;
    b->probed_threads = info.n_threads;
    return cli_probe(&b->args->common, &b->machine, info.n_threads);
}

static int show_profile(bench *b, const bench_row *row)
{
    int64_t n_steps;
    double seconds;
    frit_status status = bench_count(&b->run, row, &n_steps, &seconds);
    cli_progress_end(&b->run.progress);
    if (status == FRIT_OK) bench_profile_print(&b->run, row, n_steps, seconds);
    if (status == FRIT_OK) status = frit_engine_profile(b->run.engine, false);
    return status == FRIT_OK ? CLI_DONE : status == FRIT_E_CANCELLED ? CLI_INTERRUPTED : cli_report(status);
}

static int run_row(bench *b, bench_row *row, const bench_printer *printer)
{
    char name[64];
    bench_test_name(&row->test, name);
    frit_engine_get_info(b->run.engine, &row->engine);
    row->machine = b->machine;
    cli_progress_start(&b->run.progress, &b->args->common, name);
    frit_status status = bench_measure(&b->run, row);
    cli_progress_end(&b->run.progress);
    if (row->n_samples > 0) printer->row(&b->plan, row);
    if (status == FRIT_E_CANCELLED) return CLI_INTERRUPTED;
    if (status != FRIT_OK) return cli_report(status);
    return b->plan.profile ? show_profile(b, row) : CLI_DONE;
}

static int run_rows(bench *b)
{
    const bench_printer *printer = bench_printer_find(b->args->bench.format);
    bench_plan *plan = &b->plan;
    int code = CLI_DONE;
    for (int i = 0; i < plan->n; i++) plan->rows[i].model = &b->infos[plan->rows[i].setup.model];
    b->run = (bench_run){.args = b->args, .n_rows = plan->n * b->args->bench.n_repeats};
    printer->begin(plan);
    for (int i = 0; i < plan->n && code == CLI_DONE; i++) {
        bench_row *row = &plan->rows[i];
        if (i == 0 || !same_setup(&row->setup, &row[-1].setup)) code = open_engine(b, &row->setup);
        if (code == CLI_DONE) code = run_row(b, row, printer);
    }
    printer->end(plan);
    bench_run_free(&b->run);
    return code;
}

static int check_random(const bench_args *args)
{
    const bench_options *o = &args->bench;
    if (o->shape && (args->common.n_positional > 0 || args->common.model))
        return cli_usage("bench: --random makes a model, so none can be named beside it");
    if (!o->shape && (o->save || o->n_layers > 0))
        return cli_usage("bench: --%s is an option of --random; give --random SHAPE too", o->save ? "save" : "layers");
    return CLI_DONE;
}

static int open_random(frit_model **model, const bench_args *args)
{
    frit_random_options random = {
        .shape = args->bench.shape, .type = args->model.type, .n_layers = args->bench.n_layers};
    const frit_model_options options = {.log = cli_log, .log_ctx = (void *)&args->common};
    frit_status status;
    if (args->bench.save && cli_check_writable(args->bench.save) != CLI_DONE) return CLI_FAILED;
    if (args->bench.save) {
        cli_progress progress;
        cli_progress_start(&progress, &args->common, "writing");
        random.progress = cli_progress_step;
        random.progress_ctx = &progress;
        status = frit_random_write(args->bench.save, &random);
        cli_progress_end(&progress);
        if (status == FRIT_OK) status = frit_model_open(model, args->bench.save, &options);
    } else {
        status = frit_model_open_random(model, &random, &options);
    }
    if (status == FRIT_E_INVALID) return cli_usage("bench: %s", frit_error());
    if (status != FRIT_OK) return cli_report(status);
    return CLI_DONE;
}

int bench_open_model(frit_model **model, const bench_args *args, size_t i)
{
    const cli_common *common = &args->common;
    const char *path = common->n_positional > 0 ? common->positional[i] : NULL;
    const int code = check_random(args);
    if (code != CLI_DONE) return code;
    return args->bench.shape ? open_random(model, args) : cli_open_model(model, common, &args->model, path);
}

static int open_models(bench *b)
{
    int code = CLI_DONE;
    for (size_t i = 0; i < b->n_models && code == CLI_DONE; i++) {
        code = bench_open_model(&b->models[i], b->args, i);
        if (code == CLI_DONE) frit_model_get_info(b->models[i], &b->infos[i]);
    }
    return code;
}

static int run(void *ctx)
{
    bench_args *args = ctx;
    if (args->load.n_requests > 0) return load_run(args);
    if (load_check_unused(args) != CLI_DONE) return CLI_USAGE;
    if (args->load.json) args->bench.format = "json";
    bench *b = calloc(1, sizeof *b);
    if (!b) return cli_no_memory();
    b->args = args;
    b->n_models = args->common.n_positional > 0 ? (size_t)args->common.n_positional : 1;
    b->plan.profile = args->bench.profile && strcmp(args->bench.format, "md") == 0;
    int code = bench_plan_make(&b->plan, args, b->n_models);
    if (code == CLI_DONE) code = open_models(b);
    frit_status status = code == CLI_DONE ? frit_machine_probe(&b->machine, 0) : FRIT_OK;   // reads only names
    if (status != FRIT_OK) code = cli_report(status);
    if (code == CLI_DONE) code = run_rows(b);
    for (size_t i = 0; i < b->n_models; i++) frit_model_free(b->models[i]);
    bench_plan_free(&b->plan);
    free(b);
    return code;
}

static const cli_group groups[] = {
    {"Tests", bench_rows, offsetof(bench_args, bench)},
    {"Random models", random_rows, offsetof(bench_args, bench)},
    {"Requests", load_rows, offsetof(bench_args, load)},
    {"Grammars of the answers to requests", cli_grammar_rows, offsetof(bench_args, grammar)},
    {"Adapters", cli_adapter_rows, offsetof(bench_args, adapters)},
    {"Engine", engine_rows, offsetof(bench_args, engine)},
    {"Model", frit_model_option_rows, offsetof(bench_args, model)},
    {"General", cli_common_rows, offsetof(bench_args, common)},
};

const cli_command cli_command_bench = {
    .name = "bench",
    .usage = "[MODEL...] [options]",
    .summary = "measure how fast models run",
    .usual = "n-prompt n-gen parallel n-depth batch threads repetitions output profile random layers requests in "
             "out concurrency rate url gpu-layers cpu type model hf-repo quiet",
    .details =
        "pp: tokens/s of a prompt; tg: tokens/s of generation, in all sequences; each with the share of what a\n"
        "probe measures on this machine in the same run. A LIST is numbers and ranges with commas between them:\n"
        "512, 128,512, 1-8, 0-8192+2048 (by adding), 1-16*2 (by multiplying); every combination is measured.\n"
        "\n"
        "  frit bench model.gguf                          pp512 and tg128, five times each\n"
        "  frit bench model.gguf -p 0 -d 0,1024-8192*2    generation after longer and longer contexts\n"
        "  frit bench model.gguf -p 0 -n 64 -npl 1,2,4,8  sequences that share each step\n"
        "  frit bench --url http://127.0.0.1:8080 --requests 256\n"
        "  frit bench --url http://127.0.0.1:8080 --requests 256 --json-schema schema.json\n"
        "  frit bench a.gguf b.gguf -t 1-8 -o csv         two models, each with one to eight threads\n"
        "  frit bench model.gguf --profile                where the time goes\n"
        "  frit bench --random llama-8b                   untrained weights run as fast as trained ones\n"
        "  frit bench --random qwen3-30b-a3b --layers 8 --save a.gguf\n"
        "\n"
        "--requests measures whole requests: by an engine in this process, or with --url by any server that has\n"
        "/v1/completions, with the same requests.\n"
        "\n"
        "  frit bench model.gguf --requests 256 --in 256 --out 256 --concurrency 8,64\n"
        "  frit bench --url http://127.0.0.1:8080 --requests 256 --in 256 --out 256 --concurrency 8,64\n"
        "\n"
        "Shapes: llama-1b, llama-3b, llama-8b, llama-70b, qwen3-0.6b, qwen3-30b-a3b, deepseek-v2-lite, "
        "qwen3-next-80b-a3b, "
        "mamba2-2.7b.",
    .max_positional = CLI_MAX_POSITIONAL,
    .args_bytes = sizeof(bench_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
