// SPDX-License-Identifier: MIT
// support/sentence_folder.h: the folder of a tiny BERT as sentence-transformers writes it. Its tokenizer puts a token
// before and one after each text.
#pragma once
#include "support/support.h"

#include <jansson.h>
#include <sys/stat.h>

enum { SENTENCE_FIRST = 1, SENTENCE_LAST = 2 };   // the tokens around a text

static inline void sentence_write(const char *folder, const char *name, const char *text, size_t n)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_file(path, text, n);
}

static inline void sentence_write_tokenizer(const char *folder)
{
    json_t *tokenizer = json_load_file(shared_path("goldens/hf/bert/tokenizer.json"), 0, NULL);
    json_t *around = json_pack("{s:s, s:[{s:{s:s, s:i}}, {s:{s:s, s:i}}, {s:{s:s, s:i}}], s:[], s:{s:{s:s, s:[i], "
                               "s:[s]}, s:{s:s, s:[i], s:[s]}}}",
                               "type", "TemplateProcessing", "single", "SpecialToken", "id", "first", "type_id", 0,
                               "Sequence", "id", "A", "type_id", 0, "SpecialToken", "id", "last", "type_id", 0, "pair",
                               "special_tokens", "first", "id", "first", "ids", SENTENCE_FIRST, "tokens", "first",
                               "last", "id", "last", "ids", SENTENCE_LAST, "tokens", "last");
    assert_true(tokenizer && around);
    json_object_set_new(tokenizer, "post_processor", around);
    char *text = json_dumps(tokenizer, JSON_COMPACT);
    sentence_write(folder, "tokenizer.json", text, strlen(text));
    free(text);
    json_decref(tokenizer);
}

// Makes the folder with these files of the package; skips the test without ../shared.
static inline char *sentence_folder(const char *name, const char *transformer, const char *package)
{
    static const char *const copied[] = {"config.json", "model.safetensors", "tokenizer_config.json"};
    static const char modules[] = "[{\"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"
                                  " {\"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"}]";
    char *folder = strdup(temp_path(name));
    size_t n;
    mkdir(folder, 0700);
    for (size_t i = 0; i < FRIT_COUNT(copied); i++) {
        char *bytes = read_file(shared_path("goldens/hf/bert/%s", copied[i]), &n);
        sentence_write(folder, copied[i], bytes, n);
        free(bytes);
    }
    sentence_write_tokenizer(folder);
    char pooling[700];
    snprintf(pooling, sizeof pooling, "%s/1_Pooling", folder);
    mkdir(pooling, 0700);
    sentence_write(folder, "1_Pooling/config.json", "{\"pooling_mode\": \"mean\"}", 24);
    sentence_write(folder, "modules.json", modules, strlen(modules));
    sentence_write(folder, "sentence_bert_config.json", transformer, strlen(transformer));
    sentence_write(folder, "config_sentence_transformers.json", package, strlen(package));
    return folder;
}
