# SPDX-License-Identifier: MIT
# Writes a tiny Mellum with random weights, and the ids of its reference: mellum.py mellum.gguf > ids
import sys

import gguf
import numpy as np

N_VOCAB, N_EMBD, N_LAYER, N_HEAD, N_KV, DIM, N_EXPERT, N_FF = 32, 16, 3, 4, 2, 8, 3, 10

rng = np.random.default_rng(1)
w = gguf.GGUFWriter(sys.argv[1], "mellum")
w.add_vocab_size(N_VOCAB)
w.add_context_length(64)
w.add_embedding_length(N_EMBD)
w.add_block_count(N_LAYER)
w.add_feed_forward_length(N_FF)
w.add_expert_feed_forward_length(N_FF)
w.add_expert_count(N_EXPERT)
w.add_expert_used_count(2)
w.add_head_count(N_HEAD)
w.add_head_count_kv(N_KV)
w.add_key_length(DIM)
w.add_value_length(DIM)
w.add_layer_norm_rms_eps(1e-5)
w.add_sliding_window(5)
w.add_sliding_window_pattern([True, False, True])
w.add_rope_dimension_count(DIM)
w.add_rope_freq_base(10000.0)
w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
w.add_rope_scaling_factor(4.0)
w.add_rope_scaling_orig_ctx_len(16)
w.add_tokenizer_model("no_vocab")


def add(name, *shape):
    if len(shape) == 1:
        x = 1 + 0.3 * rng.standard_normal(shape)
    else:
        x = rng.standard_normal(shape) / np.sqrt(shape[-1]) * 1.5
    w.add_tensor(name + ".weight", x.astype(np.float32))


add("token_embd", N_VOCAB, N_EMBD)
add("output_norm", N_EMBD)
add("output", N_VOCAB, N_EMBD)
for i in range(N_LAYER):
    blk = f"blk.{i}."
    add(blk + "attn_norm", N_EMBD)
    add(blk + "attn_q", N_HEAD * DIM, N_EMBD)
    add(blk + "attn_k", N_KV * DIM, N_EMBD)
    add(blk + "attn_v", N_KV * DIM, N_EMBD)
    add(blk + "attn_output", N_EMBD, N_HEAD * DIM)
    add(blk + "attn_q_norm", DIM)
    add(blk + "attn_k_norm", DIM)
    add(blk + "ffn_norm", N_EMBD)
    add(blk + "ffn_gate_inp", N_EXPERT, N_EMBD)
    add(blk + "ffn_gate_exps", N_EXPERT, N_FF, N_EMBD)
    add(blk + "ffn_up_exps", N_EXPERT, N_FF, N_EMBD)
    add(blk + "ffn_down_exps", N_EXPERT, N_EMBD, N_FF)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
print(",".join(str(i) for i in rng.integers(N_VOCAB, size=24)))
