// SPDX-License-Identifier: MIT
// Names in other spellings: addresses of pages of the Hugging Face hub and of ollama's library, with or without a
// scheme, and names that other programs accept without a prefix.
#include "hub/name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MAX_SEGMENTS = 24 };

typedef struct page {   // address of a page: its path, decoded and cut at '/'
    const char *typed;
    char text[2048];
    const char *segments[MAX_SEGMENTS];
    size_t n;
    char file[1024];   // "?show_file_info=FILE", as in the hub's list of files
} page;

// ---------------------------------------------------------------------------------------- sites

typedef hub_status (*read_fn)(const page *p, hub_name *out);
static hub_status read_hf(const page *p, hub_name *out);
static hub_status read_ollama(const page *p, hub_name *out);

static const struct {
    const char *host;
    read_fn read;
    const hub_source *source;
} sites[] = {
    {"huggingface.co", read_hf, &hub_source_hf},
    {"www.huggingface.co", read_hf, &hub_source_hf},
    {"hf.co", read_hf, &hub_source_hf},
    {"ollama.com", read_ollama, &hub_source_ollama},
    {"www.ollama.com", read_ollama, &hub_source_ollama},
    {"ollama.ai", read_ollama, &hub_source_ollama},
    {"registry.ollama.ai", read_ollama, &hub_source_ollama},
};
enum { N_SITES = sizeof sites / sizeof sites[0] };

static const char *after_scheme(const char *text)
{
    if (strncasecmp(text, "https://", 8) == 0) return text + 8;
    return strncasecmp(text, "http://", 7) == 0 ? text + 7 : text;
}

// Returns the site of an address, and the text after its host.
static size_t site_of(const char *text, const char **rest)
{
    const char *host = after_scheme(text);
    const size_t n = strcspn(host, "/?#");
    size_t i = 0;
    while (i < N_SITES && (strlen(sites[i].host) != n || strncasecmp(sites[i].host, host, n) != 0)) i++;
    if (i < N_SITES && host == text && !host[n]) return N_SITES;   // a word, unless a path follows
    *rest = host + n;
    return i;
}

bool hub_is_site(const char *text)
{
    const char *rest;
    return site_of(text, &rest) < N_SITES;
}

// ---------------------------------------------------------------------------------------- pages

static int hex_of(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? (c | 0x20) - 'a' + 10 : -1;
}

// Decodes "a%20b" to "a b". False if the result is too long, or has a zero.
static bool decode(const char *text, size_t n, char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '%' && i + 2 < n && hex_of(text[i + 1]) >= 0 && hex_of(text[i + 2]) >= 0) {
            c = (char)(16 * hex_of(text[i + 1]) + hex_of(text[i + 2]));
            i += 2;
        }
        if (c == 0 || used + 1 >= size) return false;
        out[used++] = c;
    }
    out[used] = 0;
    return true;
}

static bool read_page(page *p, const char *typed, const char *rest)
{
    const char *query = rest + strcspn(rest, "?#"), *shown = strstr(query, "show_file_info=");
    size_t used = 0;
    *p = (page){.typed = typed};
    if (shown) {
        shown += strlen("show_file_info=");
        if (!decode(shown, strcspn(shown, "&#"), p->file, sizeof p->file)) return false;
    }
    for (const char *at = rest; at < query;) {
        const size_t n = strcspn(at, "/?#");
        if (n > 0) {
            if (p->n == MAX_SEGMENTS || !decode(at, n, p->text + used, sizeof p->text - used)) return false;
            p->segments[p->n++] = p->text + used;
            used += strlen(p->text + used) + 1;
        }
        at += n + (at + n < query);
    }
    return true;
}

// Joins the segments from `first` on to "a/b/c".
static bool join(const page *p, size_t first, size_t end, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (size_t i = first; i < end; i++) {
        const int n = snprintf(out + used, size - used, "%s%s", i > first ? "/" : "", p->segments[i]);
        if (n < 0 || (size_t)n >= size - used) return false;
        used += (size_t)n;
    }
    return true;
}

static bool is_one_of(const char *text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, words[i]) == 0) return true;
    return false;
}
#define IS_ONE_OF(text, words) is_one_of(text, words, sizeof(words) / sizeof((words)[0]))

// ---------------------------------------------------------------------------------------- the hub

static const char *const hf_verbs[] = {"resolve", "blob", "raw", "tree", "commits", "commit", "discussions"};

static hub_status refuse_hf(const page *p)
{
    return hub_fail(HUB_E_NAME,
                    "'%.200s' is a page of the Hugging Face hub and names no model; expected hf:ORG/REPO or "
                    "https://huggingface.co/ORG/REPO",
                    p->typed);
}

// The number of segments of a branch, a tag or a commit; a name with a '/' has several segments.
static size_t revision_segments(const page *p, size_t at)
{
    const bool is_ref = strcmp(p->segments[at], "refs") == 0 && at + 2 < p->n;
    return is_ref ? 3 : 1;
}

static bool has_model_ending(const char *file)
{
    static const char *const endings[] = {".gguf", ".safetensors"};
    const size_t n = strlen(file);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const size_t n_ending = strlen(endings[i]);
        if (n > n_ending && strcasecmp(file + n - n_ending, endings[i]) == 0) return true;
    }
    return false;
}

// Reads the text after the repository: "tree/main", "blob/main/FILE", "resolve/main/FILE", ...
static hub_status read_place(const page *p, size_t at, hub_name *out)
{
    static const char *const files[] = {"resolve", "blob", "raw", "blame", "edit"};
    static const char *const folders[] = {"tree", "commits", "commit"};
    static const char *const talk[] = {"discussions", "settings", "activity", "community"};
    const char *verb = p->segments[at++];
    if (IS_ONE_OF(verb, talk)) return HUB_OK;
    const bool is_file = IS_ONE_OF(verb, files), is_folder = IS_ONE_OF(verb, folders);
    if (!is_file && !is_folder) {
        if (!has_model_ending(p->segments[p->n - 1])) return refuse_hf(p);
        at--;   // "ORG/REPO/FILE.gguf"
    } else if (at < p->n) {
        const size_t end = at + revision_segments(p, at);
        if (!join(p, at, end, out->revision, sizeof out->revision)) return refuse_hf(p);
        at = end;
    }
    if (is_file && at >= p->n) return refuse_hf(p);
    if (strcmp(verb, "tree") != 0 && is_folder) at = p->n;   // a list of commits is about all files
    return join(p, at, p->n, out->part, sizeof out->part) ? HUB_OK : refuse_hf(p);
}

static hub_status read_hf(const page *p, hub_name *out)
{
    static const char *const others[] = {"api",    "blog",      "buckets",       "chat",    "collections", "datasets",
                                         "docs",   "inference", "join",          "kernels", "learn",       "login",
                                         "models", "new",       "organizations", "papers",  "posts",       "pricing",
                                         "search", "settings",  "spaces",        "tasks"};
    char repo[512];
    if (p->n == 0 || IS_ONE_OF(p->segments[0], others)) return refuse_hf(p);
    const size_t n_repo = p->n < 2 || IS_ONE_OF(p->segments[1], hf_verbs) ? 1 : 2;
    if (!join(p, 0, n_repo, repo, sizeof repo)) return refuse_hf(p);
    hub_status status = hub_parse_hf(out, repo);   // may include ":Q4_K_M"
    if (status == HUB_OK && p->n > n_repo && out->part[0]) return refuse_hf(p);
    if (status == HUB_OK && p->n > n_repo) status = read_place(p, n_repo, out);
    if (status == HUB_OK && !out->part[0]) snprintf(out->part, sizeof out->part, "%s", p->file);
    return status == HUB_OK ? hub_check_hf(out) : status;
}

// True for "x.gguf", "x.imatrix": endings of files, unlike versions ("v1.5").
static bool is_path_of_file(const char *text)
{
    const char *dot = strrchr(text, '.');
    size_t n = 0;
    while (dot && isalpha((unsigned char)dot[1 + n])) n++;
    return n > 1 && !dot[1 + n];
}

bool hub_url_is_hf(const char *endpoint, const char *url, hub_name *name)
{
    const size_t n = strlen(endpoint);
    page at;
    if (strncmp(url, endpoint, n) != 0 || url[n] != '/' || !read_page(&at, url, url + n)) return false;
    // A mirror may have other files too, which are not repositories.
    const bool is_repo = at.n == 2 && !is_path_of_file(at.segments[1]);
    const bool is_place =
        (at.n > 1 && IS_ONE_OF(at.segments[1], hf_verbs)) || (at.n > 2 && IS_ONE_OF(at.segments[2], hf_verbs));
    if (!is_repo && !is_place) return false;
    return read_hf(&at, name) == HUB_OK;
}

// ---------------------------------------------------------------------------------------- ollama

static hub_status read_ollama(const page *p, hub_name *out)
{
    static const char *const others[] = {"blog",    "docs",   "download", "library", "models",
                                         "pricing", "search", "settings", "signin"};
    static const char *const below[] = {"tags", "blobs"};
    char text[512];
    size_t n = p->n;
    if (n > 2 && IS_ONE_OF(p->segments[2], below)) n = 2;
    if (n == 0 || n > 2 || (n == 1 && IS_ONE_OF(p->segments[0], others)) ||
        (n == 2 && strcmp(p->segments[0], "library") != 0 && IS_ONE_OF(p->segments[0], others)) ||
        !join(p, 0, n, text, sizeof text))
        return hub_fail(HUB_E_NAME,
                        "'%.200s' is a page of ollama's and names no model; expected ollama:MODEL:TAG or "
                        "https://ollama.com/library/MODEL:TAG",
                        p->typed);
    return hub_parse_ollama(out, text);
}

// ---------------------------------------------------------------------------------------- names

hub_status hub_read_site(const char *text, hub_name *out)
{
    const char *rest;
    const size_t site = site_of(text, &rest);
    page at;
    if (site == N_SITES) return HUB_E_NOT_FOUND;
    if (!read_page(&at, text, rest)) return hub_fail(HUB_E_NAME, "'%.200s' is not the address of a model", text);
    *out = (hub_name){.source = sites[site].source};
    return sites[site].read(&at, out);
}

// Prefixes of names in other spellings, in any case.
static const struct {
    const char *typed, *name;
} prefixes[] = {
    {"hf:", "hf:"},         {"huggingface:", "hf:"},    {"hf-hub:", "hf:"},
    {"ollama:", "ollama:"}, {"lmstudio:", "lmstudio:"}, {"lm-studio:", "lmstudio:"},
};

hub_status hub_guess_name(const char *text, hub_path *out)
{
    const char *colon = strchr(text, ':'), *slash = strchr(text, '/');
    const size_t n = colon ? (size_t)(colon - text) : strlen(text);
    hub_name name = {0};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        const size_t n_prefix = strlen(prefixes[i].typed);
        if (strncasecmp(text, prefixes[i].typed, n_prefix) == 0 && text[n_prefix])
            return hub_path_set(out, "%s%s", prefixes[i].name, text + n_prefix);
    }
    if (!text[0] || (!colon && is_path_of_file(text)) || (colon && strchr(colon, '\\'))) return HUB_E_NOT_FOUND;
    if (slash && slash < text + n) {   // "ORG/REPO", "ORG/REPO:Q4_K_M"
        if (hub_parse_hf(&name, text) != HUB_OK) return HUB_E_NOT_FOUND;
        return hub_path_set(out, "hf:%s", text);
    }
    // Accepts "llama3.2:1b"; without a tag the text is ambiguous. A single letter is a Windows drive.
    if (!colon || n < 2 || hub_parse_ollama(&name, text) != HUB_OK) return HUB_E_NOT_FOUND;
    return hub_path_set(out, "ollama:%s", text);
}
