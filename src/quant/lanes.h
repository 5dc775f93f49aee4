// SPDX-License-Identifier: MIT
// quant/lanes.h: LANES numbers side by side, as many as the including file defines or as any processor has. Operators
// work on each of them: + - * / and comparisons, which give masks. Compilers without such vectors have one lane.
#pragma once
#include <math.h>
#include <stdint.h>

#if defined(__GNUC__)
#define LANES_INLINE static inline __attribute__((always_inline))
#if !defined(LANES)
#define LANES 4
#endif

typedef float lanes __attribute__((vector_size(sizeof(float) * LANES)));
typedef int32_t lane_mask __attribute__((vector_size(sizeof(int32_t) * LANES)));

LANES_INLINE lanes all(float x)
{
    return x - (lanes){0};
}

LANES_INLINE lanes choose(lane_mask mask, lanes a, lanes b)   // a where the mask holds
{
    return (lanes)((mask & (lane_mask)a) | (~mask & (lane_mask)b));
}

LANES_INLINE lanes magnitude(lanes x)
{
    return (lanes)((lane_mask)x & 0x7fffffff);
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
