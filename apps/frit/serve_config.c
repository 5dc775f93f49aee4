// SPDX-License-Identifier: MIT
// Converts a config file to the options of `frit serve` and of its models.
#include "frit/cli/config.h"

#ifdef FRIT_HAVE_SERVER
#include "frit/serve.h"

#include <stdlib.h>
#include <string.h>

typedef struct origin {   // "serve.conf, line 3"
    char text[320];
} origin;

static origin origin_of(const serve_config *config, const cli_config_entry *entry)
{
    origin o;
    snprintf(o.text, sizeof o.text, "%.280s, line %d", config->path, entry->line);
    return o;
}

static bool is_typed(const serve_config *config, const frit_option *row)
{
    for (int i = 0; i < config->typed.n_given; i++)
        if (config->typed.given[i] == row) return true;
    return false;
}

// True for options of a model: those in `names`, and all that belong neither to every command nor to the server alone.
static bool is_of_models(const cli_group *group, const frit_option *row)
{
    static const char *const names[] = {"alias", "parallel", "max-queue", "image-tokens", "media-cache"};
    if (group->rows == cli_common_rows) return false;
    if (group->rows != server_option_rows) return strcmp(row->name, "config") != 0;
    for (size_t i = 0; i < CLI_COUNT(names); i++)
        if (strcmp(names[i], row->name) == 0) return true;
    return false;
}

// The line in the same section on which the option was given before; 0: none.
static int line_before(const serve_config *config, size_t at, const frit_option *row)
{
    const cli_config_entry *entry = &config->file.items[at];
    for (size_t i = at; i-- > 0;) {
        const cli_config_entry *other = &config->file.items[i];
        const cli_group *group;
        if (!other->key || other->section != entry->section) break;
        if (cli_find_option(&cli_command_serve, other->key, &group) == row) return other->line;
    }
    return 0;
}

// Sets the option that the i-th entry names.
static int take_entry(const serve_config *config, size_t i, cli_parse *parse)
{
    const cli_config_entry *entry = &config->file.items[i];
    const origin from = origin_of(config, entry);
    const cli_group *group = NULL;
    const frit_option *row = cli_find_option(&cli_command_serve, entry->key, &group);
    if (!row) return cli_refuse_option(&cli_command_serve, entry->key, from.text);
    if (strcmp(row->name, "config") == 0) return cli_usage("%s: a config file cannot name another one", from.text);
    if (entry->section && !is_of_models(group, row))
        return cli_usage("%s: '%s' holds for the whole server: it stands before the first section", from.text,
                         entry->key);
    const int before = line_before(config, i, row);
    if (before > 0 && row->type != FRIT_OPTION_LIST)
        return cli_usage("%s: '%s' was given on line %d already", from.text, entry->key, before);
    if (is_typed(config, row)) return CLI_DONE;   // the command line has precedence
    // A list in a section replaces the list before the sections.
    if (before == 0 && row->type == FRIT_OPTION_LIST)
        *(frit_option_list *)(parse->args + group->offset + row->offset) = (frit_option_list){0};
    return cli_set_option(parse, row, group, entry->value, from.text);
}

int serve_read_config(serve_config *config, serve_args *args)
{
    *config = (serve_config){.path = args->config, .typed = args->common};
    if (!config->path) return CLI_DONE;
    config->parse = (cli_parse){.command = &cli_command_serve, .args = (char *)args};
    int code = cli_config_read(&config->file, config->path);
    for (size_t i = 0; i < config->file.n && code == CLI_DONE; i++)
        if (!config->file.items[i].section) code = take_entry(config, i, &config->parse);
    return code;
}

size_t serve_count_sections(const serve_config *config)
{
    size_t n = 0;
    for (size_t i = 0; i < config->file.n; i++) n += !config->file.items[i].key;
    return n;
}

// Returns the model of the command line with the section's name.
static served_model *find_model(served_model *models, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        char *stem = models[i].name ? NULL : server_stem(models[i].path);
        const char *known = models[i].name ? models[i].name : stem;
        const bool found = known && strcmp(known, name) == 0;
        free(stem);
        if (found) return &models[i];
    }
    return NULL;
}

static int take_section(const serve_config *config, size_t begin, served_model *model)
{
    const cli_config_entry *first = &config->file.items[begin];
    const origin from = origin_of(config, first);
    const bool has_path = model->path != NULL;
    int code = CLI_DONE;
    model->parse = (cli_parse){.command = &cli_command_serve, .args = (char *)&model->args};
    for (size_t i = begin + 1; i < config->file.n && config->file.items[i].key && code == CLI_DONE; i++) {
        const cli_config_entry *entry = &config->file.items[i];
        const bool is_path = strcmp(entry->key, "path") == 0;
        if (!is_path)
            code = take_entry(config, i, &model->parse);
        else if (!entry->value[0])
            code = cli_usage("%s: the path is empty", origin_of(config, entry).text);
        else if (!has_path && model->path)
            code = cli_usage("%s: 'path' was given already", origin_of(config, entry).text);
        else if (!has_path)
            model->path = entry->value;
    }
    if (code == CLI_DONE && !model->path)
        code = cli_usage("%s: section [%s] has no path of a model", from.text, first->section);
    return code;
}

int serve_take_sections(const serve_config *config, const serve_args *args, served_model *models, size_t *n)
{
    const size_t n_typed = *n;
    int code = CLI_DONE;
    for (size_t i = 0; i < config->file.n && code == CLI_DONE; i++) {
        const cli_config_entry *entry = &config->file.items[i];
        if (entry->key) continue;
        served_model *model = find_model(models, n_typed, entry->section);
        if (!model) {
            model = &models[(*n)++];
            model->args = *args;
            model->args.common.model = NULL;
            model->name = strdup(entry->section);
            if (!model->name) return cli_no_memory();
        }
        code = take_section(config, i, model);
    }
    return code;
}

void serve_config_free(serve_config *config)
{
    for (int i = 0; i < config->parse.n_owned; i++) free(config->parse.owned[i]);
    cli_config_free(&config->file);
}

#endif
