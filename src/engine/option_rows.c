// SPDX-License-Identifier: MIT
// The option rows of models and engines.
#include "base/option.h"
#include "engine/kv/kv.h"

#include <stddef.h>

#define MODEL(field, ...)  FRIT_OPTION(frit_model_options, field, __VA_ARGS__)
#define ENGINE(field, ...) FRIT_OPTION(frit_engine_options, field, __VA_ARGS__)

// clang-format off
static const frit_option model_rows[] = {
    MODEL(no_mmap, .name = "no-mmap", .type = FRIT_OPTION_FLAG,
          .help = "read the model into memory instead of mapping the file"),
    MODEL(type, .name = "type", .type = FRIT_OPTION_TEXT, .metavar = "TYPE",
          .help = "quantize matrices while loading: q8_0, q4_k, f16, ..., as 'frit convert --type' does"),
    MODEL(chat_template, .name = "chat-template", .aliases = "chat-template-file", .type = FRIT_OPTION_TEXT,
          .metavar = "FILE",
          .help = "use the chat template in this file, or the model's own of this name"),
    MODEL(mmproj, .name = "mmproj", .letters = "mm", .type = FRIT_OPTION_TEXT, .metavar = "FILE",
          .help = "the encoder of pictures; else mmproj-*.gguf beside a GGUF model, or what a folder has"),
    MODEL(rope_scaling, .name = "rope-scaling", .type = FRIT_OPTION_CHOICE, .choices = "none|linear|yarn",
          .metavar = "KIND", .help = "how positions beyond the original context are rotated; else as the file says"),
    MODEL(rope_scale, .name = "rope-scale", .type = FRIT_OPTION_FLOAT, .min = 0, .max = 1e6, .metavar = "N",
          .help = "the context is N times the original one (give -c too); 0: as the file says"),
    MODEL(rope_freq_scale, .name = "rope-freq-scale", .type = FRIT_OPTION_FLOAT, .min = 0, .max = 1e6, .metavar = "N",
          .help = "as --rope-scale 1/N"),
    MODEL(rope_freq_base, .name = "rope-freq-base", .type = FRIT_OPTION_FLOAT, .min = 0, .max = 1e15, .metavar = "N",
          .help = "base of the frequencies of rotation; 0: as the file says"),
    MODEL(yarn_orig_ctx, .name = "yarn-orig-ctx", .type = FRIT_OPTION_INT, .min = 0, .max = 1 << 30, .metavar = "N",
          .help = "YaRN: the original context; 0: as the file says"),
    MODEL(yarn_ext_factor, .name = "yarn-ext-factor", .type = FRIT_OPTION_FLOAT, .min = 0, .max = 1e6, .metavar = "N",
          .help = "YaRN: share of extrapolation; 0: as the file says, else 1"),
    MODEL(yarn_attn_factor, .name = "yarn-attn-factor", .type = FRIT_OPTION_FLOAT, .min = 0, .max = 1e6,
          .metavar = "N", .help = "YaRN: factor of the magnitude; 0: as the file says, else 1"),
    MODEL(yarn_beta_fast, .name = "yarn-beta-fast", .type = FRIT_OPTION_FLOAT, .min = 0, .max = 1e6, .metavar = "N",
          .help = "YaRN: pairs that turn more often than this stay; 0: as the file says, else 32"),
    MODEL(yarn_beta_slow, .name = "yarn-beta-slow", .type = FRIT_OPTION_FLOAT, .min = 0, .max = 1e6, .metavar = "N",
          .help = "YaRN: pairs that turn less often are scaled whole; 0: as the file says, else 1"),
};

static const frit_option engine_rows[] = {
    ENGINE(n_ctx, .name = "ctx", .letter = 'c', .aliases = "ctx-size", .type = FRIT_OPTION_INT, .min = 0, .max = 1 << 27,
           .metavar = "N",
           .help = "context: tokens that one session can hold; 0: what the model was trained for, if memory allows"),
    ENGINE(n_threads, .name = "threads", .letter = 't', .type = FRIT_OPTION_INT, .min = 0, .max = 1024, .metavar = "N",
           .help = "threads; 0: one for each core that this process may use, or fewer where memory gives no more"),
    ENGINE(n_threads_batch, .name = "threads-batch", .letters = "tb", .type = FRIT_OPTION_INT, .min = 0, .max = 1024,
           .metavar = "N", .help = "threads for prompts; 0: as many as for the rest, or one for each core"),
    ENGINE(n_batch, .name = "batch", .letter = 'b', .letters = "ub", .aliases = "batch-size|ubatch-size",
           .type = FRIT_OPTION_INT, .min = 0, .max = 1 << 16, .metavar = "N",
           .help = "tokens that one step runs at most; 0: 512, on GPUs with much memory 2048"),
    ENGINE(cpu, .name = "cpu", .type = FRIT_OPTION_TEXT, .metavar = "NAME",
           .help = "best instruction set to use (scalar, avx2, ...), or reference for plain code"),
    ENGINE(cache_type_k, .name = "cache-type-k", .letters = "ctk", .type = FRIT_OPTION_CHOICE, .metavar = "TYPE",
           .choices = FRIT_KV_TYPES, .help = "type of cached keys: f16, or f32 with the reference"),
    ENGINE(cache_type_v, .name = "cache-type-v", .letters = "ctv", .type = FRIT_OPTION_CHOICE, .metavar = "TYPE",
           .choices = FRIT_KV_TYPES, .help = "type of cached values; f16, or f32 with the reference"),
    ENGINE(n_state_copies, .name = "state-copies", .type = FRIT_OPTION_INT, .min = -1, .max = FRIT_MAX_SNAPSHOTS,
           .metavar = "N",
           .help = "models with states or windows: places that a session can go back to; 0: 2, -1: its beginning"),
    ENGINE(full_windows, .name = "full-windows", .type = FRIT_OPTION_FLAG,
           .help = "layers with a window keep all positions (more memory; sessions can go back to any of them)"),
    ENGINE(no_prefix_cache, .name = "no-prefix-cache", .type = FRIT_OPTION_FLAG,
           .help = "run every prompt from its beginning, also where another session has run the same tokens"),
    ENGINE(prefix_host_mib, .name = "prefix-cache-ram", .type = FRIT_OPTION_INT, .min = 0, .max = 1 << 20,
           .metavar = "MIB", .help = "memory of the host for prompts that a device has no room for any more; 0: none"),
    ENGINE(prefix_disk, .name = "prefix-cache-disk", .type = FRIT_OPTION_TEXT, .metavar = "DIR[:SIZE]",
           .help = "a folder for prompts that memory has no room for any more, and for the next start; 4G of it at most"),
    ENGINE(prompt_budget, .name = "prompt-budget", .type = FRIT_OPTION_INT, .min = -1, .max = 1 << 16, .metavar = "N",
           .help = "tokens of prompts in a step while others generate; 0: by the time they take, -1: any number"),
    ENGINE(weights_cache, .name = "weights-cache", .type = FRIT_OPTION_TEXT, .metavar = "DIR",
           .help = "keep the weights in this folder as they lie in memory, as large as the model, to start faster"),
    ENGINE(numa, .name = "numa", .type = FRIT_OPTION_CHOICE, .choices = "auto|off|tensor", .metavar = "MODE",
           .help = "with several memory nodes: auto keeps threads beside the weights they read, tensor divides them"),
    ENGINE(device, .name = "device", .letters = "dev", .type = FRIT_OPTION_TEXT, .metavar = "NAME",
           .help = "device that runs layers: cuda, cuda:1, webgpu, or several: cuda:0-3, cuda:0,2; cpu: none beside the CPU"),
    ENGINE(split, .name = "split", .letters = "sm", .aliases = "split-mode", .type = FRIT_OPTION_CHOICE,
           .choices = "auto|tensor|layer", .metavar = "MODE",
           .help = "several devices have a part of every layer (tensor), or some of the layers (layer)"),
    ENGINE(gpu_layers, .name = "gpu-layers", .letters = "ngl", .aliases = "n-gpu-layers", .type = FRIT_OPTION_TEXT,
           .metavar = "N",
           .help = "layers that run on the device, from the output on: a number, all, or auto: what its memory holds"),
    ENGINE(override_tensor, .name = "override-tensor", .letters = "ot", .type = FRIT_OPTION_TEXT,
           .metavar = "PATTERN=DEVICE",
           .help = "ops that read tensors whose names match the regex run on this device; several with commas"),
    ENGINE(fit, .name = "fit", .type = FRIT_OPTION_CHOICE, .choices = "on|off", .metavar = "MODE",
           .help = "on: context, layers on devices and cache types that are not given are what free memory allows"),
    ENGINE(deterministic, .name = "deterministic", .type = FRIT_OPTION_FLAG,
           .help = "give equal numbers however a prompt is cut into steps; on the CPU: without AMX"),
    ENGINE(no_fuse, .name = "no-fuse", .type = FRIT_OPTION_FLAG,
           .help = "run the graph as it is, without fused operations (slower)"),
};
// clang-format on

const frit_option *frit_model_option_rows(size_t *n_rows)
{
    FRIT_REQUIRE_OR(NULL, n_rows);
    *n_rows = FRIT_COUNT(model_rows);
    return model_rows;
}

const frit_option *frit_engine_option_rows(size_t *n_rows)
{
    FRIT_REQUIRE_OR(NULL, n_rows);
    *n_rows = FRIT_COUNT(engine_rows);
    return engine_rows;
}
