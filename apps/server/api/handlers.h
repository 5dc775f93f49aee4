// SPDX-License-Identifier: MIT
// server/api/handlers.h: the handlers of the routes, and functions that they share.
#pragma once
#include "server/routes.h"

// Makes the JSON the reply. Takes `json` over; NULL stands for a lack of memory.
void server_reply(server_exchange *exchange, json_t *json);
// Finds exchange->model. Returns false with a problem if the server has no model of this name.
bool server_check_model(server_exchange *exchange, const char *name);
// For routes without a body. Returns false with a problem if the model is not loaded.
bool server_check_loaded(server_exchange *exchange);
bool server_is_loaded(const server_model_status *status);
// Calls the function for each name in lists of models. Loaded models stay loaded during the call.
typedef void (*server_name_fn)(void *ctx, const server_model *model, const char *name,
                               const server_model_status *status);
void server_each_name(server_models *models, server_name_fn call, void *ctx);
// Makes the job of exchange->request, a server_generation: with `chat` from messages, else from a text or from tokens.
void server_generate(server_exchange *exchange, bool chat);

// Sets the salt of a job from the caller's key and the request's salt (NULL: none). Jobs of different salts share no
// cached prefixes, so that no caller can find out what others asked. Returns false if memory is short.
bool server_set_salt(const server_exchange *exchange, const char *salt, server_job *job);
// Decodes the pictures of a conversation (request.h), unless that was done. False with a problem.
bool server_prepare_pictures(server_exchange *exchange);

// slot_files.c
void server_change_slot(server_exchange *exchange);
// generate.c
void server_change_adapters(server_exchange *exchange);
void server_complete_chat(server_exchange *exchange);
void server_complete_text(server_exchange *exchange);
// models.c
void server_list_models(server_exchange *exchange);
void server_show_model(server_exchange *exchange);
void server_load_model(server_exchange *exchange);
void server_unload_model(server_exchange *exchange);
void server_list_adapters(server_exchange *exchange);
void server_show_metrics(server_exchange *exchange);
void server_show_health(server_exchange *exchange);
// native.c
void server_complete_native(server_exchange *exchange);
void server_infill(server_exchange *exchange);
void server_show_props(server_exchange *exchange);
void server_list_slots(server_exchange *exchange);
void server_show_live(server_exchange *exchange);
void server_tokenize(server_exchange *exchange);
void server_detokenize(server_exchange *exchange);
void server_apply_template(server_exchange *exchange);
void server_refuse_moderation(server_exchange *exchange);
// anthropic.c
void server_count_message_tokens(server_exchange *exchange);
// responses.c
void server_respond(server_exchange *exchange);
void server_show_response(server_exchange *exchange);
void server_delete_response(server_exchange *exchange);
void server_cancel_response(server_exchange *exchange);
// streams.c
void server_show_stream(server_exchange *exchange);
void server_delete_stream(server_exchange *exchange);
// Replies with the replay's stream from after the event `after`, or from its start if `after` is NULL. Takes the
// reference over, or returns false with a problem.
bool server_replay_follow(server_exchange *exchange, server_replay *replay, const char *after);
// ollama.c
void server_ollama_answer_chat(server_exchange *exchange);
void server_ollama_answer_prompt(server_exchange *exchange);
void server_ollama_list_models(server_exchange *exchange);
void server_ollama_list_loaded(server_exchange *exchange);
void server_ollama_show_model(server_exchange *exchange);
void server_ollama_show_version(server_exchange *exchange);
// openapi.c
void server_show_openapi(server_exchange *exchange);
// web_ui.c
void server_show_web_ui(server_exchange *exchange);
void server_show_docs(server_exchange *exchange);
void server_show_asset(server_exchange *exchange);
void server_list_sampling(server_exchange *exchange);
// embeddings.c, rerank.c
void server_embed(server_exchange *exchange);
void server_rerank_texts(server_exchange *exchange);
