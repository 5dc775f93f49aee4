// SPDX-License-Identifier: MIT
// hub/kind.h: checks that data from a server can be a model's file. Servers also answer with web pages: login pages,
// portals, pages whose address was copied from a browser. Such data is not stored.
#pragma once
#include "hub/hub.h"

enum { HUB_KIND_BYTES = 512 };   // bytes at the beginning that are checked

// `bytes` has the first n bytes, HUB_KIND_BYTES or all. A file whose name ends in .gguf or .safetensors must have this
// format. With `is_address`, other files must have a format that frit reads; otherwise they must not be web pages or
// LFS pointers. HUB_E_DATA with an error that begins with `what`.
hub_status hub_check_kind(const char *file, bool is_address, const void *bytes, size_t n, const char *what);
