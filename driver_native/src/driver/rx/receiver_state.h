/* The receiver's state, shared by the files of rx/. The receiver owns the tables of interest and its buffers. The conductor owns
 * endpoints, destinations and images and lends them by commands (receiver_command.h says when they return).
 * Thread rule: the receiver's. */
#ifndef ASI_DRIVER_RX_RECEIVER_STATE_H
#define ASI_DRIVER_RX_RECEIVER_STATE_H

#include "base/clock.h"
#include "base/round_robin.h"
#include "driver/cycle_time.h"
#include "driver/net/udp_poller.h"
#include "driver/queues/conductor_command.h"
#include "driver/queues/receiver_command.h"
#include "driver/rx/dispatch.h"
#include "driver/rx/proofs.h"
#include "shm/counters.h"

typedef struct asi_receiver_params
{
    asi_clock clock;
    const asi_udp_ops *ops;          /* borrowed, as are the next three */
    asi_command_queue *command;               /* of asi_receiver_command, this receiver's */
    asi_command_queue *conductor;          /* of asi_conductor_command */
    const asi_counters *counters;    /* system counters allocated */
    int32_t io_vector_capacity;      /* buffers per read, 1..ASI_UDP_MAX_BUFFERS */
    int32_t stream_session_limit;    /* maximum images per stream */
    int64_t status_message_timeout_ns;
    int64_t re_resolution_interval_ns; /* 0: never */
    int64_t cycle_threshold_ns;
    uint64_t secret;                 /* see asi_proofs_init */
} asi_receiver_params;

#define ASI_PENDING_SETUP_CAPACITY 4096
#define ASI_RECEIVER_MAX_IMAGE_REQUESTS 1024 /* requests to the conductor in flight */
#define ASI_RECEIVER_MAX_ENDPOINTS 4096
#define ASI_RECEIVER_MAX_IMAGES ASI_DISPATCH_SESSION_CAPACITY

/* A request for a SETUP: sent once (for a session), or repeated while the endpoint has interest (explicit control address). */
typedef struct asi_pending_setup
{
    asi_receive_endpoint *endpoint;
    asi_receive_destination *destination;
    int32_t stream_id;
    int32_t session_id;
    bool is_periodic;
    int64_t since_ns;
} asi_pending_setup;

typedef struct asi_receiver
{
    asi_receiver_params params;
    asi_dispatch dispatch;
    asi_udp_poller poller;            /* polls the destinations' sockets */
    asi_receive_endpoint **endpoints; /* owned array of borrowed pointers, as the next */
    int32_t endpoint_count;
    asi_rx_image **images;
    int32_t image_count;
    asi_round_robin schedule;                    /* schedules the images */
    asi_pending_setup *pending;       /* owned */
    int32_t pending_count;
    uint8_t *buffers;                 /* owned: io_vector_capacity times ASI_UDP_BUFFER_LENGTH */
    asi_incoming *incoming;           /* owned: ASI_UDP_MAX_SEGMENTS times as many */
    int64_t now_ns;
    asi_cycle_time cycle;
    int64_t last_resolution_check_ns;
    int64_t last_no_room_ns;
    asi_proofs proofs;
} asi_receiver;

#endif
