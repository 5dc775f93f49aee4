// SPDX-License-Identifier: MIT
// frit serve: the model over HTTP, for OpenAI's clients.
#include "cli.h"

#ifdef FRIT_HAVE_SERVER
#include "server/notify.h"
#include "server/server.h"

#include <poll.h>
#include <signal.h>
#endif

typedef struct serve_args {
    cli_common common;
#ifdef FRIT_HAVE_SERVER
    server_options server;
#endif
    frit_sampler_options sampler;
    cli_speculate_options speculate;
    app_shift_options shift;
    cli_adapter_options adapters;
    frit_engine_options engine;
    frit_model_options model;
} serve_args;

#ifdef FRIT_HAVE_SERVER

// A signal ends it early. One that comes just before is seen when the time is over, so it is never long.
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

// SIGHUP is no end for a server, as it is for other commands.
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
    fprintf(stderr, "frit: SIGHUP: %s\n", said);
    server_notify("READY=1");
}

// The first signal lets answers finish, until the deadline; the second does not.
static void end_gently(const cli_common *common, app_server *server, int drain_s)
{
    uint64_t deadline = cli_now_ns() + (uint64_t)drain_s * 1000000000u;
    server_notify("STOPPING=1\nSTATUS=finishing what was begun");
    server_drain(server);
    if (!server_is_quiet(server)) cli_note(common, "finishing what was begun, for %d s at most", drain_s);
    while (!server_is_quiet(server) && cli_now_ns() < deadline && cli_interrupted < 2) nap(20);
    server_cut(server);
    for (int i = 0; i < 50 && !server_is_quiet(server); i++) nap(20);   // the last bytes leave
}

static int serve(const serve_args *args, frit_model *model, frit_engine *engine, const cli_adapters *adapters,
                 const frit_speculate_options *speculate)
{
    server_config config = {.options = args->server,
                            .sampling = args->sampler,
                            .model = model,
                            .engine = engine,
                            .adapters = {adapters->items, adapters->scales, adapters->n},
                            .speculate = *speculate,
                            .shift = args->shift};
    cli_recommend(&args->common, model, &config.sampling);
    server_problem problem;
    app_server *server = NULL;
    sigset_t signals, before;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    catch_hangup();
    sigprocmask(SIG_BLOCK, &signals, &before);   // the server's threads leave them to this one
    int code = CLI_DONE;
    frit_engine_info info;
    frit_engine_get_info(engine, &info);   // from here on the engine is its own thread's
    bool open = server_open(&server, &config, &problem);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (!open) {
        code = problem.status == 400 ? cli_usage("serve: %s", problem.message) : cli_fail("serve: %s", problem.message);
    } else {
        fprintf(stderr, "frit: serving %s at %s (%d x %d tokens)\n", server_model_name(server), server_url(server),
                args->server.parallel, info.n_ctx);
        server_notify("READY=1\nSTATUS=serving %.200s at %s", server_model_name(server), server_url(server));
        while (!cli_interrupted) {
            nap(200);
            if (hung_up) reload(server);
        }
        end_gently(&args->common, server, args->server.drain_s);
        server_close(server);
    }
    return code;
}

static int run(void *ctx)
{
    serve_args *args = ctx;
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    cli_adapters adapters = {0};
    cli_drafter drafter = {0};
    frit_speculate_options speculate;
    const char *path = args->common.n_positional > 0 ? args->common.positional[0] : NULL;
    args->engine.n_sessions = args->server.parallel;
    int code = cli_check_shift(&args->shift);
    if (code == CLI_DONE) code = cli_open_model(&model, &args->common, &args->model, path);
    // Adapters come first: the engine looks at what memory is free then.
    if (code == CLI_DONE) code = cli_open_adapters(&adapters, model, &args->adapters);
    if (code == CLI_DONE) code = cli_open_engine(&engine, &args->common, model, &args->engine);
    if (code == CLI_DONE)
        code = cli_open_drafter(&drafter, &args->speculate, model, &args->common, &args->engine, &speculate);
    if (code == CLI_DONE) code = serve(args, model, engine, &adapters, &speculate);
    cli_close_adapters(&adapters);
    cli_drafter_free(&drafter);
    frit_engine_free(engine);
    frit_model_free(model);
    return code;
}

#else

static int run(void *ctx)
{
    (void)ctx;
    return cli_fail("serve: this build has no server; install libmicrohttpd's development files and build again");
}

#endif

static const cli_group groups[] = {
#ifdef FRIT_HAVE_SERVER
    {"Server", server_option_rows, offsetof(serve_args, server)},
#endif
    {"Sampling, where a request says nothing else", frit_sampler_option_rows, offsetof(serve_args, sampler)},
    {"Speculation", cli_speculate_rows, offsetof(serve_args, speculate)},
    {"Long answers", cli_shift_rows, offsetof(serve_args, shift)},
    {"Adapters", cli_adapter_rows, offsetof(serve_args, adapters)},
    {"Engine", frit_engine_option_rows, offsetof(serve_args, engine)},
    {"Model", frit_model_option_rows, offsetof(serve_args, model)},
    {"General", cli_common_rows, offsetof(serve_args, common)},
};

const cli_command cli_command_serve = {
    .name = "serve",
    .usage = "[MODEL] [options]",
    .summary = "answer OpenAI's clients over HTTP",
    .details =
        "Listens on http://127.0.0.1:8080 and says so on stderr once requests are answered. SIGTERM and Ctrl-C let\n"
        "answers finish, a second one does not. docs/server.md lists routes and fields.\n"
        "\n"
        "  frit serve model.gguf --port 9000 --parallel 8\n"
        "  curl http://127.0.0.1:8080/v1/chat/completions -d '{\"messages\":\n"
        "      [{\"role\": \"user\", \"content\": \"Tell me the tale of Rapunzel.\"}], \"stream\": true}'",
    .max_positional = 1,
    .args_bytes = sizeof(serve_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
