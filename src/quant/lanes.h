// SPDX-License-Identifier: MIT
// quant/lanes.h: vectors of LANES numbers. The including file defines LANES; the default suits any processor. The
// operators + - * / work on each lane, and comparisons give masks. Compilers without such vectors have one lane.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define LANES_INLINE static inline __attribute__((always_inline))
#if !defined(LANES)
#define LANES 4
#endif

typedef float lanes __attribute__((vector_size(sizeof(float) * LANES)));
typedef int32_t lane_mask __attribute__((vector_size(sizeof(int32_t) * LANES)));
typedef uint32_t lane_words __attribute__((vector_size(sizeof(uint32_t) * LANES)));

LANES_INLINE lanes all(float x)
{
    return x - (lanes){0};
}

LANES_INLINE lanes choose(lane_mask mask, lanes a, lanes b)   // a where the mask is set
{
    return (lanes)((mask & (lane_mask)a) | (~mask & (lane_mask)b));
}

LANES_INLINE lanes magnitude(lanes x)
{
    return (lanes)((lane_mask)x & 0x7fffffff);
}

LANES_INLINE lane_words load_words(const uint32_t *p)
{
    lane_words words;
    memcpy(&words, p, sizeof words);
    return words;
}

LANES_INLINE lanes to_floats(lane_words small)   // of integers of 31 bits
{
    return __builtin_convertvector((lane_mask)small, lanes);
}

LANES_INLINE lanes from_zero(void)   // 0, 1, 2, ..
{
    lanes x = {0};
    for (int i = 0; i < LANES; i++) x[i] = (float)i;
    return x;
}

LANES_INLINE float lane_of(lanes x, int i)
{
    return x[i];
}

LANES_INLINE void set_lane(lanes *x, int i, float value)
{
    (*x)[i] = value;
}

#else
#define LANES_INLINE static inline
#undef LANES
#define LANES 1

typedef float lanes;
typedef int lane_mask;
typedef uint32_t lane_words;

LANES_INLINE lanes all(float x)
{
    return x;
}

LANES_INLINE lanes choose(lane_mask mask, lanes a, lanes b)
{
    return mask ? a : b;
}

LANES_INLINE lanes magnitude(lanes x)
{
    return fabsf(x);
}

LANES_INLINE lane_words load_words(const uint32_t *p)
{
    return *p;
}

LANES_INLINE lanes to_floats(lane_words small)
{
    return (float)small;
}

LANES_INLINE lanes from_zero(void)
{
    return 0;
}

LANES_INLINE float lane_of(lanes x, int i)
{
    (void)i;
    return x;
}

LANES_INLINE void set_lane(lanes *x, int i, float value)
{
    (void)i;
    *x = value;
}
#endif
