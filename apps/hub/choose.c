// SPDX-License-Identifier: MIT
// Chooses the files of a repository that make up the model of a name.
#include "hub/repo.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Quantizations in the spelling of file names. Without a request the first one that fits is chosen: four bits a weight,
// with little loss; finer ones if there is no such file; coarser ones if memory has no room for more. The other rows
// only recognise names.
static const char *const quants[] = {
    "Q4_K_M", "Q4_K_XL", "Q4_K_L",  "Q4_K_S", "Q4_K",    "MXFP4_MOE", "MXFP4",   "IQ4_NL",  "IQ4_XS",  "Q4_1",
    "Q4_0",   "Q5_K_M",  "Q5_K_XL", "Q5_K_L", "Q5_K_S",  "Q5_K",      "Q5_1",    "Q5_0",    "Q6_K_XL", "Q6_K_L",
    "Q6_K",   "Q8_K_XL", "Q8_0",    "BF16",   "F16",     "FP16",      "F32",     "FP32",    "Q3_K_XL", "Q3_K_L",
    "Q3_K_M", "IQ3_M",   "Q3_K_S",  "Q3_K",   "IQ3_S",   "IQ3_XS",    "IQ3_XXS", "Q2_K_XL", "Q2_K_L",  "Q2_K",
    "IQ2_M",  "Q2_K_S",  "IQ2_S",   "IQ2_XS", "IQ2_XXS", "IQ1_M",     "IQ1_S",   "TQ2_0",   "TQ1_0",
};
enum { N_QUANTS = sizeof quants / sizeof quants[0] };

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_part_of_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

// True if `word` occurs in `text` with no letter, digit or '_' on either side, in any case.
static bool has_word(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = text; n > 0 && *at; at++) {
        if (strncasecmp(at, word, n) != 0) continue;
        if ((at == text || !is_part_of_word(at[-1])) && !is_part_of_word(at[n])) return true;
    }
    return false;
}

static bool has_text(const char *text, const char *part)
{
    const size_t n = strlen(part);
    for (; *text; text++)
        if (strncasecmp(text, part, n) == 0) return true;
    return false;
}

static bool ends_in(const char *text, const char *suffix)
{
    const size_t n = strlen(text), n_suffix = strlen(suffix);
    return n >= n_suffix && strcasecmp(text + n - n_suffix, suffix) == 0;
}

void hub_quant_of(const char *file, char out[24])
{
    const char *base = base_of(file);
    for (size_t i = 0; i < N_QUANTS; i++) {
        if (!has_word(base, quants[i])) continue;
        snprintf(out, 24, "%s", quants[i]);
        return;
    }
    out[0] = 0;
}

// Reads a name like "x-00002-of-00005.gguf": the number of bytes before "-00002", and both numbers. False for others.
static bool read_split(const char *path, size_t *n_stem, unsigned *part, unsigned *n_parts)
{
    enum { TAIL = 15 };   // "-00002-of-00005"
    const char *dot = strrchr(path, '.');
    if (!dot || dot - path < TAIL) return false;
    const char *tail = dot - TAIL;
    for (int i = 0; i < TAIL; i++) {
        const char want = "-00000-of-00000"[i];
        if (want == '0' ? !isdigit((unsigned char)tail[i]) : tail[i] != want) return false;
    }
    *part = (unsigned)strtoul(tail + 1, NULL, 10);
    *n_parts = (unsigned)strtoul(tail + 10, NULL, 10);
    *n_stem = (size_t)(tail - path);
    return *part > 0 && *part <= *n_parts;
}

bool hub_same_set(const char *a, const char *b)
{
    size_t n_a, n_b;
    unsigned part, parts_a, parts_b;
    if (!read_split(a, &n_a, &part, &parts_a) || !read_split(b, &n_b, &part, &parts_b)) return strcmp(a, b) == 0;
    return n_a == n_b && parts_a == parts_b && strncmp(a, b, n_a) == 0;
}

static bool is_model_file(const char *path)
{
    const char *base = base_of(path);
    return ends_in(path, ".gguf") && strncasecmp(base, "mmproj", 6) != 0 && !has_text(base, "imatrix");
}

static uint64_t add_bytes(uint64_t sum, uint64_t n)
{
    return n == UINT64_MAX || sum + n < sum ? sum : sum + n;
}

static void add_file(const hub_repo *repo, size_t i, hub_variant *variants, size_t *n)
{
    size_t v = 0, n_stem;
    unsigned part = 1, n_parts = 1;
    const bool is_split = read_split(repo->files[i].path, &n_stem, &part, &n_parts);
    while (v < *n && !hub_same_set(repo->files[variants[v].first].path, repo->files[i].path)) v++;
    if (v == *n) {
        variants[(*n)++] = (hub_variant){.first = i, .n_parts = is_split ? n_parts : 1};
        hub_quant_of(repo->files[i].path, variants[v].quant);
    }
    variants[v].n_files++;
    variants[v].n_bytes = add_bytes(variants[v].n_bytes, repo->files[i].n_bytes);
    if (part == 1) variants[v].first = i;
}

hub_status hub_repo_variants(const hub_repo *repo, hub_variant **out, size_t *n)
{
    hub_variant *variants = calloc(repo->n + 1, sizeof *variants);
    *n = 0;
    *out = variants;
    if (!variants) return hub_fail(HUB_E_MEMORY, "out of memory");
    for (size_t i = 0; i < repo->n; i++)
        if (is_model_file(repo->files[i].path)) add_file(repo, i, variants, n);
    return HUB_OK;
}

// ---------------------------------------------------------------------------------------- choosing

uint64_t hub_needed_bytes(uint64_t n_bytes)
{
    return add_bytes(n_bytes + n_bytes / 16, (uint64_t)768 << 20);
}

void hub_choice_free(hub_choice *choice)
{
    free(choice->files);
    *choice = (hub_choice){0};
}

static size_t rank_of(const char *quant)
{
    size_t i = 0;
    while (i < N_QUANTS && strcmp(quants[i], quant) != 0) i++;
    return i;
}

// Writes the names of the variants, shortened: "Q4_K_M, Q8_0".
static void list_variants(const hub_repo *repo, const hub_variant *variants, size_t n, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i < n && used + 80 < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%.70s", i ? ", " : "",
                                 variants[i].quant[0] ? variants[i].quant : repo->files[variants[i].first].path);
    if (used + 80 >= size) snprintf(out + size - 5, 5, " ...");
}

static hub_status take_variant(const hub_repo *repo, const hub_variant *variant, const char *what, hub_choice *out)
{
    const char *first = repo->files[variant->first].path;
    if (variant->n_files != variant->n_parts)
        return hub_fail(HUB_E_NOT_FOUND, "%s: %zu of %zu parts of %s are there", what, variant->n_files,
                        variant->n_parts, first);
    out->files = calloc(variant->n_files, sizeof *out->files);
    if (!out->files) return hub_fail(HUB_E_MEMORY, "out of memory");
    for (size_t i = 0; i < repo->n && out->n_files < variant->n_files; i++)
        if (hub_same_set(repo->files[i].path, first)) out->files[out->n_files++] = i;
    out->n_bytes = variant->n_bytes;
    snprintf(out->main, sizeof out->main, "%s", first);
    snprintf(out->quant, sizeof out->quant, "%s", variant->quant);
    return HUB_OK;
}

static bool is_quant(const char *path, const char *quant, const char *part)
{
    (void)path;
    return strcasecmp(quant, part) == 0;
}

static bool is_of_name(const char *path, const char *quant, const char *part)
{
    (void)quant;
    return has_word(base_of(path), part);
}

static bool is_below(const char *path, const char *quant, const char *part)
{
    (void)quant;
    const size_t n = strlen(part);
    return strncmp(path, part, n) == 0 && path[n] == '/';
}

// Takes the file or quantization that the name requests.
static hub_status take_wanted(const hub_repo *repo, const hub_variant *variants, size_t n, const char *part,
                              const char *what, hub_choice *out)
{
    const hub_variant *found[2] = {0};
    char list[512];
    for (size_t i = 0; i < n; i++)
        if (hub_same_set(repo->files[variants[i].first].path, part) ||
            strcmp(repo->files[variants[i].first].path, part) == 0)
            return take_variant(repo, &variants[i], what, out);
    // Matches exactly this quantization, a word of the name, or the folder of the file.
    static bool (*const fits[])(const char *path, const char *quant, const char *part) = {is_quant, is_of_name,
                                                                                          is_below};
    for (size_t by = 0; by < sizeof fits / sizeof fits[0] && !found[0]; by++)
        for (size_t i = 0; i < n; i++)
            if (fits[by](repo->files[variants[i].first].path, variants[i].quant, part))
                found[found[0] ? 1 : 0] = &variants[i];
    list_variants(repo, variants, n, list, sizeof list);
    if (!found[0])
        return hub_fail(HUB_E_NOT_FOUND, "%s: has no '%.100s'; it has %s", what, part, n ? list : "no GGUF files");
    if (found[1])
        return hub_fail(HUB_E_NAME, "%s: '%.100s' may be %.200s or %.200s; expected the name of one file", what, part,
                        repo->files[found[0]->first].path, repo->files[found[1]->first].path);
    return take_variant(repo, found[0], what, out);
}

static hub_status take_fitting(const hub_repo *repo, const hub_variant *variants, size_t n, uint64_t room,
                               const char *what, hub_choice *out)
{
    const hub_variant *best = NULL, *smallest = &variants[0];
    for (size_t i = 0; i < n; i++) {
        if (variants[i].n_files != variants[i].n_parts) continue;
        if (variants[i].n_bytes < smallest->n_bytes || smallest->n_files != smallest->n_parts) smallest = &variants[i];
        if (room > 0 && hub_needed_bytes(variants[i].n_bytes) > room) continue;
        if (!best || rank_of(variants[i].quant) < rank_of(best->quant)) best = &variants[i];
    }
    const double gib = 1 << 30;
    if (!best && room > 0)
        return hub_fail(HUB_E_LIMIT,
                        "%s: no quantization fits: the smallest one, %s, needs %.1f GiB, and %.1f GiB of memory are "
                        "free; one that is named is fetched all the same",
                        what, smallest->quant[0] ? smallest->quant : repo->files[smallest->first].path,
                        (double)hub_needed_bytes(smallest->n_bytes) / gib, (double)room / gib);
    if (!best) best = smallest;
    const hub_status status = take_variant(repo, best, what, out);
    char chosen[128];
    snprintf(chosen, sizeof chosen, "%.120s", best->quant[0] ? best->quant : base_of(out->main));
    if (n > 1 && room > 0)
        snprintf(out->why, sizeof out->why,
                 "%s of %zu quantizations: needs %.1f GiB of the %.1f GiB of memory that are free", chosen, n,
                 (double)hub_needed_bytes(best->n_bytes) / gib, (double)room / gib);
    else if (n > 1)
        snprintf(out->why, sizeof out->why, "%s of %zu quantizations", chosen, n);
    return status;
}

// True for weights and the files needed to read them, at the top of the repository. Weights of other formats and
// pictures are left out.
static bool is_of_folder(const char *path, bool has_usual_weights)
{
    static const char *const suffixes[] = {".safetensors", ".json", ".model", ".jinja", ".tiktoken"};
    if (strchr(path, '/')) return false;
    if (has_usual_weights && strncmp(path, "consolidated", 12) == 0) return false;   // a copy of the weights
    if (strcmp(path, "merges.txt") == 0 || strcmp(path, "vocab.txt") == 0) return true;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (ends_in(path, suffixes[i])) return true;
    return false;
}

static hub_status take_folder(const hub_repo *repo, const char *what, hub_choice *out)
{
    bool has_config = false, has_model = false, has_weights = false;
    for (size_t i = 0; i < repo->n; i++) {
        const char *path = repo->files[i].path;
        const bool is_weights = !strchr(path, '/') && ends_in(path, ".safetensors");
        has_config = has_config || strcmp(path, "config.json") == 0 || strcmp(path, "adapter_config.json") == 0;
        has_weights = has_weights || is_weights;
        has_model = has_model || (is_weights && strncmp(path, "model", 5) == 0);
    }
    if (!has_config || !has_weights)
        return hub_fail(HUB_E_NOT_FOUND,
                        "%s: has no model that frit can run; expected GGUF files, or config.json and safetensors",
                        what);
    out->files = calloc(repo->n, sizeof *out->files);
    if (!out->files) return hub_fail(HUB_E_MEMORY, "out of memory");
    for (size_t i = 0; i < repo->n; i++) {
        const char *path = repo->files[i].path;
        size_t n_stem;
        unsigned part, n_parts, n_there = 0, other;
        if (!is_of_folder(path, has_model)) continue;
        out->files[out->n_files++] = i;
        out->n_bytes = add_bytes(out->n_bytes, repo->files[i].n_bytes);
        if (!read_split(path, &n_stem, &part, &n_parts)) continue;
        for (size_t j = 0; j < repo->n; j++)
            n_there +=
                hub_same_set(repo->files[j].path, path) && read_split(repo->files[j].path, &n_stem, &other, &part);
        if (n_there != n_parts)
            return hub_fail(HUB_E_NOT_FOUND, "%s: %u of %u parts of the weights are there", what, n_there, n_parts);
    }
    return HUB_OK;
}

static hub_status take_file(const hub_repo *repo, const char *part, hub_choice *out)
{
    for (size_t i = 0; i < repo->n; i++) {
        if (strcmp(repo->files[i].path, part) != 0) continue;
        out->files = calloc(1, sizeof *out->files);
        if (!out->files) return hub_fail(HUB_E_MEMORY, "out of memory");
        out->files[out->n_files++] = i;
        out->n_bytes = add_bytes(0, repo->files[i].n_bytes);
        snprintf(out->main, sizeof out->main, "%s", part);
        return HUB_OK;
    }
    return HUB_E_NOT_FOUND;
}

hub_status hub_choose(const hub_repo *repo, const char *part, uint64_t room_bytes, const char *what, hub_choice *out)
{
    hub_variant *variants;
    size_t n;
    *out = (hub_choice){0};
    hub_status status = hub_repo_variants(repo, &variants, &n);
    if (status == HUB_OK) {
        if (part[0]) {
            size_t n_stem;
            unsigned at, n_parts;
            status = read_split(part, &n_stem, &at, &n_parts) ? HUB_E_NOT_FOUND : take_file(repo, part, out);
            if (status == HUB_E_NOT_FOUND) status = take_wanted(repo, variants, n, part, what, out);
        } else if (n > 0) {
            status = take_fitting(repo, variants, n, room_bytes, what, out);
        } else {
            status = take_folder(repo, what, out);
        }
    }
    free(variants);
    if (status != HUB_OK) hub_choice_free(out);
    return status;
}
