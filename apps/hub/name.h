// SPDX-License-Identifier: MIT
// hub/name.h: what a name may hold. Repositories, files, tags and digests come from users, from files and from
// servers, and become parts of paths: each is checked here first, so that no name leads out of a cache.
#pragma once
#include "hub/hub.h"

// "Llama-3.2_1B.gguf": letters, digits, '.', '_', '-', at most 96; not '.' or '-' first, and no "..".
bool hub_is_word(const char *text, size_t n);
// "folder/model.gguf": parts between '/', none empty, "." or ".."; no '\\', no control characters, and none that change
// the order in which text is shown.
bool hub_is_safe_path(const char *text);
bool hub_is_hex(const char *text, size_t n_digits);   // exactly so many digits, small letters
bool hub_is_etag(const char *text);                   // may be a file's name: letters, digits, '-', '_'
// "\"abc\"" and "W/\"abc\"" become "abc". False if what is left is empty or longer than `size` - 1.
bool hub_read_etag(const char *header, char *out, size_t size);

hub_status hub_parse_hf(hub_name *name, const char *rest);
hub_status hub_parse_ollama(hub_name *name, const char *rest);
hub_status hub_parse_studio(hub_name *name, const char *rest);
hub_status hub_parse_https(hub_name *name, const char *rest);
hub_status hub_parse_http(hub_name *name, const char *rest);
// Whether the parts of a name of the hub may stand in addresses and paths.
hub_status hub_check_hf(const hub_name *name);

// Pages and addresses of the hub and of ollama's library, as browsers and other programs write them, with or without a
// scheme: huggingface.co/ORG/REPO/tree/main, hf.co/ORG/REPO:Q4_K_M, https://ollama.com/library/MODEL:TAG (spelling.c).
bool hub_is_site(const char *text);
// HUB_E_NAME where such a page names no model; HUB_E_NOT_FOUND: the text is no such page.
hub_status hub_read_site(const char *text, hub_name *out);
// Reads the address of a repository, or of a file in one, under `endpoint`, a mirror of the hub. False for others.
bool hub_url_is_hf(const char *endpoint, const char *url, hub_name *name);
