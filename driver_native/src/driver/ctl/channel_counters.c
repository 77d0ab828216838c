/* See channel_counters.h. */
#include "driver/ctl/channel_counters.h"

#include <stdio.h>

#define CHANNEL_ACTIVE 1

as_result asi_channel_counter_allocate(asi_conductor *conductor, const asi_channel_counter *counter, int32_t *counter_id)
{
    uint8_t key[ASI_COUNTER_KEY_CAPACITY] = { 0 };
    const size_t room = sizeof(key) - sizeof(int32_t);
    const size_t length = strlen(counter->channel);
    const size_t key_text_length = length < room ? length : room;
    asi_put_i32(key, (int32_t)key_text_length);
    memcpy(key + sizeof(int32_t), counter->channel, key_text_length);
    char label[ASI_COUNTER_LABEL_CAPACITY];
    const int printed = snprintf(label, sizeof(label), "%s: %s%s%s", counter->name, counter->channel,
        NULL == counter->suffix ? "" : " ", NULL == counter->suffix ? "" : counter->suffix);
    const asi_counter_request request = {
        .type_id = counter->type_id,
        .key = key,
        .key_length = (int64_t)(sizeof(int32_t) + key_text_length),
        .label = label,
        .label_length = printed < (int)sizeof(label) ? printed : (int)sizeof(label) - 1,
        .registration_id = counter->registration_id,
        .initial_value = counter->initial_value
    };
    return asi_counters_allocate(&conductor->counters, &request, conductor->now_ms, counter_id);
}

as_result asi_local_address_counter_allocate(asi_conductor *conductor, const char *name, int64_t registration_id,
    int32_t status_counter_id, const asi_address *address, int32_t *counter_id)
{
    char text[ASI_ADDRESS_TEXT_CAPACITY];
    char label[ASI_COUNTER_LABEL_CAPACITY];
    uint8_t key[2 * sizeof(int32_t) + ASI_ADDRESS_TEXT_CAPACITY] = { 0 };
    asi_address_format(address, text);
    asi_put_i32(key, status_counter_id);
    asi_put_i32(key + sizeof(int32_t), (int32_t)strlen(text));
    memcpy(key + 2 * sizeof(int32_t), text, strlen(text));
    const asi_counter_request request = {
        .type_id = ASI_COUNTER_TYPE_LOCAL_SOCKADDR,
        .key = key,
        .key_length = sizeof(key),
        .label = label,
        .label_length = snprintf(label, sizeof(label), "%s: %d %s", name, status_counter_id, text),
        .registration_id = registration_id,
        .initial_value = CHANNEL_ACTIVE
    };
    return asi_counters_allocate(&conductor->counters, &request, conductor->now_ms, counter_id);
}

void asi_channel_counter_free(asi_conductor *conductor, int32_t *counter_id)
{
    if (*counter_id >= 0)
    {
        asi_counters_free(&conductor->counters, *counter_id, conductor->now_ms);
        *counter_id = AS_NULL_VALUE;
    }
}
