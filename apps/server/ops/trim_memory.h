// SPDX-License-Identifier: MIT
// server/ops/trim_memory.h: large requests give their memory back to the system; and there is some left for JSON.
//
// Jansson (2.14) writes past its buffer where memory ends while it reads a text. So it gets memory of a reserve then,
// and no text is read without the reserve, or while there is not as much memory as it may take.
#pragma once
#include <stdbool.h>
#include <stddef.h>

// Once, before the first request: large blocks come from the system one by one and go back when they are freed.
void server_memory_prepare(void);
// Whether there is memory for a text of so many bytes with so many values.
bool server_memory_has_room(size_t n_bytes, size_t n_values);
// After a large request: what is free goes back. Takes some milliseconds.
void server_memory_trim(void);
