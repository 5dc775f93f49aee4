// SPDX-License-Identifier: MIT
// Reads three texts, separated by lines of "---", as the files of a processor; plans pictures with it, writes their
// marks, and the patches of small plans.
#include "format/processor.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static frit_str next_text(frit_str *rest)
{
    static const char line[] = "\n---\n";
    frit_str text = *rest;
    for (size_t i = 0; i + 5 <= rest->len; i++)
        if (memcmp(rest->ptr + i, line, 5) == 0) {
            text.len = i;
            *rest = (frit_str){rest->ptr + i + 5, rest->len - i - 5};
            return text;
        }
    *rest = (frit_str){"", 0};
    return text;
}

static frit_status count_part(void *ctx, const char *text, uint32_t n_soft)
{
    uint64_t *n = ctx;
    *n += text ? 0 : n_soft;
    return FRIT_OK;
}

static void use_size(const frit_processor *p, uint32_t width, uint32_t height)
{
    frit_picture_plan plan;
    uint64_t n_soft = 0;
    if (frit_processor_plan(&plan, p, width, height) != FRIT_OK) return;
    if (frit_processor_marks(p, &plan, count_part, &n_soft) != FRIT_OK) abort();
    enum { MOST = 1 << 14 };
    if ((uint64_t)width * height > MOST || (uint64_t)plan.n_patches * plan.patch_values > MOST ||
        (uint64_t)plan.out_width * plan.out_height > MOST || (uint64_t)plan.first_width * plan.first_height > MOST ||
        (uint64_t)plan.out_width * plan.first_height > MOST)
        return;
    float *patches = malloc((size_t)plan.n_patches * plan.patch_values * sizeof *patches);
    uint8_t *rgb = calloc((size_t)width * height, 3);
    frit_image *image;
    if (!patches || !rgb || frit_image_from_rgb(&image, width, height, rgb) != FRIT_OK) abort();
    if (frit_processor_patches(p, &plan, image, patches) != FRIT_OK) abort();
    frit_image_free(image);
    free(patches);
    free(rgb);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    static const uint16_t sizes[][2] = {{1, 1}, {3, 250}, {64, 48}, {700, 20}, {333, 512}, {32767, 32767}};
    frit_str rest = {(const char *)bytes, n_bytes};
    frit_processor_files files;
    files.preprocessor = next_text(&rest);
    files.processor = next_text(&rest);
    files.config = next_text(&rest);
    frit_processor p;
    bool found;
    if (frit_processor_read(&p, &found, &files) != FRIT_OK || !found) return 0;
    for (size_t i = 0; i < FRIT_COUNT(sizes); i++) use_size(&p, sizes[i][0], sizes[i][1]);
    frit_processor_limit(&p, 30, 100);
    for (size_t i = 0; i < FRIT_COUNT(sizes); i++) use_size(&p, sizes[i][0], sizes[i][1]);
    return 0;
}
