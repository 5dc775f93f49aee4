// SPDX-License-Identifier: MIT
// Any bytes as an adapter of a small model: a GGUF file, or both files of a PEFT folder with a zero byte between them.
#include "format/adapter.h"
#include "format/gguf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static volatile uint8_t sink;

static void touch(const frit_tensor *tensor)
{
    const uint8_t *data = tensor->data;
    for (uint64_t i = 0; i < tensor->n_bytes; i++) sink = data[i];
}

static void add(frit_checkpoint *base, const char *name, int64_t out, int64_t in)
{
    static const float zeros[16 * 16];
    const frit_tensor tensor = {.name = name,
                                .dtype = FRIT_DTYPE_F32,
                                .n_dims = 2,
                                .shape = {out, in, 1, 1},
                                .data = zeros,
                                .n_bytes = (uint64_t)(out * in) * sizeof *zeros};
    if (frit_checkpoint_add_tensor(base, &tensor) != FRIT_OK) abort();
}

static frit_checkpoint *new_base(void)
{
    frit_checkpoint *base;
    if (frit_checkpoint_new(&base, "base") != FRIT_OK) abort();
    if (frit_meta_add_text(&base->meta, "general.architecture", "llama") != FRIT_OK) abort();
    if (frit_meta_add_u64(&base->meta, "llama.block_count", 2) != FRIT_OK) abort();
    if (frit_meta_add_u64(&base->meta, "llama.embedding_length", 8) != FRIT_OK) abort();
    add(base, "token_embd.weight", 16, 8);
    add(base, "blk.0.attn_q.weight", 8, 8);
    add(base, "blk.1.ffn_down.weight", 8, 12);
    return base;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    frit_checkpoint *base = new_base();
    frit_adapter_file file = {.format = ""};
    if (frit_checkpoint_new(&file.ckpt, "fuzz") != FRIT_OK) abort();
    const uint8_t *zero = n_bytes > 0 ? memchr(bytes, 0, n_bytes) : NULL;
    frit_status status = FRIT_E_FORMAT;
    if (n_bytes > 4 && memcmp(bytes, "GGUF", 4) == 0) {
        status = frit_gguf_parse(file.ckpt, "fuzz", bytes, n_bytes);
        if (status == FRIT_OK) status = frit_adapter_read_gguf(&file, base);
    } else if (zero) {
        const size_t n_config = (size_t)(zero - bytes);
        status = frit_adapter_read_peft(&file, base, (const char *)bytes, n_config, zero + 1, n_bytes - n_config - 1);
    }
    for (size_t i = 0; status == FRIT_OK && i < file.n_pairs; i++) {
        touch(&file.pairs[i].a);
        touch(&file.pairs[i].b);
    }
    frit_adapter_file_close(&file);
    frit_checkpoint_close(base);
    return 0;
}
