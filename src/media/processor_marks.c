// SPDX-License-Identifier: MIT
// Marks: what stands around and between the soft tokens of a picture in the prompt.
#include "media/processor_rules.h"

#include "base/buf.h"

// Collects texts until soft tokens follow.
typedef struct marks {
    frit_mark_fn each;
    void *ctx;
    frit_buf text;
    uint32_t n_soft;
    frit_status status;
} marks;

static void flush_text(marks *m)
{
    if (m->text.failed)
        m->status = frit_fail_memory(m->text.len, "marks of a picture");
    else if (m->status == FRIT_OK && m->text.len)
        m->status = m->each(m->ctx, m->text.data, 0);
    frit_buf_clear(&m->text);
}

static void flush_soft(marks *m)
{
    if (m->status == FRIT_OK && m->n_soft) m->status = m->each(m->ctx, NULL, m->n_soft);
    m->n_soft = 0;
}

static void add_text(marks *m, const char *text)
{
    if (!*text) return;
    flush_soft(m);
    frit_buf_text(&m->text, text);
}

static void add_soft(marks *m, uint32_t n)
{
    flush_text(m);
    m->n_soft += n;
}

static void add_around(marks *m, const frit_picture_plan *plan, const frit_processor *p)
{
    add_text(m, p->before);
    add_soft(m, plan->n_soft);
    add_text(m, p->after);
}

static void add_rows(marks *m, const frit_picture_plan *plan, const frit_processor *p)
{
    const uint32_t rows = plan->tile_patches.rows / p->merge, columns = plan->tile_patches.columns / p->merge;
    add_text(m, p->before);
    for (uint32_t row = 0; row < rows; row++) {
        add_soft(m, columns);
        add_text(m, row + 1 < rows ? p->row_break : p->after);
    }
}

static void add_place(marks *m, const char *format, uint32_t row, uint32_t column)
{
    flush_soft(m);
    frit_buf_printf(&m->text, format, (unsigned)row + 1, (unsigned)column + 1);
}

static const char fake[] = "<fake_token_around_image>";

static void add_idefics(marks *m, const frit_picture_plan *plan, const frit_processor *p)
{
    for (uint32_t row = 0; plan->has_whole && row < plan->tiles.rows; row++) {
        for (uint32_t column = 0; column < plan->tiles.columns; column++) {
            add_text(m, fake);
            add_place(m, "<row_%u_col_%u>", row, column);
            add_soft(m, frit_plan_tile_soft(plan, p, 0));
        }
        add_text(m, "\n");
    }
    if (plan->has_whole) add_text(m, "\n");
    add_text(m, fake);
    add_text(m, "<global-img>");
    add_soft(m, frit_plan_tile_soft(plan, p, plan->n_tiles - 1));
    add_text(m, fake);
}

static void add_lfm2(marks *m, const frit_picture_plan *plan, const frit_processor *p)
{
    const bool is_cut = plan->tiles.rows * plan->tiles.columns > 1;
    add_text(m, p->before);
    for (uint32_t i = 0; i < plan->tiles.rows * plan->tiles.columns; i++) {
        if (is_cut) add_place(m, "<|img_row_%u_col_%u|>", i / plan->tiles.columns, i % plan->tiles.columns);
        add_soft(m, frit_plan_tile_soft(plan, p, i));
    }
    if (plan->has_whole) {
        add_text(m, "<|img_thumbnail|>");
        add_soft(m, frit_plan_tile_soft(plan, p, plan->n_tiles - 1));
    }
    add_text(m, p->after);
}

static void add_llama4(marks *m, const frit_picture_plan *plan, const frit_processor *p)
{
    add_text(m, p->before);
    for (uint32_t row = 0; plan->has_whole && row < plan->tiles.rows; row++)
        for (uint32_t column = 0; column < plan->tiles.columns; column++) {
            add_soft(m, frit_plan_tile_soft(plan, p, 0));
            add_text(m, column + 1 < plan->tiles.columns ? "<|tile_x_separator|>" : "<|tile_y_separator|>");
        }
    add_text(m, "<|image|>");
    add_soft(m, frit_plan_tile_soft(plan, p, plan->n_tiles - 1));
    add_text(m, p->after);
}

frit_status frit_processor_marks(const frit_processor *p, const frit_picture_plan *plan, frit_mark_fn each, void *ctx)
{
    static void (*const styles[])(marks *, const frit_picture_plan *, const frit_processor *) = {
        [FRIT_MARKS_AROUND] = add_around, [FRIT_MARKS_ROWS] = add_rows,     [FRIT_MARKS_IDEFICS] = add_idefics,
        [FRIT_MARKS_LFM2] = add_lfm2,     [FRIT_MARKS_LLAMA4] = add_llama4,
    };
    marks m = {.each = each, .ctx = ctx};
    styles[p->mark_style](&m, plan, p);
    flush_soft(&m);
    flush_text(&m);
    frit_buf_free(&m.text);
    return m.status;
}

// Counts control tokens, which are in < > or [ ], and other characters as a token each.
static frit_status count_tokens(void *ctx, const char *text, uint32_t n_soft)
{
    uint32_t *n = ctx;
    (void)n_soft;
    for (; text && *text; text++, ++*n) {
        const char *end = *text == '<' ? strchr(text, '>') : *text == '[' ? strchr(text, ']') : NULL;
        if (end) text = end;
    }
    return FRIT_OK;
}

frit_status frit_plan_count_marks(frit_picture_plan *plan, const frit_processor *p)
{
    plan->n_marks = (uint32_t)(strlen(p->lead) + strlen(p->tail));
    return frit_processor_marks(p, plan, count_tokens, &plan->n_marks);
}
