// SPDX-License-Identifier: MIT
// support/header.h: public headers as text, for tests of their declarations.
#pragma once

// Returns a header of this folder with the headers of frit/ that it includes: without comments, with single spaces.
// malloc'd.
char *read_header(const char *folder, const char *name);
