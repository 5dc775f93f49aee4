// SPDX-License-Identifier: MIT
// Folders whose encoder of pictures is refused, each with an error: changes to the config.json of reference models.
#include "arch/media.h"
#include "support/support.h"

#include <jansson.h>
#include <sys/stat.h>

static const struct {
    const char *model, *whole, *vision;   // members that replace those of config.json and of its vision_config
    frit_status status;
    const char *part;   // of the error
} faults[] = {
    {"qwen2_vl", "{\"vision_config\": 7}", "", FRIT_E_UNSUPPORTED, "has no vision_config"},
    {"qwen2_vl", "{\"model_type\": \"qwen9_vl\"}", "", FRIT_E_UNSUPPORTED, "pictures of a model of type 'qwen9_vl'"},
    {"qwen2_vl", "{\"model_type\": 3}", "", FRIT_E_FORMAT, "model_type is 3, expected text"},
    {"qwen2_vl", "", "{\"hidden_act\": \"silu\"}", FRIT_E_UNSUPPORTED, "hidden_act is 'silu'"},
    {"qwen2_vl", "", "{\"num_heads\": 5}", FRIT_E_FORMAT, "heads have 9 elements, expected an even number"},
    {"qwen2_vl", "", "{\"num_heads\": 0}", FRIT_E_FORMAT, "num_attention_heads is 0"},
    {"qwen2_vl", "", "{\"depth\": 2000}", FRIT_E_FORMAT, "tensor 'visual.blocks.3.norm1.weight' is missing"},
    {"qwen2_vl", "", "{\"depth\": 100000}", FRIT_E_FORMAT, "is 100000, expected a whole number from 1 to 10000"},
    {"qwen2_vl", "", "{\"patch_size\": 4096}", FRIT_E_FORMAT, "numbers, expected at most 1048576"},
    {"qwen2_vl", "", "{\"patch_size\": 0}", FRIT_E_FORMAT, "patch_size is 0, expected a whole number from 1"},
    {"qwen2_vl", "", "{\"patch_size\": 7}", FRIT_E_FORMAT,
     "'patch_embd.weight' has the shape [48, 216], expected [48, 294]"},
    {"qwen2_vl", "", "{\"spatial_merge_size\": 3}", FRIT_E_FORMAT, "'merge_in.weight' has the shape [192, 192]"},
    {"qwen2_vl", "", "{\"spatial_merge_size\": 100}", FRIT_E_FORMAT, "spatial_merge_size is 100, expected 1 to 64"},
    {"qwen2_vl", "", "{\"mlp_ratio\": -1}", FRIT_E_FORMAT, "mlp_ratio is -1"},
    {"qwen2_vl", "", "{\"mlp_ratio\": 3}", FRIT_E_FORMAT, "'blk.0.ffn_up.weight' has the shape"},
    {"qwen2_vl", "", "{\"hidden_size\": 32}", FRIT_E_FORMAT, "'merge_out.weight' has the shape [64, 192]"},
    {"qwen2_5_vl", "", "{\"window_size\": 8}", FRIT_E_FORMAT, "window_size is 8, expected at least 16"},
    {"qwen2_5_vl", "", "{\"fullatt_block_indexes\": [3]}", FRIT_E_FORMAT,
     "fullatt_block_indexes[0] is not one of the 3"},
    {"qwen2_5_vl", "", "{\"fullatt_block_indexes\": [\"1\"]}", FRIT_E_FORMAT, "fullatt_block_indexes[0] is not one"},
    {"qwen3_vl", "", "{\"num_position_embeddings\": 35}", FRIT_E_FORMAT,
     "num_position_embeddings is 35, expected a square"},
    {"qwen3_vl", "", "{\"num_position_embeddings\": 49}", FRIT_E_FORMAT,
     "'position_embd.weight' has the shape [36, 32]"},
    {"qwen3_vl", "", "{\"deepstack_visual_indexes\": 2}", FRIT_E_FORMAT, "deepstack_visual_indexes is not a list"},
    {"qwen3_vl", "", "{\"deepstack_visual_indexes\": [0, 4]}", FRIT_E_FORMAT,
     "deepstack_visual_indexes[1] is not one of the 4 layers"},
    {"qwen3_vl", "", "{\"deepstack_visual_indexes\": [2, 0]}", FRIT_E_FORMAT, "or not above the one before"},
    {"qwen3_vl", "", "{\"deepstack_visual_indexes\": [\"0\"]}", FRIT_E_FORMAT,
     "deepstack_visual_indexes[0] is not one"},
    {"qwen3_vl", "", "{\"deepstack_visual_indexes\": [0, 1, 2]}", FRIT_E_FORMAT, "'blk.2.deep_norm.weight'"},
    {"qwen3_vl", "", "{\"deepstack_visual_indexes\": [0]}", FRIT_E_FORMAT, "'blk.1.deep_"},
    {"gemma3", "{\"mm_tokens_per_image\": 8}", "", FRIT_E_FORMAT,
     "mm_tokens_per_image is 8, expected a square up to 7"},
    {"gemma3", "{\"mm_tokens_per_image\": 64}", "", FRIT_E_FORMAT, "mm_tokens_per_image is 64, expected a square"},
    {"gemma3", "{\"mm_tokens_per_image\": 25}", "", FRIT_E_UNSUPPORTED, "squares of 1 patches give another number"},
    {"gemma3", "{\"mm_tokens_per_image\": \"9\"}", "", FRIT_E_FORMAT, "mm_tokens_per_image is \"9\""},
    {"gemma3", "", "{\"image_size\": 64}", FRIT_E_UNSUPPORTED, "squares of 4 patches give another number"},
    {"gemma3", "", "{\"image_size\": 48}", FRIT_E_FORMAT,
     "'position_embd.weight' has the shape [49, 48], expected [36"},
    {"gemma3", "", "{\"hidden_act\": \"gelu\"}", FRIT_E_UNSUPPORTED, "hidden_act is 'gelu'"},
    {"gemma4", "", "{\"head_dim\": 6}", FRIT_E_FORMAT, "heads have 6 elements, expected a multiple of 4"},
    {"gemma4", "", "{\"head_dim\": 16}", FRIT_E_FORMAT, "'blk.0.attn_q.weight' has the shape [48, 48], expected [64"},
    {"gemma4", "", "{\"position_embedding_size\": 63}", FRIT_E_FORMAT,
     "'position_embd.weight' has the shape [128, 48]"},
    {"gemma4", "", "{\"pooling_kernel_size\": 0}", FRIT_E_FORMAT, "pooling_kernel_size is 0"},
    {"gemma4", "", "{\"rope_parameters\": {\"rope_type\": \"linear\"}}", FRIT_E_UNSUPPORTED, "rope_type is 'linear'"},
    {"gemma4", "", "{\"patch_size\": 8}", FRIT_E_FORMAT, "'patch_embd.weight' has the shape [48, 108]"},
    {"smolvlm", "", "{\"image_size\": 4}", FRIT_E_FORMAT, "image_size is 4, expected at least the patch size 8"},
    {"smolvlm", "", "{\"image_size\": 64}", FRIT_E_FORMAT,
     "'position_embd.weight' has the shape [16, 48], expected [64"},
    {"smolvlm", "{\"scale_factor\": 4}", "", FRIT_E_FORMAT, "'merge_out.weight' has the shape [64, 192]"},
    {"smolvlm", "{\"text_config\": {\"model_type\": \"llama\", \"hidden_size\": 0}}", "", FRIT_E_FORMAT,
     "hidden_size is 0"},
    {"llava", "{\"vision_feature_layer\": 4}", "", FRIT_E_UNSUPPORTED, "expected a whole number from -3 to -1"},
    {"llava", "{\"vision_feature_layer\": [-2, -5]}", "", FRIT_E_UNSUPPORTED, "vision_feature_layer is not supported"},
    {"llava", "{\"vision_feature_select_strategy\": \"full\"}", "", FRIT_E_UNSUPPORTED, "strategy is 'full'"},
    {"llava", "{\"projector_hidden_act\": \"relu\"}", "", FRIT_E_UNSUPPORTED, "projector_hidden_act is 'relu'"},
    {"llava", "", "{\"model_type\": \"siglip_vision_model\"}", FRIT_E_UNSUPPORTED,
     "model_type is 'siglip_vision_model'"},
    {"mistral3", "", "{\"rope_parameters\": {\"rope_theta\": 0}}", FRIT_E_FORMAT, "rope_parameters.rope_theta is 0"},
    {"qwen2_vl", "", "{\"rope_parameters\": {\"rope_type\": \"yarn\"}}", FRIT_E_UNSUPPORTED, "rope_type is 'yarn'"},
    {"mistral3", "{\"vision_feature_layer\": -2}", "", FRIT_E_UNSUPPORTED, "vision_feature_layer is -2, expected -1"},
    {"mistral3", "", "{\"hidden_act\": \"relu\"}", FRIT_E_UNSUPPORTED, "hidden_act is 'relu'"},
    {"internvl", "{\"vision_feature_layer\": -2}", "", FRIT_E_UNSUPPORTED, "vision_feature_layer is -2, expected -1"},
    {"internvl", "{\"downsample_ratio\": 0.4}", "", FRIT_E_FORMAT, "downsample_ratio is 0.4, expected one part"},
    {"internvl", "{\"downsample_ratio\": 2}", "", FRIT_E_FORMAT, "downsample_ratio is 2, expected one part"},
    {"internvl", "{\"downsample_ratio\": 0.25}", "", FRIT_E_FORMAT, "'merge_norm.weight' has the shape [192]"},
    {"internvl", "{\"projector_hidden_act\": \"silu\"}", "", FRIT_E_UNSUPPORTED, "projector_hidden_act is 'silu'"},
    {"internvl", "", "{\"use_qk_norm\": true}", FRIT_E_UNSUPPORTED, "use_qk_norm is true"},
    {"internvl", "", "{\"use_mean_pooling\": false}", FRIT_E_UNSUPPORTED, "use_mean_pooling is false"},
    {"internvl", "", "{\"norm_type\": \"rms_norm\"}", FRIT_E_UNSUPPORTED, "norm_type is 'rms_norm'"},
    {"internvl", "", "{\"patch_size\": [8, 4]}", FRIT_E_FORMAT, "patch_size is a list, expected two equal"},
    {"internvl", "", "{\"patch_size\": [8]}", FRIT_E_FORMAT, "patch_size is a list, expected two equal"},
    {"internvl", "", "{\"image_size\": [0, 0]}", FRIT_E_FORMAT, "image_size is a list, expected two equal"},
    {"internvl", "", "{\"image_size\": [64, 64]}", FRIT_E_FORMAT, "expected [65, 48]"},
    {"llava_next", "{\"vision_feature_layer\": [-2]}", "", FRIT_E_UNSUPPORTED, "vision_feature_layer is not supported"},
    {"llava_onevision", "", "{\"model_type\": \"clip_vision_model\"}", FRIT_E_UNSUPPORTED,
     "model_type is 'clip_vision_model'"},
    {"llava_onevision", "{\"vision_feature_select_strategy\": \"default\"}", "", FRIT_E_UNSUPPORTED,
     "strategy is 'default'"},
    {"lfm2_vl", "", "{\"num_patches\": 15}", FRIT_E_FORMAT, "num_patches is 15, expected the square"},
    {"lfm2_vl", "", "{\"num_patches\": 25}", FRIT_E_FORMAT, "expected [25, 48]"},
    {"lfm2_vl", "", "{\"model_type\": \"siglip_vision_model\"}", FRIT_E_UNSUPPORTED,
     "model_type is 'siglip_vision_model'"},
    {"lfm2_vl", "{\"projector_hidden_size\": 48}", "", FRIT_E_FORMAT, "'merge_in.weight' has the shape [56, 192]"},
    {"lfm2_vl", "{\"downsample_factor\": 3}", "", FRIT_E_FORMAT, "'merge_norm.weight' has the shape [192]"},
    {"llama4", "", "{\"pixel_shuffle_ratio\": 0.3}", FRIT_E_FORMAT, "pixel_shuffle_ratio is 0.3, expected one part"},
    {"llama4", "", "{\"projector_output_dim\": 64}", FRIT_E_FORMAT, "'merge_in.weight' has the shape [56, 128]"},
    {"llama4", "", "{\"hidden_act\": \"relu\"}", FRIT_E_UNSUPPORTED, "hidden_act is 'relu'"},
};

static void change(json_t *object, const char *changes)
{
    json_t *members = *changes ? json_loads(changes, 0, NULL) : json_object();
    assert_non_null(members);
    json_object_update(object, members);
    json_decref(members);
}

// Makes a folder with the model's weights and a changed configuration.
static void make_folder(const char *path, const char *model, const char *whole, const char *vision)
{
    char name[4200];
    size_t n;
    char *text = read_file(shared_path("goldens/media/%s/config.json", model), &n);
    json_t *config = json_loads(text, 0, NULL);
    change(json_object_get(config, "vision_config"), vision);
    change(config, whole);
    free(text);
    text = json_dumps(config, 0);
    snprintf(name, sizeof name, "%s/config.json", path);
    write_file(name, text, strlen(text));
    free(text);
    json_decref(config);
    snprintf(name, sizeof name, "%s/model.safetensors", path);
    text = read_file(shared_path("goldens/media/%s/model.safetensors", model), &n);
    write_file(name, text, n);
    free(text);
}

static frit_status open_encoder(const char *path)
{
    frit_arena arena = {0};
    frit_checkpoint *ckpt = NULL;
    frit_hparams hp;
    frit_weights weights;
    frit_str name;
    const frit_checkpoint_options options = {.part = FRIT_CHECKPOINT_VISION};
    frit_status status = frit_checkpoint_open(&ckpt, path, &options);
    if (status == FRIT_OK) {
        assert_ok(frit_meta_get_text(&ckpt->meta, "general.architecture", &name, NULL));
        const frit_arch *arch = frit_media_arch_find(name.ptr);
        assert_non_null(arch);
        status = frit_hparams_read(&hp, arch, ckpt, &arena);
        if (status == FRIT_OK) status = frit_weights_bind(&weights, arch, &hp, ckpt, &arena);
    }
    frit_checkpoint_close(ckpt);
    frit_arena_free(&arena);
    return status;
}

static void every_fault_of_an_encoder_has_its_sentence(void **state)
{
    (void)state;
    size_t n_failed = 0;
    for (size_t i = 0; i < FRIT_COUNT(faults); i++) {
        char name[32];
        snprintf(name, sizeof name, "encoder%zu", i);
        const char *path = temp_path(name);
        assert_int_equal(mkdir(path, 0700), 0);
        make_folder(path, faults[i].model, faults[i].whole, faults[i].vision);
        const frit_status status = open_encoder(path);
        if (status == faults[i].status && strstr(frit_error(), faults[i].part)) continue;
        print_error("%s, %s%s: status %d, '%s', expected %d, '%s'\n", faults[i].model, faults[i].whole,
                    faults[i].vision, (int)status, frit_error(), (int)faults[i].status, faults[i].part);
        n_failed++;
    }
    assert_int_equal(n_failed, 0);
}

// Each half of the pairs of a head rotates by its own position.
static void heads_without_halves_of_pairs_are_refused(void **state)
{
    (void)state;
    frit_layer_hparams layer = {.k_dim = 6};
    const frit_hparams hp = {.layers = &layer, .media = {.merge = 2}};
    frit_media_size size;
    assert_int_equal(frit_media_count(frit_media_arch_find("qwen2_vl_vision"), &hp, (frit_media_grid){2, 2}, &size),
                     FRIT_E_FORMAT);
    assert_non_null(strstr(frit_error(), "heads of 6 numbers, expected a multiple of 4"));
}

static void unchanged_folders_are_read(void **state)
{
    (void)state;
    static const char *const models[] = {"qwen2_vl",        "qwen2_5_vl", "qwen3_vl", "qwen3_5",    "smolvlm",
                                         "llava",           "mistral3",   "internvl", "llava_next", "lfm2_vl",
                                         "llava_onevision", "llama4",     "gemma3",   "gemma4",     "gemma4_small"};
    for (size_t i = 0; i < FRIT_COUNT(models); i++) assert_ok(open_encoder(shared_path("goldens/media/%s", models[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_of_an_encoder_has_its_sentence),
        cmocka_unit_test(heads_without_halves_of_pairs_are_refused),
        cmocka_unit_test(unchanged_folders_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
