// SPDX-License-Identifier: MIT
// Compares the list of tensors made from rows (dims.c) with files of other writers: every required tensor is in the
// file and has the listed shape.
#include "arch/arch.h"
#include "arch/golden.h"

typedef struct found {
    const frit_checkpoint *ckpt;
    size_t n_listed, n_found, n_bad;
} found;

static bool is_fused_away(const found *f, const frit_listed_tensor *tensor)
{
    char name[128];
    if (!(tensor->row->flags & FRIT_WEIGHT_OR_FUSED)) return false;
    const bool is_stack = tensor->row->flags & FRIT_WEIGHT_STACK;
    snprintf(name, sizeof name, "blk.%d.%s.weight", (int)tensor->i_layer, is_stack ? "ffn_gate_up_exps" : "attn_qkv");
    return frit_checkpoint_find(f->ckpt, name) != NULL;
}

static frit_status look(void *ctx, const frit_listed_tensor *tensor)
{
    found *f = ctx;
    const frit_tensor *there = frit_checkpoint_find(f->ckpt, tensor->name);
    f->n_listed++;
    if (!there && !tensor->may_be_absent && !is_fused_away(f, tensor)) {
        print_message("%s: '%s' is not there\n", f->ckpt->path, tensor->name);
        f->n_bad++;
    }
    if (!there || tensor->row->flags & FRIT_WEIGHT_FIRST_ROW) return FRIT_OK;   // files have more rows
    f->n_found++;
    if (memcmp(there->shape, tensor->shape, sizeof there->shape) == 0) return FRIT_OK;
    char text[96];
    frit_tensor shape = {.n_dims = tensor->n_dims};
    memcpy(shape.shape, tensor->shape, sizeof shape.shape);
    print_message("%s: '%s' is listed as %s", f->ckpt->path, tensor->name, frit_tensor_shape_text(&shape, text));
    print_message(", the file has %s\n", frit_tensor_shape_text(there, text));
    f->n_bad++;
    return FRIT_OK;
}

static void files_have_what_is_listed(void **state)
{
    (void)state;
    size_t n_bad = 0, n_found = 0;
    for (size_t i = N_GOLDEN_FOLDERS; i < N_GOLDENS; i++) {
        if (!golden_is_here(i)) continue;
        found f = {0};
        frit_checkpoint *ckpt;
        const frit_arch *arch;
        frit_hparams hp;
        frit_arena arena = {0};
        const char *path = shared_path("%s/%s.gguf", golden_set(i), golden_name(i));
        assert_ok(frit_checkpoint_open(&ckpt, path, &(frit_checkpoint_options){0}));
        assert_ok(frit_arch_of(&arch, ckpt));
        assert_ok(frit_hparams_read(&hp, arch, ckpt, &arena));
        f.ckpt = ckpt;
        assert_ok(frit_arch_list(arch, &hp, look, &f));
        n_bad += f.n_bad;
        n_found += f.n_found;
        frit_arena_free(&arena);
        frit_checkpoint_close(ckpt);
    }
    assert_true(n_found >= shared_least(2000));
    assert_int_equal(n_bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(files_have_what_is_listed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
