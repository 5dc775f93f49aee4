// SPDX-License-Identifier: MIT
// The folder has the golden's files, and a second file of weights with the classifier.
#include "support/classifier.h"

#include "support/support.h"

#include <sys/stat.h>

// Writes a file of the folder.
static void put(const char *folder, const char *name, const void *bytes, size_t n)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_file(path, bytes, n);
}

// Lists a tensor in the index of files.
static size_t list_tensor(char *text, const char *name, const char *file, bool first)
{
    return (size_t)sprintf(text, "%s\"%s\": \"%s\"", first ? "" : ", ", name, file);
}

static void copy(const char *folder, const char *name)
{
    char from[200];
    size_t n;
    snprintf(from, sizeof from, "goldens/hf/bert/%s", name);
    char *bytes = read_file(shared_path("%s", from), &n);
    put(folder, name, bytes, n);
    free(bytes);
}

char *make_classifier(const char *name, int n_labels, float (*out)[CLASSIFIER_WIDTH], float *bias)
{
    char *folder = strdup(temp_path(name)), index[16384], head[512], *at = index;
    size_t n, n_bytes;
    assert_int_equal(mkdir(folder, 0700), 0);
    char *config = read_file(shared_path("goldens/hf/bert/config.json"), &n);
    config = realloc(config, n + 100);
    config[n] = 0;
    char *class = strstr(config, "\"BertModel\"");
    assert_non_null(class);
    static const char before[] = "\"BertModel\"", after[] = "\"BertForSequenceClassification\"";
    memmove(class + strlen(after), class + strlen(before), strlen(class + strlen(before)) + 1);
    memcpy(class, after, strlen(after));
    put(folder, "config.json", config, strlen(config));
    free(config);
    copy(folder, "tokenizer.json");
    copy(folder, "tokenizer_config.json");
    char *bytes = read_file(shared_path("goldens/hf/bert/model.safetensors"), &n_bytes);
    put(folder, "body.safetensors", bytes, n_bytes);

    uint64_t n_head;
    memcpy(&n_head, bytes, sizeof n_head);
    at += sprintf(at, "{\"weight_map\": {");
    bool first = true;
    for (const char *p = bytes + 8; (p = memchr(p, '"', (size_t)(bytes + 8 + n_head - p)));) {
        const char *end = memchr(p + 1, '"', 200);
        char tensor[200];
        snprintf(tensor, sizeof tensor, "%.*s", (int)(end - p - 1), p + 1);
        if (strchr(tensor, '.')) {
            at += list_tensor(at, tensor, "body.safetensors", first);
            first = false;
        }
        p = end + 1;
    }
    at += list_tensor(at, "classifier.weight", "head.safetensors", false);
    at += list_tensor(at, "classifier.bias", "head.safetensors", false);
    at += sprintf(at, "}}");
    put(folder, "model.safetensors.index.json", index, (size_t)(at - index));
    free(bytes);

    for (int i = 0; i < n_labels; i++)
        for (int k = 0; k < CLASSIFIER_WIDTH; k++) out[i][k] = (float)((i * 31 + k * 17) % 23 - 11) / 16;
    for (int i = 0; i < n_labels; i++) bias[i] = (float)i / 4 - 1;
    const size_t n_bias = (size_t)n_labels * sizeof(float), n_out = n_bias * CLASSIFIER_WIDTH;
    n = (size_t)sprintf(head + 8,
                        "{\"classifier.weight\": {\"dtype\": \"F32\", \"shape\": [%d, 64], \"data_offsets\": [0, %zu]},"
                        " \"classifier.bias\": {\"dtype\": \"F32\", \"shape\": [%d], \"data_offsets\": [%zu, %zu]}}",
                        n_labels, n_out, n_labels, n_out, n_out + n_bias);
    while (n % 8 != 0) head[8 + n++] = ' ';
    const uint64_t length = n;
    memcpy(head, &length, sizeof length);
    char *file = malloc(8 + n + n_out + n_bias);
    memcpy(file, head, 8 + n);
    memcpy(file + 8 + n, out, n_out);
    memcpy(file + 8 + n + n_out, bias, n_bias);
    put(folder, "head.safetensors", file, 8 + n + n_out + n_bias);
    free(file);
    return folder;
}
