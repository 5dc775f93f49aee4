// SPDX-License-Identifier: MIT
// server/sched/model_watch.h: requests that wait for models, and the thread that watches their clients and the idle
// time of models. Callers hold the lock of the list, except of server_models_run_watcher.
#pragma once
#include "server/sched/models_state.h"

// Takes the requests that wait for a model out of the list; NULL: the requests of all models.
server_waiter *server_waiters_take(server_models *m, const server_model *model);
bool server_waiters_exist(const server_models *m, const server_model *model);
// Calls `ready` of the waiters, and gives the lock up meanwhile.
void server_waiters_call(server_models *m, server_waiter *waiters, const server_problem *problem);
// The thread; `models` is a server_models.
void *server_models_run_watcher(void *models);
