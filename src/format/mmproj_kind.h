// SPDX-License-Identifier: MIT
// format/mmproj_kind.h: what frit knows of a kind of encoder in mmproj files. Private to mmproj*.c; the list is in
// mmproj.c.
#pragma once
#include "format/mmproj.h"

typedef struct mmproj mmproj;

// A tensor "FROM.weight", which may have a bias and limits. '*' is the layer.
typedef struct mmproj_name {
    const char *from, *to;
    bool is_whole;   // both names are complete: no ".weight" follows
    bool is_transposed;
} mmproj_name;

typedef struct mmproj_kind {
    const char *name;        // clip.projector_type
    const char *arch;        // the encoder
    const char *processor;   // image_processor_type of folders
    const char *merge_key;   // patches on a side of a block; NULL: as `merge` says
    uint32_t merge;          // if there is no such key; 0: the key is required
    const char *acts;        // flags that it may have, of which one is set: "clip.use_gelu"; NULL: none is set
    const mmproj_name *names;
    size_t n_names;
    frit_status (*more)(const mmproj *m);   // writes more keys; may be NULL
    // Sets what the file says of the processor besides patches and colors; may be NULL.
    frit_status (*limit)(const frit_checkpoint *ckpt, frit_processor *p);
} mmproj_kind;

struct mmproj {
    frit_checkpoint *ckpt;
    const mmproj_kind *kind;
};

// mmproj_tensors.c: lists the tensors again by their new names, without those of an encoder of sounds.
frit_status frit_mmproj_rename(const mmproj *m);
