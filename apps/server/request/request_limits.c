// SPDX-License-Identifier: MIT
// Fields that say in which slot and how soon a request is served.
#include "server/request/request.h"

// -1: any slot.
bool server_parse_slot(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    json_int_t id;
    if (!server_integer(value, &id) || id < -1 || id >= INT32_MAX)
        return server_refuse(problem, 400, "invalid_value", "id_slot", "id_slot: expected the number of a slot, or -1");
    request->scheduling.wanted_slot = (int32_t)id + 1;
    return true;
}

bool server_parse_priority(json_t *value, void *ctx, server_problem *problem)
{
    enum { MOST = 1000000 };
    server_generation *request = ctx;
    json_int_t priority;
    if (!server_integer(value, &priority))
        return server_refuse(problem, 400, "invalid_type", "priority", "priority: expected an integer");
    if (priority < -MOST || priority > MOST)
        return server_refuse(problem, 400, "invalid_value", "priority", "priority: %lld is outside of %d to %d",
                             (long long)priority, -MOST, MOST);
    request->scheduling.priority = (int32_t)priority;
    request->scheduling.has_priority = true;
    return true;
}
