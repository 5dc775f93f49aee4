// SPDX-License-Identifier: MIT
// server/ops/notify.h: tells the service manager how the server is doing: datagrams to the socket $NOTIFY_SOCKET, as
// sd_notify(3) describes them. Without the variable, and where no process listens, nothing happens.
//
//     server_notify("READY=1\nSTATUS=serving %s", name);
#pragma once

void server_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));
// That it reads its files again; READY=1 ends that.
void server_notify_reloading(void);
