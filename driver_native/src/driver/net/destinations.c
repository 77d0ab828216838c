/* Destinations of multi-destination publications; see destinations.h. */
#include "driver/net/destinations.h"

#include <errno.h>
#include <stdlib.h>

#include "base/atomic.h"

as_result asi_destinations_open(
    asi_destinations *destinations, bool is_manual, int32_t capacity, int64_t *count_counter)
{
    *destinations = (asi_destinations){
        .items = calloc((size_t)capacity, sizeof(asi_destination)),
        .capacity = capacity,
        .is_manual = is_manual,
        .count_counter = count_counter
    };
    return NULL != destinations->items ? AS_OK :
        asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for %d destinations", capacity);
}

void asi_destinations_close(asi_destinations *destinations)
{
    free(destinations->items);
    *destinations = (asi_destinations){ 0 };
}

static void set_count(asi_destinations *destinations, int32_t count)
{
    destinations->count = count;
    asi_store_release_i64(destinations->count_counter, count);
}

static void remove_at(asi_destinations *destinations, int32_t index)
{
    destinations->items[index] = destinations->items[destinations->count - 1];
    set_count(destinations, destinations->count - 1);
}

/* By receiver and port once the receiver is known (the host may be seen translated), by address before. Spec: 04 §11.1-11.2. */
static bool is_from(const asi_destination *destination, int64_t receiver_id, const asi_address *source)
{
    return destination->has_receiver_id ?
        destination->receiver_id == receiver_id && asi_address_port(&destination->address) == asi_address_port(source) :
        asi_address_equal(&destination->address, source);
}

void asi_destinations_on_status_message(
    asi_destinations *destinations, int64_t receiver_id, const asi_address *source, int64_t now_ns)
{
    for (int32_t i = 0; i < destinations->count; i++)
    {
        asi_destination *destination = &destinations->items[i];
        if (is_from(destination, receiver_id, source))
        {
            destination->has_receiver_id = true;
            destination->receiver_id = receiver_id;
            destination->last_activity_ns = now_ns;
            return;
        }
    }
    if (!destinations->is_manual && destinations->count < destinations->capacity)
    {
        destinations->items[destinations->count] = (asi_destination){
            .address = *source, .receiver_id = receiver_id, .has_receiver_id = true, .last_activity_ns = now_ns,
            .registration_id = AS_NULL_VALUE
        };
        set_count(destinations, destinations->count + 1);
    }
}

bool asi_destinations_add(
    asi_destinations *destinations, const asi_address *address, int64_t registration_id, int64_t now_ns)
{
    if (destinations->count == destinations->capacity)
    {
        return false;
    }
    destinations->items[destinations->count] = (asi_destination){
        .address = *address, .last_activity_ns = now_ns, .registration_id = registration_id
    };
    set_count(destinations, destinations->count + 1);
    return true;
}

void asi_destinations_remove(asi_destinations *destinations, int64_t registration_id)
{
    for (int32_t i = 0; i < destinations->count; i++)
    {
        if (destinations->items[i].registration_id == registration_id)
        {
            remove_at(destinations, i);
            return;
        }
    }
}

int64_t asi_destinations_find_registration(
    const asi_destinations *destinations, int64_t receiver_id, const asi_address *source)
{
    for (int32_t i = 0; i < destinations->count; i++)
    {
        if (is_from(&destinations->items[i], receiver_id, source))
        {
            return destinations->items[i].registration_id;
        }
    }
    return AS_NULL_VALUE;
}

static bool is_silent(const asi_destination *destination, int64_t now_ns)
{
    return now_ns > destination->last_activity_ns + ASI_DESTINATION_TIMEOUT_NS;
}

static void drop_silent(asi_destinations *destinations, int64_t now_ns)
{
    for (int32_t i = destinations->count - 1; i >= 0; i--)
    {
        if (is_silent(&destinations->items[i], now_ns))
        {
            remove_at(destinations, i);
        }
    }
}

as_result asi_destinations_send(asi_destinations *destinations, const asi_udp_ops *ops, asi_udp_socket *socket,
    const asi_outgoing *datagrams, int32_t count, int64_t now_ns, int32_t *sent, int64_t *bytes)
{
    asi_outgoing copies[ASI_UDP_MAX_BATCH];
    as_result first_failure = AS_OK;
    count = count > ASI_UDP_MAX_BATCH ? ASI_UDP_MAX_BATCH : count;
    if (!destinations->is_manual)
    {
        drop_silent(destinations, now_ns);
    }
    *sent = count;
    *bytes = 0;
    /* Each batch begins with another one, so that none is always the last to get it. */
    const int32_t start = destinations->count > 0 ? destinations->next_start++ % destinations->count : 0;
    for (int32_t i = 0; i < destinations->count; i++)
    {
        const asi_destination *destination = &destinations->items[(start + i) % destinations->count];
        int32_t taken = 0;
        if (asi_address_is_none(&destination->address))
        {
            continue;
        }
        for (int32_t k = 0; k < count; k++)
        {
            copies[k] = datagrams[k];
            copies[k].to = &destination->address;
        }
        const as_result result = ops->send(ops->context, socket, copies, count, &taken);
        for (int32_t k = 0; k < taken; k++)
        {
            *bytes += datagrams[k].length;
        }
        if (AS_OK != result)
        {
            *sent = 0;
            first_failure = AS_OK == first_failure ? result : first_failure;
        }
    }
    if (destinations->next_start >= destinations->count)
    {
        destinations->next_start = 0;
    }
    return first_failure;
}

asi_destination *asi_destinations_next_silent(asi_destinations *destinations, int64_t now_ns)
{
    for (int32_t i = 0; destinations->is_manual && i < destinations->count; i++)
    {
        asi_destination *destination = &destinations->items[i];
        if (is_silent(destination, now_ns))
        {
            destination->last_activity_ns = now_ns;
            return destination;
        }
    }
    return NULL;
}
