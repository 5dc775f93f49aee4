// SPDX-License-Identifier: MIT
// Any bytes as a safetensors file, and the same bytes as the config.json of a model family, and as the
// prompts of sentence-transformers.
#include "format/hf/hf.h"
#include "format/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n_bytes, size_t max_bytes);

static const char start[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                            "\"a\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]},"
                            "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[12,16]}}0123456789abcdef";

// Input that is too short for a header becomes a valid file, so that an empty corpus is enough. A mutated header mostly
// gets its right length, because otherwise few changes would be parsed.
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed)
{
    const size_t n_start = sizeof start - 1;
    if (n_bytes < 10 && max_bytes >= 8 + n_start) {
        memcpy(bytes + 8, start, n_start);
        n_bytes = 8 + n_start;
    }
    n_bytes = LLVMFuzzerMutate(bytes, n_bytes, max_bytes);
    if (n_bytes < 10 || bytes[0] == '{' || seed % 8 == 0) return n_bytes;   // '{': a config.json
    size_t end = n_bytes;
    while (end > 8 && bytes[end - 1] != '}') end--;
    for (size_t i = 0; i < 8; i++) bytes[i] = (uint8_t)((uint64_t)(end - 8) >> 8 * i);
    return n_bytes;
}

static volatile uint8_t sink;

// Reads every byte that a tensor refers to.
static void touch(const frit_checkpoint *ckpt)
{
    for (size_t i = 0; i < ckpt->n_tensors; i++) {
        const uint8_t *data = ckpt->tensors[i].data;
        for (uint64_t k = 0; k < ckpt->tensors[i].n_bytes; k++) sink = data[k];
    }
}

static void parse_file(const uint8_t *bytes, size_t n_bytes)
{
    frit_checkpoint *ckpt;
    if (frit_checkpoint_new(&ckpt, "fuzz") != FRIT_OK) return;
    if (frit_safetensors_parse(ckpt, "fuzz", bytes, n_bytes) == FRIT_OK) touch(ckpt);
    frit_checkpoint_close(ckpt);
}

static void read_config(const uint8_t *bytes, size_t n_bytes)
{
    json_t *config = json_loadb((const char *)bytes, n_bytes, JSON_REJECT_DUPLICATES, NULL);
    if (!config) return;
    frit_checkpoint *ckpt;
    if (frit_checkpoint_new(&ckpt, "fuzz") == FRIT_OK) {
        frit_hf hf = {.ckpt = ckpt, .path = "config.json", .config = config};
        frit_hf_read_config(&hf);
        frit_hf_add_prompts(&hf, "fuzz", config);
        frit_checkpoint_close(ckpt);
    }
    json_decref(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    parse_file(bytes, n_bytes);
    read_config(bytes, n_bytes);
    return 0;
}
