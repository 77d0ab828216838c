/* Destinations of multi-destination publications; see destinations.h. */
#include "driver/net/destinations.h"

#include <errno.h>
#include <stdlib.h>

#include "base/atomic.h"

as_result asi_destinations_open(asi_destinations *destinations, bool is_manual, int32_t capacity, int32_t capacity_per_address,
    int64_t *count_counter)
{
    *destinations = (asi_destinations){
        .items = calloc((size_t)capacity, sizeof(asi_destination)),
        .capacity = capacity,
        .capacity_per_address = capacity_per_address,
        .next_round_ns = INT64_MAX,
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
    destinations->newcomer_count -= destinations->items[index].is_proven ? 0 : 1;
    destinations->items[index] = (asi_destination){ 0 };
    while (destinations->slot_count > 0 && !destinations->items[destinations->slot_count - 1].is_used)
    {
        destinations->slot_count--;
    }
    set_count(destinations, destinations->count - 1);
}

/* The caller ensures that a slot is free. */
static asi_destination *take_slot(asi_destinations *destinations)
{
    int32_t at = 0;
    while (destinations->items[at].is_used)
    {
        at++;
    }
    destinations->slot_count = at < destinations->slot_count ? destinations->slot_count : at + 1;
    set_count(destinations, destinations->count + 1);
    return &destinations->items[at];
}

/* Matches by receiver id and port once the receiver is known (NAT may change the host), by address before. Spec: 04
 * §11.1-11.2. */
static bool is_from(const asi_destination *destination, int64_t receiver_id, const asi_address *source)
{
    return destination->is_used && (destination->has_receiver_id ?
        destination->receiver_id == receiver_id && asi_address_port(&destination->address) == asi_address_port(source) :
        asi_address_equal(&destination->address, source));
}

static asi_destination *find(const asi_destinations *destinations, int64_t receiver_id, const asi_address *source)
{
    for (int32_t i = 0; i < destinations->slot_count; i++)
    {
        if (is_from(&destinations->items[i], receiver_id, source))
        {
            return &destinations->items[i];
        }
    }
    return NULL;
}

const asi_destination *asi_destinations_find(
    const asi_destinations *destinations, int64_t receiver_id, const asi_address *source)
{
    return find(destinations, receiver_id, source);
}

static void drop_oldest_newcomer(asi_destinations *destinations)
{
    int32_t oldest = -1;
    for (int32_t i = 0; i < destinations->slot_count; i++)
    {
        const asi_destination *destination = &destinations->items[i];
        if (destination->is_used && !destination->is_proven &&
            (oldest < 0 || destination->last_activity_ns < destinations->items[oldest].last_activity_ns))
        {
            oldest = i;
        }
    }
    if (oldest >= 0)
    {
        remove_at(destinations, oldest);
    }
}

/* Adds a newcomer without a proof; NULL when all slots hold proven ones. */
static asi_destination *add_dynamic(
    asi_destinations *destinations, int64_t receiver_id, const asi_address *source, bool is_going_to_be_proven)
{
    const int32_t quarter = destinations->capacity / 4 > 0 ? destinations->capacity / 4 : 1;
    const int32_t newcomers = quarter < ASI_NEWCOMERS_CAPACITY ? quarter : ASI_NEWCOMERS_CAPACITY;
    if (destinations->count == destinations->capacity ||
        (destinations->newcomer_count >= newcomers && !is_going_to_be_proven))
    {
        drop_oldest_newcomer(destinations);
    }
    if (destinations->count == destinations->capacity)
    {
        return NULL;
    }
    asi_destination *destination = take_slot(destinations);
    *destination = (asi_destination){ .is_used = true, .address = *source, .receiver_id = receiver_id, .has_receiver_id = true,
        .registration_id = AS_NULL_VALUE };
    destinations->newcomer_count++;
    return destination;
}

static bool has_capacity_for(asi_destinations *destinations, const asi_address *source)
{
    int32_t proven = 0;
    for (int32_t i = 0; i < destinations->slot_count; i++)
    {
        const asi_destination *destination = &destinations->items[i];
        proven += destination->is_proven && asi_address_same_host(&destination->address, source) ? 1 : 0;
    }
    destinations->has_refused |= proven >= destinations->capacity_per_address;
    return proven < destinations->capacity_per_address;
}

static void prove(asi_destinations *destinations, asi_destination *destination, const asi_address *source, int64_t now_ns)
{
    if (!destination->is_proven && has_capacity_for(destinations, source))
    {
        destination->is_proven = true;
        destination->address = *source; /* the source of this receiver's latest request */
        destinations->newcomer_count--;
    }
    destination->last_proof_ns = now_ns;
}

void asi_destinations_on_status_message(asi_destinations *destinations, int64_t receiver_id, const asi_address *source,
    asi_destination_proof proof, int64_t now_ns)
{
    asi_destination *destination = find(destinations, receiver_id, source);
    if (NULL == destination && !destinations->is_manual)
    {
        destination = add_dynamic(destinations, receiver_id, source, ASI_PROVEN == proof);
    }
    if (NULL == destination)
    {
        return;
    }
    destination->has_receiver_id = true;
    destination->receiver_id = receiver_id;
    destination->last_activity_ns = now_ns;
    if (ASI_PROVEN == proof)
    {
        prove(destinations, destination, source, now_ns);
    }
    else if (!destination->is_proven)
    {
        destination->is_introduced |= ASI_INTRODUCED == proof;
        destination->rounds_left = ASI_NEWCOMER_ROUNDS;
        destination->frames_left = ASI_NEWCOMER_FRAMES;
        destination->next_round_ns = now_ns > destination->next_round_ns ? now_ns : destination->next_round_ns;
        destinations->next_round_ns = destination->next_round_ns < destinations->next_round_ns ? destination->next_round_ns :
            destinations->next_round_ns;
    }
}

bool asi_destinations_add(
    asi_destinations *destinations, const asi_address *address, int64_t registration_id, int64_t now_ns)
{
    if (destinations->count == destinations->capacity)
    {
        return false;
    }
    *take_slot(destinations) = (asi_destination){
        .is_used = true, .is_proven = true, .address = *address, .last_activity_ns = now_ns, .registration_id = registration_id
    };
    return true;
}

void asi_destinations_remove(asi_destinations *destinations, int64_t registration_id)
{
    for (int32_t i = 0; i < destinations->slot_count; i++)
    {
        if (destinations->items[i].is_used && destinations->items[i].registration_id == registration_id)
        {
            remove_at(destinations, i);
            return;
        }
    }
}

static bool is_over(int64_t since_ns, int64_t now_ns) { return now_ns > since_ns + ASI_DESTINATION_TIMEOUT_NS; }

static void drop_silent(asi_destinations *destinations, int64_t now_ns)
{
    for (int32_t i = destinations->slot_count - 1; i >= 0; i--)
    {
        asi_destination *destination = &destinations->items[i];
        if (!destination->is_used)
        {
            continue;
        }
        if (is_over(destination->last_activity_ns, now_ns))
        {
            remove_at(destinations, i);
        }
        else if (destination->is_proven && is_over(destination->last_proof_ns, now_ns))
        {
            destination->is_proven = false; /* it still requests the SETUP, so it has no image of this stream */
            destinations->newcomer_count++;
        }
    }
}

/* Sends the batch to one destination; sets how many bytes the network accepted. */
static as_result send_to(const asi_destination *destination, const asi_udp_ops *ops, asi_udp_socket *socket,
    const asi_outgoing *datagrams, int32_t count, int64_t *bytes)
{
    asi_outgoing copies[ASI_UDP_MAX_BATCH];
    int32_t taken = 0;
    *bytes = 0;
    for (int32_t k = 0; k < count; k++)
    {
        copies[k] = datagrams[k];
        copies[k].to = &destination->address;
        copies[k].is_to_stranger = !destination->is_proven;
    }
    const as_result result = ops->send(ops->context, socket, copies, count, &taken);
    for (int32_t k = 0; k < taken; k++)
    {
        *bytes += datagrams[k].length;
    }
    return result;
}

static void begin(asi_destinations *destinations, asi_fan_out *fan_out, int64_t now_ns)
{
    if (!destinations->is_manual)
    {
        drop_silent(destinations, now_ns);
    }
    /* Each batch starts with a different destination, so that none is always last. */
    destinations->next_start = destinations->next_start < destinations->slot_count ? destinations->next_start : 0;
    *fan_out = (asi_fan_out){ .slots = destinations->slot_count, .start = destinations->next_start };
    destinations->next_start++;
}

as_result asi_destinations_send(asi_destinations *destinations, const asi_udp_ops *ops, asi_udp_socket *socket,
    const asi_outgoing *datagrams, int32_t count, int64_t now_ns, asi_fan_out *fan_out, int64_t *budget, int32_t *sent,
    int64_t *bytes)
{
    as_result first_failure = AS_OK;
    count = count > ASI_UDP_MAX_BATCH ? ASI_UDP_MAX_BATCH : count;
    *sent = 0;
    *bytes = 0;
    if (0 == fan_out->slots)
    {
        begin(destinations, fan_out, now_ns);
    }
    for (; fan_out->done < fan_out->slots && *budget > 0; fan_out->done++)
    {
        const asi_destination *destination = &destinations->items[(fan_out->start + fan_out->done) % fan_out->slots];
        int64_t taken;
        if (!destination->is_proven || asi_address_is_none(&destination->address))
        {
            continue;
        }
        const as_result result = send_to(destination, ops, socket, datagrams, count, &taken);
        *bytes += taken;
        *budget -= taken + ASI_SEND_CALL_COST;
        fan_out->has_sent |= AS_OK == result;
        fan_out->has_failed |= AS_OK != result;
        first_failure = AS_OK == first_failure ? result : first_failure;
    }
    if (fan_out->done >= fan_out->slots)
    {
        *sent = fan_out->has_failed && !fan_out->has_sent ? 0 : count;
        *fan_out = (asi_fan_out){ 0 };
    }
    return first_failure;
}

int64_t asi_destinations_send_introduced(asi_destinations *destinations, const asi_udp_ops *ops, asi_udp_socket *socket,
    const asi_outgoing *datagram, int64_t now_ns)
{
    int64_t bytes = 0;
    for (int32_t i = 0; destinations->newcomer_count > 0 && i < destinations->slot_count; i++)
    {
        asi_destination *destination = &destinations->items[i];
        int64_t taken;
        if (destination->is_used && !destination->is_proven && destination->is_introduced && destination->rounds_left > 0)
        {
            destination->rounds_left--;
            destination->next_round_ns = now_ns + ASI_NEWCOMER_INTERVAL_NS;
            (void)send_to(destination, ops, socket, datagram, 1, &taken);
            bytes += taken;
        }
    }
    return bytes;
}

static void refill(asi_newcomer_reserve *reserve, int64_t now_ns)
{
    const int64_t gained = (now_ns - reserve->counted_ns) / ASI_NEWCOMER_RESERVE_NS;
    reserve->taken = gained < reserve->taken ? reserve->taken - (int32_t)gained : 0;
    reserve->counted_ns += gained * ASI_NEWCOMER_RESERVE_NS;
}

/* Writes the frames of a newcomer's round; what it has beyond the first one comes from the reserve. */
static int32_t begin_round(asi_destinations *destinations, asi_destination *destination, asi_newcomer_reserve *reserve,
    const asi_introductions *introductions, asi_outgoing frames[ASI_NEWCOMER_FRAMES], int64_t now_ns)
{
    const int32_t affordable = 1 + ASI_NEWCOMER_RESERVE - reserve->taken;
    const int32_t capacity = destination->frames_left < affordable ? destination->frames_left : affordable;
    if (!destination->has_cursor)
    {
        const int32_t skipped = (int32_t)(asi_rand_u64(&destinations->rand) % ASI_NEWCOMER_SKIPS);
        (void)introductions->next(introductions->context, &destinations->first_cursor, frames, skipped);
        destination->cursor = destinations->first_cursor;
    }
    const int32_t round = introductions->next(introductions->context, &destination->cursor, frames, capacity);
    destinations->first_cursor = destination->has_cursor ? destinations->first_cursor : destination->cursor;
    destination->has_cursor = true;
    reserve->taken += round > 0 ? round - 1 : 0;
    destination->frames_left -= round;
    destination->rounds_left = destination->frames_left > 0 ? destination->rounds_left - 1 : 0;
    destination->next_round_ns = now_ns + ASI_NEWCOMER_INTERVAL_NS;
    return round;
}

int64_t asi_destinations_introduce(asi_destinations *destinations, asi_newcomer_reserve *reserve, const asi_udp_ops *ops,
    asi_udp_socket *socket, const asi_introductions *introductions, int64_t now_ns)
{
    asi_outgoing frames[ASI_NEWCOMER_FRAMES];
    int64_t bytes = 0;
    int32_t spent = 0;
    destinations->next_round_ns = INT64_MAX;
    refill(reserve, now_ns);
    const int32_t slots = destinations->slot_count;
    const int32_t start = slots > 0 ? destinations->next_newcomer % slots : 0;
    for (int32_t i = 0; i < slots; i++)
    {
        const int32_t at = (start + i) % slots;
        asi_destination *destination = &destinations->items[at];
        if (!destination->is_used || destination->is_proven || 0 == destination->rounds_left)
        {
            continue;
        }
        if (now_ns >= destination->next_round_ns && spent < ASI_NEWCOMER_FRAMES_PER_CYCLE)
        {
            const int32_t round = begin_round(destinations, destination, reserve, introductions, frames, now_ns);
            int64_t taken = 0;
            if (round > 0)
            {
                (void)send_to(destination, ops, socket, frames, round, &taken);
            }
            bytes += taken;
            spent += round > 0 ? round : 1;
            destinations->next_newcomer = at + 1;
        }
        if (destination->rounds_left > 0 && destination->next_round_ns < destinations->next_round_ns)
        {
            destinations->next_round_ns = destination->next_round_ns;
        }
    }
    return bytes;
}

asi_destination *asi_destinations_next_silent(asi_destinations *destinations, int64_t now_ns)
{
    for (int32_t i = 0; destinations->is_manual && i < destinations->slot_count; i++)
    {
        asi_destination *destination = &destinations->items[i];
        if (destination->is_used && is_over(destination->last_activity_ns, now_ns))
        {
            destination->last_activity_ns = now_ns;
            return destination;
        }
    }
    return NULL;
}
