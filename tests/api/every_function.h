// SPDX-License-Identifier: MIT
// api/every_function.h: the public functions, for programs in C11 and C++17 that link the shared library: each must be
// declared so that both languages read it, and exported.
#pragma once
#include <frit_tools.h>

typedef void (*any_function)(void);

static const any_function every_function[] = {
#define ENTRY(name) (any_function)(name)
    ENTRY(frit_version),
    ENTRY(frit_status_text),
    ENTRY(frit_error),
    ENTRY(frit_model_open),
    ENTRY(frit_model_open_memory),
    ENTRY(frit_model_free),
    ENTRY(frit_model_get_info),
    ENTRY(frit_model_get_tensor),
    ENTRY(frit_model_kv_bytes),
    ENTRY(frit_model_get_meta),
    ENTRY(frit_model_get_meta_json),
    ENTRY(frit_model_find_meta),
    ENTRY(frit_model_meta_int),
    ENTRY(frit_model_meta_float),
    ENTRY(frit_model_meta_text),
    ENTRY(frit_convert),
    ENTRY(frit_tokenize),
    ENTRY(frit_tokenize_within),
    ENTRY(frit_detokenize),
    ENTRY(frit_token_piece),
    ENTRY(frit_token_is_end),
    ENTRY(frit_token_get_info),
    ENTRY(frit_token_of_role),
    ENTRY(frit_text_stream_new),
    ENTRY(frit_text_stream_push),
    ENTRY(frit_text_stream_flush),
    ENTRY(frit_text_stream_free),
    ENTRY(frit_chat_render_json),
    ENTRY(frit_chat_render),
    ENTRY(frit_chat_tokenize),
    ENTRY(frit_turn_new),
    ENTRY(frit_turn_prompt),
    ENTRY(frit_turn_tokenize),
    ENTRY(frit_turn_push),
    ENTRY(frit_turn_end),
    ENTRY(frit_turn_next),
    ENTRY(frit_turn_shows),
    ENTRY(frit_turn_is_thinking),
    ENTRY(frit_turn_free),
    ENTRY(frit_engine_new),
    ENTRY(frit_engine_free),
    ENTRY(frit_engine_get_info),
    ENTRY(frit_engine_step),
    ENTRY(frit_engine_submit),
    ENTRY(frit_engine_poll),
    ENTRY(frit_engine_wait),
    ENTRY(frit_session_new),
    ENTRY(frit_session_free),
    ENTRY(frit_session_status),
    ENTRY(frit_session_fork),
    ENTRY(frit_adapter_open),
    ENTRY(frit_adapter_free),
    ENTRY(frit_adapter_get_info),
    ENTRY(frit_session_set_adapters),
    ENTRY(frit_session_push),
    ENTRY(frit_session_encode),
    ENTRY(frit_session_pending),
    ENTRY(frit_session_length),
    ENTRY(frit_session_truncate),
    ENTRY(frit_session_logits),
    ENTRY(frit_session_tokens),
    ENTRY(frit_session_source),
    ENTRY(frit_session_save),
    ENTRY(frit_session_load),
    ENTRY(frit_session_save_memory),
    ENTRY(frit_session_load_memory),
    ENTRY(frit_session_set_note),
    ENTRY(frit_session_note),
    ENTRY(frit_session_next),
    ENTRY(frit_session_pick),
    ENTRY(frit_session_picked),
    ENTRY(frit_session_push_picked),
    ENTRY(frit_logprobs_top),
    ENTRY(frit_logprobs_of),
    ENTRY(frit_embed_texts),
    ENTRY(frit_embed_width),
    ENTRY(frit_sampler_recommend),
    ENTRY(frit_sampler_set_option),
    ENTRY(frit_sampler_new),
    ENTRY(frit_sampler_free),
    ENTRY(frit_sampler_sample),
    ENTRY(frit_sampler_accept),
    ENTRY(frit_sampler_reset),
    ENTRY(frit_sampler_set_position),
    ENTRY(frit_sampler_heal),
    ENTRY(frit_option_set),
    ENTRY(frit_name_nearest),
    ENTRY(frit_model_option_rows),
    ENTRY(frit_convert_option_rows),
    ENTRY(frit_engine_option_rows),
    ENTRY(frit_embed_option_rows),
    ENTRY(frit_sampler_option_rows),
    ENTRY(frit_random_shape_get),
    ENTRY(frit_random_write),
    ENTRY(frit_model_open_random),
    ENTRY(frit_engine_profile),
    ENTRY(frit_engine_get_profile),
    ENTRY(frit_machine_probe),
    ENTRY(frit_op_get_info),
    ENTRY(frit_architecture_get_info),
#undef ENTRY
};

// 0, or what to return from main: a failed call must be read the same way in both languages.
static int use_the_library(void)
{
    frit_model *model = NULL;
    frit_model_options options = {0};
    options.vocab_only = true;
    for (size_t i = 0; i < sizeof every_function / sizeof *every_function; i++)
        if (!every_function[i]) return 1;
    if (frit_model_open(&model, "/nowhere", &options) != FRIT_E_NOT_FOUND || model) return 2;
    return frit_error()[0] && frit_version()[0] ? 0 : 3;
}
