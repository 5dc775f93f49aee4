// SPDX-License-Identifier: MIT
// base/option.h: the fields that option rows describe. The type frit_option and frit_option_set are public (frit.h).
#pragma once
#include "base/status.h"

// A row for field `field` of struct `type`; unnamed columns are given as designated initialisers.
#define FRIT_OPTION(type, field, ...) {.offset = offsetof(type, field), __VA_ARGS__}
