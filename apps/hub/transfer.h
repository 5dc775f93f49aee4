// SPDX-License-Identifier: MIT
// hub/transfer.h: fetches a file: continues what is there, over several connections where the server gives ranges, and
// compares its digest before the file gets its name.
#pragma once
#include "hub/hub.h"

typedef struct hub_transfer {
    const char *url, *token;   // token: NULL: none
    const char *part, *target;
    const char *identity;   // what the bytes are, such as an etag: parts of others are begun anew
    uint64_t n_bytes;       // UINT64_MAX: unknown
    const char *digest;     // in hexadecimal digits (digest.h); "": unknown
    const char *file;       // its name, whose ending says what it has to be (kind.h)
    bool is_address;        // likewise
    const char *what;       // for sentences
    const char *typed;      // the name, for "frit pull NAME"
    int n_connections;
    uint64_t before, total;   // for progress: bytes of files that are done, and of all
    const hub_watch *watch;
} hub_transfer;

hub_status hub_transfer_run(const hub_transfer *transfer);

// Fetches under a lock that other processes wait for. Checks the free space first, and fetches nothing if another
// process has completed the target meanwhile.
hub_status hub_fetch(const hub_transfer *transfer, const char *lock);
