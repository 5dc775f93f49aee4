// SPDX-License-Identifier: MIT
// Metadata as JSON. A list that is shortened has its length beside it.
#include "format/meta.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// Writes text. Bytes that are not UTF-8 become \xNN, as in frit_value_print.
static void print_text(frit_str text, frit_buf *out)
{
    frit_buf_char(out, '"');
    for (size_t i = 0; i < text.len;) {
        const unsigned char c = (unsigned char)text.ptr[i];
        uint32_t code_point;
        const int n = frit_utf8_decode(text.ptr + i, text.len - i, &code_point);
        if (n <= 0)
            frit_buf_printf(out, "\\\\x%02x", c);
        else if (c == '"' || c == '\\')
            frit_buf_printf(out, "\\%c", c);
        else if (c < 32 || c == 127)
            frit_buf_printf(out, "\\u%04x", c);
        else
            frit_buf_append(out, text.ptr + i, (size_t)n);
        i += n > 0 ? (size_t)n : 1;
    }
    frit_buf_char(out, '"');
}

static void print_scalar(const frit_value *value, frit_buf *out)
{
    const bool is_float = value->type == FRIT_VALUE_F32 || value->type == FRIT_VALUE_F64;
    if (value->type == FRIT_VALUE_TEXT)
        print_text(value->text, out);
    else if (is_float && !isfinite(value->f))
        frit_buf_text(out, "null");   // JSON has no infinity
    else
        frit_value_print(value, 0, out);
}

static frit_value item_at(const frit_value *array, uint64_t i)
{
    frit_value item = {.type = array->array.type};
    if (item.type == FRIT_VALUE_TEXT)
        item.text = frit_value_item_text(array, i);
    else
        frit_value_load(item.type, (const char *)array->array.items + i * frit_value_type_bytes(item.type), &item);
    return item;
}

void frit_value_print_json(const frit_value *value, int max_items, frit_buf *out)
{
    if (value->type != FRIT_VALUE_ARRAY) {
        print_scalar(value, out);
        return;
    }
    const uint64_t n = value->array.n;
    const bool is_whole = max_items < 0 || n <= (uint64_t)max_items;
    if (!is_whole) frit_buf_printf(out, "{\"length\": %" PRIu64 ", \"first\": ", n);
    frit_buf_char(out, '[');
    for (uint64_t i = 0; i < (is_whole ? n : (uint64_t)max_items) && !out->failed; i++) {
        const frit_value item = item_at(value, i);
        if (i > 0) frit_buf_text(out, ", ");
        print_scalar(&item, out);
    }
    frit_buf_char(out, ']');
    if (!is_whole) frit_buf_char(out, '}');
}
