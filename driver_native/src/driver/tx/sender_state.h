/* The sender's state, shared by the files of tx/. The sender owns no resources: endpoints and publications are the conductor's
 * (queues/sender_command.h). Thread rule: the sender's. */
#ifndef ASI_DRIVER_TX_SENDER_STATE_H
#define ASI_DRIVER_TX_SENDER_STATE_H

#include "base/clock.h"
#include "base/round_robin.h"
#include "driver/cycle_time.h"
#include "driver/net/udp_poller.h"
#include "driver/queues/conductor_command.h"
#include "driver/queues/sender_command.h"
#include "driver/tx/endpoint.h"
#include "driver/tx/publication_state.h"

#define ASI_CONTROL_BUFFER_LENGTH 2048 /* an ERR frame has up to 1063 bytes. Spec: 04 §2.10 */

typedef struct asi_sender_params
{
    asi_clock clock;
    const asi_driver_settings *settings; /* borrowed, as are the next three */
    asi_command_queue *command;                   /* of asi_sender_command, this sender's */
    asi_command_queue *conductor;              /* of asi_conductor_command */
    const asi_counters *counters;        /* system counters allocated */
    asi_events *events;                  /* NULL: no event log */
} asi_sender_params;

typedef struct asi_sender
{
    asi_sender_params params;

    int64_t now_ns;
    asi_cycle_time cycle;
    int64_t last_poll_ns;          /* last poll of the control sockets */
    int64_t last_resolution_check_ns;
    int64_t cycles_since_poll;
    int64_t short_sends;           /* since the start */
    int64_t copied_bytes;          /* bytes to many destinations in this cycle; each call counts ASI_SEND_CALL_COST */
    int64_t next_round_ns;         /* next round of introductions to new destinations; INT64_MAX: none is due */
    asi_newcomer_reserve newcomer_reserve; /* of all endpoints' new destinations */
    int32_t next_busy;             /* first busy publication of the next cycle */
    asi_udp_poller poller;         /* polls the endpoints' sockets */
    asi_sender_endpoint *endpoints;
    asi_sender_publication *publications; /* ring; the next cycle starts here */
    int32_t publication_count;
    asi_round_robin schedule;                 /* schedules the publications */
    uint8_t buffers[ASI_UDP_MAX_BUFFERS][ASI_CONTROL_BUFFER_LENGTH] __attribute__((aligned(8)));
} asi_sender;

#endif
