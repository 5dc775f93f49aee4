// SPDX-License-Identifier: MIT
// server/http/keep_alive.h: signs of life and progress in streams that have no text to send.
#pragma once
#include "server/sched/job.h"

// For jobs that wait or run, in each iteration of the engine thread, with the worker's lock held. True: there is news
// for the client.
bool server_job_keep_alive(server_job *job, double now);
