// SPDX-License-Identifier: MIT
// format/hf/encoders/hf_encoders.h: what families of encoders share.
#pragma once
#include "format/hf/hf.h"

// Keys under BERT's names, without tensors. Heads have hidden_size / num_attention_heads elements.
extern const frit_hf_names frit_hf_encoder;
// The names of BERT's keys and tensors.
extern const frit_hf_names frit_hf_bert_names;

// Names of activations that architectures of encoders compute.
#define FRIT_HF_ENCODER_ACTS "gelu|gelu_new|gelu_pytorch_tanh|relu|silu|swish"

// A part of a masked-LM head; files of other classes may have such tensors too.
#define FRIT_HF_ROW_MASKED_LM(at, to)                                                                 \
    {                                                                                                 \
        .name = at, .gguf = to, .bias_if = FRIT_HF_MAYBE, .may_be_absent = true, .of_masked_lm = true \
    }
// FRIT_E_UNSUPPORTED if the class predicts masked tokens and has another activation than GELU under this key: its
// head's activation would not be that of the layers.
frit_status frit_hf_expect_gelu(const frit_hf *hf, const char *name);

// For `more`: adds that attention is bidirectional, the activation (frit.act), and the number of token types.
frit_status frit_hf_add_encoder(const frit_hf *hf);
// The same, whatever position_embedding_type is.
frit_status frit_hf_add_bidirectional(const frit_hf *hf);
frit_status frit_hf_add_act(const frit_hf *hf);   // the activation alone
// A matrix of up before gate becomes one of gate before up, as in GGUF.
frit_status frit_hf_swap_halves(const frit_hf *hf, frit_tensor *tensor, bool is_bias);
// The first `first` rows of the table of positions are of padding: context_length loses them.
frit_status frit_hf_skip_positions(const frit_hf *hf, double first);
frit_status frit_hf_cut_positions(const frit_hf *hf, frit_tensor *tensor, double first);
