// SPDX-License-Identifier: MIT
// hub/transfer.h: fetches a file: continues an existing part, over several connections if the server supports ranges,
// and checks the digest before the file gets its name.
#pragma once
#include "hub/hub.h"

typedef struct hub_transfer {
    const char *url, *token;   // token: NULL: none
    const char *part, *target;
    const char *identity;   // identity of the bytes, such as an etag; a part with another identity is begun anew
    uint64_t n_bytes;       // UINT64_MAX: unknown
    const char *digest;     // in hexadecimal digits (digest.h); "": unknown
    const char *file;       // file name, whose ending determines the expected kind (kind.h)
    bool is_address;        // as in hub_check_kind
    const char *what;       // for errors
    const char *typed;      // the name, for "frit pull NAME"
    int n_connections;
    uint64_t before, total;   // for progress: bytes of files that are finished, and of all files
    const hub_watch *watch;
} hub_transfer;

hub_status hub_transfer_run(const hub_transfer *transfer);

// Fetches under a lock that other processes wait for. Checks the free space first. Fetches nothing if another process
// has completed the target meanwhile.
hub_status hub_fetch(const hub_transfer *transfer, const char *lock);
