// SPDX-License-Identifier: MIT
// Pages that several sequences share are read once: which rows are grouped, and that attention and logits are those of
// each sequence alone.
#include "backend/cuda/exec.h"
#include "backend/cuda/ops/rows.h"
#include "backend/cuda/shared_pages.h"
#include "backend/gpu_engine.h"
#include "base/rng.h"

// ------------------------------------------------------------------------------- grouping

enum { MOST_ROWS = 80, STRIDE = 40 };

static struct {
    int32_t pages[MOST_ROWS * STRIDE], n_pages[MOST_ROWS];
    frit_seq seqs[MOST_ROWS];
    frit_shared_tile tiles[MOST_ROWS];
    frit_batch batch;
} table;

// Sequence i has n_shared pages of a prefix, then pages of its own, and n_past cached positions.
static void set_row(int32_t i, int32_t prefix, int32_t n_shared, int32_t n_past)
{
    for (int32_t k = 0; k < STRIDE; k++)
        table.pages[i * STRIDE + k] = k < n_shared ? 1000 * prefix + k : 100000 + i * STRIDE + k;
    table.seqs[i] = (frit_seq){.first_row = i, .n_rows = 1, .n_past = n_past};
}

static int32_t find(int32_t n_rows)
{
    table.batch = (frit_batch){.seqs = table.seqs,
                               .n_seqs = n_rows,
                               .n_rows = n_rows,
                               .pages = table.pages,
                               .n_groups = 1,
                               .page_stride = STRIDE};
    const int32_t n = frit_cuda_find_shared(&table.batch, n_rows, 0, table.n_pages, table.tiles);
    assert_int_equal(frit_cuda_find_shared(&table.batch, n_rows, 0, table.n_pages, NULL), n);
    return n;
}

// Each row with shared pages is in one tile, whose rows have the same first pages before their own positions.
static void check_tiles(int32_t n_tiles, int32_t n_rows)
{
    int32_t n_listed = 0, n_sharing = 0;
    for (int32_t t = 0; t < n_tiles; t++) {
        const frit_shared_tile *tile = &table.tiles[t];
        assert_true(tile->n_rows > 0 && tile->n_rows <= FRIT_GPU_SHARED_ROWS);
        assert_true(tile->n_pages >= FRIT_CUDA_SHARED_LEAST_PAGES);
        for (int32_t i = 0; i < tile->n_rows; i++) {
            const int32_t row = tile->rows[i];
            assert_int_equal(table.n_pages[row], tile->n_pages);
            assert_true(tile->n_pages <= table.seqs[row].n_past / 32);
            assert_memory_equal(table.pages + row * STRIDE, table.pages + tile->seq * STRIDE,
                                (size_t)tile->n_pages * sizeof(int32_t));
            n_listed++;
        }
    }
    for (int32_t i = 0; i < n_rows; i++) n_sharing += table.n_pages[i] > 0;
    assert_int_equal(n_listed, n_sharing);
}

static void rows_with_equal_first_pages_are_grouped(void **state)
{
    (void)state;
    for (int32_t i = 0; i < 70; i++) set_row(i, 1, 20, 900);
    assert_int_equal(find(70), 2);   // 64 rows and 6
    check_tiles(2, 70);
    assert_int_equal(table.n_pages[69], 20);
    assert_int_equal(find(FRIT_CUDA_SHARED_LEAST_ROWS - 1), 0);
    for (int32_t i = 0; i < 8; i++) set_row(i, i % 2, 20, 900);   // two prefixes
    assert_int_equal(find(8), 2);
    check_tiles(2, 8);
    for (int32_t i = 0; i < 8; i++) set_row(i, 1, FRIT_CUDA_SHARED_LEAST_PAGES - 1, 900);
    assert_int_equal(find(8), 0);
    for (int32_t i = 0; i < 8; i++) set_row(i, 1, 20, 20 * 32 - 1);   // the last shared page is not whole yet
    assert_int_equal(find(8), 1);
    assert_int_equal(table.n_pages[0], 19);
}

// Three rows share more pages than the others: fewer pages for all rows save more.
static void the_number_of_pages_saves_most(void **state)
{
    (void)state;
    for (int32_t i = 0; i < 12; i++) set_row(i, 1, i < 3 ? 36 : 18, 1200);
    assert_int_equal(find(12), 1);
    assert_int_equal(table.n_pages[11], 18);
    for (int32_t i = 0; i < 12; i++) set_row(i, 1, i < 10 ? 38 : 17, 1240);
    assert_int_equal(find(12), 1);
    assert_int_equal(table.n_pages[0], 38);
    assert_int_equal(table.n_pages[11], 0);
}

static void random_tables_give_sound_tiles(void **state)
{
    (void)state;
    frit_rng rng;
    frit_rng_init(&rng, 7);
    for (int32_t round = 0; round < 500; round++) {
        const int32_t n_rows = 1 + (int32_t)(frit_rng_next(&rng) % MOST_ROWS);
        for (int32_t i = 0; i < n_rows; i++)
            set_row(i, (int32_t)(frit_rng_next(&rng) % 3), (int32_t)(frit_rng_next(&rng) % STRIDE),
                    (int32_t)(frit_rng_next(&rng) % (STRIDE * 32 - 1)));
        check_tiles(find(n_rows), n_rows);
    }
}

// ------------------------------------------------------------------------------- kernels

enum { KERNEL_ROWS = 70, KERNEL_PAGES = 60, N_SHARED = 19, ROW_PAGES = 32, MOST_HEADS = 12, MOST_SIZE = 128 };

typedef struct shape {
    int n_heads, n_kv_heads, head_size, type;
    bool has_softcap, has_sinks;
} shape;

static uint64_t upload(frit_cuda_device *d, const void *from, size_t n_bytes)
{
    uint64_t address;
    assert_ok(frit_cuda_alloc_bytes(d, n_bytes, "a test", &address));
    assert_int_equal(d->driver.copy_up(address, from, n_bytes, d->stream), 0);
    assert_int_equal(d->driver.stream_wait(d->stream), 0);
    return address;
}

static uint64_t upload_zeros(frit_cuda_device *d, size_t n_bytes)
{
    void *zeros = calloc(n_bytes, 1);
    const uint64_t address = upload(d, zeros, n_bytes);
    free(zeros);
    return address;
}

// Keys or values of all pages. In blocks: a scale in f16, and 32 codes.
static uint64_t upload_pages(frit_cuda_device *d, frit_rng *rng, int type, size_t page_bytes)
{
    const size_t n_bytes = KERNEL_PAGES * page_bytes;
    uint8_t *bytes = malloc(n_bytes);
    for (size_t i = 0; i < n_bytes; i++) bytes[i] = (uint8_t)frit_rng_next(rng);
    for (size_t i = 0; type == FRIT_GPU_CACHE_F16 && i < n_bytes; i += 2)
        bytes[i + 1] = (uint8_t)((bytes[i + 1] & 0x83) | 0x34);   // between 0.25 and 4, of any sign
    for (size_t i = 0; type == FRIT_GPU_CACHE_Q8_0 && i < n_bytes; i += 34) bytes[i] = 0, bytes[i + 1] = 0x1c;
    const uint64_t address = upload(d, bytes, n_bytes);
    free(bytes);
    return address;
}

// The operands of both ways to attend.
typedef struct operands {
    frit_attend_args attend;
    uint64_t tiles, n_shared, out[2];
    int n_tiles;
} operands;

static operands upload_operands(frit_cuda_device *d, const frit_cuda_attend *a, int type)
{
    frit_rng rng;
    static int32_t positions[KERNEL_ROWS], seq_of[KERNEL_ROWS], pages[KERNEL_ROWS][ROW_PAGES], shared[KERNEL_ROWS];
    static frit_shared_tile tiles[2];
    static uint16_t q[KERNEL_ROWS * MOST_HEADS * MOST_SIZE];
    float sinks[MOST_HEADS];
    const frit_cuda_heads *h = &a->heads;
    const size_t n_out = (size_t)(KERNEL_ROWS * h->n_heads * h->head_size) * sizeof(float);
    memset(tiles, 0, sizeof tiles);
    frit_rng_init(&rng, 5);
    for (int i = 0; i < h->n_heads; i++) sinks[i] = 0.25f * (float)i;
    for (size_t i = 0; i < FRIT_COUNT(q); i++)
        q[i] = (uint16_t)((frit_rng_next(&rng) & 0x83ff) | 0x2c00);   // 1/16 .. 1/8
    for (int i = 0; i < KERNEL_ROWS; i++) {                           // every eighth row shares nothing
        frit_shared_tile *tile = &tiles[tiles[0].n_rows == FRIT_GPU_SHARED_ROWS - 20];
        positions[i] = N_SHARED * 32 + (int32_t)(frit_rng_next(&rng) % ((ROW_PAGES - N_SHARED) * 32));
        seq_of[i] = i;
        shared[i] = i % 8 == 7 ? 0 : N_SHARED;
        for (int k = 0; k < ROW_PAGES; k++)
            pages[i][k] = k < N_SHARED ? k : N_SHARED + (int32_t)(frit_rng_next(&rng) % (KERNEL_PAGES - N_SHARED));
        if (!shared[i]) continue;
        if (tile->n_rows == 0) *tile = (frit_shared_tile){.seq = i, .n_pages = N_SHARED};
        tile->rows[tile->n_rows++] = i;
    }
    const int n_parts = KERNEL_ROWS * frit_cuda_query_tiles(h);
    const size_t part_bytes = (size_t)(frit_cuda_tile_queries(h) * (h->head_size + 2)) * sizeof(float);
    const size_t page_bytes = (size_t)h->page_bytes;
    return (operands){.attend = {.q = upload(d, q, sizeof q),
                                 .positions = upload(d, positions, sizeof positions),
                                 .seq_of = upload(d, seq_of, sizeof seq_of),
                                 .pages = upload(d, pages, sizeof pages),
                                 .keys = upload_pages(d, &rng, type, page_bytes),
                                 .values = upload_pages(d, &rng, type, page_bytes),
                                 .sinks = upload(d, sinks, sizeof sinks),
                                 .partial = upload_zeros(d, (size_t)n_parts * 9 * part_bytes),
                                 .arrived = upload_zeros(d, (size_t)n_parts * sizeof(uint32_t)),
                                 .softcap = a->has_softcap ? 20 : 0,
                                 .inverse_softcap = a->has_softcap ? 0.05f : 0,
                                 .page_stride = ROW_PAGES},
                      .n_shared = upload(d, shared, sizeof shared),
                      .tiles = upload(d, tiles, sizeof tiles),
                      .out = {upload_zeros(d, n_out), upload_zeros(d, n_out)},
                      .n_tiles = 2};
}

static frit_cuda_kernel *get_kernel(frit_cuda_device *d, const frit_cuda_kernel *wanted)
{
    frit_cuda_kernel *kernel;
    assert_ok(frit_cuda_kernel_get(d, wanted, &kernel));
    assert_ok(frit_cuda_kernels_build(d));
    return kernel;
}

static void launch(frit_cuda_device *d, const frit_cuda_kernel *kernel, unsigned x, unsigned y, const void *args)
{
    frit_cuda_kernel one = *kernel;
    if (x) one.grid[0] = x;
    if (y) one.grid[1] = y;
    assert_ok(frit_cuda_kernel_launch(&d->gpu, &one, d->stream, args, FRIT_CUDA_IN_ORDER));
}

static float *read_out(frit_cuda_device *d, uint64_t address, size_t n)
{
    float *out = malloc(n * sizeof *out);
    assert_int_equal(d->driver.copy_down(out, address, n * sizeof *out, d->stream), 0);
    assert_int_equal(d->driver.stream_wait(d->stream), 0);
    return out;
}

// Each row by itself, and with shared pages read once.
static void compare_kernels(frit_cuda_device *d, const shape *s)
{
    const int block = s->type == FRIT_GPU_CACHE_F16 ? 64 : 34;   // bytes of 32 numbers
    frit_cuda_attend attend = {.heads = {.n_heads = s->n_heads,
                                         .n_kv_heads = s->n_kv_heads,
                                         .head_size = s->head_size,
                                         .page_bytes = (int64_t)s->n_kv_heads * s->head_size * block,
                                         .keys = s->type,
                                         .values = s->type},
                               .has_softcap = s->has_softcap,
                               .has_sinks = s->has_sinks,
                               .out = FRIT_CUDA_F32};
    frit_cuda_kernel alone, rows, beside;
    operands o = upload_operands(d, &attend, s->type);
    if (frit_cuda_has_codes(&attend.heads)) attend.stages = frit_cuda_attend_stages(&attend.heads, &d->gpu);
    assert_ok(frit_cuda_attend_kernel(&attend, 3, attend.stages ? 0 : 4, &alone));
    attend.shared_parts = FRIT_CUDA_SHARED_PARTS;
    attend.own_parts = 1;
    assert_ok(frit_cuda_attend_rows_kernel(&attend, &d->gpu, &rows));
    assert_ok(frit_cuda_attend_kernel(&attend, 1, attend.stages ? 0 : 4, &beside));
    o.attend.out = o.out[0];
    launch(d, get_kernel(d, &alone), 0, KERNEL_ROWS, &o.attend);
    const frit_attend_rows_args args = {.q = o.attend.q,
                                        .tiles = o.tiles,
                                        .pages = o.attend.pages,
                                        .keys = o.attend.keys,
                                        .values = o.attend.values,
                                        .partial = o.attend.partial,
                                        .softcap = o.attend.softcap,
                                        .inverse_softcap = o.attend.inverse_softcap,
                                        .page_stride = ROW_PAGES};
    launch(d, get_kernel(d, &rows), (unsigned)(o.n_tiles * FRIT_CUDA_SHARED_PARTS), 0, &args);
    o.attend.out = o.out[1];
    o.attend.n_shared = o.n_shared;
    launch(d, get_kernel(d, &beside), 0, KERNEL_ROWS, &o.attend);
    const size_t n = (size_t)(KERNEL_ROWS * s->n_heads * s->head_size);
    float *expected = read_out(d, o.out[0], n), *got = read_out(d, o.out[1], n);
    const double error = nmse(got, expected, n);
    if (!(error <= 1e-5)) fail_msg("%d heads of %d, type %d: nmse %g", s->n_heads, s->head_size, s->type, error);
    free(expected);
    free(got);
}

static void shared_pages_give_the_sums_of_each_row_alone(void **state)
{
    (void)state;
    require_gpu();
    static const shape shapes[] = {{4, 2, 32, FRIT_GPU_CACHE_F16, false, false},
                                   {12, 1, 64, FRIT_GPU_CACHE_F16, true, true},   // two tiles of query heads
                                   {4, 1, 64, FRIT_GPU_CACHE_Q8_0, false, false}};
    frit_device *base;
    assert_ok(frit_backend_cuda.open(&base, &(frit_device_options){.n_threads = 2}));
    for (size_t i = 0; i < FRIT_COUNT(shapes); i++) compare_kernels((frit_cuda_device *)base, &shapes[i]);
    base->backend->close(base);
}

// ------------------------------------------------------------------------------- steps

enum { N_SESSIONS = 11, N_PREFIX = FRIT_CUDA_SHARED_LEAST_PAGES * 32 + 7, VOCAB = 320 };

static int n_shared_launches;
static const frit_cuda_device *watched;
static int (*launch_before)(const frit_cuda_launch_config *, frit_cuda_function, void **, void **);

// Counts launches of attend_rows.cu with parts.
static int count_launch(const frit_cuda_launch_config *config, frit_cuda_function f, void **params, void **extra)
{
    for (size_t i = 0; i < watched->n_kernels; i++) {
        const frit_cuda_kernel *kernel = watched->kernels[i];
        if (kernel->function != f || strcmp(kernel->name, "attend_rows") != 0) continue;
        for (int k = 0; k < kernel->n_defines; k++)
            n_shared_launches += strncmp(kernel->defines[k], "SHARED_PARTS", 12) == 0;
    }
    return launch_before(config, f, params, extra);
}

static void push_tokens(frit_session *session, int first, int n)
{
    frit_token tokens[N_PREFIX];
    for (int i = 0; i < n; i++) tokens[i] = ((first + i) * 37 + 11) % VOCAB;
    assert_ok(frit_session_push(session, tokens, (size_t)n, NULL));
}

// Sessions with one beginning get a token each: in a step of all of them, and copies of some in steps of their own.
static void steps_read_shared_pages_once(void **state)
{
    (void)state;
    require_gpu();
    float alone[2][VOCAB];
    frit_session *sessions[N_SESSIONS], *copy;
    frit_model *model = random_model(SMALL_LLAMA("32"));
    frit_engine *engine;
    const frit_engine_options options = {.n_ctx = 1024,
                                         .n_threads = 2,
                                         .n_sessions = N_SESSIONS + 1,
                                         .n_batch = 64,
                                         .device = "cuda",
                                         .gpu_layers = "all",
                                         .cache_type_k = "f16",
                                         .cache_type_v = "f16"};
    assert_ok(frit_engine_new(&engine, model, &options));
    assert_ok(frit_session_new(&sessions[0], engine));
    push_tokens(sessions[0], 0, N_PREFIX);
    while (frit_session_pending(sessions[0]) > 0) assert_ok(frit_engine_step(engine, NULL));
    for (int i = 1; i < N_SESSIONS; i++) assert_ok(frit_session_fork(&sessions[i], sessions[0]));
    for (int i = 0; i < N_SESSIONS; i++) push_tokens(sessions[i], 1000 + i, 1 + i % 3);   // beginnings differ from here
    for (int32_t n = 1; n > 0;) assert_ok(frit_engine_step(engine, &n));
    for (int i = 0; i < 2; i++) {
        assert_ok(frit_session_fork(&copy, sessions[i]));
        push_tokens(copy, 2000, 1);
        assert_ok(frit_engine_step(engine, NULL));
        memcpy(alone[i], frit_session_logits(copy), sizeof alone[i]);
        frit_session_free(copy);
    }
    frit_cuda_device *d = (frit_cuda_device *)engine->devices[0];
    watched = d;
    launch_before = d->driver.launch;
    d->driver.launch = count_launch;
    n_shared_launches = 0;
    for (int i = 0; i < N_SESSIONS; i++) push_tokens(sessions[i], 2000, 1);
    assert_ok(frit_engine_step(engine, NULL));
    for (int i = 0; i < 2; i++) assert_true(nmse(frit_session_logits(sessions[i]), alone[i], VOCAB) <= 1e-5);
    assert_int_equal(n_shared_launches, 1);   // the model has one layer
    for (int i = 0; i < N_SESSIONS; i++) frit_session_free(sessions[i]);
    frit_engine_free(engine);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_with_equal_first_pages_are_grouped),
        cmocka_unit_test(the_number_of_pages_saves_most),
        cmocka_unit_test(random_tables_give_sound_tiles),
        cmocka_unit_test(shared_pages_give_the_sums_of_each_row_alone),
        cmocka_unit_test(steps_read_shared_pages_once),
    };
    return cmocka_run_group_tests(tests, use_emulator, use_no_emulator);
}
