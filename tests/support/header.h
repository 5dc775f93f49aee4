// SPDX-License-Identifier: MIT
// support/header.h: public headers as text, for tests of what they declare.
#pragma once

// A header of this folder with those of frit/ that it includes: without comments, with single spaces. malloc'd.
char *read_header(const char *folder, const char *name);
