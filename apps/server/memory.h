// SPDX-License-Identifier: MIT
// server/memory.h: large requests give their memory back to the system.
#pragma once

// Once, before the first request: large blocks come from the system one by one and go back when they are freed.
void server_memory_prepare(void);
// After a large request: what is free goes back. Takes some milliseconds.
void server_memory_trim(void);
