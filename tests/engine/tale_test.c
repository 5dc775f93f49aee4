// SPDX-License-Identifier: MIT
// The bundled model tells its tales to the end, word for word as in the book, on every instruction set, because they
// are the first output that users see.
#include "support/isas.h"
#include "support/support.h"

#include "backend/cpu/kernels.h"

enum { MAX_TOKENS = 2048 };

typedef struct tale {
    const char *title, *file;
} tale;

static const tale rapunzel = {"Rapunzel", "rapunzel.txt"};
static const tale grandson = {"the Old Man and his Grandson", "the-old-man-and-his-grandson.txt"};

// The text in the book, without the newline that ends the file.
static char *read_tale(const tale *t)
{
    FILE *file = fopen(project_path("tests/goldens/tales/%s", t->file), "rb");
    assert_non_null(file);
    char *text = calloc(1 << 14, 1);
    const size_t n = fread(text, 1, (1 << 14) - 1, file);
    fclose(file);
    assert_true(n > 1000 && text[n - 1] == '\n');
    text[n - 1] = '\0';
    return text;
}

typedef struct dialogue {
    frit_token tokens[MAX_TOKENS];
    size_t n_prompt, n;   // of the question; of the whole, including the token that ends the answer
} dialogue;

static void make_dialogue(dialogue *d, const frit_model *model, const tale *t)
{
    char question[128], *text = read_tale(t);
    size_t n_text;
    frit_token end = 0;
    frit_model_info info;
    snprintf(question, sizeof question, "Tell me the tale of %s.", t->title);
    const frit_message message = {.role = "user", .content = question};
    assert_ok(frit_chat_tokenize(model, &message, 1, NULL, d->tokens, MAX_TOKENS, &d->n_prompt));
    assert_ok(
        frit_tokenize(model, text, strlen(text), 0, d->tokens + d->n_prompt, MAX_TOKENS - d->n_prompt - 1, &n_text));
    frit_model_get_info(model, &info);
    for (frit_token id = 0; id < info.n_vocab; id++)
        if (frit_token_is_end(model, id)) end = id;   // the last of them ends a message
    d->n = d->n_prompt + n_text + 1;
    d->tokens[d->n - 1] = end;
    free(text);
}

typedef struct reader {
    const dialogue *dialogue;
    size_t n_wrong, first_wrong;
    float margin;   // the smallest margin of the book's token over all other logits
} reader;

static void read_row(void *ctx, size_t i, const float *logits, size_t n)
{
    reader *r = ctx;
    if (i + 1 < r->dialogue->n_prompt || i + 1 >= r->dialogue->n) return;
    const frit_token expected = r->dialogue->tokens[i + 1];
    float best = -INFINITY;
    for (size_t t = 0; t < n; t++)
        if ((frit_token)t != expected && logits[t] > best) best = logits[t];
    const float margin = logits[expected] - best;
    if (!(margin > 0) && r->n_wrong++ == 0) r->first_wrong = i + 1 - r->dialogue->n_prompt;
    if (margin < r->margin) r->margin = margin;
}

// After each word of the tale the next word is likeliest, and after the last word the end.
static void follow(frit_engine *engine, const char *cpu, const dialogue *d, const tale *t)
{
    frit_session *session;
    assert_ok(frit_session_new(&session, engine));
    reader r = {.dialogue = d, .margin = INFINITY};
    assert_ok(frit_session_push(session, d->tokens, d->n - 1,
                                &(frit_push_options){.output = FRIT_OUTPUT_ALL, .row = read_row, .row_ctx = &r}));
    int32_t n_rows;
    do assert_ok(frit_engine_step(engine, &n_rows));
    while (n_rows > 0);
    if (r.n_wrong > 0)
        fail_msg("%s: %zu of %zu tokens of '%s' are not the likeliest, the first is token %zu", cpu, r.n_wrong,
                 d->n - d->n_prompt, t->title, r.first_wrong);
    print_message("%s: '%s', least margin %.2f\n", cpu, t->title, (double)r.margin);
    frit_session_free(session);
}

// Generates token by token, like the command.
static void tell(const frit_model *model, frit_engine *engine, const char *cpu, const dialogue *d, const tale *t)
{
    frit_session *session;
    frit_sampler *sampler;
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_sampler_new(&sampler, model, NULL));
    assert_ok(frit_session_push(session, d->tokens, d->n_prompt, NULL));
    for (size_t i = d->n_prompt; i < d->n; i++) {
        frit_token token;
        assert_ok(frit_session_next(session, sampler, &token));
        if (token != d->tokens[i]) fail_msg("%s leaves '%s' at token %zu", cpu, t->title, i - d->n_prompt);
    }
    frit_sampler_free(sampler);
    frit_session_free(session);
}

// The scalar kernels and the reference take minutes for the long tale.
static void check_cpu(frit_model *model, const char *cpu, bool is_slow)
{
    frit_engine *engine;
    dialogue d;
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.cpu = cpu, .n_ctx = MAX_TOKENS}));
    make_dialogue(&d, model, &grandson);
    follow(engine, cpu, &d, &grandson);
    if (!is_slow) {
        tell(model, engine, cpu, &d, &grandson);
        make_dialogue(&d, model, &rapunzel);
        follow(engine, cpu, &d, &rapunzel);
    }
    frit_engine_free(engine);
}

static void tales_are_told_to_their_end_on_every_instruction_set(void **state)
{
    (void)state;
    frit_model *model;
    assert_ok(frit_model_open(&model, project_path("models/fable.gguf"), NULL));
    check_cpu(model, "reference", true);
    for (size_t i = 0; frit_isa_get(i); i++)
        if (frit_isa_is_usable(frit_isa_get(i)))
            check_cpu(model, frit_isa_get(i)->name, i == 0 || FRIT_TEST_STRIDE > 1);
    frit_model_free(model);
}

static void the_model_knows_what_it_does_not_know(void **state)
{
    (void)state;
    // A question about another topic gets one sentence, not an endless tale.
    const char *questions[] = {"Why is the sky blue?", "Write a commit message:", "Hello!"};
    frit_model *model;
    frit_engine *engine;
    frit_sampler *sampler;
    assert_ok(frit_model_open(&model, project_path("models/fable.gguf"), NULL));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 256}));
    assert_ok(frit_sampler_new(&sampler, model, NULL));
    for (size_t q = 0; q < FRIT_COUNT(questions); q++) {
        frit_session *session;
        frit_token tokens[128], token = 0;
        size_t n, n_answer = 0;
        const frit_message message = {.role = "user", .content = questions[q]};
        assert_ok(frit_chat_tokenize(model, &message, 1, NULL, tokens, FRIT_COUNT(tokens), &n));
        assert_ok(frit_session_new(&session, engine));
        assert_ok(frit_session_push(session, tokens, n, NULL));
        do assert_ok(frit_session_next(session, sampler, &token));
        while (!frit_token_is_end(model, token) && ++n_answer < 100);
        assert_in_range(n_answer, 10, 60);
        frit_session_free(session);
    }
    frit_sampler_free(sampler);
    frit_engine_free(engine);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tales_are_told_to_their_end_on_every_instruction_set),
        cmocka_unit_test(the_model_knows_what_it_does_not_know),
    };
    return cmocka_run_group_tests(tests, report_isas, NULL);
}
