// SPDX-License-Identifier: MIT
// frit serve: models over HTTP, for OpenAI's clients.
#include "frit/cli/cli.h"

#ifdef FRIT_HAVE_SERVER
#include "frit/serve.h"

#include "server/ops/notify.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct opened_model {
    cli_adapters adapters;
    cli_drafter drafter;
    frit_model *model;
    frit_engine *engine;
    frit_turn_grammar_options format;   // of answers; format is owned
    uint64_t n_promised, *promised;
} opened_model;

// ---------------------------------------------------------------------------------------- loading

static void close_opened(opened_model *opened)
{
    cli_free_adapters(&opened->adapters);
    cli_drafter_free(&opened->drafter);
    if (opened->promised) *opened->promised -= opened->n_promised;
    frit_engine_free(opened->engine);
    frit_model_free(opened->model);
    free((void *)opened->format.format);
    free(opened);
}

static int open_parts(const served_model *served, opened_model *opened, server_loaded *out)
{
    const serve_args *args = &served->args;
    frit_engine_options engine = args->engine;
    engine.n_sessions = args->server.parallel;
    int code = cli_open_model(&opened->model, &args->common, &args->model, served->path);
    if (code == CLI_DONE) code = cli_read_format(&opened->format, opened->model, &args->grammar);
    // Adapters come first, because the engine then checks the free memory.
    if (code == CLI_DONE) code = cli_open_adapters(&opened->adapters, opened->model, &args->common, &args->adapters);
    opened->promised = served->promised;
    if (code == CLI_DONE && served->promised)
        code = serve_take_memory(served->promised, &opened->n_promised, opened->model, &engine);
    if (code == CLI_DONE) code = cli_open_engine(&opened->engine, &args->common, opened->model, &engine);
    if (code == CLI_DONE)
        code = cli_open_drafter(&opened->drafter, &args->speculate, opened->model, &args->common, &engine,
                                &out->worker.speculate);
    if (code == CLI_DONE) code = cli_prepare_engine(opened->engine, &args->common);
    if (code == CLI_DONE && opened->drafter.engine) code = cli_prepare_engine(opened->drafter.engine, &args->common);
    return code;
}

static server_format format_of(const opened_model *opened)
{
    static const char *const options[] = {[FRIT_GRAMMAR_GBNF] = "--grammar",
                                          [FRIT_GRAMMAR_SCHEMA] = "--json-schema",
                                          [FRIT_GRAMMAR_REGEX] = "--regex",
                                          [FRIT_GRAMMAR_TAGS] = "--structural-tag"};
    const frit_turn_grammar_options *format = &opened->format;
    return (server_format){format->format, format->n_format, format->kind, options[format->kind], format->open_objects};
}

// Returns an exit code after printing any error.
static int open_served(const served_model *served, server_loaded *out)
{
    const serve_args *args = &served->args;
    opened_model *opened = calloc(1, sizeof *opened);
    if (!opened) return cli_no_memory();
    const int code = open_parts(served, opened, out);
    if (code != CLI_DONE) {
        close_opened(opened);
        return code;
    }
    out->model = opened->model;
    out->engine = opened->engine;
    out->sampling = args->sampler;
    cli_recommend(&args->common, opened->model, &out->sampling);
    out->format = format_of(opened);
    out->adapters = (server_adapters){opened->adapters.items, opened->adapters.scales, opened->adapters.n};
    out->image_tokens = (uint32_t)args->server.image_tokens;
    out->media_cache = (uint64_t)args->server.media_cache_mib << 20;
    out->worker.n_sessions = args->server.parallel;
    out->worker.max_waiting = args->server.max_queue;
    out->worker.shift = args->shift;
    out->worker.keeps_texts = args->server.slot_folder != NULL;
    out->owned = opened;
    return CLI_DONE;
}

static server_opened open_source(const server_source *source, server_loaded *out, char sentence[SERVER_MAX_SENTENCE])
{
    const served_model *served = source->ctx;
    cli_note(&served->args.common, "loading %s", served->path);
    const int code = open_served(served, out);
    if (code == CLI_DONE) return SERVER_OPENED;
    snprintf(sentence, SERVER_MAX_SENTENCE, "%.*s", SERVER_MAX_SENTENCE - 1, cli_last_failure());
    return code == CLI_NO_MEMORY ? SERVER_OPEN_NO_MEMORY : SERVER_OPEN_FAILED;
}

static void close_source(const server_source *source, server_loaded *loaded)
{
    (void)source;
    close_opened(loaded->owned);
}

// ---------------------------------------------------------------------------------------- which models

// Splits "name=path", unless a file has this whole name, or a '/' comes before the '='.
static bool name_model(served_model *served, const char *text)
{
    const size_t n = strcspn(text, "=/");
    served->path = text;
    if (text[n] != '=' || cli_path_kind(text) != CLI_PATH_NONE) return true;
    served->path = text + n + 1;
    served->name = strndup(text, n);
    return served->name != NULL;
}

static int add_model(served_model *served, const serve_args *args, const char *text)
{
    served->args = *args;
    served->args.common.model = NULL;
    return name_model(served, text) ? CLI_DONE : cli_no_memory();
}

// Finds the path of a model that was given by name, which becomes its name.
static int find_named(served_model *served)
{
    const int code = cli_find_model(&served->args.common, served->path, &served->found);
    if (code != CLI_DONE || strcmp(served->found, served->path) == 0) return code;
    if (!served->name) served->name = strdup(served->path);
    served->path = served->found;
    return served->name ? CLI_DONE : cli_no_memory();
}

// Lists the models of the command line, then those of the config file; the bundled model if there are none.
static int list_models(const serve_config *config, const serve_args *args, served_model *models, size_t *n)
{
    const cli_common *common = &args->common, *typed = &config->typed;
    int code = CLI_DONE;
    if (typed->model && common->n_positional > 0)
        return cli_usage("the model is named twice: '%s' and -m %s", common->positional[0], typed->model);
    for (int i = 0; i < common->n_positional && code == CLI_DONE; i++)
        code = add_model(&models[(*n)++], args, common->positional[i]);
    const bool is_bundled = !common->model && serve_count_sections(config) == 0;
    if (common->n_positional == 0 && (common->model || is_bundled)) {
        models[*n] = (served_model){.path = is_bundled ? cli_bundled_model() : common->model, .args = *args};
        models[(*n)++].args.common.model = NULL;
    }
    if (code == CLI_DONE) code = serve_take_sections(config, args, models, n);
    if (code == CLI_DONE && args->server.aliases.n > 0 && *n > 1)
        return cli_usage("--alias names one model, and there are %zu: NAME=PATH names each", *n);
    for (size_t i = 0; i < *n && code == CLI_DONE; i++) {
        code = find_named(&models[i]);
        if (code == CLI_DONE && cli_path_kind(models[i].path) == CLI_PATH_NONE && *n > 1) {
            cli_fail("serve: '%s' does not exist", models[i].path);
            code = CLI_BAD_MODEL;
        }
        if (code == CLI_DONE) code = cli_check_shift(&models[i].args.shift);
    }
    return code;
}

// ---------------------------------------------------------------------------------------- the life of a server

// Sleeps until a signal arrives or the time is over. A signal just before the sleep is seen at its end, so the time is
// short.
static void nap(int milliseconds)
{
    poll(NULL, 0, milliseconds);
}

static volatile sig_atomic_t hung_up;

static void on_hangup(int number)
{
    (void)number;
    hung_up = 1;
}

// Handles SIGHUP, which does not end a server, unlike other commands.
static void catch_hangup(void)
{
    const struct sigaction action = {.sa_handler = on_hangup};
    sigaction(SIGHUP, &action, NULL);
}

static void reload(app_server *server)
{
    char said[1024];
    hung_up = 0;
    server_notify_reloading();
    server_reload(server, said, sizeof said);
    cli_announce("SIGHUP: %s", said);
    server_notify("READY=1");
}

static bool is_busy(app_server *server)
{
    return !server_is_quiet(server) || server_is_loading(server);
}

// The first signal lets answers finish until the deadline; the second one ends them.
static void end_gently(const cli_common *common, app_server *server, int drain_s)
{
    uint64_t deadline = cli_now_ns() + (uint64_t)drain_s * 1000000000u;
    server_notify("STOPPING=1\nSTATUS=finishing what was begun");
    server_drain(server);
    if (is_busy(server)) cli_note(common, "finishing what was begun, for %d s at most", drain_s);
    while (is_busy(server) && cli_now_ns() < deadline && cli_interrupted < 2) nap(20);
    server_cut(server);
    for (int i = 0; i < 50 && !server_is_quiet(server); i++) nap(20);   // waits until the last bytes are sent
    if (!server_is_loading(server)) return;
    cli_note(common, "ended without the model that was being loaded");
    _exit(CLI_DONE);   // the disk may not answer for hours
}

static void say_ready(const app_server *server, size_t n_models, int32_t parallel, int32_t n_ctx)
{
    char others[48] = "";
    if (n_models > 1) snprintf(others, sizeof others, " and %zu more", n_models - 1);
    cli_announce("serving %s%s at %s (%d x %d tokens)", server_model_name(server), others, server_url(server), parallel,
                 n_ctx);
}

static int serve(const serve_args *args, const server_source *sources, size_t n, const server_loaded *first)
{
    const server_config config = {.options = args->server, .sources = sources, .n_sources = n, .first = first};
    server_problem problem;
    app_server *server = NULL;
    sigset_t signals, before;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    catch_hangup();
    sigprocmask(SIG_BLOCK, &signals, &before);   // signals go to this thread, not to the server's threads
    frit_engine_info info;
    frit_engine_get_info(first->engine, &info);   // afterwards only the engine's own thread may use the engine
    const int32_t parallel = first->worker.n_sessions;
    bool open = server_open(&server, &config, &problem);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (!open)
        return problem.status == 400 ? cli_usage("serve: %s", problem.message) : cli_fail("serve: %s", problem.message);
    say_ready(server, n, parallel, info.n_ctx);
    server_notify("READY=1\nSTATUS=serving %.200s at %s", server_model_name(server), server_url(server));
    while (!cli_interrupted) {
        nap(200);
        if (hung_up) reload(server);
    }
    end_gently(&args->common, server, args->server.drain_s);
    server_close(server);
    return CLI_DONE;
}

static int serve_models(const serve_args *args, served_model *models, size_t n)
{
    server_loaded first = {0};
    uint64_t promised = 0;
    server_source *sources = calloc(n, sizeof *sources);
    if (!sources) return cli_no_memory();
    for (size_t i = 0; i < n && n > 1; i++) models[i].promised = &promised;
    for (size_t i = 0; i < n; i++)
        sources[i] = (server_source){.name = models[i].name,
                                     .path = models[i].path,
                                     .aliases = models[i].args.server.aliases,
                                     .open = open_source,
                                     .close = close_source,
                                     .ctx = &models[i]};
    int code = CLI_DONE;
    for (size_t i = 0; i < n && code == CLI_DONE; i++)
        code = cli_check_target(args->server.access_log, &sources[i].path, 1);
    if (code == CLI_DONE) code = open_served(&models[0], &first);
    if (code == CLI_DONE) code = serve(args, sources, n, &first);
    free(sources);
    return code;
}

static int run(void *ctx)
{
    serve_args *args = ctx;
    serve_config config;
    served_model *models = NULL;
    size_t n = 0;
    int code = serve_read_config(&config, args);
    if (code == CLI_DONE) {
        models = calloc((size_t)args->common.n_positional + 1 + serve_count_sections(&config), sizeof *models);
        code = models ? list_models(&config, args, models, &n) : cli_no_memory();
    }
    if (code == CLI_DONE) code = serve_models(args, models, n);
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < models[i].parse.n_owned; k++) free(models[i].parse.owned[k]);
        free(models[i].name);
        free(models[i].found);
    }
    free(models);
    serve_config_free(&config);
    return code;
}

static const frit_option *config_rows(size_t *n_rows)
{
    static const frit_option row = {.name = "config",
                                    .type = FRIT_OPTION_TEXT,
                                    .metavar = "FILE",
                                    .help = "options as lines 'name = value', and models as sections [NAME] with "
                                            "their path and options"};
    *n_rows = 1;
    return &row;
}

#else

typedef struct serve_args {
    cli_common common;
    frit_sampler_options sampler;
    cli_grammar_options grammar;
    cli_speculate_options speculate;
    app_shift_options shift;
    cli_adapter_options adapters;
    frit_engine_options engine;
    frit_model_options model;
} serve_args;

static int run(void *ctx)
{
    (void)ctx;
    return cli_fail("serve: this build has no server; install libmicrohttpd's development files and build again");
}

#endif

static const cli_group groups[] = {
#ifdef FRIT_HAVE_SERVER
    {"Configuration", config_rows, offsetof(serve_args, config)},
    {"Server", server_option_rows, offsetof(serve_args, server)},
#endif
    {"Sampling, where a request says nothing else", frit_sampler_option_rows, offsetof(serve_args, sampler)},
    {"Constrained answers, where a request says nothing else", cli_grammar_rows, offsetof(serve_args, grammar)},
    {"Speculation", cli_speculate_rows, offsetof(serve_args, speculate)},
    {"Long answers", cli_shift_rows, offsetof(serve_args, shift)},
    {"Adapters", cli_adapter_rows, offsetof(serve_args, adapters)},
    {"Engine", frit_engine_option_rows, offsetof(serve_args, engine)},
    {"Model", frit_model_option_rows, offsetof(serve_args, model)},
    {"General", cli_common_rows, offsetof(serve_args, common)},
};

const cli_command cli_command_serve = {
    .name = "serve",
    .usage = "[MODEL|NAME=MODEL ...] [options]",
    .summary = "answer OpenAI's clients over HTTP",
    .usual = "config host port api-key api-key-file tls-cert tls-key parallel alias max-models idle-unload access-log "
             "temp lora model-draft ctx threads gpu-layers type model hf-repo quiet",
    .details =
        "Listens on http://127.0.0.1:8080 and says so on stderr once requests are answered. SIGTERM and Ctrl-C let\n"
        "answers finish, a second one does not. docs/requests.md lists routes and fields.\n"
        "\n"
        "Of several models the first is loaded at the start, the others when a request names them. --config reads\n"
        "options and models from a file; the command line goes before it.\n"
        "\n"
        "  frit serve model.gguf --port 9000 --parallel 8\n"
        "  frit serve small.gguf coder=qwen-coder.gguf --max-models 1 --idle-unload 600\n"
        "  curl http://127.0.0.1:8080/v1/chat/completions -d '{\"messages\":\n"
        "      [{\"role\": \"user\", \"content\": \"Tell me the tale of Rapunzel.\"}], \"stream\": true}'",
    .max_positional = CLI_MAX_POSITIONAL,
    .args_bytes = sizeof(serve_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
