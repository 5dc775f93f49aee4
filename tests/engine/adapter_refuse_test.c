// SPDX-License-Identifier: MIT
// Adapters that are refused: bad files, and those of another model.
#include "engine/adapter_world.h"
#include "support/adapters.h"
#include "support/engines.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include "engine/engine.h"
#include "format/gguf.h"

#include <math.h>

// ------------------------------------------------------------------------------- bad files

static void assert_refused(frit_model *model, const char *path, frit_status status, const char *part)
{
    frit_adapter *adapter;
    assert_fails(frit_adapter_open(&adapter, model, path, NULL), status, part);
    assert_null(adapter);
}

static void bad_adapters_are_refused_with_a_sentence(void **state)
{
    (void)state;
    const char *path = tiny_model("tiny.gguf", &(tiny_options){0});
    frit_model *model;
    assert_ok(frit_model_open(&model, path, NULL));
    assert_refused(model, make_adapter("a.gguf", path, &(adapter_options){.arch = "qwen2"}, NULL), FRIT_E_INVALID,
                   "general.architecture is 'qwen2', expected 'llama'");
    assert_refused(model, make_adapter("a.gguf", path, &(adapter_options){.wider = 1, .only = "attn_q."}, NULL),
                   FRIT_E_INVALID, "tensor 'blk.0.attn_q.weight.lora_a' has the shape [4, 33], expected");
    assert_refused(model, make_adapter("a.gguf", path, &(adapter_options){.lacks_b = true}, NULL), FRIT_E_FORMAT,
                   ".lora_b', which is missing");
    assert_refused(model, make_adapter("a.gguf", path, &(adapter_options){.only = "nothing"}, NULL), FRIT_E_FORMAT,
                   "has no tensors");
    assert_refused(model, path, FRIT_E_INVALID, "general.type is '', expected 'adapter'");
    assert_refused(model, "/nowhere/a.gguf", FRIT_E_NOT_FOUND, "/nowhere/a.gguf");

    const char *other = tiny_model("other.gguf", &(tiny_options){.n_layer = 5});
    assert_refused(model, make_adapter("a.gguf", other, &(adapter_options){0}, NULL), FRIT_E_INVALID,
                   "'blk.2.attn_q.weight'");
    assert_refused(model, make_vector("v.gguf", other, 1, 1, 4), FRIT_E_INVALID,
                   "'direction.2' is for layer 2, expected 1 to 1");
    assert_refused(model, make_vector("v.gguf", path, 1, 0, 1), FRIT_E_FORMAT, "'direction.0'");

    size_t n;
    char *bytes = read_file(make_adapter("a.gguf", path, &(adapter_options){0}, NULL), &n);
    for (size_t cut = 0; cut < n; cut += 997) {
        const char *at = temp_path("cut.gguf");
        frit_adapter *adapter;
        write_file(at, bytes, cut);
        assert_true(frit_adapter_open(&adapter, model, at, NULL) != FRIT_OK);
    }
    free(bytes);
    frit_model_free(model);
}

// Changes number i of the f32 tensor `name` in a copy of a GGUF file.
static const char *with_number(const char *path, const char *name, size_t i, float value)
{
    const char *changed = temp_path("changed.gguf");
    size_t n;
    char *bytes = read_file(path, &n);
    frit_checkpoint *ckpt;
    assert_ok(frit_checkpoint_open(&ckpt, path, &(frit_checkpoint_options){.no_mmap = true}));
    const frit_tensor *tensor = frit_checkpoint_find(ckpt, name);
    assert_non_null(tensor);
    char *at = memmem(bytes, n, tensor->data, (size_t)tensor->n_bytes);
    assert_non_null(at);
    memcpy(at + i * sizeof value, &value, sizeof value);
    frit_checkpoint_close(ckpt);
    write_file(changed, bytes, n);
    free(bytes);
    return changed;
}

static void numbers_that_are_not_finite_are_the_adapters_fault(void **state)
{
    (void)state;
    const char *path = tiny_model("tiny.gguf", &(tiny_options){0});
    const char *lora = make_adapter("a.gguf", path, &(adapter_options){0}, NULL);
    const char *vector = make_vector("v.gguf", path, 1, 1, 1);
    world w = open_world(path, NULL);
    assert_refused(w.model, with_number(lora, "blk.0.attn_q.weight.lora_a", 3, NAN), FRIT_E_FORMAT,
                   "changed.gguf: tensor 'blk.0.attn_q.weight.lora_a' holds nan at 3, expected finite numbers");
    assert_refused(w.model, with_number(lora, "blk.0.attn_q.weight.lora_b", 0, INFINITY), FRIT_E_FORMAT,
                   "tensor 'blk.0.attn_q.weight.lora_b' holds inf at 0");
    assert_refused(w.model, with_number(vector, "direction.1", 1, NAN), FRIT_E_FORMAT,
                   "tensor 'direction.1' holds nan");

    // Finite, but too large for computations.
    frit_adapter *adapter;
    frit_session *session;
    assert_ok(frit_adapter_open(&adapter, w.model, with_number(vector, "direction.1", 1, 3e38f), NULL));
    assert_ok(frit_session_new(&session, w.engine));
    assert_ok(frit_session_set_adapters(session, &adapter, (float[]){1e6f}, 1));
    assert_ok(frit_session_push(session, (frit_token[]){1, 2}, 2, NULL));
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(w.engine, NULL));
    assert_fails(frit_session_status(session), FRIT_E_FORMAT, "changed.gguf");
    assert_null(strstr(frit_error(), "weights are damaged"));
    frit_session_free(session);
    frit_adapter_free(adapter);
    close_world(&w);
}

static void sessions_take_adapters_of_their_model_only(void **state)
{
    (void)state;
    const char *path = tiny_model("tiny.gguf", &(tiny_options){0});
    world a = open_world(path, NULL), b = open_world(path, NULL);
    frit_adapter *adapter;
    frit_session *session;
    assert_ok(frit_adapter_open(&adapter, a.model, make_adapter("a.gguf", path, &(adapter_options){0}, NULL), NULL));
    assert_ok(frit_session_new(&session, b.engine));
    assert_fails(frit_session_set_adapters(session, &adapter, (float[]){1}, 1), FRIT_E_INVALID,
                 "adapter 0 of 1 was not opened for this session's model");
    frit_session_free(session);
    assert_ok(frit_session_new(&session, a.engine));
    assert_fails(frit_session_set_adapters(session, &adapter, (float[]){NAN}, 1), FRIT_E_INVALID, "the scale of");
    assert_fails(frit_session_set_adapters(session, &adapter, (float[]){1e30f}, 1), FRIT_E_INVALID,
                 "is 1e+30, expected a number from -1e+06 to 1e+06");
    assert_ok(frit_session_set_adapters(session, NULL, NULL, 0));
    frit_session_free(session);
    frit_adapter_free(adapter);
    close_world(&a);
    close_world(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_adapters_are_refused_with_a_sentence),
        cmocka_unit_test(numbers_that_are_not_finite_are_the_adapters_fault),
        cmocka_unit_test(sessions_take_adapters_of_their_model_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
