// SPDX-License-Identifier: MIT
// Draws KL divergence against size, with a linear axis for sizes and a logarithmic one for divergences.
#include "frit/eval/plot.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 720, HEIGHT = 480, LEFT = 80, RIGHT = 30, TOP = 50, BOTTOM = 60, FONT = 13 };

typedef struct axes {
    double least_bytes, most_bytes, least_log, most_log;   // logarithms of kl, to base 10
} axes;

typedef struct box {   // box of a label: its left end, its baseline
    double x, y, width;
} box;

typedef struct drawing {
    cli_file out;
    axes axes;
} drawing;

static void draw(drawing *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void draw(drawing *d, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    cli_file_write(&d->out, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
}

static double x_of(const axes *a, double bytes)
{
    return LEFT + (bytes - a->least_bytes) / (a->most_bytes - a->least_bytes) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const axes *a, double kl)
{
    return HEIGHT - BOTTOM - (log10(kl) - a->least_log) / (a->most_log - a->least_log) * (HEIGHT - TOP - BOTTOM);
}

// The bar of a point ends above 0, because the axis is logarithmic.
static double low_end(const plot_point *point)
{
    return fmax(point->kl - point->error, point->kl / 10);
}

// Returns 1, 2 or 5 times a power of two or ten of the unit, so that the range has about five steps.
static double round_step(double range, double unit)
{
    static const double steps[] = {1, 2, 5};
    const double wanted = range / 5 / unit, power = pow(10, floor(log10(wanted)));
    size_t i = 0;
    while (i < CLI_COUNT(steps) && steps[i] * power < wanted) i++;
    return (i < CLI_COUNT(steps) ? steps[i] * power : 10 * power) * unit;
}

// Returns the largest unit of which `bytes` is at least a tenth.
static double unit_of(double bytes, const char **name)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double unit = 1;
    size_t i = 0;
    for (; i + 1 < CLI_COUNT(names) && bytes >= 0.5 * 1024 * unit; i++) unit *= 1024;
    *name = names[i];
    return unit;
}

// Returns the nearest of 1, 2 and 5 times a power of ten below a number, or above it.
static double round_power(double value, bool up)
{
    static const double steps[] = {1, 2, 5, 10};
    const double power = pow(10, floor(log10(value) + 1e-9));
    const double most = 1 + (up ? -1e-9 : 1e-9);
    size_t i = 0;
    if (up) {
        while (i + 1 < CLI_COUNT(steps) && steps[i] * power <= value * most) i++;
        return steps[i] * power;
    }
    while (i + 1 < CLI_COUNT(steps) && steps[i + 1] * power < value * most) i++;
    return steps[i] * power == value ? power * (i > 0 ? steps[i - 1] : 0.5) : steps[i] * power;
}

static axes find_axes(const plot_point *points, size_t n)
{
    axes a = {INFINITY, 0, INFINITY, -INFINITY};
    for (size_t i = 0; i < n; i++) {
        if (!(points[i].kl > 0)) continue;
        a.least_bytes = fmin(a.least_bytes, points[i].bytes);
        a.most_bytes = fmax(a.most_bytes, points[i].bytes);
        a.least_log = fmin(a.least_log, log10(low_end(&points[i])));
        a.most_log = fmax(a.most_log, log10(points[i].kl + points[i].error));
    }
    const double margin = 0.05 * (a.most_bytes - a.least_bytes) + 0.01 * a.most_bytes;
    a.least_bytes = fmax(0, a.least_bytes - margin);
    a.most_bytes += margin;
    // Extends the range to 1, 2 or 5 times a power of ten.
    a.least_log = log10(round_power(pow(10, a.least_log), false));
    a.most_log = log10(round_power(pow(10, a.most_log), true));
    return a;
}

static void draw_text(drawing *d, double x, double y, const char *anchor, const char *text)
{
    draw(d, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    for (; *text; text++) {
        const char *mark = *text == '<' ? "&lt;" : *text == '&' ? "&amp;" : NULL;
        cli_file_write(&d->out, mark ? mark : text, mark ? strlen(mark) : 1);
    }
    draw(d, "</text>\n");
}

static void draw_sizes(drawing *d)
{
    const axes *a = &d->axes;
    const char *name;
    char text[64];
    const double unit = unit_of(a->most_bytes, &name), step = round_step(a->most_bytes - a->least_bytes, unit);
    for (double bytes = ceil(a->least_bytes / step) * step; bytes <= a->most_bytes; bytes += step) {
        const double x = x_of(a, bytes);
        draw(d, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#888\"/>\n", x, HEIGHT - BOTTOM, x,
             HEIGHT - BOTTOM + 5);
        snprintf(text, sizeof text, "%g %s", bytes / unit, name);
        draw_text(d, x, HEIGHT - BOTTOM + 22, "middle", text);
    }
}

// Draws lines at 1, 2 and 5 times each power of ten; if there are many powers, only at the powers.
static void draw_divergences(drawing *d)
{
    static const double steps[] = {1, 2, 5};
    const axes *a = &d->axes;
    const size_t n_steps = a->most_log - a->least_log > 3 ? 1 : CLI_COUNT(steps);
    char text[64];
    for (double power = floor(a->least_log); power <= a->most_log; power++) {
        for (size_t i = 0; i < n_steps; i++) {
            const double value = steps[i] * pow(10, power), place = log10(value);
            if (place < a->least_log - 1e-9 || place > a->most_log + 1e-9) continue;
            const double y = y_of(a, value);
            draw(d, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", LEFT, y, WIDTH - RIGHT, y);
            snprintf(text, sizeof text, "%g", value);
            draw_text(d, LEFT - 8, y + 4, "end", text);
        }
    }
}

static void draw_axes(drawing *d, const char *title)
{
    char text[256];
    snprintf(text, sizeof text, "KL divergence from %s", title);
    draw_text(d, LEFT, TOP - 20, "start", text);
    draw_sizes(d);
    draw_divergences(d);
    draw(d, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#888\"/>\n", LEFT, TOP,
         WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    draw_text(d, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "middle", "size of the weights");
    draw(d, "<text transform=\"translate(20,%d) rotate(-90)\" text-anchor=\"middle\">KL divergence</text>\n",
         (HEIGHT + TOP - BOTTOM) / 2);
}

// Draws a point. Its label is on the side that has room, below labels that exist already.
static void draw_point(drawing *d, const plot_point *point, box *labels, size_t *n_labels)
{
    enum { LINE = FONT + 2, GAP = 9 };
    const axes *a = &d->axes;
    const double x = x_of(a, point->bytes), y = y_of(a, point->kl), width = 0.62 * FONT * (double)strlen(point->name);
    const double top = y_of(a, point->kl + point->error), bottom = y_of(a, low_end(point));
    if (point->error > 0)
        draw(d, "<path d=\"M%.1f %.1fV%.1fM%.1f %.1fh8M%.1f %.1fh8\" stroke=\"#1f6feb\" fill=\"none\"/>\n", x, top,
             bottom, x - 4, top, x - 4, bottom);
    draw(d, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#1f6feb\"/>\n", x, y);
    const bool is_left = x + GAP + width > WIDTH - RIGHT && x - GAP - width > LEFT;
    box label = {is_left ? x - GAP - width : x + GAP, y + 4, width};
    for (size_t i = 0; i < *n_labels; i++) {
        const box *other = &labels[i];
        const bool is_beside = label.x + label.width < other->x || other->x + other->width < label.x;
        if (is_beside || fabs(label.y - other->y) >= LINE) continue;
        label.y = other->y + LINE;
        i = (size_t)-1;   // starts again at the first label
    }
    label.y = fmin(label.y, HEIGHT - BOTTOM - 4);
    labels[(*n_labels)++] = label;
    draw_text(d, is_left ? x - GAP : x + GAP, label.y, is_left ? "end" : "start", point->name);
}

int plot_write(const char *path, const char *title, const plot_point *points, size_t n)
{
    drawing d = {.axes = find_axes(points, n)};
    size_t n_drawn = 0;
    for (size_t i = 0; i < n; i++) n_drawn += points[i].kl > 0;
    if (n_drawn == 0) return cli_fail("%s: no model differs from the first one, so there is nothing to draw", path);
    const int code = cli_file_open(&d.out, path);
    if (code != CLI_DONE) return code;
    draw(&d,
         "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
         "font-size=\"%d\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
         WIDTH, HEIGHT, FONT);
    draw_axes(&d, title);
    size_t n_labels = 0;
    box *labels = malloc(n * sizeof *labels);
    if (!labels) return cli_file_close(&d.out, cli_no_memory());
    for (size_t i = 0; i < n; i++)
        if (points[i].kl > 0) draw_point(&d, &points[i], labels, &n_labels);
    free(labels);
    draw(&d, "</svg>\n");
    return cli_file_close(&d.out, CLI_DONE);
}
