// SPDX-License-Identifier: MIT
// server/http/client_gone.h: whether the client of a request has closed its connection.
//
// A client that has closed only its sending side may still wait for an answer. One probe, an interim answer, tells: it
// is sent if `may_probe`, and *probed remembers it.
#pragma once
#include "server/sched/job.h"

bool server_socket_is_left(int socket, bool is_tls, bool may_probe, bool *probed);
// For the client of a job, with the worker's lock held.
bool server_client_is_gone(server_job *job);
