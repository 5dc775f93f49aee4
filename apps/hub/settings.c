// SPDX-License-Identifier: MIT
// Locations of caches, tokens and servers: reads the variables of huggingface-hub, ollama and other programs, with the
// meaning that they have there.
#include "common/text_file.h"
#include "hub/disk.h"
#include "hub/hub.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *get(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

// Sets the value of the first variable that is set, or HOME and the rest; "~/" is HOME. '/' at the end is removed.
static hub_status set_folder(hub_path *out, const char *value, const char *base, const char *rest)
{
    hub_status status;
    if (!value)
        status = hub_path_set(out, "%s/%s", base, rest);
    else if (value[0] == '~' && (value[1] == '/' || !value[1]))
        status = hub_path_set(out, "%s%s", hub_home(), value + 1);
    else
        status = hub_path_set(out, "%s", value);
    hub_use_slashes(out->text);
    for (size_t n = strlen(out->text); n > 1 && out->text[n - 1] == '/'; n--) out->text[n - 1] = 0;
    return status;
}

static bool is_true(const char *name)
{
    static const char *const words[] = {"1", "ON", "YES", "TRUE"};
    const char *value = get(name);
    for (size_t w = 0; value && w < sizeof words / sizeof words[0]; w++) {
        size_t i = 0;
        while (words[w][i] && toupper((unsigned char)value[i]) == words[w][i]) i++;
        if (!words[w][i] && !value[i]) return true;
    }
    return false;
}

// Reads the token from a variable or from the file that `huggingface-cli login` writes. A token must be one word,
// because other text could add lines to a request.
static void read_token(hub_settings *settings, const char *hf_home)
{
    hub_path path;
    const char *token = get("HF_TOKEN");
    char *text = NULL;
    if (!token) token = get("HUGGING_FACE_HUB_TOKEN");
    if (!token && !is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
        size_t n;
        if (set_folder(&path, get("HF_TOKEN_PATH"), hf_home, "token") == HUB_OK &&
            hub_read_text(path.text, 4096, &text, &n) == HUB_OK)
            token = text + app_mark_bytes(text, n);
    }
    while (token && isspace((unsigned char)*token)) token++;
    size_t n = 0;
    while (token && (unsigned char)token[n] > 32 && (unsigned char)token[n] < 127) n++;
    if (n < sizeof settings->hub_token)
        snprintf(settings->hub_token, sizeof settings->hub_token, "%.*s", (int)n, n ? token : "");
    free(text);
}

static hub_status add_folder(hub_path *list, size_t *n, const char *value, const char *base, const char *rest)
{
    if (*n == HUB_MAX_FOLDERS) return HUB_OK;
    return set_folder(&list[(*n)++], value, base, rest);
}

hub_status hub_settings_read(hub_settings *settings)
{
    hub_path cache_home, config_home, hf_home;
    *settings = (hub_settings){0};
    hub_status status = set_folder(&cache_home, get("XDG_CACHE_HOME"), hub_home(), ".cache");
    if (status == HUB_OK) status = set_folder(&config_home, get("XDG_CONFIG_HOME"), hub_home(), ".config");
    if (status == HUB_OK) status = set_folder(&hf_home, get("HF_HOME"), cache_home.text, "huggingface");
    const char *cache = get("HF_HUB_CACHE") ? get("HF_HUB_CACHE") : get("HUGGINGFACE_HUB_CACHE");
    if (status == HUB_OK) status = set_folder(&settings->hub_cache, cache, hf_home.text, "hub");
    if (status == HUB_OK) status = set_folder(&settings->hub_endpoint, get("HF_ENDPOINT"), "https:/", "huggingface.co");
    if (status == HUB_OK) status = set_folder(&settings->url_cache, get("FRIT_CACHE"), cache_home.text, "frit/files");
    if (status == HUB_OK)
        status = set_folder(&settings->short_names, get("FRIT_NAMES"), config_home.text, "frit/names.conf");
    if (status == HUB_OK)
        status = set_folder(&settings->ollama_registry, get("FRIT_OLLAMA_REGISTRY"), "https:/", "registry.ollama.ai");
    if (status == HUB_OK)
        status = add_folder(settings->ollama, &settings->n_ollama, get("OLLAMA_MODELS"), hub_home(), ".ollama/models");
    if (status == HUB_OK && !get("OLLAMA_MODELS")) {   // the folder of ollama as a service
        status = add_folder(settings->ollama, &settings->n_ollama, NULL, "/usr/share/ollama", ".ollama/models");
        if (status == HUB_OK)
            status = add_folder(settings->ollama, &settings->n_ollama, NULL, "/var/lib/ollama", "models");
    }
    if (status == HUB_OK)
        status = add_folder(settings->studio, &settings->n_studio, NULL, hub_home(), ".lmstudio/models");
    if (status == HUB_OK)
        status = add_folder(settings->studio, &settings->n_studio, NULL, hub_home(), ".cache/lm-studio/models");
    settings->offline = is_true("HF_HUB_OFFLINE") || is_true("FRIT_OFFLINE");
    read_token(settings, hf_home.text);
    return status;
}
