// SPDX-License-Identifier: MIT
// server/sched/model_loader.h: loads and frees models. With the lock of the list held.
#pragma once
#include "server/sched/models_state.h"

// Takes over what the first source gave, when the list is made.
bool server_models_take_first(server_models *m, const server_loaded *loaded, server_problem *problem);
void server_models_free_loaded(server_models *m, server_model_entry *e);
// True if the loaded model is not held, and no request that outlived its connection runs.
bool server_models_is_idle(const server_models *m, const server_model_entry *e);
// The thread that loads and frees models, one after the other; `models` is a server_models.
void *server_models_run_loader(void *models);
