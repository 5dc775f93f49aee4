// SPDX-License-Identifier: MIT
// frit/eval/plot.h: draws KL divergence against size as SVG: a point with a name for each file.
#pragma once
#include "frit/cli/cli.h"

typedef struct plot_point {
    const char *name;
    double bytes, kl, error;   // bytes and kl are above 0; error: of kl, drawn as a bar
} plot_point;

// Writes the drawing. Points without divergence are left out. Returns an exit code after printing any error.
int plot_write(const char *path, const char *title, const plot_point *points, size_t n);
