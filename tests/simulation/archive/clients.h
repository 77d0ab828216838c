/* Aeron clients over simulated time. A file of its own, because the client's module and the archive's share no internal names. */
#ifndef AS_SIM_ARCHIVE_CLIENTS_H
#define AS_SIM_ARCHIVE_CLIENTS_H

#include "aeron_spark/as_client.h"
#include "base/clock.h"

as_result clients_open(const as_client_options *options, const asi_clock *clock, as_client **client);

#endif
