// SPDX-License-Identifier: MIT
// Reads names of models and checks their characters.
#include "hub/name.h"

#include "hub/disk.h"
#include "hub/http.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

// ---------------------------------------------------------------------------------------- parts

bool hub_is_word(const char *text, size_t n)
{
    if (n == 0 || n > 96 || text[0] == '.' || text[0] == '-') return false;
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i])) return false;
        if (text[i] == 0 || (text[i] == '.' && i + 1 < n && text[i + 1] == '.')) return false;
    }
    return true;
}

// True at the start of a character of two or three bytes that controls a terminal, or the order in which text is shown:
// U+0080 to U+009F, U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069, U+FEFF.
static bool steers(const char *at)
{
    const unsigned char *c = (const unsigned char *)at;
    if (c[0] == 0xc2) return c[1] >= 0x80 && c[1] < 0xa0;
    if (c[0] == 0xd8) return c[1] == 0x9c;
    if (c[0] == 0xef) return c[1] == 0xbb && c[2] == 0xbf;
    if (c[0] != 0xe2) return false;
    if (c[1] == 0x80) return c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae);
    return c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9;
}

bool hub_is_safe_path(const char *text)
{
    if (strlen(text) >= 1024) return false;
    for (const char *at = text;;) {
        const size_t n = strcspn(at, "/");
        if (n == 0 || !hub_is_file_name(at, n) || (n == 1 && at[0] == '.') || (n == 2 && memcmp(at, "..", 2) == 0))
            return false;
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)at[i] < 32 || at[i] == 127 || at[i] == '\\' || steers(at + i)) return false;
        if (!at[n]) return true;
        at += n + 1;
    }
}

bool hub_is_hex(const char *text, size_t n_digits)
{
    return strlen(text) == n_digits && strspn(text, "0123456789abcdef") == n_digits;
}

bool hub_is_etag(const char *text)
{
    const size_t n = strlen(text);
    if (n == 0 || n > 128) return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '-' && text[i] != '_') return false;
    return true;
}

bool hub_read_etag(const char *header, char *out, size_t size)
{
    if (strncmp(header, "W/", 2) == 0) header += 2;
    size_t n = strlen(header);
    if (n >= 2 && header[0] == '"' && header[n - 1] == '"') header++, n -= 2;
    if (n == 0 || n >= size) return false;
    memcpy(out, header, n);
    out[n] = 0;
    return true;
}

static bool copy(char *out, size_t size, const char *text, size_t n)
{
    if (n >= size) return false;
    memcpy(out, text, n);
    out[n] = 0;
    return true;
}

// True for "org/repo" or "repo". The hub's cache writes '/' as "--", so names must not contain "--".
static bool is_repo(const char *text, size_t n)
{
    const char *slash = memchr(text, '/', n);
    const size_t first = slash ? (size_t)(slash - text) : n;
    for (size_t i = 0; i + 1 < n; i++)
        if (text[i] == '-' && text[i + 1] == '-') return false;
    return hub_is_word(text, first) && (!slash || hub_is_word(slash + 1, n - first - 1));
}

static bool is_revision(const char *text)
{
    if (!hub_is_safe_path(text)) return false;
    for (const char *at = text; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("._-/", *at)) return false;
    return text[0] != '-' && !strstr(text, "..");
}

// ---------------------------------------------------------------------------------------- the hub

hub_status hub_parse_hf(hub_name *name, const char *rest)
{
    if (strncmp(rest, "//", 2) == 0) rest += 2;   // hf://org/repo, as in huggingface-hub
    const size_t n = strcspn(rest, "@:");
    const char *at = rest + n;
    if (!is_repo(rest, n) || !copy(name->repo, sizeof name->repo, rest, n))
        return hub_fail(HUB_E_NAME,
                        "'%.*s' is not the name of a repository; expected hf:ORG/REPO, hf:ORG/REPO:FILE or "
                        "hf:ORG/REPO:QUANTIZATION",
                        (int)(n < 200 ? n : 200), rest);
    snprintf(name->revision, sizeof name->revision, "main");
    if (*at == '@') {
        const size_t n_revision = strcspn(at + 1, ":");
        if (!copy(name->revision, sizeof name->revision, at + 1, n_revision) || !is_revision(name->revision))
            return hub_fail(HUB_E_NAME, "'%.100s' is not a revision; expected a branch, a tag or a commit after '@'",
                            at + 1);
        at += 1 + n_revision;
    }
    if (*at != ':') return HUB_OK;
    if (!copy(name->part, sizeof name->part, at + 1, strlen(at + 1)) || !hub_is_safe_path(name->part))
        return hub_fail(HUB_E_NAME, "'%.100s' is not a file of a repository or a quantization", at + 1);
    return HUB_OK;
}

hub_status hub_parse_studio(hub_name *name, const char *rest)
{
    const hub_status status = hub_parse_hf(name, rest);
    if (status == HUB_OK && !strchr(name->repo, '/'))
        return hub_fail(HUB_E_NAME, "'%.100s': expected lmstudio:PUBLISHER/MODEL or lmstudio:PUBLISHER/MODEL:FILE",
                        rest);
    return status;
}

hub_status hub_check_hf(const hub_name *name)
{
    if (is_repo(name->repo, strlen(name->repo)) && is_revision(name->revision) &&
        (!name->part[0] || hub_is_safe_path(name->part)))
        return HUB_OK;
    return hub_fail(HUB_E_NAME, "'%.100s' of '%.100s' is not a file of a repository", name->part, name->repo);
}

// ---------------------------------------------------------------------------------------- ollama

// True for "host.example:5000" or "localhost": a text before the first '/' with a '.' or a ':', or localhost.
static bool is_host(const char *text, size_t n)
{
    bool is_far = n == strlen("localhost") && strncmp(text, "localhost", n) == 0;
    if (n == 0 || n > 200 || text[0] == '.' || text[0] == '-') return false;
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr(".-:", text[i])) return false;
        is_far = is_far || text[i] == '.' || text[i] == ':';
        if (text[i] == '.' && i + 1 < n && text[i + 1] == '.') return false;
    }
    return is_far;
}

static hub_status refuse_ollama(const char *rest)
{
    return hub_fail(HUB_E_NAME,
                    "'%.200s' is not a model of ollama; expected ollama:MODEL, ollama:MODEL:TAG or "
                    "ollama:NAMESPACE/MODEL:TAG",
                    rest);
}

hub_status hub_parse_ollama(hub_name *name, const char *rest)
{
    const char *at = rest, *slash = strchr(rest, '/');
    if (slash && is_host(rest, (size_t)(slash - rest)) && strchr(slash + 1, '/')) {
        copy(name->host, sizeof name->host, rest, (size_t)(slash - rest));
        at = slash + 1;
        slash = strchr(at, '/');
    }
    const char *colon = strchr(at, ':');
    const size_t n = colon ? (size_t)(colon - at) : strlen(at);
    const char *tag = colon ? colon + 1 : "latest";
    if (n > 200 || !is_repo(at, n) || !hub_is_word(tag, strlen(tag))) return refuse_ollama(rest);
    snprintf(name->repo, sizeof name->repo, "%s%.*s", slash ? "" : "library/", (int)n, at);
    snprintf(name->revision, sizeof name->revision, "%s", tag);
    return HUB_OK;
}

// ---------------------------------------------------------------------------------------- addresses

void hub_host_of(const char *url, char out[256])
{
    const char *at = strstr(url, "://");
    at = at ? at + 3 : url;
    const size_t n = strcspn(at, "/?#");
    snprintf(out, 256, "%.*s", (int)(n < 255 ? n : 255), at);
}

static hub_status parse_url(hub_name *name, const char *scheme, const char *rest)
{
    const size_t n_host = strcspn(rest, "/?#");
    const char *path = rest + n_host;
    const size_t n_path = strcspn(path, "?#");
    const char *file = path + n_path;
    while (file > path && file[-1] != '/') file--;
    const size_t n_file = (size_t)(path + n_path - file);
    for (const char *c = rest; *c; c++)
        if ((unsigned char)*c <= 32 || *c == 127 || *c == '"' || *c == '\\')
            return hub_fail(HUB_E_NAME, "'%.200s' has a character that no address has", rest);
    if (n_host == 0 || memchr(rest, '@', n_host) || strlen(rest) > 2048)
        return hub_fail(HUB_E_NAME,
                        "'%s%.200s' is not the address of a file; expected %sHOST/PATH/FILE, without a user", scheme,
                        rest, scheme);
    if (!copy(name->part, sizeof name->part, file, n_file) || !hub_is_word(name->part, n_file))
        return hub_fail(HUB_E_NAME, "'%s%.200s' ends in no name of a file; expected letters, digits, '.', '_' and '-'",
                        scheme, rest);
    return hub_path_set(&name->url, "%s%s", scheme, rest);
}

hub_status hub_parse_https(hub_name *name, const char *rest)
{
    return parse_url(name, "https://", rest);
}

hub_status hub_parse_http(hub_name *name, const char *rest)
{
    return parse_url(name, "http://", rest);
}
