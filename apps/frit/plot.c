// SPDX-License-Identifier: MIT
// Drawings of KL divergence against size. Sizes are along a line, divergences by powers of ten.
#include "plot.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 720, HEIGHT = 480, LEFT = 80, RIGHT = 150, TOP = 50, BOTTOM = 60, FONT = 13 };

typedef struct axes {
    double least_bytes, most_bytes, least_log, most_log;   // logarithms of kl, to base 10
} axes;

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

static axes find_axes(const plot_point *points, size_t n)
{
    axes a = {INFINITY, 0, INFINITY, -INFINITY};
    for (size_t i = 0; i < n; i++) {
        if (!(points[i].kl > 0)) continue;
        a.least_bytes = fmin(a.least_bytes, points[i].bytes);
        a.most_bytes = fmax(a.most_bytes, points[i].bytes);
        a.least_log = fmin(a.least_log, floor(log10(points[i].kl)));
        a.most_log = fmax(a.most_log, ceil(log10(points[i].kl)));
    }
    const double margin = 0.05 * (a.most_bytes - a.least_bytes) + 0.01 * a.most_bytes;
    a.least_bytes -= margin;
    a.most_bytes += margin;
    if (a.most_log <= a.least_log) a.most_log = a.least_log + 1;
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

static void draw_axes(drawing *d, const char *title)
{
    enum { MARKS = 5 };
    const axes *a = &d->axes;
    char text[64];
    draw_text(d, LEFT, TOP - 20, "start", title);
    for (int i = 0; i < MARKS; i++) {
        const double bytes = a->least_bytes + (a->most_bytes - a->least_bytes) * i / (MARKS - 1);
        cli_size_text((uint64_t)bytes, text);
        draw_text(d, x_of(a, bytes), HEIGHT - BOTTOM + 22, "middle", text);
    }
    for (double power = a->least_log; power <= a->most_log; power++) {
        const double y = y_of(a, pow(10, power));
        draw(d, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ccc\"/>\n", LEFT, y, WIDTH - RIGHT, y);
        snprintf(text, sizeof text, "%g", pow(10, power));
        draw_text(d, LEFT - 8, y + 4, "end", text);
    }
    draw_text(d, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "middle", "size of the file");
    draw(d, "<text transform=\"translate(20,%d) rotate(-90)\" text-anchor=\"middle\">KL divergence</text>\n",
         (HEIGHT + TOP - BOTTOM) / 2);
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
    for (size_t i = 0; i < n; i++) {
        if (!(points[i].kl > 0)) continue;
        const double x = x_of(&d.axes, points[i].bytes), y = y_of(&d.axes, points[i].kl);
        draw(&d, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#1f6feb\"/>\n", x, y);
        draw_text(&d, x + 8, y + 4, "start", points[i].name);
    }
    draw(&d, "</svg>\n");
    return cli_file_close(&d.out, CLI_DONE);
}
