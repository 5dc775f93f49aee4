// SPDX-License-Identifier: MIT
// format/mmproj.h: encoders of pictures in GGUF files of their own, which llama.cpp's converter calls mmproj.
//
// Such a file has the architecture "clip", keys "clip.vision.*", and tensors "v.*" (the encoder) and "mm.*" (which make
// rows of the text of its results). clip.projector_type says what kind of encoder it is. It gets the keys and names
// that the reader of Hugging Face folders gives, so that no other code knows these files.
//
// A file says less than a folder: neither how pictures are resized, nor their limits. This follows from its kind, with
// the values that the model's maker has published.
#pragma once
#include "format/checkpoint.h"
#include "media/processor.h"

// Gives a checkpoint that was read from such a file the keys and names of an encoder. FRIT_E_UNSUPPORTED for other
// architectures and kinds, FRIT_E_FORMAT for bad values.
frit_status frit_mmproj_respell(frit_checkpoint *ckpt);
// As frit_gguf_parse, of such a file.
frit_status frit_mmproj_parse(frit_checkpoint *ckpt, const char *path, const uint8_t *bytes, uint64_t n_bytes);
// Sets the processor that makes the input of this encoder.
frit_status frit_mmproj_processor(frit_processor *processor, const frit_checkpoint *ckpt);
