// SPDX-License-Identifier: MIT
// base/option.h: the fields that option rows describe. The type frit_option and frit_option_set are public
// (frit_tools.h).
#pragma once
#include "base/status.h"
#include "frit_tools.h"

// A row for field `field` of struct `type`; unnamed columns are given as designated initialisers.
// clang-format off
#define FRIT_OPTION(type, field, ...) {.offset = offsetof(type, field), __VA_ARGS__}
// clang-format on

// Checks a struct filled by a program: FRIT_E_INVALID for the first number or choice that its row does not allow. NULL
// and 0 are always allowed, because they stand for the default.
frit_status frit_options_check(const frit_option *rows, size_t n_rows, const void *options);
