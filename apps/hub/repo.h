// SPDX-License-Identifier: MIT
// hub/repo.h: the files of a repository, at a server or in a folder, and the choice of the files of a model.
#pragma once
#include "hub/hub.h"

enum { HUB_MAX_REPO_FILES = 20000 };

typedef struct hub_file {
    char *path;         // within the repository
    uint64_t n_bytes;   // UINT64_MAX: unknown
    char etag[136];     // the name of its blob; "": unknown
    char digest[65];    // digest of its bytes (digest.h); "": unknown
} hub_file;

typedef struct hub_repo {
    char commit[41];
    char license[64];   // "": unknown
    bool is_gated;      // its terms must be accepted
    hub_file *files;
    size_t n, capacity;
} hub_repo;

hub_status hub_repo_add(hub_repo *repo, const char *path, uint64_t n_bytes, hub_file **out);
void hub_repo_free(hub_repo *repo);
// Parses the hub's answer to /api/models/REPO/revision/REVISION?blobs=true.
hub_status hub_repo_parse(hub_repo *repo, const char *json, size_t n, const char *what);
// Lists the files of a folder and its subfolders.
hub_status hub_repo_read_folder(hub_repo *repo, const char *folder);

// A GGUF file, or all parts of one that is split.
typedef struct hub_variant {
    char quant[24];            // "Q4_K_M"; "": unknown
    size_t first;              // the file that is opened
    size_t n_files, n_parts;   // files that exist, files that should exist
    uint64_t n_bytes;
} hub_variant;

// Lists variants, malloc'd, without projectors and importance files.
hub_status hub_repo_variants(const hub_repo *repo, hub_variant **out, size_t *n);
// Finds "Q4_K_M" in "model-Q4_K_M-00001-of-00002.gguf".
void hub_quant_of(const char *file, char out[24]);
bool hub_same_set(const char *a, const char *b);   // parts of the same split file, or the same file

typedef struct hub_choice {
    size_t *files;   // malloc'd: indices of files
    size_t n_files;
    char main[1024];   // the file that is opened; "": the folder
    char quant[24];
    uint64_t n_bytes;   // of all files; files of unknown size count 0
    char why[320];      // the choice and its alternatives; "": there was only one candidate
} hub_choice;

// Chooses the files of a model. `part`: a file, a quantization, or "". room_bytes 0: any size. `what`: the name, for
// errors.
hub_status hub_choose(const hub_repo *repo, const char *part, uint64_t room_bytes, const char *what, hub_choice *out);
void hub_choice_free(hub_choice *choice);
// The memory that a model of this size needs with a short context.
uint64_t hub_needed_bytes(uint64_t n_bytes);
