// SPDX-License-Identifier: MIT
// server/turns.h: workers of several models take turns: one step at a time has all cores, in the order in which
// they were asked for.
#pragma once
#include <stdbool.h>

typedef struct server_turns server_turns;

server_turns *server_turns_new(void);   // NULL: no memory
void server_turns_free(server_turns *turns);
void server_turns_begin(server_turns *turns);   // waits. NULL: nothing happens, here and below
void server_turns_end(server_turns *turns);
