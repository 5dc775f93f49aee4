// SPDX-License-Identifier: MIT
// hub/name.h: what a name may hold. Repositories, files, tags and digests come from users, from files and from
// servers, and become parts of paths: each is checked here first, so that no name leads out of a cache.
#pragma once
#include "hub/hub.h"

// "Llama-3.2_1B.gguf": letters, digits, '.', '_', '-', at most 96; not '.' or '-' first, and no "..".
bool hub_is_word(const char *text, size_t n);
// "folder/model.gguf": parts between '/', none empty, "." or ".."; no '\\' and no control characters.
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
// https://huggingface.co/org/repo/resolve/main/file.gguf is hf:org/repo@main:file.gguf, of that endpoint. False if it
// is no such address.
bool hub_url_is_hf(const char *endpoint, const char *url, hub_name *name);
