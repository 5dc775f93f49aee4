// SPDX-License-Identifier: MIT
// Models by name: from a command line to a path, and the display of a download.
#include "frit/cli/by_name.h"

#include "frit/os/screen.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---------------------------------------------------------------------------------------- statuses

static const struct {
    hub_status status;
    int code;
} codes[] = {
    {HUB_OK, CLI_DONE},           {HUB_E_NAME, CLI_USAGE},       {HUB_E_NOT_FOUND, CLI_BAD_MODEL},
    {HUB_E_LIMIT, CLI_NO_MEMORY}, {HUB_E_MEMORY, CLI_NO_MEMORY}, {HUB_E_CANCELLED, CLI_INTERRUPTED},
};

int cli_hub_code(hub_status status)
{
    for (size_t i = 0; i < CLI_COUNT(codes); i++)
        if (codes[i].status == status) return codes[i].code;
    return CLI_FAILED;
}

int cli_report_hub(hub_status status)
{
    if (status != HUB_OK) cli_fail("%s", hub_error());
    return cli_hub_code(status);
}

int cli_read_hub(hub_settings *settings)
{
    return cli_report_hub(hub_settings_read(settings));
}

// Reads a name. The argument must be a name, so ORG/REPO and MODEL:TAG are understood too, as other programs do.
static int read_name(const cli_common *common, const hub_settings *settings, const char *text, hub_name *name)
{
    hub_path guess;
    hub_status status = hub_name_read(settings, text, name);
    if (status != HUB_E_NOT_FOUND) return cli_report_hub(status);
    if (cli_path_kind(text) != CLI_PATH_NONE)
        return cli_usage("'%s' is a path, and what lies there is used as it is; expected the name of a model, as 'frit "
                         "list' shows it",
                         text);
    if (hub_guess_name(text, &guess) != HUB_OK)
        return cli_usage(
            "'%s' is no name of a model; expected hf:ORG/REPO, ollama:%s, https://..., or a short name of %s", text,
            strpbrk(text, "/: ") ? "MODEL:TAG" : text, settings->short_names.text);
    cli_note(common, "%s is taken as %s", text, guess.text);
    return cli_report_hub(hub_name_read(settings, guess.text, name));
}

const char *cli_named(const cli_common *common)
{
    return cli_is_typed(common, "model") || cli_is_typed(common, "hf-repo") ? common->model : NULL;
}

int cli_each_name(const cli_common *common, cli_name_fn fn, const void *args)
{
    hub_settings *settings = calloc(1, sizeof *settings);
    hub_name *name = calloc(1, sizeof *name);
    int code = settings && name ? cli_read_hub(settings) : cli_no_memory();
    const char *named = cli_named(common);
    for (int i = named ? -1 : 0; i < common->n_positional && code == CLI_DONE; i++) {
        const char *text = i < 0 ? named : common->positional[i];
        code = read_name(common, settings, text, name);
        if (code == CLI_DONE) code = fn(args, settings, name, text);
    }
    free(settings);
    free(name);
    return code;
}

uint64_t cli_free_memory_bytes(void)
{
    frit_model *model = NULL;
    frit_estimate *estimate = NULL;
    frit_estimate_info info;
    frit_estimate_device device;
    uint64_t most = 0;
    // An engine reports free memory; any model can be used to make one.
    if (frit_model_open(&model, cli_bundled_model(), &(frit_model_options){0}) != FRIT_OK) return 0;
    if (frit_estimate_new(&estimate, model, &(frit_engine_options){.n_ctx = 64}) == FRIT_OK &&
        frit_estimate_get_info(estimate, &info) == FRIT_OK) {
        for (size_t i = 0; i < info.n_devices && frit_estimate_get_device(estimate, i, &device); i++)
            if (device.free_bytes > most) most = device.free_bytes;
    }
    frit_estimate_free(estimate);
    frit_model_free(model);
    return most;
}

// ---------------------------------------------------------------------------------------- progress

static bool stops(void *ctx)
{
    (void)ctx;
    return cli_interrupted > 0;
}

static void clear_line(cli_transfer *t)
{
    if (t->is_shown) fprintf(stderr, "\r\033[K");
    t->is_shown = false;
}

static void say(void *ctx, const char *sentence)
{
    cli_transfer *t = ctx;
    clear_line(t);
    cli_note(t->common, "%s", sentence);
}

// The number of bytes a second over the last samples; 0: unknown.
static double rate_of(const cli_transfer *t)
{
    const size_t n = t->n_samples, newest = (n - 1) % CLI_COUNT(t->samples);
    if (n < 2) return 0;
    const size_t oldest = n > CLI_COUNT(t->samples) ? n % CLI_COUNT(t->samples) : 0;
    const double seconds = (double)(t->samples[newest].ns - t->samples[oldest].ns) * 1e-9;
    if (seconds < 0.2 || t->samples[newest].n_bytes < t->samples[oldest].n_bytes) return 0;
    return (double)(t->samples[newest].n_bytes - t->samples[oldest].n_bytes) / seconds;
}

static void time_text(double seconds, char out[32])
{
    const unsigned long s = seconds < 1e6 ? (unsigned long)seconds : 1000000;
    if (s >= 3600)
        snprintf(out, 32, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, 32, "%lu:%02lu", s / 60, s % 60);
}

// Writes " 43% [#####.......] 1.2 GiB of 2.7 GiB, 54.3 MiB/s, 0:27 left"; narrow terminals have no bar.
static void progress_text(const cli_transfer *t, uint64_t done, uint64_t total, bool checks, char out[256])
{
    char have[32], all[32], speed[32], left[32], bar[24] = "";
    const double rate = rate_of(t), part = total > 0 ? (double)done / (double)total : 0;
    cli_size_text(done, have);
    cli_size_text(total, all);
    cli_size_text((uint64_t)rate, speed);
    time_text(rate > 0 && total >= done ? (double)(total - done) / rate + 0.99 : 0, left);
    if (cli_columns(stderr) == 0 || cli_columns(stderr) > 80) {
        for (int i = 0; i < 20; i++) bar[1 + i] = i < (int)(part * 20) ? '#' : '.';
        memcpy(bar + 21, "] ", 2);
        bar[0] = '[';
    }
    if (total == UINT64_MAX)
        snprintf(out, 256, "%s, %s/s", have, speed);
    else if (checks)
        snprintf(out, 256, "checking SHA-256: %3.0f%%", 100 * part);
    else if (rate > 0)
        snprintf(out, 256, "%3.0f%% %s%10s of %s, %10s/s, %s left", 100 * part, bar, have, all, speed, left);
    else
        snprintf(out, 256, "%3.0f%% %s%10s of %s", 100 * part, bar, have, all);
}

static void show_line(cli_transfer *t, const char *name, const char *text)
{
    const int columns = cli_columns(stderr) > 0 ? cli_columns(stderr) - 1 : 100;
    const int n_text = (int)strlen(text), room = columns - n_text - 2;
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
    if (room < 8) {
        fprintf(stderr, "\r%.*s\033[K", columns, text);
    } else {
        const int n_base = (int)strlen(base);
        putc('\r', stderr);
        cli_put_text(stderr, base, (size_t)(n_base < room ? n_base : room - 1));
        fprintf(stderr, "%s %s\033[K", n_base > room - 1 ? "~" : " ", text);
    }
    fflush(stderr);
    t->is_shown = true;
}

static void show_progress(void *ctx, const char *name, uint64_t done, uint64_t total, bool checks)
{
    cli_transfer *t = ctx;
    char text[256];
    const uint64_t now = cli_now_ns(), every = t->is_terminal ? 250000000u : 10000000000u;
    if (t->common->quiet) return;
    if (t->last_ns == 0 && !t->is_terminal) t->last_ns = now;   // short work shows nothing
    if (now - t->last_ns < every) return;
    t->last_ns = now;
    if (!checks) {
        const size_t at = t->n_samples++ % CLI_COUNT(t->samples);
        t->samples[at].ns = now;
        t->samples[at].n_bytes = done;
    }
    progress_text(t, done, total, checks, text);
    if (t->is_terminal)
        show_line(t, name, text);
    else
        cli_note(t->common, "%s: %s", name, text);
}

void cli_transfer_start(cli_transfer *transfer, const cli_common *common)
{
    *transfer = (cli_transfer){.common = common, .is_terminal = isatty(STDERR_FILENO)};
}

void cli_transfer_end(cli_transfer *transfer)
{
    clear_line(transfer);
}

hub_watch cli_transfer_watch(cli_transfer *transfer)
{
    return (hub_watch){.stops = stops, .say = say, .progress = show_progress, .ctx = transfer};
}

// ---------------------------------------------------------------------------------------- resolving

static int fetch(const cli_common *common, const hub_settings *settings, const hub_name *name, const char *text,
                 hub_path *path)
{
    cli_transfer transfer;
    cli_transfer_start(&transfer, common);
    const hub_pull pull = {.settings = settings,
                           .typed = text,
                           .watch = cli_transfer_watch(&transfer),
                           .room_bytes = name->part[0] ? 0 : cli_free_memory_bytes()};
    cli_note(common, "%s is not on this machine: fetching it", text);
    const hub_status status = name->source->pull(&pull, name, path);
    cli_transfer_end(&transfer);
    return cli_report_hub(status);
}

int cli_name_or_path(const char *text, bool is_model, char **path)
{
    static const char *const kinds[] = {"hf:the repository of the Hugging Face hub", "ollama:the model of ollama",
                                        "lmstudio:the model of LM Studio"};
    hub_path guess;
    const char *kind = NULL;
    if (hub_guess_name(text, &guess) == HUB_OK && (is_model || strchr(text, '/')))
        for (size_t i = 0; i < CLI_COUNT(kinds) && !kind; i++) {
            const size_t n = strcspn(kinds[i], ":") + 1;
            if (strncmp(guess.text, kinds[i], n) == 0) kind = kinds[i] + n;
        }
    if (kind)
        cli_fail("%s: there is no such file; %s is called %s", text, kind, guess.text);
    else if (is_model && text[0] && !text[strcspn(text, "/\\")])
        cli_fail("%s: there is no such file, and names of models begin with their source, as hf:ORG/REPO or "
                 "ollama:%s; 'frit list' shows what is here",
                 text, strchr(text, ' ') ? "MODEL:TAG" : text);
    else   // a path; opening it reports any error
        return (*path = strdup(text)) ? CLI_DONE : cli_no_memory();
    return CLI_BAD_MODEL;
}

static int find_named(const cli_common *common, const char *text, bool is_model, char **path)
{
    hub_settings *settings = calloc(1, sizeof *settings);
    hub_name *name = calloc(1, sizeof *name);
    hub_path *found = calloc(1, sizeof *found);
    int code = settings && name && found ? cli_read_hub(settings) : cli_no_memory();
    hub_status status = HUB_OK;
    if (code == CLI_DONE) status = hub_name_read(settings, text, name);
    if (status == HUB_E_NOT_FOUND)
        code = cli_name_or_path(text, is_model, path);
    else if (status != HUB_OK)
        code = cli_report_hub(status);
    if (code == CLI_DONE && status == HUB_OK) {
        status = name->source->find(settings, name, found);
        code = status == HUB_E_NOT_FOUND && name->source->pull ? fetch(common, settings, name, text, found)
                                                               : cli_report_hub(status);
        *path = code == CLI_DONE ? strdup(found->text) : NULL;
        if (code == CLI_DONE && !*path) code = cli_no_memory();
    }
    free(settings);
    free(name);
    free(found);
    return code;
}

static int find(const cli_common *common, const char *text, bool is_model, char **path)
{
    *path = NULL;
    cli_begin_wait();
    const cli_path kind = cli_path_kind(text);
    cli_end_wait();
    if (kind == CLI_PATH_NONE) return find_named(common, text, is_model, path);
    *path = strdup(text);
    return *path ? CLI_DONE : cli_no_memory();
}

int cli_find_model(const cli_common *common, const char *text, char **path)
{
    return find(common, text, true, path);
}

int cli_find_file(const cli_common *common, const char *text, char **path)
{
    return find(common, text, false, path);
}

// ---------------------------------------------------------------------------------------- arguments

bool cli_is_model_path(const char *text)
{
    static const char *const endings[] = {".gguf", ".safetensors"};
    const size_t n = strlen(text);
    for (size_t i = 0; i < CLI_COUNT(endings) && !strchr(text, ' '); i++) {
        const size_t n_ending = strlen(endings[i]);
        if (n > n_ending && strcmp(text + n - n_ending, endings[i]) == 0) return true;
    }
    char begin[4] = "";
    FILE *file = cli_path_kind(text) == CLI_PATH_FILE ? fopen(text, "rb") : NULL;
    const bool is_gguf = file && fread(begin, 1, 4, file) == 4 && memcmp(begin, "GGUF", 4) == 0;
    if (file) fclose(file);
    return is_gguf || (cli_path_kind(text) == CLI_PATH_FOLDER && strchr(text, '/'));
}
