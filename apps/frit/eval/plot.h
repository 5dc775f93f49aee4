// SPDX-License-Identifier: MIT
// frit/eval/plot.h: a drawing of KL divergence against size, as SVG: a point with its name for each file.
#pragma once
#include "frit/cli/cli.h"

typedef struct plot_point {
    const char *name;
    double bytes, kl, error;   // bytes and kl are above 0; error: of kl, drawn as a bar
} plot_point;

// Writes it. Points of no divergence are left out. Exit codes; says what failed.
int plot_write(const char *path, const char *title, const plot_point *points, size_t n);
