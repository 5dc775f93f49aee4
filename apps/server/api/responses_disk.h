// SPDX-License-Identifier: MIT
// server/api/responses_disk.h: a file for each stored response.
//
//     FOLDER/ID.response: "frit-response 1 KEY CREATED N N N CHECKSUM\n", then the texts of N bytes each
//
// A file gets its name when all of it is on the disk, so a killed server leaves only complete files. The checksum
// detects damage when a response is read. Ids are made by the server, of letters, digits and '_'.
#pragma once
#include "server/api/problem.h"
#include "server/api/responses_store.h"

#include <stdint.h>

typedef struct server_disk server_disk;

typedef struct server_disk_entry {
    char id[64];
    size_t key, n_bytes;   // n_bytes: of the file
    int64_t created;       // seconds since 1970
} server_disk_entry;

// Makes the folder if it does not exist.
bool server_disk_open(server_disk **out, const char *folder, server_problem *problem);
void server_disk_close(server_disk *disk);
// Calls `found`, in any order, for each file with a valid head and the length that the head names. Other files get a
// warning. Removes files whose writing was interrupted.
void server_disk_list(server_disk *disk, void (*found)(void *ctx, const server_disk_entry *entry), void *ctx);
// Writes a file from the entry's id, key and created; sets n_bytes. On failure there is no file of this id, and *reason
// (128 bytes) says why.
bool server_disk_write(server_disk *disk, server_disk_entry *entry, const server_stored *stored, char reason[128]);
// Returns false, with a warning, if the file is damaged.
bool server_disk_read(server_disk *disk, const char *id, server_stored *stored);
void server_disk_remove(server_disk *disk, const char *id);
