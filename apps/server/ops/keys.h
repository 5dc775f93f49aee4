// SPDX-License-Identifier: MIT
// server/ops/keys.h: API keys: which callers the server knows, and how much each of them may use.
//
// Keys are those of --api-key and the lines of --api-key-file:
//
//     # NAME = KEY LIMITS, or KEY LIMITS; KEY is the key itself or sha256:HEX, the SHA-256 of its bytes
//     alice = sha256:2bd806c9... rate=60/min concurrent=4 tokens=100000/day
//     batch = a-long-random-text weight=1 priority=5
//
// A key is known by its name, or by its hash where it has none, whatever its place in the file is. Only hashes are
// kept, and all of them are compared in the same time. Any thread.
#pragma once
#include "server/api/problem.h"

#include "frit.h"

#include <stdint.h>

enum { SERVER_KEY_HASH = 32, SERVER_KEY_NAME = 64 };

typedef struct server_limit {
    double amount, seconds;   // so much in so long; 0: any amount
} server_limit;

typedef struct server_key_options {
    char name[SERVER_KEY_NAME];   // "": none
    uint8_t hash[SERVER_KEY_HASH];
    server_limit requests, tokens;
    int32_t concurrent;   // requests at once; 0: any number
    int32_t weight;       // its share where callers wait, against others'
    int32_t priority;     // of its requests; lower ones are served first
    int line;             // of the file; 0: of --api-key
    bool is_plain;        // the line has the key itself
} server_key_options;

// A key of a text, without limits.
void server_key_of_text(const char *text, server_key_options *out);
// Reads a line: *is_key is false for an empty one and a comment. False with a sentence, which shows nothing of the key.
bool server_key_parse(const char *line, server_key_options *out, bool *is_key, char *why, size_t size);
// All lines of a file, malloc'd. False with a problem of status 400.
bool server_key_file_read(const char *path, server_key_options **out, size_t *n, server_problem *problem);

// A caller. It outlives its key in the file while it is retained. NULL: a caller without a key; it has no limits.
typedef struct server_key server_key;

server_key *server_key_retain(server_key *key);
void server_key_release(server_key *key);
uint64_t server_key_id(const server_key *key);         // the same after a restart; 0: no key
const char *server_key_salt(const server_key *key);    // likewise, as a text; "": no key
const char *server_key_label(const server_key *key);   // for people: its name, or the start of a hash; NULL: no key
int32_t server_key_priority(server_key *key);
int32_t server_key_weight(server_key *key);
// Begins a request. False with 429 and the time to wait if the key's limits do not allow it now.
bool server_key_enter(server_key *key, double now, server_problem *problem);
void server_key_leave(server_key *key);
// What is left of a limit, and the seconds until all of it is there again.
typedef struct server_allowance {
    double amount, left, seconds;   // amount 0: there is no limit
} server_allowance;
void server_key_allowances(server_key *key, double now, server_allowance *requests, server_allowance *tokens);
// Counts bytes of bodies that are held for the key; false: it would have more than `most`, and they are not counted.
bool server_key_hold(server_key *key, size_t n_bytes, size_t most);
void server_key_drop(server_key *key, size_t n_bytes);
// Counts tokens that were served to the key.
void server_key_charge(server_key *key, size_t n_prompt, size_t n_answer);
// Keeps so many of the tokens that its limit allows now for a request, or all that is left; *kept of them, to be given
// back as they are charged, or at its end. False with 429: nothing is left, or other requests have reserved it.
bool server_key_reserve(server_key *key, double now, double n, double *kept, server_problem *problem);
void server_key_unreserve(server_key *key, double n);
// Tokens that were served, divided by the key's weight: the caller with fewest is served next.
double server_key_served(server_key *key);
// Raises it, so that a caller that comes back has no credit for the time away.
void server_key_raise(server_key *key, double least);

typedef struct server_keys server_keys;

// `texts` are keys too; path NULL: no file. False with a problem.
bool server_keys_open(server_keys **out, const frit_option_list *texts, const char *path, server_problem *problem);
void server_keys_close(server_keys *keys);
// Reads the file again. A key that is still there keeps its counts, others are no longer known. False with a problem,
// and with the keys as they were.
bool server_keys_reload(server_keys *keys, server_problem *problem);
bool server_keys_have_file(const server_keys *keys);
size_t server_keys_count(server_keys *keys);   // 0: no key is asked for
// The key of one of these texts, retained; NULL texts are of no key.
server_key *server_keys_find(server_keys *keys, const char *first, const char *second);
// What the keys have used, malloc'd, in Prometheus' text format; "" without keys, NULL without memory.
char *server_keys_metrics(server_keys *keys);
