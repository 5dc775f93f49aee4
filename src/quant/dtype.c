// SPDX-License-Identifier: MIT
// The table of number formats and its lookups.
#include "quant/dtype.h"

#include <assert.h>
#include <float.h>

#include "quant/blocks.h"

#define DTYPE(NAME, name, id, elems, bytes, largest, decode, encode) \
    static_assert(sizeof(frit_block_##name) == (bytes), #name ": block struct and table disagree");
#include "quant/dtypes.def"
#undef DTYPE

#define HALF_MAX 65519.99f   // rounds to the largest f16

static const frit_dtype_info dtypes[FRIT_DTYPE_COUNT] = {
#define DTYPE(NAME, name, id, elems, bytes, largest, decode, encode) \
    {#name, id, elems, bytes, (float)(largest), decode, encode},
#include "quant/dtypes.def"
#undef DTYPE
};

// Formats that were removed from GGUF. The last six were weights interleaved for one processor; files now have the
// plain format, and readers interleave.
static const struct {
    uint32_t id;
    const char *name;
} removed[] = {
    {4, "q4_2"},      {5, "q4_3"},        {31, "q4_0_4_4"},   {32, "q4_0_4_8"},
    {33, "q4_0_8_8"}, {36, "iq4_nl_4_4"}, {37, "iq4_nl_4_8"}, {38, "iq4_nl_8_8"},
};

const frit_dtype_info *frit_dtype_get(frit_dtype dtype)
{
    assert((unsigned)dtype < FRIT_DTYPE_COUNT);
    return &dtypes[dtype];
}

bool frit_dtype_from_gguf(uint32_t id, frit_dtype *dtype)
{
    for (int i = 0; i < FRIT_DTYPE_COUNT; i++) {
        if ((uint32_t)dtypes[i].gguf_id != id || id >= FRIT_NO_GGUF_ID) continue;
        *dtype = (frit_dtype)i;
        return true;
    }
    return false;
}

bool frit_dtype_is_of_files(frit_dtype dtype)
{
    return frit_dtype_get(dtype)->gguf_id < FRIT_NO_GGUF_ID;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

// Compares `name`, in any case, with a name of the table, which is in lower case.
static bool same_name(const char *name, const char *of_table)
{
    while (*name && lower(*name) == *of_table) name++, of_table++;
    return *name == 0 && *of_table == 0;
}

bool frit_dtype_from_name(const char *name, frit_dtype *dtype)
{
    for (int i = 0; i < FRIT_DTYPE_COUNT; i++) {
        if (!same_name(name, dtypes[i].name)) continue;
        *dtype = (frit_dtype)i;
        return true;
    }
    return false;
}

const char *frit_dtype_removed_name(uint32_t id)
{
    for (size_t i = 0; i < FRIT_COUNT(removed); i++) {
        if (removed[i].id == id) return removed[i].name;
    }
    return NULL;
}

uint64_t frit_dtype_row_bytes(frit_dtype dtype, int64_t n)
{
    const frit_dtype_info *type = frit_dtype_get(dtype);
    assert(n >= 0 && n % type->block_elems == 0);
    return (uint64_t)(n / type->block_elems) * (uint64_t)type->block_bytes;
}
