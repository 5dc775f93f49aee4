// SPDX-License-Identifier: MIT
// server/ops/notify.h: sends the state of the server to the service manager, as datagrams to the socket $NOTIFY_SOCKET
// (sd_notify(3)). Does nothing without the variable, or if no process listens.
//
//     server_notify("READY=1\nSTATUS=serving %s", name);
#pragma once

void server_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Sends that the server reads its files again, until READY=1 is sent.
void server_notify_reloading(void);
