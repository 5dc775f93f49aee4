// SPDX-License-Identifier: MIT
// Pictures: golden files to the bit, damaged and hostile files, limits, and objects.
#include "support/support.h"

#include "base/buf.h"

#include <jansson.h>

// Formats of this build.
#ifdef FRIT_TEST_PNG
#define HAS_PNG 1
#else
#define HAS_PNG 0
#endif
#ifdef FRIT_TEST_JPEG
#define HAS_JPEG 1
#else
#define HAS_JPEG 0
#endif
#ifdef FRIT_TEST_WEBP
#define HAS_WEBP 1
#else
#define HAS_WEBP 0
#endif

#ifdef FRIT_TEST_GIF
#define HAS_GIF 1
#else
#define HAS_GIF 0
#endif

static bool ends_with(const char *name, const char *suffix)
{
    const size_t n = strlen(name), n_suffix = strlen(suffix);
    return n >= n_suffix && strcmp(name + n - n_suffix, suffix) == 0;
}

static bool is_readable(const char *name)
{
    return (HAS_PNG && ends_with(name, ".png")) || (HAS_JPEG && ends_with(name, ".jpg")) ||
           (HAS_WEBP && ends_with(name, ".webp")) || (HAS_GIF && ends_with(name, ".gif"));
}

static json_t *read_json(const char *path)
{
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    if (!json) fail_msg("%s: %s", path, error.text);
    return json;
}

// Opens a copy that ends exactly at the end of its allocation.
static frit_status open_exactly(frit_image **out, const void *bytes, size_t n_bytes, const frit_image_limits *limits)
{
    void *copy = malloc(n_bytes ? n_bytes : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, n_bytes);
    const frit_status status = frit_image_open_memory(out, copy, n_bytes, limits);
    free(copy);
    return status;
}

// Calls `use` for each golden picture of a format that this build reads. Returns their number.
typedef void (*use_fn)(const char *name, const char *bytes, size_t n_bytes, json_t *row);
static size_t each_picture(use_fn use)
{
    json_t *index = read_json(shared_path("goldens/media/images/index.json")), *row;
    size_t i, n = 0;
    json_array_foreach(index, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "file"));
        if (!is_readable(name) || !shared_has("goldens/media/images/%s", name)) continue;
        size_t n_bytes;
        char *bytes = read_file(shared_path("goldens/media/images/%s", name), &n_bytes);
        use(name, bytes, n_bytes, row);
        free(bytes);
        n++;
    }
    json_decref(index);
    return n;
}

static void expect_pixels(const char *name, const frit_image *image, json_t *row)
{
    uint32_t width, height;
    assert_ok(frit_image_get_size(image, &width, &height));
    if (width != json_integer_value(json_object_get(row, "width")) ||
        height != json_integer_value(json_object_get(row, "height")))
        fail_msg("%s has %ux%u pixels", name, (unsigned)width, (unsigned)height);
    size_t n_bytes;
    char *expected = read_file(shared_path("goldens/media/images/%s.rgb", name), &n_bytes);
    assert_int_equal(n_bytes, (size_t)width * height * 3);
    const uint8_t *found = frit_image_pixels(image);
    for (size_t i = 0; i < n_bytes; i++)
        if (found[i] != (uint8_t)expected[i])
            fail_msg("%s: pixel (%zu, %zu), color %zu is %d, expected %d", name, i / 3 % width, i / 3 / width, i % 3,
                     found[i], (uint8_t)expected[i]);
    free(expected);
}

static void compare_picture(const char *name, const char *bytes, size_t n_bytes, json_t *row)
{
    frit_image *image;
    if (open_exactly(&image, bytes, n_bytes, NULL) != FRIT_OK) fail_msg("%s: %s", name, frit_error());
    expect_pixels(name, image, row);
    frit_image_free(image);
}

static void pictures_decode_to_the_bit(void **state)
{
    (void)state;
    const size_t least = (HAS_PNG ? 20u : 0) + (HAS_JPEG ? 10u : 0) + (HAS_WEBP ? 3u : 0);
    const size_t n = each_picture(compare_picture);
    if (least == 0) skip_because("this build reads no pictures");
    assert_true(n >= (shared_least(2) == 2 ? least : 1));
}

// ------------------------------------------------------------------------------- damaged and hostile files

static const struct {
    const char *name, *phrase;   // phrase NULL: the picture is good
    frit_status status;
} bad[] = {
    {"truncated.png", "ends before", FRIT_E_FORMAT},
    {"header_crc.png", "CRC", FRIT_E_FORMAT},
    {"signature_only.png", "no header", FRIT_E_FORMAT},
    {"empty.png", "0 bytes are no picture", FRIT_E_FORMAT},
    {"zero_width.png", "0x5", FRIT_E_FORMAT},
    {"short_data.png", "Not enough image data", FRIT_E_FORMAT},
    {"bad_filter.png", "filter", FRIT_E_FORMAT},
    {"bad_depth.png", "damaged", FRIT_E_FORMAT},
    {"palette_missing.png", "PLTE", FRIT_E_FORMAT},
    {"bomb.png", "30000x30000 pixels; expected at most 67108864", FRIT_E_LIMIT},
    {"bomb_claims.png", "2147483647x2147483647 pixels; a side may have at most 32767", FRIT_E_LIMIT},
    {"many_chunks.png", NULL, FRIT_OK},
    {"truncated.jpg", "Premature end", FRIT_E_FORMAT},
    {"no_scan.jpg", "damaged", FRIT_E_FORMAT},
    {"huge_size.jpg", "65500 pixels", FRIT_E_FORMAT},
    {"zero_size.jpg", "damaged", FRIT_E_FORMAT},
    {"text.png", "SVG file; expected PNG, JPEG, WebP or GIF", FRIT_E_UNSUPPORTED},
    {"truncated.webp", "part of a file", FRIT_E_FORMAT},
};

static void damaged_pictures_are_refused_with_a_sentence(void **state)
{
    (void)state;
    shared_path("goldens/media/images/bad/bomb.png");   // skips the test without reference data
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        if (!is_readable(bad[i].name)) continue;
        size_t n_bytes;
        char *bytes = read_file(shared_path("goldens/media/images/bad/%s", bad[i].name), &n_bytes);
        frit_image *image;
        const frit_status status = open_exactly(&image, bytes, n_bytes, NULL);
        if (status != bad[i].status || (bad[i].phrase && !strstr(frit_error(), bad[i].phrase)))
            fail_msg("%s: %d \"%s\"", bad[i].name, (int)status, frit_error());
        assert_true((status == FRIT_OK) == (image != NULL));
        frit_image_free(image);
        free(bytes);
    }
}

static void cut_picture(const char *name, const char *bytes, size_t n_bytes, json_t *row)
{
    (void)row;
    for (size_t n = 0; n < n_bytes; n += FRIT_TEST_STRIDE) {
        frit_image *image;
        const frit_status status = open_exactly(&image, bytes, n, NULL);
        frit_image_free(image);
        if (status == FRIT_OK) fail_msg("%s cut to %zu of %zu bytes is a picture", name, n, n_bytes);
    }
}

static void a_picture_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    each_picture(cut_picture);
}

// Changes, removes or doubles a few bytes.
static size_t mutate(frit_rng *rng, uint8_t *bytes, size_t n_bytes, size_t max_bytes)
{
    for (int64_t n = random_between(rng, 1, 4); n > 0; n--) {
        const size_t at = (size_t)random_between(rng, 0, (int64_t)n_bytes - 1);
        const size_t length = (size_t)random_between(rng, 1, 16);
        const int64_t kind = random_between(rng, 0, 9);
        if (kind == 0 && n_bytes + length <= max_bytes) {
            memmove(bytes + at + length, bytes + at, n_bytes - at);
            n_bytes += length;
        } else if (kind == 1 && at + length < n_bytes) {
            memmove(bytes + at, bytes + at + length, n_bytes - at - length);
            n_bytes -= length;
        } else {
            bytes[at] = (uint8_t)(kind < 6 ? random_between(rng, 0, 255) : bytes[at] ^ (1 << (kind - 2)));
        }
    }
    return n_bytes;
}

static size_t n_mutants, n_opened;

static void mutate_picture(const char *name, const char *bytes, size_t n_bytes, json_t *row)
{
    (void)row;
    frit_rng rng;
    frit_rng_init(&rng, 7);
    uint8_t *mutant = malloc(n_bytes + 64);
    assert_non_null(mutant);
    for (int i = 0; i < 1000; i += FRIT_TEST_STRIDE) {
        memcpy(mutant, bytes, n_bytes);
        // Headers are a small part of a file, and most of what can go wrong.
        const size_t n = mutate(&rng, mutant, i % 2 && n_bytes > 80 ? 80 : n_bytes, n_bytes + 64);
        const size_t n_all = i % 2 && n_bytes > 80 ? n_bytes : n;
        frit_image *image;
        const frit_status status = open_exactly(&image, mutant, n_all, &(frit_image_limits){.max_pixels = 1 << 20});
        n_mutants++;
        if (status == FRIT_OK)
            n_opened++;
        else if (strlen(frit_error()) < 10)
            fail_msg("%s: status %d has no sentence", name, (int)status);
        frit_image_free(image);
    }
    free(mutant);
}

static void a_picture_with_bytes_changed_does_no_harm(void **state)
{
    (void)state;
    n_mutants = n_opened = 0;
    const size_t n = each_picture(mutate_picture);
    if (n == 0) skip_because("this build reads no pictures, or has no reference data");
    assert_true(n_opened > 0 && n_opened < n_mutants);
}

static size_t find_marker(const char *bytes, size_t n_bytes, size_t from, uint8_t marker)
{
    for (size_t i = from; i + 1 < n_bytes; i++)
        if ((uint8_t)bytes[i] == 0xff && (uint8_t)bytes[i + 1] == marker) return i;
    fail_msg("there is no marker %02x", marker);
    return 0;
}

// Repeats the first scan of a progressive file, which ends where the table of the next one begins.
static void files_of_many_scans_are_refused(void **state)
{
    (void)state;
    if (!HAS_JPEG) skip_because("this build reads no JPEG pictures");
    enum { START_OF_SCAN = 0xda, HUFFMAN_TABLE = 0xc4, N_TIMES = 200 };
    size_t n_bytes;
    char *bytes = read_file(shared_path("goldens/media/images/progressive.jpg"), &n_bytes);
    const size_t scan = find_marker(bytes, n_bytes, 0, START_OF_SCAN);
    const size_t end = find_marker(bytes, n_bytes, scan, HUFFMAN_TABLE), n_scan = end - scan;
    const size_t n_all = n_bytes + N_TIMES * n_scan;
    char *all = malloc(n_all);
    assert_non_null(all);
    memcpy(all, bytes, end);
    for (size_t i = 0; i < N_TIMES; i++) memcpy(all + end + i * n_scan, bytes + scan, n_scan);
    memcpy(all + end + N_TIMES * n_scan, bytes + end, n_bytes - end);
    frit_image *image;
    assert_fails(open_exactly(&image, all, n_all, NULL), FRIT_E_FORMAT, "more than 100 scans");
    free(all);
    free(bytes);
}

static void other_files_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n_bytes;
        const char *name;
    } files[] = {

        {"BM......", 8, "BMP"},
        {"II*\0....", 8, "TIFF"},
        {"\0\0\0\x18"
         "ftypavif",
         12, "AVIF"},
        {"%PDF-1.7", 8, "PDF"},
    };
    frit_image *image;
    for (size_t i = 0; i < FRIT_COUNT(files); i++)
        assert_fails(open_exactly(&image, files[i].bytes, files[i].n_bytes, NULL), FRIT_E_UNSUPPORTED, files[i].name);
    assert_fails(open_exactly(&image, "hello", 5, NULL), FRIT_E_FORMAT, "5 bytes are no picture");
    static const char webp[] = "RIFF\x04\0\0\0WEBP", png[] = "\x89PNG\r\n\x1a\n", jpeg[] = "\xff\xd8\xff",
                      gif[] = "GIF89a";
    const struct {
        const char *bytes;
        size_t n_bytes;
        bool is_read;
    } starts[] = {{webp, 12, HAS_WEBP}, {png, 8, HAS_PNG}, {jpeg, 3, HAS_JPEG}, {gif, 6, HAS_GIF}};
    for (size_t i = 0; i < FRIT_COUNT(starts); i++)
        assert_fails(open_exactly(&image, starts[i].bytes, starts[i].n_bytes, NULL),
                     starts[i].is_read ? FRIT_E_FORMAT : FRIT_E_UNSUPPORTED,
                     starts[i].is_read ? "damaged" : "this build");
}

// ------------------------------------------------------------------------------- WebP files with more chunks

static void add_u32(frit_buf *file, uint32_t value)
{
    for (int i = 0; i < 4; i++) frit_buf_char(file, (char)(value >> 8 * i & 255));
}

static void add_u24(frit_buf *file, uint32_t value)
{
    for (int i = 0; i < 3; i++) frit_buf_char(file, (char)(value >> 8 * i & 255));
}

static void add_chunk(frit_buf *file, const char *name, const void *bytes, size_t n_bytes)
{
    frit_buf_text(file, name);
    add_u32(file, (uint32_t)n_bytes);
    frit_buf_append(file, bytes, n_bytes);
    if (n_bytes & 1) frit_buf_char(file, 0);
}

// Makes a file of a chunk that describes the canvas, and of other chunks.
static void open_webp(frit_image **out, uint8_t flags, uint32_t width, uint32_t height, const frit_buf *chunks)
{
    frit_buf file = {0}, canvas = {0};
    add_u32(&canvas, flags);
    add_u24(&canvas, width - 1);
    add_u24(&canvas, height - 1);
    frit_buf_text(&file, "RIFF");
    add_u32(&file, (uint32_t)(4 + 8 + canvas.len + chunks->len));
    frit_buf_text(&file, "WEBP");
    add_chunk(&file, "VP8X", canvas.data, canvas.len);
    frit_buf_append(&file, chunks->data, chunks->len);
    assert_ok(open_exactly(out, file.data, file.len, NULL));
    frit_buf_free(&file);
    frit_buf_free(&canvas);
}

enum { RIFF_HEADER = 12, WIDTH = 63, HEIGHT = 52 };   // of lossy.webp

static const uint8_t *expected_pixel(const char *rgb, uint32_t x, uint32_t y)
{
    return (const uint8_t *)rgb + (y * WIDTH + x) * 3;
}

static void a_webp_picture_is_turned_by_its_exif_data(void **state)
{
    (void)state;
    if (!HAS_WEBP) skip_because("this build reads no WebP pictures");
    static const uint8_t exif[] = "II*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0";
    size_t n_bytes, n_rgb;
    char *bytes = read_file(shared_path("goldens/media/images/lossy.webp"), &n_bytes);
    char *rgb = read_file(shared_path("goldens/media/images/lossy.webp.rgb"), &n_rgb);
    frit_buf chunks = {0};
    frit_buf_append(&chunks, bytes + RIFF_HEADER, n_bytes - RIFF_HEADER);
    add_chunk(&chunks, "EXIF", exif, sizeof exif);
    frit_image *image;
    open_webp(&image, 8, WIDTH, HEIGHT, &chunks);
    uint32_t width, height;
    assert_ok(frit_image_get_size(image, &width, &height));
    assert_true(width == HEIGHT && height == WIDTH);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            assert_memory_equal(frit_image_pixels(image) + (y * width + x) * 3, expected_pixel(rgb, y, HEIGHT - 1 - x),
                                3);
    frit_image_free(image);
    frit_buf_free(&chunks);
    free(bytes);
    free(rgb);
}

static void the_first_picture_of_an_animation_is_used(void **state)
{
    (void)state;
    if (!HAS_WEBP) skip_because("this build reads no WebP pictures");
    enum { LEFT = 4, TOP = 2, CANVAS_WIDTH = 70, CANVAS_HEIGHT = 60 };
    size_t n_bytes, n_rgb;
    char *bytes = read_file(shared_path("goldens/media/images/lossy.webp"), &n_bytes);
    char *rgb = read_file(shared_path("goldens/media/images/lossy.webp.rgb"), &n_rgb);
    frit_buf chunks = {0}, frame = {0};
    add_u24(&frame, LEFT / 2);
    add_u24(&frame, TOP / 2);
    add_u24(&frame, WIDTH - 1);
    add_u24(&frame, HEIGHT - 1);
    add_u32(&frame, 100);   // milliseconds, and no flags
    frit_buf_append(&frame, bytes + RIFF_HEADER, n_bytes - RIFF_HEADER);
    add_chunk(&chunks, "ANIM", "\xff\0\0\xff\0\0", 6);
    add_chunk(&chunks, "ANMF", frame.data, frame.len);
    add_chunk(&chunks, "ANMF", frame.data, frame.len);
    frit_image *image;
    open_webp(&image, 2, CANVAS_WIDTH, CANVAS_HEIGHT, &chunks);
    const uint8_t *pixels = frit_image_pixels(image);
    static const uint8_t white[3] = {255, 255, 255};
    for (uint32_t y = 0; y < CANVAS_HEIGHT; y++)
        for (uint32_t x = 0; x < CANVAS_WIDTH; x++) {
            const bool is_inside = x >= LEFT && x < LEFT + WIDTH && y >= TOP && y < TOP + HEIGHT;
            const uint8_t *expected = is_inside ? expected_pixel(rgb, x - LEFT, y - TOP) : white;
            assert_memory_equal(pixels + (y * CANVAS_WIDTH + x) * 3, expected, 3);
        }
    frit_image_free(image);
    frit_buf_free(&chunks);
    frit_buf_free(&frame);
    free(bytes);
    free(rgb);
}

// ------------------------------------------------------------------------------- limits and objects

static void limits_are_checked(void **state)
{
    (void)state;
    if (!HAS_PNG) skip_because("this build reads no PNG pictures");
    size_t n_bytes;
    char *bytes = read_file(shared_path("goldens/media/images/thin.png"), &n_bytes);   // 3x120
    frit_image *image;
    assert_fails(open_exactly(&image, bytes, n_bytes, &(frit_image_limits){.max_side = 119}), FRIT_E_LIMIT,
                 "3x120 pixels; a side may have at most 119");
    assert_fails(open_exactly(&image, bytes, n_bytes, &(frit_image_limits){.max_pixels = 359}), FRIT_E_LIMIT,
                 "at most 359 pixels");
    assert_fails(open_exactly(&image, bytes, n_bytes, &(frit_image_limits){.max_bytes = n_bytes - 1}), FRIT_E_LIMIT,
                 "bytes; expected at most");
    assert_fails(
        frit_image_open(&image, shared_path("goldens/media/images/thin.png"), &(frit_image_limits){.max_bytes = 9}),
        FRIT_E_LIMIT, "thin.png: has");
    const frit_image_limits exact = {.max_bytes = n_bytes, .max_pixels = 360, .max_side = 120};
    assert_ok(frit_image_open(&image, shared_path("goldens/media/images/thin.png"), &exact));
    frit_image_free(image);
    assert_fails(open_exactly(&image, bytes, n_bytes, &(frit_image_limits){.reserved = {1}}), FRIT_E_INVALID,
                 "reserved");
    assert_fails(frit_image_open(&image, temp_path("none.png"), NULL), FRIT_E_NOT_FOUND, "none.png");
    free(bytes);
}

static void images_can_be_made_of_pixels_and_shared(void **state)
{
    (void)state;
    static const uint8_t rgb[2 * 3] = {1, 2, 3, 4, 5, 6};
    frit_image *image;
    assert_ok(frit_image_from_rgb(&image, 1, 2, rgb));
    assert_ok(frit_image_retain(image));
    frit_image_free(image);
    uint32_t width, height;
    assert_ok(frit_image_get_size(image, &width, &height));
    assert_true(width == 1 && height == 2);
    assert_memory_equal(frit_image_pixels(image), rgb, sizeof rgb);
    frit_image_free(image);
    assert_fails(frit_image_from_rgb(&image, 0, 2, rgb), FRIT_E_INVALID, "0x2 pixels");
    assert_fails(frit_image_from_rgb(&image, 32768, 2, rgb), FRIT_E_INVALID, "sides of 1 to 32767");
    assert_null(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_decode_to_the_bit),
        cmocka_unit_test(damaged_pictures_are_refused_with_a_sentence),
        cmocka_unit_test(a_picture_cut_at_any_byte_is_refused),
        cmocka_unit_test(a_picture_with_bytes_changed_does_no_harm),
        cmocka_unit_test(files_of_many_scans_are_refused),
        cmocka_unit_test(other_files_are_named),
        cmocka_unit_test(a_webp_picture_is_turned_by_its_exif_data),
        cmocka_unit_test(the_first_picture_of_an_animation_is_used),
        cmocka_unit_test(limits_are_checked),
        cmocka_unit_test(images_can_be_made_of_pixels_and_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
