/* Tells the service manager what this process does: the protocol of systemd's Type=notify, a datagram to the socket that
 * NOTIFY_SOCKET names. Nothing happens where the environment names none.
 *
 * With WATCHDOG_USEC the manager ends a service that does not report in time. Thread rule: any thread; one for each watchdog. */
#ifndef ASI_BASE_SERVICE_H
#define ASI_BASE_SERVICE_H

#include "base/result.h"

/* READY=1, with a line that the manager shows as the service's status. AS_E_USAGE: the socket cannot be reached. If
 * the variable is not one that another process left behind, the manager then ends this process after its start timeout. */
as_result asi_service_ready(const char *status) AS_MUST_USE;
/* STOPPING=1, with such a line. */
void asi_service_stopping(const char *status);

typedef struct asi_watchdog
{
    int64_t interval_ns; /* 0: nobody waits for reports */
    int64_t next_ns;
} asi_watchdog;

/* Reads WATCHDOG_USEC and WATCHDOG_PID. Reports twice in the manager's interval. */
asi_watchdog asi_watchdog_from_environment(void);
bool asi_watchdog_is_due(const asi_watchdog *watchdog, int64_t now_ns);
/* Reports that all is well. Never waits. */
void asi_watchdog_report(asi_watchdog *watchdog, int64_t now_ns);

#endif
