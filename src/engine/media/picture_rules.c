// SPDX-License-Identifier: MIT
// How the pictures of a model become tokens: the encoder that is found, and the processor that makes its input.
#include "engine/media/picture.h"
#include "engine/model/model.h"
#include "format/mmproj.h"
#include "format/processor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------- the encoder's path

// The folder of a model's file, and the files mmproj-*.gguf in it.
typedef struct search {
    frit_buf folder;
    frit_buf *path;   // of the last one that was found
    size_t n_found;
} search;

static void note_file(void *ctx, const char *name, uint64_t n_bytes, int64_t changed)
{
    static const char start[] = "mmproj-", end[] = ".gguf";
    search *s = ctx;
    const size_t n = strlen(name);
    (void)n_bytes;
    (void)changed;
    if (n < strlen(start) + strlen(end) || strncmp(name, start, strlen(start)) != 0 ||
        strcmp(name + n - strlen(end), end) != 0)
        return;
    frit_buf_clear(s->path);
    frit_buf_printf(s->path, "%s%s", s->folder.data, name);
    s->n_found++;
}

static frit_status find_beside(const char *model, frit_buf *path)
{
    const char *name = strrchr(model, '/');
    search s = {.path = path};
    frit_buf_printf(&s.folder, "%.*s", name ? (int)(name + 1 - model) : 2, name ? model : "./");
    if (!s.folder.failed) frit_folder_each(s.folder.data, note_file, &s);
    const bool failed = s.folder.failed || path->failed;
    frit_buf_free(&s.folder);
    if (failed) return frit_fail_memory(strlen(model), "a path");
    if (s.n_found == 1) return FRIT_OK;
    if (s.n_found == 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: has no encoder of pictures; expected a file mmproj-*.gguf beside it, or mmproj",
                              model);
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %zu files mmproj-*.gguf are beside it; expected one, or mmproj",
                          model, s.n_found);
}

static frit_status find_encoder(const frit_model *model, frit_buf *path)
{
    const char *own = model->info.path;
    if (!model->arch || !frit_arch_reads_media(model->arch, &model->hp))
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: models of the architecture '%s' read no pictures", own,
                              model->arch ? model->arch->name : "");
    if (!model->mmproj && strcmp(model->ckpt->format, "safetensors") != 0) return find_beside(own, path);
    frit_buf_text(path, model->mmproj ? model->mmproj : own);
    return path->failed ? frit_fail_memory(path->len, "a path") : FRIT_OK;
}

// ------------------------------------------------------------------------------- rules

// Reads the processor of an encoder that is not in the model's folder.
static frit_status read_other(const frit_model *model, const frit_checkpoint *ckpt, frit_picture_rules *rules,
                              bool *found)
{
    char key[128];
    frit_str arch = {0};
    int64_t width = 0;
    frit_sha256 sum;
    FRIT_TRY(frit_meta_get_text(&ckpt->meta, "general.architecture", &arch, NULL));
    snprintf(key, sizeof key, "%.*s.embedding_length_out", (int)(arch.len < 64 ? arch.len : 64), arch.ptr);
    FRIT_TRY(frit_meta_get_i64(&ckpt->meta, key, &width, NULL));
    if (width != model->hp.n_embd)
        return frit_fail_file(FRIT_E_FORMAT, "%s: the encoder gives rows of %lld features, expected %d of the model %s",
                              ckpt->path, (long long)width, (int)model->hp.n_embd, model->info.path);
    frit_sha256_init(&sum);
    frit_checkpoint_hash(ckpt, &sum);
    frit_sha256_end(&sum, rules->digest);
    *found = true;
    if (strcmp(ckpt->format, "safetensors") != 0) return frit_mmproj_processor(&rules->processor, ckpt);
    return frit_processor_open(&rules->processor, found, rules->encoder);
}

static frit_status read_processor(const frit_model *model, frit_picture_rules *rules)
{
    bool found = false;
    frit_checkpoint *ckpt;
    const bool is_own =
        strcmp(model->ckpt->format, "safetensors") == 0 && strcmp(rules->encoder, model->info.path) == 0;
    if (is_own) {
        FRIT_TRY(frit_processor_open(&rules->processor, &found, rules->encoder));
    } else {
        const frit_checkpoint_options options = {.part = FRIT_CHECKPOINT_VISION, .log = &model->log};
        FRIT_TRY(frit_checkpoint_open(&ckpt, rules->encoder, &options));
        const frit_status status = read_other(model, ckpt, rules, &found);
        frit_checkpoint_close(ckpt);
        FRIT_TRY(status);
    }
    if (!found) return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: has no processor of pictures", rules->encoder);
    rules->placeholder = frit_vocab_find(&model->vocab, frit_str_of(rules->processor.placeholder));
    if (rules->placeholder >= 0) return FRIT_OK;
    return frit_fail_file(FRIT_E_FORMAT, "%s: the vocabulary has no token '%s', which stands for a picture",
                          model->info.path, rules->processor.placeholder);
}

static frit_status read_rules(const frit_model *model, frit_picture_rules **out)
{
    frit_buf path = {0};
    frit_status status = find_encoder(model, &path);
    frit_picture_rules *rules = status == FRIT_OK ? calloc(1, sizeof *rules + path.len + 1) : NULL;
    if (status == FRIT_OK && !rules) status = frit_fail_memory(sizeof *rules, "the processor of pictures");
    if (status == FRIT_OK) {
        memcpy(rules->encoder, path.len > 0 ? path.data : "", path.len + 1);
        status = read_processor(model, rules);
    }
    frit_buf_free(&path);
    if (status != FRIT_OK) {
        free(rules);
        rules = NULL;
    }
    *out = rules;
    return status;
}

frit_status frit_model_get_picture_rules(const frit_model *given, const frit_picture_rules **out)
{
    frit_model *model = given->of ? given->of : (frit_model *)(uintptr_t)given;
    frit_lock_acquire(model->media_lock);
    const frit_status status = model->picture_rules ? FRIT_OK : read_rules(model, &model->picture_rules);
    *out = model->picture_rules;
    frit_lock_release(model->media_lock);
    return status;
}
