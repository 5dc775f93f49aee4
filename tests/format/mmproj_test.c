// SPDX-License-Identifier: MIT
// Encoders in mmproj files: keys and tensors equal those of the folders that the files were made of, and each bad file
// has its sentence.
#include "format/mmproj.h"

#include "arch/media.h"
#include "format/gguf.h"
#include "format/processor.h"
#include "support/support.h"

static const frit_checkpoint_options vision = {.part = FRIT_CHECKPOINT_VISION};

// ------------------------------------------------------------------------------- good files

static float *decode(const frit_tensor *tensor, int64_t *n)
{
    *n = frit_tensor_n_elems(tensor);
    const int64_t width = tensor->shape[tensor->n_dims - 1];
    float *values = calloc((size_t)*n, sizeof *values);
    assert_ok(frit_tensor_decode_rows(tensor, 0, *n / width, values));
    return values;
}

// Compares a tensor of the file with that of the folder. Fused and permuted matrices of the folder are left out.
static bool is_equal(const frit_checkpoint *folder, const frit_tensor *tensor)
{
    const frit_tensor *other = frit_checkpoint_find(folder, tensor->name);
    int64_t n, n_other;
    if (!other) return false;
    float *a = decode(tensor, &n), *b = decode(other, &n_other);
    assert_int_equal(n, n_other);
    const bool yes = memcmp(a, b, (size_t)n * sizeof *a) == 0;
    free(a);
    free(b);
    return yes;
}

static void tensors_equal_those_of_folders(void **state)
{
    (void)state;
    // Tensors that differ: q, k and v of three layers with biases are one matrix in folders, q and k are permuted.
    static const struct {
        const char *name;
        size_t n_others;
    } models[] = {{"smolvlm", 0},  {"llama4", 0},  {"mistral3", 6}, {"qwen2_vl", 18}, {"qwen2_5_vl", 18},
                  {"qwen3_vl", 0}, {"qwen3_5", 0}, {"gemma3", 0},   {"gemma4", 0},    {"gemma4_small", 0}};
    for (size_t i = 0; i < FRIT_COUNT(models); i++) {
        frit_checkpoint *file, *folder;
        size_t n_others = 0;
        assert_ok(
            frit_checkpoint_open(&file, shared_path("goldens/media-gguf/%s.mmproj.gguf", models[i].name), &vision));
        assert_ok(frit_checkpoint_open(&folder, shared_path("goldens/media/%s", models[i].name), &vision));
        for (size_t k = 0; k < file->n_tensors; k++) n_others += !is_equal(folder, &file->tensors[k]);
        if (n_others != models[i].n_others) fail_msg("%s: %zu tensors differ", models[i].name, n_others);
        frit_checkpoint_close(file);
        frit_checkpoint_close(folder);
    }
}

static void processors_are_those_of_published_models(void **state)
{
    (void)state;
    frit_checkpoint *file;
    frit_processor p;
    assert_ok(frit_checkpoint_open(&file, shared_path("goldens/media-gguf/qwen2_vl.mmproj.gguf"), &vision));
    assert_ok(frit_mmproj_processor(&p, file));
    assert_int_equal(p.min_pixels, 4 * 12 * 12);
    assert_int_equal(p.max_pixels, 16384 * 12 * 12);
    assert_int_equal(p.block, 2);
    assert_string_equal(p.placeholder, "<|image_pad|>");
    frit_checkpoint_close(file);
    assert_ok(frit_checkpoint_open(&file, shared_path("goldens/media-gguf/smolvlm.mmproj.gguf"), &vision));
    assert_ok(frit_mmproj_processor(&p, file));
    assert_int_equal(p.longest, 64);
    assert_int_equal(p.width, 32);
    assert_int_equal(p.merge, 2);
    frit_checkpoint_close(file);
}

// ------------------------------------------------------------------------------- bad files

// A change of a good file: a text in it, which becomes another one of its length.
typedef struct fault {
    const char *model, *from, *to;
    uint32_t number;   // that replaces the four bytes after `from` and a type of four bytes; `to` is NULL
    frit_status status;
    const char *part;   // of the error
} fault;

static const fault faults[] = {
    {"smolvlm", "idefics3", "idefics9", 0, FRIT_E_UNSUPPORTED, "of the kind 'idefics9' (clip.projector_type)"},
    {"smolvlm", "clip.projector_type", "clip.projector_typo", 0, FRIT_E_UNSUPPORTED, "has no clip.projector_type"},
    {"smolvlm", "clip.has_vision_encoder", NULL, 0, FRIT_E_UNSUPPORTED, "has no vision encoder"},
    {"smolvlm", "clip.vision.block_count", "clip.vision.block_counx", 0, FRIT_E_FORMAT,
     "'clip.vision.block_count' is missing, expected 1 to 1024"},
    {"smolvlm", "clip.vision.block_count", NULL, 0, FRIT_E_FORMAT, "'clip.vision.block_count' is 0, expected 1"},
    {"smolvlm", "clip.vision.block_count", NULL, 4, FRIT_E_FORMAT, "'blk.2.attn_norm.weight' is missing"},
    {"smolvlm", "clip.vision.block_count", NULL, 1u << 31, FRIT_E_FORMAT, "is 2147483648, expected 1 to 1024"},
    {"smolvlm", "clip.vision.attention.head_count", NULL, 0, FRIT_E_FORMAT, "head_count' is 0, expected 1"},
    {"smolvlm", "clip.vision.attention.head_count", NULL, 5, FRIT_E_FORMAT, "an even number for each of 5 heads"},
    {"smolvlm", "clip.vision.attention.head_count", NULL, 48, FRIT_E_FORMAT, "an even number for each of 48 heads"},
    {"smolvlm", "clip.vision.embedding_length", NULL, 64, FRIT_E_FORMAT, "has the shape [48, 192], expected [64"},
    {"smolvlm", "clip.vision.projection_dim", NULL, 65, FRIT_E_FORMAT, "'merge_out.weight' has the shape [64, 192]"},
    {"smolvlm", "clip.vision.projector.scale_factor", NULL, 0, FRIT_E_FORMAT, "scale_factor' is 0, expected 1 to 32"},
    {"smolvlm", "clip.vision.projector.scale_factor", NULL, 3, FRIT_E_FORMAT, "'merge_out.weight' has the shape"},
    {"smolvlm", "clip.use_gelu", "clip.use_silu", 0, FRIT_E_UNSUPPORTED,
     "clip.use_silu is true, expected clip.use_gelu"},
    {"smolvlm", "clip.use_gelu", "clip.use_relu", 0, FRIT_E_UNSUPPORTED,
     "no activation is set, expected clip.use_gelu"},
    {"smolvlm", "v.patch_embd.weight", "v.patch_embx.weight", 0, FRIT_E_FORMAT, "'v.patch_embd.weight' is missing"},
    {"smolvlm", "v.position_embd.weight", "v.position_embx.weight", 0, FRIT_E_FORMAT,
     "'position_embd.weight' is missing"},
    {"smolvlm", "v.blk.0.ffn_up.weight", "v.blk.0.ffn_ux.weight", 0, FRIT_E_FORMAT, "'blk.0.ffn_up.weight' is missing"},
    {"smolvlm", "v.blk.0.ln1.weight", "v.blk.0.lnx.weight", 0, FRIT_E_FORMAT, "'blk.0.attn_norm.weight' is missing"},
    {"smolvlm", "v.blk.0.ln1.weight", "v.blk.0.ln2.weight", 0, FRIT_E_FORMAT, "occurs twice"},
    {"qwen2_vl", "v.patch_embd.weight.1", "v.patch_embd.weight.2", 0, FRIT_E_FORMAT,
     "tensor 'v.patch_embd.weight.2' is not expected"},
    {"qwen2_5_vl", "clip.vision.n_wa_pattern", NULL, 0, FRIT_E_FORMAT, "n_wa_pattern' is 0, expected 1 to 1024"},
    {"qwen2_5_vl", "clip.vision.patch_size", NULL, 0, FRIT_E_FORMAT, "patch_size' is 0, expected 1 to 256"},
    {"qwen3_vl", "clip.vision.block_count", NULL, 3, FRIT_E_FORMAT, "expected a flag for each of 3 layers"},
    {"qwen3_vl", "clip.vision.is_deepstack_layers", "clip.vision.is_deepstack_layerz", 0, FRIT_E_FORMAT,
     "'v.deepstack.0.fc1.bias' is not expected"},
    {"gemma3", "mm.input_projection.weight", "mm.input_projectiox.weight", 0, FRIT_E_FORMAT,
     "'merge_out.weight' is missing"},
    {"gemma4", "v.position_embd.weight", "v.position_embx.weight", 0, FRIT_E_FORMAT,
     "position_embd.weight' is missing"},
    {"llama4", "mm.model.mlp.1.weight", "mm.model.mlp.7.weight", 0, FRIT_E_FORMAT, "'merge_in.weight' is missing"},
    {"llama4", "v.class_embd", "v.class_embx", 0, FRIT_E_FORMAT, "has 17 positions of patches, expected the square"},
};

static void change(char *bytes, size_t n, const fault *f)
{
    const size_t n_from = strlen(f->from);
    for (size_t i = 0; i + n_from + 8 < n; i++) {
        if (memcmp(bytes + i, f->from, n_from) != 0) continue;
        if (f->to)
            memcpy(bytes + i, f->to, n_from);
        else
            memcpy(bytes + i + n_from + 4, &f->number, strcmp(f->from, "clip.has_vision_encoder") == 0 ? 1 : 4);
        return;
    }
    fail_msg("%s has no '%s'", f->model, f->from);
}

static frit_status open_file(const char *path)
{
    frit_arena arena = {0};
    frit_checkpoint *ckpt = NULL;
    frit_hparams hp;
    frit_weights weights;
    frit_processor p;
    frit_str name;
    frit_status status = frit_checkpoint_open(&ckpt, path, &vision);
    if (status == FRIT_OK) {
        assert_ok(frit_meta_get_text(&ckpt->meta, "general.architecture", &name, NULL));
        const frit_arch *arch = frit_media_arch_find(name.ptr);
        assert_non_null(arch);
        status = frit_hparams_read(&hp, arch, ckpt, &arena);
        if (status == FRIT_OK) status = frit_weights_bind(&weights, arch, &hp, ckpt, &arena);
        if (status == FRIT_OK) status = frit_mmproj_processor(&p, ckpt);
    }
    frit_checkpoint_close(ckpt);
    frit_arena_free(&arena);
    return status;
}

static void every_fault_has_its_sentence(void **state)
{
    (void)state;
    size_t n_failed = 0;
    for (size_t i = 0; i < FRIT_COUNT(faults); i++) {
        const fault *f = &faults[i];
        const char *path = temp_path("bad.gguf");
        size_t n;
        char *bytes = read_file(shared_path("goldens/media-gguf/%s.mmproj.gguf", f->model), &n);
        change(bytes, n, f);
        write_file(path, bytes, n);
        free(bytes);
        const frit_status status = open_file(path);
        if (status == f->status && strstr(frit_error(), f->part)) continue;
        print_error("%s, %s %s%u: status %d, '%s', expected %d, '%s'\n", f->model, f->from, f->to ? f->to : "",
                    f->number, (int)status, status == FRIT_OK ? "" : frit_error(), (int)f->status, f->part);
        n_failed++;
    }
    assert_int_equal(n_failed, 0);
}

static void processors_of_bad_files_are_refused(void **state)
{
    (void)state;
    static const fault bad[] = {
        {"smolvlm", "clip.vision.patch_size", NULL, 0, FRIT_E_FORMAT, "patch_size' is 0, expected 1 to 256"},
        {"smolvlm", "clip.vision.image_size", NULL, 0, FRIT_E_FORMAT, "image_size' is 0, expected 1 to 16384"},
        {"smolvlm", "clip.vision.image_size", NULL, 8, FRIT_E_FORMAT, "a tile has 8x8 pixels; expected at least 16"},
        {"smolvlm", "clip.vision.preproc_image_size", NULL, 1u << 20, FRIT_E_FORMAT, "is 1048576, expected 1 to 16384"},
        {"smolvlm", "clip.vision.image_std", NULL, 4, FRIT_E_FORMAT, "image_std' is bad, expected three numbers"},
    };
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        const char *path = temp_path("bad.gguf");
        size_t n;
        char *bytes = read_file(shared_path("goldens/media-gguf/%s.mmproj.gguf", bad[i].model), &n);
        change(bytes, n, &bad[i]);
        write_file(path, bytes, n);
        free(bytes);
        assert_int_equal(open_file(path), bad[i].status);
        if (!strstr(frit_error(), bad[i].part)) fail_msg("'%s' lacks '%s'", frit_error(), bad[i].part);
    }
}

// A text model, and an encoder that is opened as one.
static void other_models_are_refused(void **state)
{
    (void)state;
    assert_int_equal(open_file(shared_path("goldens/media-gguf/qwen2_vl.text.gguf")), FRIT_E_UNSUPPORTED);
    assert_non_null(strstr(frit_error(), "general.architecture is 'qwen2vl', expected 'clip'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_equal_those_of_folders), cmocka_unit_test(processors_are_those_of_published_models),
        cmocka_unit_test(every_fault_has_its_sentence),   cmocka_unit_test(processors_of_bad_files_are_refused),
        cmocka_unit_test(other_models_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
