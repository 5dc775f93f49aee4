// SPDX-License-Identifier: MIT
// Edit distances, and the names with the smallest distance.
#include "base/nearest.h"
#include "frit_tools.h"
#include "base/minmax.h"

#include <limits.h>
#include <string.h>

enum { MAX_NAME = 48, MAX_NEAREST = 3 };

// The Levenshtein distance of the first MAX_NAME characters, one row at a time.
static int edit_distance(const char *a, const char *b)
{
    int row[MAX_NAME + 1], n = frit_min_int((int)strlen(b), MAX_NAME);
    for (int k = 0; k <= n; k++) row[k] = k;
    for (int i = 0; a[i] && i < MAX_NAME; i++) {
        int diagonal = row[0]++;
        for (int k = 1; k <= n; k++) {
            int best = frit_min_int(diagonal + (a[i] != b[k - 1]), frit_min_int(row[k], row[k - 1]) + 1);
            diagonal = row[k];
            row[k] = best;
        }
    }
    return row[n];
}

const char *frit_name_nearest(const char *name, const char *const *candidates, size_t n)
{
    FRIT_REQUIRE_OR(NULL, name);
    FRIT_REQUIRE_ITEMS_OR(NULL, candidates, n);
    const char *best = NULL;
    int most = MAX_NAME;
    for (size_t i = 0; i < n; i++) {
        const int distance = edit_distance(candidates[i], name);
        const int n_least = frit_min_int((int)strlen(name), (int)strlen(candidates[i]));
        if (distance > frit_min_int(most, 1 + frit_min_int(n_least, MAX_NAME) / 3))
            continue;   // too few letters of a short name would be left
        best = candidates[i];
        most = distance - 1;   // the first of equally near names
    }
    return best;
}

void frit_nearest_print(frit_buf *out, const char *name, frit_nearest_name_fn known, const void *ctx)
{
    const char *best[MAX_NEAREST] = {NULL}, *one;
    int distances[MAX_NEAREST], n = 0;
    for (size_t i = 0; (one = known(ctx, i)); i++) {
        const int distance =
            2 * edit_distance(one, name) - (one[0] == name[0]);   // a typo in the first letter is unlikely
        int at = n;
        while (at > 0 && distance < distances[at - 1]) at--;   // the first of equally near names comes first
        if (at == MAX_NEAREST || (at > 0 && strcmp(best[at - 1], one) == 0)) continue;
        if (n < MAX_NEAREST) n++;
        for (int k = n - 1; k > at; k--) {
            best[k] = best[k - 1];
            distances[k] = distances[k - 1];
        }
        best[at] = one;
        distances[at] = distance;
    }
    for (int k = 0; k < n; k++) frit_buf_printf(out, "%s%s", k > 0 ? ", " : "", best[k]);
}
