// SPDX-License-Identifier: MIT
// format/folder_build.h: a complete model of one layer as a Hugging Face folder, for tests that change or damage it.
#pragma once
#include "format/checkpoint.h"
#include "format/safetensors_build.h"

#include <jansson.h>
#include <sys/stat.h>

// A complete model of one layer: hidden size 4, 2 heads, 1 KV head, feed-forward 6, 3 tokens; all f32.
static const struct tiny_tensor {
    const char *name;
    int rows, columns;
} tiny_tensors[] = {
    {"model.embed_tokens.weight", 3, 4},
    {"lm_head.weight", 3, 4},
    {"model.norm.weight", 4, 0},
    {"model.layers.0.input_layernorm.weight", 4, 0},
    {"model.layers.0.post_attention_layernorm.weight", 4, 0},
    {"model.layers.0.self_attn.q_proj.weight", 4, 4},
    {"model.layers.0.self_attn.k_proj.weight", 2, 4},
    {"model.layers.0.self_attn.v_proj.weight", 2, 4},
    {"model.layers.0.self_attn.o_proj.weight", 4, 4},
    {"model.layers.0.mlp.gate_proj.weight", 6, 4},
    {"model.layers.0.mlp.up_proj.weight", 6, 4},
    {"model.layers.0.mlp.down_proj.weight", 4, 6},
};

static const char tiny_config[] =
    "{\"model_type\":\"llama\",\"vocab_size\":3,\"hidden_size\":4,\"num_hidden_layers\":1,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":1,\"intermediate_size\":6,\"max_position_embeddings\":8}";

static const char *folder_path;
static const char *model_prefix = "model.", *head_prefix = "";   // prefixes of names

static inline const char *in_folder(const char *name)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder_path, name);
    return path;
}

// Writes model.safetensors without the tensor `left_out` and with a last tensor `extra` [1] of type `extra_type`.
static inline void write_weights(const char *left_out, const char *extra, const char *extra_type)
{
    frit_buf header = {0};
    int end = 0;
    frit_buf_text(&header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < FRIT_COUNT(tiny_tensors); i++) {
        const struct tiny_tensor *t = &tiny_tensors[i];
        if (left_out && strcmp(left_out, t->name) == 0) continue;
        int begin = end;
        end += 4 * t->rows * (t->columns ? t->columns : 1);
        const bool is_head = strncmp(t->name, "model.", 6) != 0;
        frit_buf_printf(&header, ",\"%s%s\":{\"dtype\":\"F32\",\"shape\":[%d", is_head ? head_prefix : model_prefix,
                        t->name + (is_head ? 0 : 6), t->rows);
        if (t->columns) frit_buf_printf(&header, ",%d", t->columns);
        frit_buf_printf(&header, "],\"data_offsets\":[%d,%d]}", begin, end);
    }
    if (extra) {
        frit_buf_printf(&header, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[1],\"data_offsets\":[%d,%d]}", extra, extra_type,
                        end, end + 1);
        end++;
    }
    frit_buf_char(&header, '}');
    image made = image_of(header.data, (size_t)end);
    memset(made.bytes + made.n_bytes - (size_t)end, 0, (size_t)end);   // zeros, because random bytes could be invalid
                                                                       // numbers
    write_file(in_folder("model.safetensors"), made.bytes, made.n_bytes);
    free(made.bytes);
    frit_buf_free(&header);
}

static inline void write_config(const char *text)
{
    write_file(in_folder("config.json"), text, strlen(text));
}

// Makes the tiny configuration with the members of `changes`; "-KEY" removes KEY.
static inline json_t *change_config(const char *changes)
{
    json_t *config = json_loads(tiny_config, 0, NULL), *changed = json_loads(changes, 0, NULL);
    if (!config || !changed) fail_msg("not JSON: %s", changes);
    const char *name;
    json_t *value;
    json_object_foreach(changed, name, value)
    {
        if (name[0] == '-')
            json_object_del(config, name + 1);
        else
            json_object_set(config, name, value);
    }
    json_decref(changed);
    return config;
}

static inline void write_changed_config(const char *changes)
{
    json_t *config = change_config(changes);
    char *text = json_dumps(config, 0);
    write_config(text);
    free(text);
    json_decref(config);
}

static inline int make_folder(void **state)
{
    (void)state;
    static char path[4096];
    static int n;
    char name[32];
    snprintf(name, sizeof name, "tiny-%d", n++);
    snprintf(path, sizeof path, "%s", temp_path(name));
    folder_path = path;
    if (mkdir(folder_path, 0700) != 0) return -1;
    write_config(tiny_config);
    write_weights(NULL, NULL, NULL);
    return 0;
}

static inline frit_status open_tiny(frit_checkpoint **ckpt)
{
    return frit_checkpoint_open(ckpt, folder_path, NULL);
}
