/* See report.h. */
#include "driver/ctl/report.h"

#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "wire/command.h"

#define PEER_EVENTS_INTERVAL_NS 1000000000LL
#define PEER_EVENTS_MAX 256

void asi_conductor_count(asi_conductor *conductor, int32_t system_counter_id, int64_t delta)
{
    asi_counters_add(&conductor->counters.counters, system_counter_id, delta);
}

/* Failures caused by the caller carry a protocol code or EINVAL, unless a system call reported them; other classes carry an
 * errno. */
static bool has_protocol_code(as_result result)
{
    return (AS_E_USAGE == result || AS_E_DATA == result) && !asi_error_is_errno() && as_error_code() > ASI_ERR_UNUSED &&
        as_error_code() <= ASI_ERR_PUBLICATION_REVOKED;
}

int32_t asi_conductor_failure_code(as_result result)
{
    if (has_protocol_code(result))
    {
        return as_error_code();
    }
    return ENOSPC == as_error_code() ? ASI_ERR_STORAGE_SPACE : ASI_ERR_GENERIC;
}

void asi_conductor_failure_text(as_result result, char *to, size_t capacity)
{
    static const char *const TEXTS[] = { "generic", "invalid channel", "unknown subscription", "unknown publication",
        "channel endpoint error", "unknown counter", "unknown command type id", "malformed command", "not supported",
        "unknown host", "resource temporarily unavailable", "generic error, see message", "insufficient storage space",
        "image rejected", "publication revoked" };
    const int32_t code = as_error_code();
    const bool is_protocol = has_protocol_code(result);
    snprintf(to, capacity, "(%d) %s\n%s\n", is_protocol ? -code : code, is_protocol ? TEXTS[code] : strerror(code),
        as_error_text());
}

void asi_conductor_log_failure(asi_conductor *conductor, as_result result)
{
    char text[ASI_FAILURE_TEXT_CAPACITY];
    asi_conductor_failure_text(result, text, sizeof(text));
    asi_error_log_record(&conductor->errors, as_error_code(), text, conductor->now_ms);
}

void asi_conductor_log_command_failure(asi_conductor *conductor, as_result result)
{
    char text[ASI_FAILURE_TEXT_CAPACITY];
    char kind[256];
    asi_conductor_failure_text(result, text, sizeof(text));
    snprintf(kind, sizeof(kind), "%.*s: commands of clients (more of them, not told apart any more)",
        (int)strcspn(text, "\n"), text);
    asi_error_log_record_of_peer(&conductor->errors, as_error_code(), text, kind, conductor->now_ms);
}

bool asi_peer_budget_takes(asi_peer_budget *budget, int64_t now_ns)
{
    if (now_ns - budget->since_ns > PEER_EVENTS_INTERVAL_NS)
    {
        budget->since_ns = now_ns;
        budget->taken = 0;
    }
    if (budget->taken >= PEER_EVENTS_MAX)
    {
        return false;
    }
    budget->taken++;
    return true;
}

void asi_conductor_log_peer_failure(asi_conductor *conductor, as_result result)
{
    char text[ASI_FAILURE_TEXT_CAPACITY];
    if (!asi_peer_budget_takes(&conductor->peer_failures, conductor->now_ns))
    {
        asi_conductor_count(conductor, ASI_SYSTEM_ERRORS, 1);
        return;
    }
    asi_conductor_failure_text(result, text, sizeof(text));
    asi_error_log_record_of_peer(&conductor->errors, as_error_code(), text, NULL, conductor->now_ms);
}
