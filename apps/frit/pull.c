// SPDX-License-Identifier: MIT
// frit pull: fetches a model by its name.
#include "frit/cli/by_name.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct pull_options {
    const char *memory, *sha256;
    int32_t n_connections;
    bool missing, json;
} pull_options;

typedef struct pull_args {
    cli_common common;
    pull_options pull;
} pull_args;

static const frit_option *pull_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "memory",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(pull_options, memory),
         .metavar = "SIZE",
         .help = "choose a quantization for so much free memory, as 16G, instead of this machine's"},
        {.name = "connections",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(pull_options, n_connections),
         .min = 1,
         .max = 16,
         .fallback = "4",
         .metavar = "N",
         .help = "parts of a file that are fetched at once"},
        {.name = "sha256",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(pull_options, sha256),
         .metavar = "HEX",
         .help = "SHA-256 that a file from an https:// address must have"},
        {.name = "missing",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(pull_options, missing),
         .help = "ask no server about what is here already, and guess no names, as commands that open models"},
        {.name = "json",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(pull_options, json),
         .help = "print what happens as JSON for programs, an object on each line; the last has the path or an error"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

// Reads "16G"; 0: not a size.
static uint64_t read_size(const char *text)
{
    static const char units[] = "KMGT";
    char *end;
    const unsigned long long n = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    if (end == text || text[0] == '-' || n > 1u << 30 || (*end && (!unit || end[1]))) return 0;
    return unit ? n << (10 * (unit - units + 1)) : n;
}

static int check(const pull_options *o)
{
    if (o->memory && read_size(o->memory) == 0)
        return cli_usage("--memory: '%s' is no size; expected a number with K, M, G or T", o->memory);
    if (o->sha256 && (strlen(o->sha256) != 64 || strspn(o->sha256, "0123456789abcdef") != 64))
        return cli_usage("--sha256: expected 64 hexadecimal digits in small letters");
    return CLI_DONE;
}

// ---------------------------------------------------------------------------------------- for programs

static const char *const kinds[] = {
    [HUB_E_NAME] = "name",           [HUB_E_NOT_FOUND] = "not found",
    [HUB_E_DENIED] = "denied",       [HUB_E_NETWORK] = "network",
    [HUB_E_DISK] = "disk",           [HUB_E_DATA] = "data",
    [HUB_E_LIMIT] = "limit",         [HUB_E_MEMORY] = "memory",
    [HUB_E_CANCELLED] = "cancelled", [HUB_E_UNSUPPORTED] = "unsupported",
};

// Shows a download to people, or reports it to programs.
typedef struct telling {
    cli_transfer transfer;
    hub_watch shown;
    uint64_t last_ns;
    char name[1024];        // of the last reported file
    uint64_t done, total;   // done, total: of this file; equal if everything was reported
} telling;

static void print_event(json_t *event)
{
    if (event && json_dumpf(event, stdout, JSON_COMPACT) == 0) putchar('\n');
    fflush(stdout);   // the reader waits for the line
    json_decref(event);
}

static bool stops(void *ctx)
{
    const telling *t = ctx;
    return t->shown.stops(t->shown.ctx);
}

static void tell(void *ctx, const char *sentence)
{
    const telling *t = ctx;
    t->shown.say(t->shown.ctx, sentence);
    print_event(json_pack("{s:s}", "say", sentence));
}

static void print_progress(telling *t, uint64_t done, uint64_t total, bool checks)
{
    json_t *all = total == UINT64_MAX ? json_null() : json_integer((json_int_t)total);
    print_event(
        json_pack("{s:s, s:I, s:o, s:b}", "name", t->name, "done", (json_int_t)done, "total", all, "checks", checks));
}

// Reports the last bytes of a file, for which there is no callback.
static void finish_file(telling *t)
{
    if (t->done < t->total && t->total != UINT64_MAX) print_progress(t, t->total, t->total, false);
    t->done = t->total = 0;
}

static void tell_progress(void *ctx, const char *name, uint64_t done, uint64_t total, bool checks)
{
    telling *t = ctx;
    const uint64_t now = cli_now_ns();
    t->shown.progress(t->shown.ctx, name, done, total, checks);
    if (checks || strncmp(name, t->name, sizeof t->name - 1) != 0) finish_file(t);
    snprintf(t->name, sizeof t->name, "%s", name);
    if (!checks) t->done = done, t->total = total;
    if (done < total && now - t->last_ns < 100000000u) return;
    t->last_ns = now;
    print_progress(t, done, total, checks);
}

static int report_json(hub_status status, const char *path)
{
    if (status == HUB_OK)
        print_event(json_pack("{s:s}", "path", path));
    else
        print_event(json_pack("{s:s, s:s}", "error", hub_error(), "kind", kinds[status]));
    return cli_hub_code(status);
}

// ---------------------------------------------------------------------------------------- fetching

static int fetch(const void *ctx, const hub_settings *settings, const hub_name *name, const char *text)
{
    const pull_args *args = ctx;
    telling told = {0};
    hub_name typed;
    char *unused = NULL;
    if (args->pull.missing && hub_name_read(settings, text, &typed) == HUB_E_NOT_FOUND)   // the name was guessed
        return cli_name_or_path(text, true, &unused);
    if (!name->source->pull && !args->pull.missing)
        return cli_usage("%s: models of %s are used where they are, and fetched by that program", text,
                         name->source->title);
    uint64_t room = args->pull.memory ? read_size(args->pull.memory) : 0;
    hub_path *path = calloc(1, sizeof *path);
    if (!path) return cli_no_memory();
    if (room == 0 && !name->part[0]) room = cli_free_memory_bytes();
    cli_transfer_start(&told.transfer, &args->common);
    told.shown = cli_transfer_watch(&told.transfer);
    const hub_watch watch = {.stops = stops, .say = tell, .progress = tell_progress, .ctx = &told};
    const hub_pull pull = {.settings = settings,
                           .typed = text,
                           .room_bytes = room,
                           .sha256 = args->pull.sha256,
                           .n_connections = args->pull.n_connections,
                           .watch = args->pull.json ? watch : told.shown};
    hub_status status = args->pull.missing ? name->source->find(settings, name, path) : HUB_E_NOT_FOUND;
    if (status == HUB_E_NOT_FOUND && name->source->pull)
        status = name->source->pull(&pull, name, path);
    else if (status == HUB_E_NOT_FOUND)
        status = hub_fail(status, "%s: is not among the models of %s on this machine", text, name->source->title);
    cli_transfer_end(&told.transfer);
    if (status == HUB_OK) finish_file(&told);
    int code;
    if (args->pull.json) {
        code = report_json(status, path->text);
    } else {
        if (status == HUB_OK) printf("%s\n", path->text);
        code = cli_report_hub(status);
    }
    free(path);
    return code;
}

static int run(void *ctx)
{
    const pull_args *args = ctx;
    int code = check(&args->pull);
    if (code == CLI_DONE && cli_named(&args->common) == NULL && args->common.n_positional == 0)
        code = cli_usage("pull: expected the name of a model, as in 'frit pull hf:ORG/REPO'");
    return code == CLI_DONE ? cli_each_name(&args->common, fetch, args) : code;
}

static const cli_group groups[] = {
    {"Fetching", pull_rows, offsetof(pull_args, pull)},
    {"General", cli_common_rows, offsetof(pull_args, common)},
};

const cli_command cli_command_pull = {
    .name = "pull",
    .usage = "NAME [NAME ...] [options]",
    .summary = "fetch a model by its name",
    .details =
        "Names, which every command takes in place of a file:\n"
        "\n"
        "  hf:ORG/REPO              of the Hugging Face hub: GGUF, in the quantization that fits, or safetensors\n"
        "  hf:ORG/REPO:Q4_K_M       this quantization; or a file of the repository\n"
        "  hf:ORG/REPO@REVISION     a branch, a tag or a commit; ':' and a quantization may follow\n"
        "  ollama:MODEL:TAG         of ollama's registry\n"
        "  https://HOST/FILE        a file at an address; a page of the hub or of ollama's library is its model\n"
        "  NAME                     a short name: a line 'NAME = hf:...' of ~/.config/frit/names.conf\n"
        "\n"
        "Models lie in the hub's own cache and in ollama's own store, so other programs share them. What was stopped "
        "is\n"
        "continued by the same command. HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE, OLLAMA_MODELS "
        "and\n"
        "https_proxy mean what they mean elsewhere. The path is printed on stdout.\n"
        "\n"
        "  frit pull hf:Qwen/Qwen3-8B-GGUF\n"
        "  frit pull ollama:llama3.2:1b\n"
        "  frit run hf:Qwen/Qwen3-8B-GGUF:Q8_0 -p 'Why is the sky blue?'",
    .max_positional = 64,
    .args_bytes = sizeof(pull_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
