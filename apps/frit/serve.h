// SPDX-License-Identifier: MIT
// frit/serve.h: the options of `frit serve` and of its models. In order of precedence: command line, the model's
// section in the config file, the part of the file before its first section, defaults.
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
    const char *path;           // NULL: unknown yet
    char *name;                 // owned; NULL: from the file's name
    char *found;                // owned: the path found by name; NULL: `path` was given
    serve_args args;
    cli_parse parse;      // owns lists of the section
    uint64_t *promised;   // bytes promised to all loaded models; NULL: there is one model
} served_model;

typedef struct serve_config {
    cli_config file;
    const char *path;
    cli_common typed;   // as set by the command line and the environment
    cli_parse parse;    // owns lists from the part before the sections
} serve_config;

// Reads the file args->config, if it is set, and applies its part before the sections. Returns an exit code after
// printing any error with file, line, key, what was found and what is expected.
int serve_read_config(serve_config *config, serve_args *args);
size_t serve_count_sections(const serve_config *config);
// Applies the sections: options of existing models, or further models, for which there is room.
int serve_take_sections(const serve_config *config, const serve_args *args, served_model *models, size_t *n);
void serve_config_free(serve_config *config);

typedef struct serve_need {   // need of the host's memory
    uint64_t fixed_bytes, kv_bytes;
    int32_t n_ctx;   // context length of kv_bytes
    bool is_given;   // the context may not be shortened
} serve_need;

// Returns the context that the model may have in addition to memory promised to other models; 0: there is no room.
int32_t serve_fit_context(const serve_need *need, uint64_t promised, uint64_t available);
// Promises memory to an engine with these options, and shortens a context that is chosen automatically. *taken is the
// amount to release later. Returns CLI_NO_MEMORY after printing an error.
int serve_take_memory(uint64_t *promised, uint64_t *taken, frit_model *model, frit_engine_options *options);
