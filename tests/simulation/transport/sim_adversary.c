/* What the adversary knows, and when it does what; see sim_adversary.h. sim_forgeries.c makes what it sends. */
#include "sim_adversary.h"

#include <stdlib.h>
#include <string.h>

#include "sim_machine.h"
#include "sim_trace.h"
#include "wire/frame.h"

#define MS 1000000LL
#define ROUNDS_OF_BURST 12
#define DATAGRAMS_OF_ROUND 24
#define FIRST_STRANGER 99 /* node: address 10.0.0.100 */
#define STRANGERS 100

int64_t sim_adversary_below(sim_adversary *adversary, int64_t bound)
{
    return sim_random_below(&adversary->rand, bound);
}

bool sim_adversary_percent(sim_adversary *adversary, int64_t chance) { return sim_random_percent(&adversary->rand, chance); }

void sim_adversary_open(sim_adversary *adversary, sim_net *net, auditor *audit, const sim_plan *plan)
{
    *adversary = (sim_adversary){ .net = net, .audit = audit, .plan = plan };
    asi_rand_seed(&adversary->rand, plan->seed * 0xd6e8feb86659fd93ULL + 1);
}

void sim_adversary_close(sim_adversary *adversary)
{
    for (int32_t i = 0; i < SIM_HEARD_MAX; i++)
    {
        free(adversary->heard[i].bytes);
    }
}

void sim_adversary_set_active(sim_adversary *adversary, bool is_active, bool is_calm)
{
    adversary->is_active = is_active && NULL != adversary->net;
    adversary->is_calm = is_calm;
    adversary->rounds_left = 0;
}

/* -- what it hears ------------------------------------------------------------------------------------------------------ */

static sim_known *know(sim_adversary *adversary, int32_t session_id, int32_t stream_id)
{
    for (int32_t i = 0; i < adversary->known_count; i++)
    {
        sim_known *known = &adversary->known[i];
        if (known->session_id == session_id && known->stream_id == stream_id)
        {
            return known;
        }
    }
    const int32_t at = adversary->known_count < SIM_KNOWN_MAX ? adversary->known_count++ :
        (int32_t)sim_adversary_below(adversary, SIM_KNOWN_MAX);
    adversary->known[at] = (sim_known){ .session_id = session_id, .stream_id = stream_id };
    return &adversary->known[at];
}

static void learn(sim_adversary *adversary, const sim_sighting *sighting)
{
    const uint16_t type = asi_get_u16(sighting->bytes + 6);
    if (ASI_FRAME_SETUP == type)
    {
        const asi_setup_frame *setup = (const asi_setup_frame *)(const void *)sighting->bytes;
        sim_known *known = know(adversary, setup->session_id, setup->stream_id);
        known->initial_term_id = setup->initial_term_id;
        known->term_length = setup->term_length;
        known->mtu_length = setup->mtu_length;
        known->term_id = setup->active_term_id;
        known->term_offset = setup->term_offset;
        known->publisher = *sighting->source;
        known->receiver = *sighting->to;
    }
    else if (ASI_FRAME_DATA == type)
    {
        const asi_frame_header *frame = (const asi_frame_header *)(const void *)sighting->bytes;
        sim_known *known = know(adversary, frame->session_id, frame->stream_id);
        known->term_id = frame->term_id;
        known->term_offset = frame->term_offset;
    }
    else if (ASI_FRAME_STATUS == type && 0 == sighting->bytes[5])
    {
        const asi_status_frame *status = (const asi_status_frame *)(const void *)sighting->bytes;
        if (!sim_is_hostile_session(status->session_id))
        {
            sim_known *known = know(adversary, status->session_id, status->stream_id);
            known->receiver_id = status->receiver_id;
            known->consumption_term_id = status->consumption_term_id;
            known->consumption_term_offset = status->consumption_term_offset;
            known->status_source = *sighting->source;
            known->status_to = *sighting->to;
        }
    }
}

static void keep(sim_adversary *adversary, const sim_sighting *sighting)
{
    sim_heard *heard = &adversary->heard[sim_adversary_below(adversary, SIM_HEARD_MAX)];
    free(heard->bytes);
    *heard = (sim_heard){ .source = *sighting->source, .to = *sighting->to, .length = sighting->length };
    heard->bytes = malloc((size_t)sighting->length + 1);
    if (NULL != heard->bytes)
    {
        memcpy(heard->bytes, sighting->bytes, (size_t)sighting->length);
    }
}

void sim_adversary_see(sim_adversary *adversary, const sim_sighting *sighting)
{
    if (NULL == adversary->net || !adversary->plan->is_sighted || sighting->length < (int32_t)sizeof(asi_frame_prefix))
    {
        return;
    }
    learn(adversary, sighting);
    if (sim_adversary_percent(adversary, 10))
    {
        keep(adversary, sighting);
    }
}

/* -- what it sends ------------------------------------------------------------------------------------------------------ */

int32_t sim_adversary_send(
    sim_adversary *adversary, const asi_address *source, const asi_address *to, const void *bytes, int32_t length)
{
    const int32_t sockets = sim_net_inject(adversary->net, source, to, bytes, length);
    auditor_on_injected(adversary->audit, length, sockets);
    adversary->sent++;
    return sockets;
}

asi_address sim_adversary_stranger(sim_adversary *adversary)
{
    const bool is_own = sim_adversary_percent(adversary, 50);
    const int32_t node = is_own ? SIM_ADVERSARY_NODE : FIRST_STRANGER + (int32_t)sim_adversary_below(adversary, STRANGERS);
    return sim_net_address(node, (uint16_t)(1024 + sim_adversary_below(adversary, 1000)));
}

const sim_endpoint *sim_adversary_target(sim_adversary *adversary)
{
    return &adversary->targets[sim_adversary_below(adversary, adversary->target_count)];
}

void sim_adversary_send_at(sim_adversary *adversary, const sim_endpoint *target, const void *bytes, int32_t length)
{
    const bool has_peer = !asi_address_is_none(&target->peer) && !asi_address_is_multicast(&target->peer);
    const asi_address source = has_peer ? target->peer : sim_adversary_percent(adversary, 80) ?
        sim_adversary_stranger(adversary) : sim_adversary_target(adversary)->address;
    (void)sim_adversary_send(adversary, &source, &target->address, bytes, length);
}

/* -- when --------------------------------------------------------------------------------------------------------------- */

static bool is_possible(const sim_adversary *adversary, const sim_kind_of_forgery *kind)
{
    return (!kind->needs_hearing || adversary->plan->is_sighted) && (kind->is_for_calm || !adversary->is_calm);
}

static void begin_burst(sim_adversary *adversary)
{
    do
    {
        adversary->kind = (int32_t)sim_adversary_below(adversary, SIM_FORGERY_COUNT);
    } while (!is_possible(adversary, &SIM_FORGERIES[adversary->kind]));
    adversary->rounds_left = 1 + (int32_t)sim_adversary_below(adversary, ROUNDS_OF_BURST);
    sim_trace("the adversary: %s", SIM_FORGERIES[adversary->kind].name);
}

void sim_adversary_work(sim_adversary *adversary)
{
    if (!adversary->is_active || *adversary->net->now_ns < adversary->next_ns)
    {
        return;
    }
    adversary->target_count = sim_net_endpoints(adversary->net, adversary->targets, SIM_TARGETS_MAX);
    if (0 == adversary->target_count)
    {
        return;
    }
    if (0 == adversary->rounds_left)
    {
        begin_burst(adversary);
    }
    for (int64_t i = 1 + sim_adversary_below(adversary, DATAGRAMS_OF_ROUND); i > 0; i--)
    {
        SIM_FORGERIES[adversary->kind].forge(adversary);
    }
    adversary->rounds_left--;
    adversary->next_ns = *adversary->net->now_ns +
        (adversary->rounds_left > 0 ? sim_adversary_below(adversary, 2 * MS) : sim_adversary_below(adversary, 20 * MS));
}
