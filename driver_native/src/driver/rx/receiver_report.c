/* See receiver_report.h. */
#include "driver/rx/receiver_report.h"

#include <stdio.h>

#include "base/atomic.h"

void asi_receiver_count(asi_receiver *receiver, int32_t system_counter_id, int64_t delta)
{
    asi_counters_add(receiver->params.counters, system_counter_id, delta);
}

bool asi_receiver_notify_conductor(asi_receiver *receiver, const asi_conductor_command *command)
{
    const bool is_sent = asi_command_queue_put(receiver->params.conductor, command);
    if (!is_sent)
    {
        asi_receiver_count(receiver, ASI_SYSTEM_CONDUCTOR_OFFER_FAILURES, 1);
    }
    return is_sent;
}

void asi_receiver_report(asi_receiver *receiver, as_result result)
{
    asi_conductor_command command = { .kind = ASI_CONDUCTOR_ERROR,
        .error = { .result = result, .code = as_error_code(), .is_errno = asi_error_is_errno() } };
    snprintf(command.error.text, sizeof(command.error.text), "%s", as_error_text());
    (void)asi_receiver_notify_conductor(receiver, &command);
}
