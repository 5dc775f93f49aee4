// SPDX-License-Identifier: MIT
// Computes architectures with the formulas of the op table alone, and compares with logits from other engines.
#include "arch/arch.h"
#include "arch/golden.h"
#include "graph/evaluate.h"
#include "graph/plan.h"

typedef struct model {
    frit_checkpoint *ckpt;
    frit_arena arena;
    const frit_arch *arch;
    frit_hparams hp;
    frit_weights weights;
} model;

static void open_model(model *m, const char *path)
{
    *m = (model){0};
    assert_ok(frit_checkpoint_open(&m->ckpt, path, &(frit_checkpoint_options){0}));
    assert_ok(frit_arch_of(&m->arch, m->ckpt));
    assert_ok(frit_hparams_read(&m->hp, m->arch, m->ckpt, &m->arena));
    assert_ok(frit_weights_bind(&m->weights, m->arch, &m->hp, m->ckpt, &m->arena));
    assert_ok(frit_rope_init(&m->hp, m->hp.n_ctx_train, &m->arena));
}

static void close_model(model *m)
{
    frit_arena_free(&m->arena);
    frit_checkpoint_close(m->ckpt);
}

// True if tests/graph/evaluate.h has formulas for all ops of the graph.
static bool is_plain(const frit_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++) {
        const frit_node *node = g->nodes[i];
        switch (node->op) {
        case FRIT_OP_CLAMP:
        case FRIT_OP_SLICE:
        case FRIT_OP_CONCAT:
        case FRIT_OP_SCALE_ROWS:
        case FRIT_OP_HEADS:
        case FRIT_OP_ROUTE:
        case FRIT_OP_EXPERTS:
        case FRIT_OP_GATHER_EXPERTS:
        case FRIT_OP_MIX:
        case FRIT_OP_SHIFT:
        case FRIT_OP_WKV:
        case FRIT_OP_ATTEND_RELATIVE:
        case FRIT_OP_ATTEND_UNCACHED:
        case FRIT_OP_EMBED_MIX:
        case FRIT_OP_ROPE_ANGLES:
        case FRIT_OP_TAKE_BLOCKS:
        case FRIT_OP_PLACE_ROWS:
        case FRIT_OP_ATTEND_BLOCKS:
        case FRIT_OP_COMPRESS:
        case FRIT_OP_LRU:
        case FRIT_OP_CHOOSE_BLOCKS:
        case FRIT_OP_ATTEND_IN_BLOCKS:
        case FRIT_OP_HYPER:
        case FRIT_OP_RWKV:
            return false;
        case FRIT_OP_ROPE:
            if (node->rope.offset != 0) return false;
            break;
        case FRIT_OP_ATTEND:
            if (node->n_src > 2 || node->attend.alibi != 0 || node->attend.bidirectional || node->attend.chunk != 0 ||
                node->attend.cross || node->attend.temp_scale != 0)
                return false;
            break;
        default:
            break;
        }
    }
    return true;
}

// Returns the NMSE of the logits after the given rows.
static double compare(model *m, const golden *gold, const int32_t *out_rows, size_t n_outs, bool fused)
{
    frit_arena arena = {0};
    frit_graph g;
    frit_graph_init(&g, &arena, (int64_t)gold->n_tokens, (int64_t)n_outs);
    assert_ok(frit_arch_build(&g, m->arch, &m->hp, &m->weights, NULL));
    if (!is_plain(&g)) {
        frit_arena_free(&arena);
        return -1;
    }
    if (fused) assert_in_range(frit_fuse(&g), 1, 1000);   // only output rows are computed
    assert_ok(frit_graph_check(&g));
    assert_int_equal(g.output->shape[1], gold->n_vocab);
    float *logits = evaluate_graph(&g, gold->tokens, out_rows);
    float *wanted = calloc(n_outs * gold->n_vocab, sizeof *wanted);
    for (size_t i = 0; i < n_outs; i++)
        memcpy(wanted + i * gold->n_vocab, gold->logits + (size_t)out_rows[i] * gold->n_vocab,
               gold->n_vocab * sizeof *wanted);
    double error = nmse(logits, wanted, n_outs * gold->n_vocab);
    free(logits);
    free(wanted);
    frit_arena_free(&arena);
    return error;
}

static void architectures_of_plain_ops_say_what_their_references_compute(void **state)
{
    (void)state;
    size_t n_bad = 0, n_plain = 0;
    for (size_t i = 0; i < N_GOLDENS; i++) {
        if (!golden_is_here(i)) continue;
        golden gold = golden_load(i);
        model m;
        open_model(&m, gold.path);
        if (golden_get(i)->flags & GOLDEN_LONG) m.hp.n_ctx = 256;
        int32_t *all = calloc(gold.n_tokens, sizeof *all);
        for (size_t t = 0; t < gold.n_tokens; t++) all[t] = (int32_t)t;
        double unfused = compare(&m, &gold, all, gold.n_tokens, false);
        if (unfused < 0) {
            free(all);
            close_model(&m);
            golden_free(&gold);
            continue;
        }
        n_plain++;
        double fused = compare(&m, &gold, all, gold.n_tokens, true);
        double some = compare(&m, &gold, (int32_t[]){5, (int32_t)gold.n_tokens - 1}, 2, true);
        print_message("%-20s %.1e  fused %.1e  two rows %.1e\n", golden_name(i), unfused, fused, some);
        n_bad += !(unfused <= 1e-6) + !(fused <= 1e-6) + !(some <= 1e-6);
        free(all);
        close_model(&m);
        golden_free(&gold);
    }
    assert_int_equal(n_bad, 0);
    assert_true(n_plain >= shared_least(N_GOLDENS / 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(architectures_of_plain_ops_say_what_their_references_compute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
