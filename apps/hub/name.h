// SPDX-License-Identifier: MIT
// hub/name.h: the valid characters of names. Repositories, files, tags and digests come from users, from files and from
// servers, and become parts of paths. Each is checked here first, so that no path leaves a cache.
#pragma once
#include "hub/hub.h"

// True for "Llama-3.2_1B.gguf": letters, digits, '.', '_', '-', at most 96; not '.' or '-' first, and no "..".
bool hub_is_word(const char *text, size_t n);
// True for "folder/model.gguf": parts between '/', none of them empty, "." or ".."; no '\\', no control characters, and
// no characters that change the order in which text is shown.
bool hub_is_safe_path(const char *text);
bool hub_is_hex(const char *text, size_t n_digits);   // exactly n_digits digits, in lower case
bool hub_is_etag(const char *text);                   // valid as a file name: letters, digits, '-', '_'
// Reads "\"abc\"" and "W/\"abc\"" as "abc". False if the result is empty or longer than `size` - 1.
bool hub_read_etag(const char *header, char *out, size_t size);

hub_status hub_parse_hf(hub_name *name, const char *rest);
hub_status hub_parse_ollama(hub_name *name, const char *rest);
hub_status hub_parse_studio(hub_name *name, const char *rest);
hub_status hub_parse_https(hub_name *name, const char *rest);
hub_status hub_parse_http(hub_name *name, const char *rest);
// Checks that the parts of a hub name are valid in addresses and paths.
hub_status hub_check_hf(const hub_name *name);

// True for addresses of pages of the hub and of ollama's library, with or without a scheme:
// huggingface.co/ORG/REPO/tree/main, hf.co/ORG/REPO:Q4_K_M, https://ollama.com/library/MODEL:TAG (spelling.c).
bool hub_is_site(const char *text);
// Reads the name in such an address. HUB_E_NAME if it names no model; HUB_E_NOT_FOUND if it is not an address of these
// sites.
hub_status hub_read_site(const char *text, hub_name *out);
// Reads the address of a repository, or of a file in one, under `endpoint`, a mirror of the hub. False for others.
bool hub_url_is_hf(const char *endpoint, const char *url, hub_name *name);
