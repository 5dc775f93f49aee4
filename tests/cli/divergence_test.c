// SPDX-License-Identifier: MIT
// Statistics of two models' predictions, against numbers computed by hand.
#include "frit/eval/divergence.h"
#include "frit/eval/plot.h"
#include "support/support.h"

#include <math.h>

static void expect_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance)) fail_msg("%.9g, expected %.9g", value, expected);
}

// Three tokens: the base's probabilities, the other model's, and the next token.
static const struct {
    double base[3], other[3];
    frit_token next;
} positions[] = {
    {{0.5, 0.25, 0.25}, {0.25, 0.5, 0.25}, 0},
    {{0.5, 0.25, 0.25}, {0.5, 0.25, 0.25}, 1},
    {{0.125, 0.75, 0.125}, {0.25, 0.5, 0.25}, 1},
};

static void add(divergence *d, size_t i)
{
    float base[3], logits[3], log_probs[3];
    for (int v = 0; v < 3; v++) base[v] = (float)log(positions[i].base[v]) + 3;   // logits are known up to a constant
    for (int v = 0; v < 3; v++) logits[v] = (float)log(positions[i].other[v]) - 7;
    divergence_log_probs(base, 3, log_probs);
    divergence_add(d, log_probs, logits, 3, positions[i].next);
}

static void figures_are_those_of_the_definitions(void **state)
{
    (void)state;
    divergence d = {0};
    for (size_t i = 0; i < 3; i++) add(&d, i);
    const divergence_figures f = divergence_finish(&d);
    const double l2 = log(2), l3 = log(3);
    const double kl0 = 0.25 * l2, kl2 = 0.25 * -l2 + 0.75 * (l3 - l2), mean = (kl0 + kl2) / 3;
    expect_near(f.kl.value, mean, 1e-6);
    expect_near(f.kl_largest, kl0, 1e-6);   // 0.1733 and 0.1308
    expect_near(f.kl_median, kl2, 1e-6);
    expect_near(f.kl_90, kl2 + 0.8 * (kl0 - kl2), 1e-6);   // between the second and the third position
    const double variance = (kl0 * kl0 + kl2 * kl2) / 3 - mean * mean;
    expect_near(f.kl.error, sqrt(variance / 2), 1e-6);
    // -log p of the next token: 2 l2, 2 l2, l2 for the other model, and l2, 2 l2, 2 l2 - l3 for the base.
    expect_near(f.perplexity.value, exp(5 * l2 / 3), 1e-5);
    expect_near(f.base_perplexity.value, exp((5 * l2 - l3) / 3), 1e-5);
    expect_near(f.ratio.value, exp(l3 / 3), 1e-5);
    expect_near(f.change.value, -0.5 / 3, 1e-6);   // -0.25, 0, -0.25
    expect_near(f.change_rms.value, sqrt(0.125 / 3), 1e-6);
    expect_near(f.same_top.value, 2.0 / 3, 1e-6);
    divergence_free(&d);
}

static void equal_predictions_have_no_divergence(void **state)
{
    (void)state;
    divergence d = {0};
    const float logits[] = {1, 2, 3, -40};
    float log_probs[4];
    divergence_log_probs(logits, 4, log_probs);
    for (int i = 0; i < 5000; i++) divergence_add(&d, log_probs, logits, 4, i % 3);   // more than the initial capacity
    assert_false(d.failed);
    assert_int_equal(d.n, 5000);
    const divergence_figures f = divergence_finish(&d);
    expect_near(f.kl.value, 0, 1e-6);
    expect_near(f.ratio.value, 1, 1e-6);
    expect_near(f.ratio.error, 0, 1e-6);
    expect_near(f.correlation, 1, 1e-3);
    expect_near(f.same_top.value, 1, 0);
    divergence_free(&d);
}

static void the_unlikely_is_left_out(void **state)
{
    (void)state;
    divergence d = {0};
    const float base[] = {0, -17}, logits[] = {0, -30};   // e^-17 (30 - 17) would be 5e-7
    divergence_add(&d, base, logits, 2, 0);
    assert_true(fabs(d.kl[0]) < 1e-7);
    divergence_free(&d);
}

static void drawings_have_a_point_for_each_model(void **state)
{
    (void)state;
    const plot_point points[] = {{"a<b>.gguf", 3e6, 0.2, 0.01}, {"same.gguf", 9e6, 0, 0}, {"c&d.gguf", 4e6, 0.01, 0}};
    char path[512];
    size_t n;
    snprintf(path, sizeof path, "%s", temp_path("plot.svg"));
    assert_int_equal(plot_write(path, "model", points, 3), CLI_DONE);
    char *svg = read_file(path, &n);
    assert_memory_equal(svg, "<svg ", 5);
    const char *first = strstr(svg, "<circle"), *second = first ? strstr(first + 1, "<circle") : NULL;
    assert_true(second && !strstr(second + 1, "<circle"));   // one has no divergence
    assert_true(strstr(svg, ">a&lt;b>.gguf<") && strstr(svg, ">c&amp;d.gguf<") && strstr(svg, "</svg>"));
    double x[2], y[2];
    assert_int_equal(sscanf(first, "<circle cx=\"%lf\" cy=\"%lf\"", &x[0], &y[0]), 2);
    assert_int_equal(sscanf(second, "<circle cx=\"%lf\" cy=\"%lf\"", &x[1], &y[1]), 2);
    assert_true(x[0] < x[1] && y[0] < y[1]);   // the second is larger and has less divergence, so it is further down
    free(svg);
    assert_int_equal(plot_write(path, "model", points + 1, 1), CLI_FAILED);
    assert_int_equal(plot_write("/nonexistent/plot.svg", "model", points, 3), CLI_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_those_of_the_definitions),
        cmocka_unit_test(equal_predictions_have_no_divergence),
        cmocka_unit_test(the_unlikely_is_left_out),
        cmocka_unit_test(drawings_have_a_point_for_each_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
