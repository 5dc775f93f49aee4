// SPDX-License-Identifier: MIT
// quant/dtype.h: the number formats, read from the rows of dtypes.def.
//
// A row of a tensor is a sequence of blocks; each block has block_elems numbers in block_bytes bytes. The decoder
// defines a format; every fast kernel is tested against it.
//
//     const frit_dtype_info *type = frit_dtype_get(FRIT_DTYPE_Q4_K);
//     type->decode(blocks, values, n);                  // n: a multiple of type->block_elems
#pragma once
#include "base/status.h"

// Ids from here on do not occur in files.
enum { FRIT_NO_GGUF_ID = 0x10000 };

typedef enum frit_dtype {
#define DTYPE(NAME, name, id, elems, bytes, largest, decode, encode) FRIT_DTYPE_##NAME,
#include "quant/dtypes.def"
#undef DTYPE
    FRIT_DTYPE_COUNT
} frit_dtype;

// Decodes n numbers, a multiple of block_elems. `blocks` may be at any address.
typedef void (*frit_decode_fn)(const void *blocks, float *values, int64_t n);
// Encodes n numbers of one row; some formats use statistics of the whole row. `importance`: n factors (0 or more), or
// NULL. Formats that cannot use importance ignore it.
typedef void (*frit_encode_fn)(const float *values, void *blocks, int64_t n, const float *importance);

typedef struct frit_dtype_info {
    const char *name;
    int gguf_id;
    int block_elems;
    int block_bytes;
    float largest;   // the largest magnitude that a block can represent
    frit_decode_fn decode;
    frit_encode_fn encode;   // NULL: the format can only be decoded (integers and f64)
} frit_dtype_info;

const frit_dtype_info *frit_dtype_get(frit_dtype dtype);
bool frit_dtype_from_gguf(uint32_t id, frit_dtype *dtype);
// True if tensors of GGUF files can have the type.
bool frit_dtype_is_of_files(frit_dtype dtype);
// Finds a type by name, in any case: "q4_k", "Q4_K".
bool frit_dtype_from_name(const char *name, frit_dtype *dtype);
// The name of a GGUF type id that was removed ("q4_2", "q4_0_4_4", ..), or NULL.
const char *frit_dtype_removed_name(uint32_t id);
// The size in bytes of a row of n numbers; n must be a multiple of block_elems.
uint64_t frit_dtype_row_bytes(frit_dtype dtype, int64_t n);

// The index of the first of n numbers whose magnitude is above `most`, or NaN; n if there is no such number.
int64_t frit_first_beyond(const float *values, int64_t n, float most);
// Encodes a row. Returns the index of the first number that is not finite, or that the blocks cannot represent, or n.
// Such a number is replaced by infinity or a bound. `again` gets the numbers that the blocks represent.
int64_t frit_encode_checked(const frit_dtype_info *type, const float *values, void *blocks, int64_t n,
                            const float *importance, float *again);

// The functions that the rows of the table name. A row without an encoder has only a declaration.
#define DTYPE(NAME, name, id, elems, bytes, largest, decode, encode)       \
    void frit_decode_##name(const void *blocks, float *values, int64_t n); \
    void frit_encode_##name(const float *values, void *blocks, int64_t n, const float *importance);
#include "quant/dtypes.def"
#undef DTYPE
