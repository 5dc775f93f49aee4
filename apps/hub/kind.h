// SPDX-License-Identifier: MIT
// hub/kind.h: whether what a server sends can be a model's file. Servers answer with pages too: of logins, of portals,
// of an address that was copied from a browser. None of them is kept.
#pragma once
#include "hub/hub.h"

enum { HUB_KIND_BYTES = 512 };   // of the beginning that decide

// `bytes`: the first n bytes, HUB_KIND_BYTES or all. A name that ends in .gguf or .safetensors is that; where the user
// gave an address (`is_address`) any other is something that frit reads; else it is no web page and no pointer.
// HUB_E_DATA with a sentence that begins with `what`.
hub_status hub_check_kind(const char *file, bool is_address, const void *bytes, size_t n, const char *what);
