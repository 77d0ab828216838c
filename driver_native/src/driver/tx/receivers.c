/* See receivers.h. */
#include "driver/tx/receivers.h"

static int32_t find(const asi_receivers *receivers, int64_t receiver_id)
{
    for (int32_t i = 0; i < receivers->count; i++)
    {
        if (receiver_id == receivers->items[i].receiver_id)
        {
            return i;
        }
    }
    return -1;
}

static int32_t longest_silent(const asi_receivers *receivers)
{
    int32_t oldest = 0;
    for (int32_t i = 1; i < receivers->count; i++)
    {
        if (receivers->items[i].last_status_ns < receivers->items[oldest].last_status_ns)
        {
            oldest = i;
        }
    }
    return oldest;
}

void asi_receivers_refresh(asi_receivers *receivers, int64_t receiver_id, int64_t now_ns)
{
    int32_t at = find(receivers, receiver_id);
    if (at < 0)
    {
        at = receivers->count < ASI_RECEIVERS_CAPACITY ? receivers->count++ : longest_silent(receivers);
    }
    receivers->items[at] = (asi_receiver_entry){ .receiver_id = receiver_id, .last_status_ns = now_ns };
}

bool asi_receivers_remove(asi_receivers *receivers, int64_t receiver_id)
{
    const int32_t at = find(receivers, receiver_id);
    if (at < 0)
    {
        return false;
    }
    receivers->items[at] = receivers->items[--receivers->count];
    return true;
}

void asi_receivers_expire(asi_receivers *receivers, int64_t now_ns, int64_t timeout_ns)
{
    for (int32_t i = receivers->count - 1; i >= 0; i--)
    {
        if (now_ns - receivers->items[i].last_status_ns >= timeout_ns)
        {
            receivers->items[i] = receivers->items[--receivers->count];
        }
    }
}
