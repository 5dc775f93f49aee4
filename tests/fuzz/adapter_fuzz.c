// SPDX-License-Identifier: MIT
// Any bytes as an adapter of a small model: a GGUF file, or both files of a PEFT folder with a zero byte between them.
#include "format/adapter.h"
#include "format/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n_bytes, size_t max_bytes);

// ------------------------------------------------------------------------------- what to begin with

enum { RANK = 2, EMBD = 8, FF = 12, LEAST = 16, MOST = 1 << 12 };

static void put(frit_buf *out, uint64_t number, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) frit_buf_char(out, (char)(number >> 8 * i));
}

static void put_text(frit_buf *out, const char *text)
{
    put(out, strlen(text), 8);
    frit_buf_text(out, text);
}

static void put_key(frit_buf *out, const char *key, const char *text)
{
    put_text(out, key);
    put(out, 8, 4);
    put_text(out, text);
}

static const struct {
    const char *module, *tensor;
    int out, in;
} matrices[] = {
    {"0.self_attn.q_proj", "blk.0.attn_q.weight", EMBD, EMBD},
    {"1.mlp.down_proj", "blk.1.ffn_down.weight", EMBD, FF},
};

static void put_gguf(frit_buf *out)
{
    frit_buf_text(out, "GGUF");
    put(out, 3, 4);
    put(out, 2 * FRIT_COUNT(matrices), 8);
    put(out, 4, 8);
    put_key(out, "general.architecture", "llama");
    put_key(out, "general.type", "adapter");
    put_key(out, "adapter.type", "lora");
    put_text(out, "adapter.lora.alpha");
    put(out, 6, 4);
    put(out, 0x40800000, 4);   // 4.0
    uint64_t offset = 0;
    for (size_t i = 0; i < 2 * FRIT_COUNT(matrices); i++) {
        char name[64];
        const uint64_t rows = i % 2 ? (uint64_t)matrices[i / 2].out : RANK,
                       columns = i % 2 ? RANK : (uint64_t)matrices[i / 2].in;
        snprintf(name, sizeof name, "%s.lora_%c", matrices[i / 2].tensor, "ab"[i % 2]);
        put_text(out, name);
        put(out, 2, 4);
        put(out, columns, 8);
        put(out, rows, 8);
        put(out, 0, 4);
        put(out, offset, 8);
        offset += (rows * columns * 4 + 31) / 32 * 32;
    }
    while (out->len % 32 != 0) put(out, 0, 1);
    put(out, 0, 8);
    for (uint64_t i = 8; i < offset; i++) put(out, i % 7, 1);
}

static const char *const configs[] = {
    "{\"peft_type\":\"LORA\",\"r\":2,\"lora_alpha\":4}",
    "{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":4,\"use_rslora\":true,\"rank_pattern\":{\"q_proj\":2,\"down_proj\":"
    "2},"
    "\"alpha_pattern\":{\"layers.1.mlp.down_proj\":8},\"target_modules\":[\"q_proj\"],\"bias\":\"none\"}",
    "{\"peft_type\":\"LORA\",\"r\":2,\"lora_alpha\":4,\"use_dora\":true}",
};

static void put_peft(frit_buf *out, unsigned seed)
{
    frit_buf header = {0};
    int offset = 0;
    for (size_t i = 0; i < 2 * FRIT_COUNT(matrices); i++) {
        const int rows = i % 2 ? matrices[i / 2].out : RANK, columns = i % 2 ? RANK : matrices[i / 2].in;
        frit_buf_printf(&header,
                        "%c\"base_model.model.model.layers.%s.lora_%c.weight\":{\"dtype\":\"F32\",\"shape\":[%d,%d],"
                        "\"data_offsets\":[%d,%d]}",
                        i ? ',' : '{', matrices[i / 2].module, "AB"[i % 2], rows, columns, offset,
                        offset + rows * columns * 4);
        offset += rows * columns * 4;
    }
    frit_buf_char(&header, '}');
    frit_buf_text(out, configs[seed % FRIT_COUNT(configs)]);
    put(out, 0, 1);
    put(out, header.len, 8);
    frit_buf_text(out, header.data);
    for (int i = 0; i < offset; i++) put(out, (uint64_t)i % 7, 1);
    frit_buf_free(&header);
}

// Sets the length of a safetensors header after a change: without it, nothing after the header would be read.
static void mend_length(uint8_t *bytes, size_t n_bytes)
{
    uint8_t *zero = memchr(bytes, 0, n_bytes);
    size_t end = n_bytes;
    if (!zero || n_bytes - (size_t)(zero - bytes) < 10) return;
    while (end > 0 && bytes[end - 1] != '}') end--;
    const size_t begin = (size_t)(zero - bytes) + 9;
    for (size_t i = 0; end > begin && i < 8; i++) zero[1 + i] = (uint8_t)((uint64_t)(end - begin) >> 8 * i);
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed)
{
    if (n_bytes < LEAST && max_bytes >= MOST) {
        frit_buf good = {0};
        seed % 2 ? put_gguf(&good) : put_peft(&good, seed / 2);
        if (good.failed || good.len > MOST) abort();
        memcpy(bytes, good.data, good.len);
        n_bytes = good.len;
        frit_buf_free(&good);
        return n_bytes;
    }
    n_bytes = LLVMFuzzerMutate(bytes, n_bytes, max_bytes);
    if (n_bytes > 4 && memcmp(bytes, "GGUF", 4) != 0 && seed % 8 != 0) mend_length(bytes, n_bytes);
    return n_bytes;
}

// ------------------------------------------------------------------------------- reading it

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
        status =
            frit_adapter_read_peft(&file, base, (const char *)bytes, n_config, zero + 1, n_bytes - n_config - 1, NULL);
    }
    for (size_t i = 0; status == FRIT_OK && i < file.n_pairs; i++) {
        touch(&file.pairs[i].a);
        touch(&file.pairs[i].b);
    }
    frit_adapter_file_close(&file);
    frit_checkpoint_close(base);
    return 0;
}
