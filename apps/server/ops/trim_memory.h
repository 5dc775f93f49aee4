// SPDX-License-Identifier: MIT
// server/ops/trim_memory.h: returns the memory of large requests to the system, and keeps a reserve for JSON.
//
// Jansson (2.14) writes past its buffer if memory ends while it parses a text. So the reserve is freed then, and no
// text is parsed without the reserve, or if there is less memory than the text may need.
#pragma once
#include <stdbool.h>
#include <stddef.h>

// Call once, before the first request: makes malloc return large blocks to the system when they are freed.
void server_memory_prepare(void);
// True if there is memory to parse a text with n_bytes bytes and n_values values.
bool server_memory_has_room(size_t n_bytes, size_t n_values);
// Returns free memory to the system. Takes a few milliseconds.
void server_memory_trim(void);
