/* See sender_report.h. */
#include "driver/tx/sender_report.h"

#include <stdio.h>

void asi_sender_count(asi_sender *sender, int32_t system_counter_id, int64_t delta)
{
    asi_counters_add(sender->params.counters, system_counter_id, delta);
}

void asi_sender_short_send(asi_sender *sender)
{
    sender->short_sends++;
    asi_sender_count(sender, ASI_SYSTEM_SHORT_SENDS, 1);
}

void asi_sender_notify_conductor(asi_sender *sender, const asi_conductor_command *command)
{
    if (!asi_command_queue_put(sender->params.conductor, command))
    {
        asi_sender_count(sender, ASI_SYSTEM_CONDUCTOR_OFFER_FAILURES, 1);
    }
}

void asi_sender_log_failure(asi_sender *sender, as_result result)
{
    asi_conductor_command command = { .kind = ASI_CONDUCTOR_ERROR,
        .error = { .result = result, .code = as_error_code(), .is_errno = asi_error_is_errno() } };
    snprintf(command.error.text, sizeof(command.error.text), "%s", as_error_text());
    asi_sender_notify_conductor(sender, &command);
}
