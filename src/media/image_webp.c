// SPDX-License-Identifier: MIT
// WebP files, by libwebp. An animation gives its first picture, on a canvas without color.
#include "media/image.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <webp/decode.h>
#include <webp/demux.h>

static int orientation_of(const WebPDemuxer *demuxer)
{
    WebPChunkIterator chunk;
    if (!WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk)) return 1;
    const int orientation = frit_exif_orientation(chunk.chunk.bytes, chunk.chunk.size);
    WebPDemuxReleaseChunkIterator(&chunk);
    return orientation;
}

static frit_status read_frame(const WebPDemuxer *demuxer, const WebPIterator *frame, frit_raw_image *picture)
{
    const uint64_t width = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH);
    const uint64_t height = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT);
    if (frame->x_offset < 0 || frame->y_offset < 0 || frame->width < 1 || frame->height < 1 ||
        (uint64_t)frame->x_offset + (uint64_t)frame->width > width ||
        (uint64_t)frame->y_offset + (uint64_t)frame->height > height)
        return frit_fail(FRIT_E_FORMAT, "the WebP picture is damaged: its first frame is not within its canvas");
    if (frame->width * 4 > INT_MAX / 2) return frit_fail(FRIT_E_LIMIT, "the WebP picture has too long rows");
    FRIT_TRY(frit_raw_image_begin(picture, width, height, 4));
    const size_t stride = (size_t)width * 4, n_bytes = stride * (size_t)height;
    memset(picture->pixels, 0, n_bytes);
    const size_t first = (size_t)frame->y_offset * stride + (size_t)frame->x_offset * 4;
    if (!WebPDecodeRGBAInto(frame->fragment.bytes, frame->fragment.size, picture->pixels + first, n_bytes - first,
                            (int)stride))
        return frit_fail(FRIT_E_FORMAT, "the WebP picture is damaged: its pixels cannot be decoded");
    picture->orientation = orientation_of(demuxer);
    return FRIT_OK;
}

frit_status frit_webp_decode(frit_raw_image *picture, const uint8_t *bytes, size_t n_bytes)
{
    const WebPData data = {bytes, n_bytes};
    WebPDemuxer *demuxer = WebPDemux(&data);   // NULL for a partial file
    if (!demuxer) return frit_fail(FRIT_E_FORMAT, "the WebP picture is damaged, or only a part of a file");
    WebPIterator frame;
    frit_status status = FRIT_OK;
    if (!WebPDemuxGetFrame(demuxer, 1, &frame)) {
        status = frit_fail(FRIT_E_FORMAT, "the WebP picture is damaged: it has no frame");
    } else {
        status = read_frame(demuxer, &frame, picture);
        WebPDemuxReleaseIterator(&frame);
    }
    WebPDemuxDelete(demuxer);
    return status;
}
