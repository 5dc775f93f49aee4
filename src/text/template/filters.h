// SPDX-License-Identifier: MIT
// text/template/filters.h: declarations that the files of filters share.
#pragma once
#include "text/template/node.h"

// Argument i, or the argument with this name, or the fallback.
value frit_filter_option(const call *c, size_t i, const char *name, value fallback);
frit_status frit_filter_int(run *r, const call *c, size_t i, const char *name, int64_t fallback, int64_t *out);

frit_status frit_filter_wordwrap(run *r, value v, const call *c, value *out);   // wrap.c

// Filters over sequences.
frit_status frit_filter_length(run *r, value v, const call *c, value *out);
frit_status frit_filter_first(run *r, value v, const call *c, value *out);
frit_status frit_filter_last(run *r, value v, const call *c, value *out);
frit_status frit_filter_list(run *r, value v, const call *c, value *out);
frit_status frit_filter_join(run *r, value v, const call *c, value *out);
frit_status frit_filter_reverse(run *r, value v, const call *c, value *out);
frit_status frit_filter_items(run *r, value v, const call *c, value *out);
frit_status frit_filter_dictsort(run *r, value v, const call *c, value *out);
frit_status frit_filter_sort(run *r, value v, const call *c, value *out);
frit_status frit_filter_unique(run *r, value v, const call *c, value *out);
frit_status frit_filter_min(run *r, value v, const call *c, value *out);
frit_status frit_filter_max(run *r, value v, const call *c, value *out);
frit_status frit_filter_sum(run *r, value v, const call *c, value *out);
frit_status frit_filter_batch(run *r, value v, const call *c, value *out);
frit_status frit_filter_slice(run *r, value v, const call *c, value *out);
frit_status frit_filter_groupby(run *r, value v, const call *c, value *out);
frit_status frit_filter_xmlattr(run *r, value v, const call *c, value *out);
frit_status frit_filter_map(run *r, value v, const call *c, value *out);
frit_status frit_filter_select(run *r, value v, const call *c, value *out);
frit_status frit_filter_reject(run *r, value v, const call *c, value *out);
frit_status frit_filter_selectattr(run *r, value v, const call *c, value *out);
frit_status frit_filter_rejectattr(run *r, value v, const call *c, value *out);
