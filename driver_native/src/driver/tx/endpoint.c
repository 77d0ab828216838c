/* See endpoint.h. */
#include "driver/tx/endpoint.h"

#include "driver/tx/publication_state.h"

static uint32_t bucket_of(int32_t stream_id, int32_t session_id)
{
    const uint32_t mixed = ((uint32_t)session_id * 0x9E3779B1u) ^ ((uint32_t)stream_id * 0x85EBCA77u);
    return (mixed ^ (mixed >> 16)) % ASI_SEND_BUCKETS;
}

static asi_sender_publication **slot_of(asi_sender_endpoint *endpoint, const asi_sender_publication *publication)
{
    return &endpoint->buckets[bucket_of(publication->stream_id, publication->session_id)];
}

void asi_sender_endpoint_add(asi_sender_endpoint *endpoint, asi_sender_publication *publication)
{
    asi_sender_publication **slot = slot_of(endpoint, publication);
    publication->next_in_bucket = *slot;
    *slot = publication;
}

void asi_sender_endpoint_remove(asi_sender_endpoint *endpoint, asi_sender_publication *publication)
{
    for (asi_sender_publication **slot = slot_of(endpoint, publication); NULL != *slot; slot = &(*slot)->next_in_bucket)
    {
        if (*slot == publication)
        {
            *slot = publication->next_in_bucket;
            return;
        }
    }
}

asi_sender_publication *asi_sender_endpoint_find(const asi_sender_endpoint *endpoint, int32_t stream_id, int32_t session_id)
{
    asi_sender_publication *publication = endpoint->buckets[bucket_of(stream_id, session_id)];
    while (NULL != publication && (stream_id != publication->stream_id || session_id != publication->session_id))
    {
        publication = publication->next_in_bucket;
    }
    return publication;
}

as_result asi_sender_endpoint_send(asi_sender_endpoint *endpoint, const asi_sender_publication *publication,
    asi_outgoing *datagrams, int32_t count, int64_t now_ns, asi_fan_out *fan_out, int64_t *budget, int32_t *sent, int64_t *bytes)
{
    *sent = 0;
    *bytes = 0;
    if (endpoint->has_destinations)
    {
        return asi_destinations_send(&endpoint->destinations, endpoint->ops, endpoint->socket, datagrams, count, now_ns, fan_out,
            budget, sent, bytes);
    }
    const asi_address *to = endpoint->is_connected ? NULL : &endpoint->peer;
    if (endpoint->is_response)
    {
        if (asi_address_is_none(&publication->response_address))
        {
            return AS_OK; /* Spec: 04 §14 - no receiver has asked yet */
        }
        to = &publication->response_address;
    }
    for (int32_t i = 0; i < count; i++)
    {
        datagrams[i].to = to;
    }
    const as_result result = endpoint->ops->send(endpoint->ops->context, endpoint->socket, datagrams, count, sent);
    for (int32_t i = 0; i < *sent; i++)
    {
        *bytes += datagrams[i].length;
    }
    *budget -= *bytes;
    return result;
}
