// SPDX-License-Identifier: MIT
// The search in the double array. A unit contains, from the lowest bit: a label (8 bits) or, in a leaf, a value (31);
// "has a leaf" (bit 8); "offset is scaled" (bit 9); the offset of its children (22 bits).
#include "text/tokenizer/charsmap.h"

static uint32_t read_u32(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

frit_status frit_charsmap_init(frit_charsmap *map, frit_str bytes)
{
    *map = (frit_charsmap){0};
    if (bytes.len == 0) return FRIT_OK;
    uint32_t n_trie = bytes.len >= 4 ? read_u32(bytes.ptr) : 0;
    if (bytes.len < 4 || n_trie % 4 != 0 || n_trie == 0 || n_trie > bytes.len - 4)
        return frit_fail(FRIT_E_FORMAT, "the precompiled charsmap has %zu bytes, but its trie claims %u", bytes.len,
                         (unsigned)n_trie);
    map->units = bytes.ptr + 4;
    map->n_units = n_trie / 4;
    map->replacements = (frit_str){bytes.ptr + 4 + n_trie, bytes.len - 4 - n_trie};
    return FRIT_OK;
}

static size_t offset_of(uint32_t unit)
{
    return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

size_t frit_charsmap_find(const frit_charsmap *map, frit_str text, bool shortest, frit_str *replacement)
{
    if (map->n_units == 0) return 0;
    size_t at = offset_of(read_u32(map->units)), best = 0;
    uint32_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        at ^= byte;
        if (byte == 0 || at >= map->n_units) break;
        uint32_t unit = read_u32(map->units + 4 * at);
        if ((unit & (1u << 31 | 0xff)) != byte) break;
        at ^= offset_of(unit);
        if (!(unit >> 8 & 1)) continue;
        if (at >= map->n_units) break;
        value = read_u32(map->units + 4 * at) & 0x7fffffff;
        best = i + 1;
        if (shortest) break;
    }
    if (best == 0 || value >= map->replacements.len) return 0;
    const char *start = map->replacements.ptr + value;
    const char *end = memchr(start, 0, map->replacements.len - value);
    if (!end) return 0;
    *replacement = (frit_str){start, (size_t)(end - start)};
    return best;
}
