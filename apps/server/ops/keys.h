// SPDX-License-Identifier: MIT
// server/ops/keys.h: API keys of callers, and their limits.
//
// Keys are those of --api-key and the lines of --api-key-file:
//
//     # NAME = KEY LIMITS, or KEY LIMITS; KEY is the key itself or sha256:HEX, the SHA-256 of its bytes
//     alice = sha256:2bd806c9... rate=60/min concurrent=4 tokens=100000/day
//     batch = a-long-random-text weight=1 priority=5
//
// A key is identified by its name, or by its hash if it has no name; its line in the file does not matter. Only hashes
// are kept, and comparing them takes the same time for every key. Any thread.
#pragma once
#include "server/api/problem.h"

#include "frit.h"

#include <stdint.h>

enum { SERVER_KEY_HASH = 32, SERVER_KEY_NAME = 64 };

typedef struct server_limit {
    double amount, seconds;   // `amount` in `seconds`; 0: no limit
} server_limit;

typedef struct server_key_options {
    char name[SERVER_KEY_NAME];   // "": none
    uint8_t hash[SERVER_KEY_HASH];
    server_limit requests, tokens;
    int32_t concurrent;   // most requests at once; 0: no limit
    int32_t weight;       // relative part of the tokens while several callers wait
    int32_t priority;     // of the requests; lower numbers are served first
    int line;             // in the file; 0: from --api-key
    bool is_plain;        // the line has the key, not its hash
} server_key_options;

// Makes the options of a key, without limits.
void server_key_of_text(const char *text, server_key_options *out);
// Parses a line; *is_key is false for empty lines and comments. False with a sentence in `why`, which never shows a
// key.
bool server_key_parse(const char *line, server_key_options *out, bool *is_key, char *why, size_t size);
// The keys of a file, malloc'd. False with a problem of status 400.
bool server_key_file_read(const char *path, server_key_options **out, size_t *n, server_problem *problem);

// A caller, reference-counted: it outlives its line in the file. NULL: a caller without a key and without limits.
typedef struct server_key server_key;

server_key *server_key_ref(server_key *key);
void server_key_unref(server_key *key);
uint64_t server_key_id(const server_key *key);         // stable over restarts; 0: no key
const char *server_key_salt(const server_key *key);    // stable over restarts; "": no key
const char *server_key_label(const server_key *key);   // the name, or the start of a hash; NULL: no key
int32_t server_key_priority(server_key *key);
int32_t server_key_weight(server_key *key);
// Begins a request. False with status 429 and the time to wait if the limits do not allow it now.
bool server_key_enter(server_key *key, double now, server_problem *problem);
void server_key_leave(server_key *key);
// The amount that is left of a limit, and the seconds until it is whole again.
typedef struct server_allowance {
    double amount, left, seconds;   // amount 0: no limit
} server_allowance;
void server_key_allowances(server_key *key, double now, server_allowance *requests, server_allowance *tokens);
// Counts bytes of bodies in memory. False: the key would have more than `most`, and the bytes are not counted.
bool server_key_acquire_bytes(server_key *key, size_t n_bytes, size_t most);
void server_key_release_bytes(server_key *key, size_t n_bytes);
// Counts tokens that were served to the key.
void server_key_charge(server_key *key, size_t n_prompt, size_t n_answer);
// Reserves n tokens of the limit for a request, or as many as are left, and gives their number as *kept. The caller
// unreserves them as tokens are charged, or at the end of the request. False with status 429: no tokens are left, or
// other requests have reserved them.
bool server_key_reserve(server_key *key, double now, double n, double *kept, server_problem *problem);
void server_key_unreserve(server_key *key, double n);
// Tokens that were served, divided by the key's weight.
double server_key_served(server_key *key);
// Raises server_key_served to `least`, so that a caller that comes back has no credit for the time away.
void server_key_raise(server_key *key, double least);

typedef struct server_keys server_keys;

// `texts` has further keys, without limits; `path` NULL: no file. False with a problem.
bool server_keys_open(server_keys **out, const frit_option_list *texts, const char *path, server_problem *problem);
void server_keys_close(server_keys *keys);
// Reads the file again. Keys that are still in it keep their counts, other keys are dropped. False with a problem; the
// keys stay as they were.
bool server_keys_reload(server_keys *keys, server_problem *problem);
bool server_keys_have_file(const server_keys *keys);
size_t server_keys_count(server_keys *keys);   // 0: the server needs no key
// A reference to the key that one of the texts is; NULL: none. A text may be NULL.
server_key *server_keys_find(server_keys *keys, const char *first, const char *second);
// Counters of the keys in Prometheus' text format, malloc'd; "" without keys. NULL: no memory.
char *server_keys_metrics(server_keys *keys);
