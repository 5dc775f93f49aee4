// SPDX-License-Identifier: MIT
// Texts with pictures on a GPU through WebGPU.
#include "backend/webgpu_device.h"
#include "engine/media/golden_session.h"

static void texts_with_pictures_are_those_of_transformers(void **state)
{
    (void)state;
    // M-RoPE with features for several layers, rows that see each other, and per-layer embeddings.
    static const known models[] = {{"qwen3_vl", 1e-6}, {"gemma3", 1e-6}, {"gemma4", 1e-6}, {"gemma4_small", 1e-6}};
    require_webgpu();
    for (size_t i = 0; i < FRIT_COUNT(models); i++)
        for (size_t k = 1; k < 3; k++) compare_case(&models[i], k, (frit_engine_options){.device = "webgpu"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_with_pictures_are_those_of_transformers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
