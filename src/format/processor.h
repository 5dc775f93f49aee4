// SPDX-License-Identifier: MIT
// format/processor.h: processors of pictures in the files of a Hugging Face folder.
//
// preprocessor_config.json says how pictures are resized; newer folders have it as "image_processor" of
// processor_config.json, which also has marks. The vision encoder's patches are in config.json.
#pragma once
#include "base/buf.h"
#include "media/processor.h"

// Reads the processor of a folder. *found is false, without an error, if it has no processor of pictures.
// FRIT_E_UNSUPPORTED for a processor of an unknown type, FRIT_E_FORMAT for bad values.
frit_status frit_processor_open(frit_processor *processor, bool *found, const char *folder);

// Texts of the files; of length 0 if the folder lacks a file.
typedef struct frit_processor_files {
    frit_str preprocessor, processor, config;
} frit_processor_files;
// As frit_processor_open, of texts.
frit_status frit_processor_read(frit_processor *processor, bool *found, const frit_processor_files *files);

// For other files than those of folders: the defaults of an image_processor_type, and a check of what was set after.
frit_status frit_processor_of_type(frit_processor *processor, const char *name);
frit_status frit_processor_check(const frit_processor *processor);
