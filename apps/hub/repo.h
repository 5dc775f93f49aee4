// SPDX-License-Identifier: MIT
// hub/repo.h: the files of a repository, at a server or in a folder, and which of them are the model that a name means.
#pragma once
#include "hub/hub.h"

enum { HUB_MAX_REPO_FILES = 20000 };

typedef struct hub_file {
    char *path;         // within the repository
    uint64_t n_bytes;   // UINT64_MAX: unknown
    char etag[136];     // the name of its blob; "": unknown
    char digest[65];    // of its bytes (digest.h); "": unknown
} hub_file;

typedef struct hub_repo {
    char commit[41];
    char license[64];   // "": unknown
    bool is_gated;      // its terms must be accepted
    hub_file *files;
    size_t n;
} hub_repo;

hub_status hub_repo_add(hub_repo *repo, const char *path, uint64_t n_bytes, hub_file **out);
void hub_repo_free(hub_repo *repo);
// What the hub answers to /api/models/REPO/revision/REVISION?blobs=true.
hub_status hub_repo_parse(hub_repo *repo, const char *json, size_t n, const char *what);
// The files of a folder and of folders in it.
hub_status hub_repo_read_folder(hub_repo *repo, const char *folder);

// A GGUF file, or all parts of one that is split.
typedef struct hub_variant {
    char quant[24];            // "Q4_K_M"; "": unknown
    size_t first;              // the file that is opened
    size_t n_files, n_parts;   // that are there, that there should be
    uint64_t n_bytes;
} hub_variant;

// malloc'd; projectors and importance files are left out.
hub_status hub_repo_variants(const hub_repo *repo, hub_variant **out, size_t *n);
// "Q4_K_M" for "model-Q4_K_M-00001-of-00002.gguf".
void hub_quant_of(const char *file, char out[24]);
bool hub_same_set(const char *a, const char *b);   // parts of the same split file, or the same file

typedef struct hub_choice {
    size_t *files;   // malloc'd: which files
    size_t n_files;
    char main[1024];   // the file that is opened; "": the folder
    char quant[24];
    uint64_t n_bytes;   // of all; files of unknown size count 0
    char why[320];      // what was chosen among what; "": there was no choice
} hub_choice;

// `part`: a file, a quantization, or "". room_bytes 0: any size. `what`: the name, for sentences.
hub_status hub_choose(const hub_repo *repo, const char *part, uint64_t room_bytes, const char *what, hub_choice *out);
void hub_choice_free(hub_choice *choice);
// What a model of that size takes with a short context.
uint64_t hub_needed_bytes(uint64_t n_bytes);
