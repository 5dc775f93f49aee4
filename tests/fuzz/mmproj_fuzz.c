// SPDX-License-Identifier: MIT
// Reads any bytes as an mmproj file: keys, tensors and processor of an encoder of pictures. The custom mutator begins
// with the small file of a SmolVLM, because hardly any bytes are one.
#include "format/mmproj.h"

#include "arch/media.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n_bytes, size_t max_bytes);

// Keys, and the names and shapes of tensors, as a writer of bytes.
typedef struct start_file {
    uint8_t bytes[4096];
    size_t n;
} start_file;

static void put(start_file *f, const void *bytes, size_t n)
{
    if (f->n + n > sizeof f->bytes) abort();
    memcpy(f->bytes + f->n, bytes, n);
    f->n += n;
}

static void put_u32(start_file *f, uint32_t value)
{
    put(f, &value, sizeof value);
}

static void put_u64(start_file *f, uint64_t value)
{
    put(f, &value, sizeof value);
}

static void put_text(start_file *f, const char *text)
{
    put_u64(f, strlen(text));
    put(f, text, strlen(text));
}

static void put_number(start_file *f, const char *key, uint32_t value)
{
    put_text(f, key);
    put_u32(f, 4);
    put_u32(f, value);
}

static void put_pair(start_file *f, const char *key, const char *text)
{
    put_text(f, key);
    put_u32(f, 8);
    put_text(f, text);
}

// f32 [rows, columns] at the offset, which moves on.
static void put_tensor(start_file *f, const char *name, uint64_t rows, uint64_t columns, uint64_t *offset)
{
    put_text(f, name);
    put_u32(f, rows > 0 ? 2 : 1);
    put_u64(f, columns);
    if (rows > 0) put_u64(f, rows);
    put_u32(f, 0);
    put_u64(f, *offset);
    *offset += (rows > 0 ? rows : 1) * columns * 4 + 31;
    *offset -= *offset % 32;
}

static void write_start(start_file *f)
{
    uint64_t at = 0;
    put(f, "GGUF\3\0\0", 8);
    put_u64(f, 5);
    put_u64(f, 12);
    put_pair(f, "general.architecture", "clip");
    put_pair(f, "clip.projector_type", "idefics3");
    put_number(f, "clip.vision.projection_dim", 2);
    put_number(f, "clip.vision.image_size", 4);
    put_number(f, "clip.vision.patch_size", 2);
    put_number(f, "clip.vision.embedding_length", 4);
    put_number(f, "clip.vision.feed_forward_length", 2);
    put_number(f, "clip.vision.block_count", 1);
    put_number(f, "clip.vision.attention.head_count", 1);
    put_number(f, "clip.vision.projector.scale_factor", 2);
    put_number(f, "clip.vision.n_wa_pattern", 1);
    put_text(f, "clip.use_gelu");
    put_u32(f, 7);
    put(f, "\1", 1);
    put_tensor(f, "v.patch_embd.weight", 4, 12, &at);
    put_tensor(f, "v.position_embd.weight", 4, 4, &at);
    put_tensor(f, "v.blk.0.ffn_up.weight", 2, 4, &at);
    put_tensor(f, "v.blk.0.ln1.weight", 0, 4, &at);
    put_tensor(f, "mm.model.fc.weight", 2, 16, &at);
    while (f->n % 32 != 0) put(f, "", 1);
    while (at > 0) put(f, "\0\0\0\0\0\0\0", 8), at -= 8;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed)
{
    start_file start = {.n = 0};
    (void)seed;
    if (n_bytes < 24) {
        write_start(&start);
        if (max_bytes >= start.n) memcpy(bytes, start.bytes, n_bytes = start.n);
    }
    return LLVMFuzzerMutate(bytes, n_bytes, max_bytes);
}

static void use(frit_checkpoint *ckpt)
{
    frit_arena arena = {0};
    frit_processor processor;
    frit_hparams hp;
    frit_weights weights;
    frit_str name;
    if (frit_mmproj_processor(&processor, ckpt) == FRIT_OK) {
        frit_picture_plan plan;
        (void)frit_processor_plan(&plan, &processor, 97, 61);
    }
    if (frit_meta_get_text(&ckpt->meta, "general.architecture", &name, NULL) != FRIT_OK) abort();
    const frit_arch *arch = frit_media_arch_find(name.ptr);
    if (!arch) abort();
    frit_status status = frit_hparams_read(&hp, arch, ckpt, &arena);
    if (status == FRIT_OK) status = frit_weights_bind(&weights, arch, &hp, ckpt, &arena);
    frit_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    frit_checkpoint *ckpt;
    if (frit_checkpoint_new(&ckpt, "fuzz.gguf") != FRIT_OK) abort();
    if (frit_mmproj_parse(ckpt, "fuzz.gguf", bytes, n_bytes) == FRIT_OK) use(ckpt);
    frit_checkpoint_close(ckpt);
    return 0;
}
