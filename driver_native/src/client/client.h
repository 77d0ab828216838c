/* Opening a client with a clock that is given. */
#ifndef ASI_CLIENT_CLIENT_H
#define ASI_CLIENT_CLIENT_H

#include "client/state.h"

/* as_client_open with time injected. */
as_result asi_client_open_with_clock(const as_client_options *options, const asi_clock *clock, as_client **client) AS_MUST_USE;

#endif
