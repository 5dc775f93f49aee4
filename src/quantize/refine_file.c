// SPDX-License-Identifier: MIT
// Writing a refined file.
#include "quantize/refine_file.h"
#include "base/number.h"
#include "convert/convert.h"
#include "format/gguf.h"

#include <string.h>

static frit_status set_labels(frit_meta *meta, const frit_refine_labels *labels)
{
    static const char *const keys[] = {"quantize.kl.mean", "quantize.kl.windows", "quantize.refine.sha256",
                                       "quantize.refine.tokens", "quantize.refine.matrices"};
    char hash[2 * FRIT_SHA256_BYTES + 1];
    for (size_t i = 0; i < FRIT_COUNT(keys); i++) FRIT_TRY(frit_meta_remove(meta, keys[i]));
    for (size_t i = 0; i < FRIT_SHA256_BYTES; i++) frit_format(hash + 2 * i, 3, "%02x", labels->sha256[i]);
    FRIT_TRY(frit_meta_add_f64(meta, keys[0], labels->kl));
    FRIT_TRY(frit_meta_add_u64(meta, keys[1], labels->n_windows));
    FRIT_TRY(frit_meta_add_text(meta, keys[2], hash));
    FRIT_TRY(frit_meta_add_u64(meta, keys[3], labels->n_tokens));
    return frit_meta_add_u64(meta, keys[4], labels->n_matrices);
}

static frit_status remove_origins(frit_checkpoint *ckpt, const frit_map *changed)
{
    const size_t n = ckpt->n_tensors;
    const frit_value *value = frit_meta_find(&ckpt->meta, FRIT_ORIGINS_KEY);
    const bool has_all = value && value->type == FRIT_VALUE_ARRAY && value->array.type == FRIT_VALUE_U64 &&
                         value->array.n == 2 * (uint64_t)n;
    if (!has_all) return FRIT_OK;
    frit_origin *origins = frit_arena_new(&ckpt->arena, frit_origin, n + 1);
    if (!origins) return frit_fail_memory(n * sizeof *origins, "what tensors are made from");
    memcpy(origins, value->array.items, n * sizeof *origins);
    for (size_t i = 0; i < n; i++) {
        int64_t any;
        if (frit_map_get(changed, frit_str_of(ckpt->tensors[i].name), &any)) origins[i] = (frit_origin){0};
    }
    FRIT_TRY(frit_meta_remove(&ckpt->meta, FRIT_ORIGINS_KEY));
    return frit_origins_add(&ckpt->meta, origins, n);
}

frit_status frit_refine_write(const char *path, const char *bytes, size_t n, const frit_refine_labels *labels,
                              const frit_map *changed)
{
    frit_checkpoint *ckpt;
    FRIT_TRY(frit_checkpoint_new(&ckpt, path));
    frit_status status = frit_gguf_parse(ckpt, path, (const uint8_t *)bytes, n);
    if (status == FRIT_OK) status = set_labels(&ckpt->meta, labels);
    if (status == FRIT_OK && changed) status = remove_origins(ckpt, changed);
    if (status == FRIT_OK) status = frit_gguf_write(ckpt, path);
    frit_checkpoint_close(ckpt);
    return status;
}
