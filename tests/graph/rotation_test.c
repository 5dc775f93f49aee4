// SPDX-License-Identifier: MIT
// The rotation of a layer's keys by their graph, and the reasons that prevent moving them.
#include "graph/example.h"

#include "graph/rotation.h"

enum { HEADS = 2, DIM = 8, N_CTX = 100 };

typedef struct parts {
    example e;
    frit_graph *g;
    frit_node *positions, *x, *inv_freq, *w;
    frit_key_rotation found[2];
} parts;

static void start(parts *p)
{
    example_start(&p->e);
    p->g = &p->e.g;
    p->positions = frit_input_node(p->g, FRIT_INPUT_POSITIONS);
    frit_node *x =
        frit_embed(p->g, example_weight(&p->e, "table", 10, HEADS * DIM), frit_input_node(p->g, FRIT_INPUT_TOKENS));
    p->x = frit_reshape(p->g, x, 2, (int64_t[]){HEADS, DIM});
    p->inv_freq = example_frequencies(&p->e, 2);
    p->w = example_weight(&p->e, "w", DIM, 0);
}

static frit_node *rotated(parts *p, frit_node *x, int32_t offset)
{
    return frit_rotate(p->g, x, p->positions, p->inv_freq, NULL,
                       (frit_rope){.dim = 4, .offset = offset, .magnitude = 1});
}

static frit_status find(parts *p)
{
    assert_ok(frit_graph_check(p->g));
    return frit_graph_find_rotations(p->g, N_CTX, p->found, 2);
}

// Attention of layer 0 with these queries and keys, and its result as the key of layer 1.
static frit_status find_after(parts *p, frit_node *q, frit_node *k, frit_attend attend)
{
    attend.scale = 1;
    frit_node *y = frit_attend_node(p->g, q, frit_kv_write(p->g, k, p->x, 0), attend, DIM);
    frit_kv_write(p->g, y, y, 1);
    return find(p);
}

static void keys_have_the_rotation_of_their_graph(void **state)
{
    (void)state;
    parts p;
    start(&p);
    frit_node *k = frit_rms_norm(p.g, frit_scale(p.g, rotated(&p, p.x, 2), 3), NULL, 1e-5f);
    assert_ok(find_after(&p, rotated(&p, p.x, 2), k, (frit_attend){.window = 16}));
    assert_true(p.found[0].is_rotated);
    assert_int_equal(p.found[0].rope.dim, 4);
    assert_int_equal(p.found[0].rope.offset, 2);
    assert_ptr_equal(p.found[0].inv_freq, p.inv_freq->tensor);
    assert_null(p.found[0].factors);
    assert_false(p.found[1].is_rotated);   // the second layer has no ROPE
    example_end(&p.e);
}

static void offsets_follow_slices_and_concats(void **state)
{
    (void)state;
    parts p;
    start(&p);
    frit_node *k = frit_slice(p.g, rotated(&p, p.x, 4), 2, 6);
    frit_kv_write(p.g, frit_concat(p.g, p.x, k), p.x, 0);
    frit_kv_write(p.g, frit_slice(p.g, rotated(&p, p.x, 4), 0, 4), p.x, 1);
    assert_ok(find(&p));
    assert_int_equal(p.found[0].rope.offset, DIM + 2);
    assert_false(p.found[1].is_rotated);
    example_end(&p.e);
    start(&p);
    frit_kv_write(p.g, frit_slice(p.g, rotated(&p, p.x, 0), 2, 6), p.x, 1);
    assert_fails(find(&p), FRIT_E_UNSUPPORTED, "the keys of layer 1 contain a part of a rotation");
    example_end(&p.e);
}

static void other_dependences_on_positions_are_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        static const char *const sentences[] = {
            "the keys of layer 0 contain a norm with weights after the rotation",
            "the keys of layer 0 contain more than one rotation",
            "the keys of layer 0 contain learned positions",
            "the keys of layer 0 contain what is computed from rotated vectors",
            "the values of layer 0 contain rotated vectors",
        };
        parts p;
        start(&p);
        frit_node *k = rotated(&p, p.x, 0), *table = example_weight(&p.e, "positions", 100, HEADS * DIM);
        frit_node *learned = frit_reshape(p.g, frit_embed(p.g, table, p.positions), 2, (int64_t[]){HEADS, DIM});
        frit_node *const keys[] = {frit_rms_norm(p.g, k, p.w, 1e-5f), rotated(&p, k, 4), frit_add(p.g, p.x, learned),
                                   frit_add(p.g, k, p.x), p.x};
        frit_kv_write(p.g, keys[i], i == 4 ? k : p.x, 0);
        assert_fails(find(&p), FRIT_E_UNSUPPORTED, sentences[i]);
        example_end(&p.e);
    }
}

static void attention_must_see_distances_alone(void **state)
{
    (void)state;
    static const struct {
        frit_attend attend;
        const char *sentence;   // NULL: keys can be moved
    } rows[] = {
        {{.chunk = N_CTX}, NULL},
        {{.chunk = N_CTX - 1}, "attention in chunks"},
        {{.temp_scale = 0.1f, .temp_length = N_CTX}, NULL},
        {{.temp_scale = 0.1f, .temp_length = N_CTX - 1}, "attention temperature"},
        {{.temp_scale = 0.1f, .temp_length = N_CTX, .temp_offset = 1}, "attention temperature"},
        {{.bidirectional = true}, "attention that sees all tokens"},
        {{.alibi = 8}, NULL},
        {{.softcap = 50}, NULL},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        parts p;
        start(&p);
        const frit_status status = find_after(&p, rotated(&p, p.x, 0), rotated(&p, p.x, 0), rows[i].attend);
        assert_int_equal(status, rows[i].sentence ? FRIT_E_UNSUPPORTED : FRIT_OK);
        if (rows[i].sentence) assert_non_null(strstr(frit_error(), rows[i].sentence));
        example_end(&p.e);
    }
    parts p;
    start(&p);
    assert_fails(find_after(&p, rotated(&p, p.x, 4), rotated(&p, p.x, 0), (frit_attend){0}), FRIT_E_UNSUPPORTED,
                 "the keys of layer 1 contain queries that are rotated otherwise than keys");
    example_end(&p.e);
}

static void states_are_refused(void **state)
{
    (void)state;
    parts p;
    start(&p);
    frit_shift(p.g, frit_reshape(p.g, p.x, 1, (int64_t[]){HEADS * DIM}), (frit_state){.layer = 1});
    assert_fails(find(&p), FRIT_E_UNSUPPORTED, "layer 1 keeps a state of all tokens");
    example_end(&p.e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_have_the_rotation_of_their_graph),
        cmocka_unit_test(offsets_follow_slices_and_concats),
        cmocka_unit_test(other_dependences_on_positions_are_refused),
        cmocka_unit_test(attention_must_see_distances_alone),
        cmocka_unit_test(states_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
