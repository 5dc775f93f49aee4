// SPDX-License-Identifier: MIT
// The table of sources, and the parsing of names.
#include "hub/disk.h"
#include "hub/hub.h"
#include "hub/name.h"

#include "frit/cli/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hub_source *const sources[] = {
    &hub_source_hf, &hub_source_ollama, &hub_source_studio, &hub_source_https, &hub_source_http,
};

const hub_source *hub_source_get(size_t i)
{
    return i < sizeof sources / sizeof sources[0] ? sources[i] : NULL;
}

static const hub_source *source_of(const char *text)
{
    const hub_source *source;
    for (size_t i = 0; (source = hub_source_get(i)); i++)
        if (strncmp(text, source->prefix, strlen(source->prefix)) == 0) return source;
    return NULL;
}

bool hub_is_name(const char *text)
{
    return source_of(text) || hub_is_site(text);
}

// ---------------------------------------------------------------------------------------- the user's table

// The start of the quantization, file or tag of a name: its ':', or its end.
static size_t part_begin(const char *value)
{
    const hub_source *source = source_of(value);
    const char *rest = value + strlen(source->prefix), *slash = strrchr(rest, '/');
    if (source == &hub_source_ollama && slash) rest = slash;   // a host may have a port
    return (size_t)(rest - value) + strcspn(rest, ":");
}

static hub_status expand(const char *value, hub_path *out)
{
    hub_name name;
    if (!hub_is_site(value)) return hub_path_set(out, "%s", value);
    const hub_status status = hub_read_site(value, &name);
    return status == HUB_OK ? hub_name_text(&name, out) : status;
}

// Finds a row such as "qwen = hf:Qwen/Qwen3-8B-GGUF:Q4_K_M": its value for "qwen"; for "qwen:Q8_0", with this
// quantization.
static hub_status look_up(const char *path, const cli_config *config, const char *text, hub_path *out)
{
    const size_t n_word = strcspn(text, ":");
    for (size_t i = 0; i < config->n; i++) {
        const cli_config_entry *e = &config->items[i];
        if (!e->key || strlen(e->key) != n_word || strncmp(e->key, text, n_word) != 0) continue;
        if (!hub_is_name(e->value))
            return hub_fail(
                HUB_E_NAME,
                "%s, line %d: '%.200s' is not a name; expected one that begins with hf:, ollama:, lmstudio: "
                "or https://",
                path, e->line, e->value);
        hub_path value;
        const hub_status status = expand(e->value, &value);
        if (status != HUB_OK) return status;
        const size_t n = text[n_word] ? part_begin(value.text) : strlen(value.text);
        return hub_path_set(out, "%.*s%s", (int)n, value.text, text + n_word);
    }
    return HUB_E_NOT_FOUND;
}

static hub_status read_short(const hub_settings *settings, const char *text, hub_path *out)
{
    const char *path = settings->short_names.text;
    char *content, sentence[256];
    size_t n;
    int line;
    cli_config config = {0};
    if (strchr(text, '/') || hub_file_bytes(path) == UINT64_MAX) return HUB_E_NOT_FOUND;
    hub_status status = hub_read_text(path, CLI_CONFIG_BYTES, &content, &n);
    if (status != HUB_OK) return status;
    if (cli_config_parse(&config, content, n, &line, sentence))
        status = look_up(path, &config, text, out);
    else
        status = hub_fail(HUB_E_NAME, "%s, line %d: %s", path, line, sentence);
    cli_config_free(&config);
    return status;
}

// ---------------------------------------------------------------------------------------- names

hub_status hub_name_read(const hub_settings *settings, const char *text, hub_name *out)
{
    hub_path whole;
    hub_status status = hub_is_name(text) ? hub_path_set(&whole, "%s", text) : read_short(settings, text, &whole);
    if (status != HUB_OK) return status;
    if (hub_is_site(whole.text)) return hub_read_site(whole.text, out);
    *out = (hub_name){.source = source_of(whole.text)};
    if (hub_url_is_hf(settings->hub_endpoint.text, whole.text, out)) {
        out->source = &hub_source_hf;
        return HUB_OK;
    }
    *out = (hub_name){.source = source_of(whole.text)};
    return out->source->parse(out, whole.text + strlen(out->source->prefix));
}

hub_status hub_name_text(const hub_name *name, hub_path *out)
{
    if (name->url.text[0]) return hub_path_set(out, "%s", name->url.text);
    if (name->source == &hub_source_ollama) {
        const bool is_usual = strncmp(name->repo, "library/", 8) == 0;
        return hub_path_set(out, "ollama:%s%s%s:%s", name->host, name->host[0] ? "/" : "",
                            is_usual && !name->host[0] ? name->repo + 8 : name->repo, name->revision);
    }
    const bool is_main = strcmp(name->revision, "main") == 0;
    return hub_path_set(out, "%s%s%s%s%s%s", name->source->prefix, name->repo, is_main ? "" : "@",
                        is_main ? "" : name->revision, name->part[0] ? ":" : "", name->part);
}
