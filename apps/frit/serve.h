// SPDX-License-Identifier: MIT
// frit/serve.h: the options of `frit serve` and of each of its models: those of the command line, then those of the
// model's section in the config file, then those before its first section, then defaults.
#pragma once
#include "frit/cli/cli.h"
#include "frit/cli/config.h"

#include "server/server.h"

typedef struct serve_args {
    cli_common common;
    const char *config;   // path; NULL: none
    server_options server;
    frit_sampler_options sampler;
    cli_grammar_options grammar;
    cli_speculate_options speculate;
    app_shift_options shift;
    cli_adapter_options adapters;
    frit_engine_options engine;
    frit_model_options model;
} serve_args;

typedef struct served_model {   // a model and its options
    const char *path;           // NULL: not known yet
    char *name;                 // owned; NULL: its file's
    char *found;                // owned: the path that a name led to; NULL: it is a path
    serve_args args;
    cli_parse parse;      // owns lists of the section
    uint64_t *promised;   // of all models that are loaded; NULL: there is one model
} served_model;

typedef struct serve_config {
    cli_config file;
    const char *path;
    cli_common typed;   // as the command line and the environment left it
    cli_parse parse;    // owns lists of what stands before the sections
} serve_config;

// Reads the file that args->config names, if it names one, and takes what stands before its sections. Exit codes,
// having said what is wrong: file, line, key, what was found and what is expected.
int serve_read_config(serve_config *config, serve_args *args);
size_t serve_count_sections(const serve_config *config);
// Takes the sections: options of models that are there, or further models, for which there is room.
int serve_take_sections(const serve_config *config, const serve_args *args, served_model *models, size_t *n);
void serve_config_free(serve_config *config);

typedef struct serve_need {   // of the host's memory
    uint64_t fixed_bytes, kv_bytes;
    int32_t n_ctx;   // of which kv_bytes are
    bool is_given;   // the context must be as long as this
} serve_need;

// The context that the model may have beside what is promised to others; 0: it has no room.
int32_t serve_fit_context(const serve_need *need, uint64_t promised, uint64_t available);
// Promises an engine with these options what it may take, and shortens a context that is left to the engine. *taken is
// what to take off again. CLI_NO_MEMORY, having said what is missing.
int serve_take_memory(uint64_t *promised, uint64_t *taken, frit_model *model, frit_engine_options *options);
