/* The receiver's state, which the files of rx/ that act for it work on. It owns the tables of interest and its buffers; endpoints,
 * destinations and images are the conductor's, lent by commands (receiver_command.h tells when they go back). Thread rule: the receiver's. */
#ifndef ASI_DRIVER_RX_RECEIVER_STATE_H
#define ASI_DRIVER_RX_RECEIVER_STATE_H

#include "base/clock.h"
#include "base/round_robin.h"
#include "driver/queues/conductor_command.h"
#include "driver/queues/receiver_command.h"
#include "driver/net/udp_poller.h"
#include "driver/rx/dispatch.h"
#include "shm/counters.h"

typedef struct asi_receiver_params
{
    asi_clock clock;
    const asi_udp_ops *ops;          /* borrowed, as are the next three */
    asi_command_queue *command;               /* of asi_receiver_command, this receiver's */
    asi_command_queue *conductor;          /* of asi_conductor_command */
    const asi_counters *counters;    /* system counters allocated */
    int32_t io_vector_capacity;      /* buffers per read, 1..ASI_UDP_MAX_BUFFERS */
    int32_t stream_session_limit;    /* images per stream */
    int64_t status_message_timeout_ns;
    int64_t re_resolution_interval_ns; /* 0: never */
    int64_t cycle_threshold_ns;
} asi_receiver_params;

#define ASI_PENDING_SETUP_CAPACITY 4096
#define ASI_RECEIVER_MAX_IMAGE_REQUESTS 1024 /* to the conductor, unanswered */
#define ASI_RECEIVER_MAX_ENDPOINTS 4096
#define ASI_RECEIVER_MAX_IMAGES ASI_DISPATCH_SESSION_CAPACITY

/* A SETUP asked for once (a session), or for as long as the endpoint has interest (an explicit control address). */
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
    asi_udp_poller poller;            /* over the destinations' sockets */
    asi_receive_endpoint **endpoints; /* owned array of borrowed pointers, like the next */
    int32_t endpoint_count;
    asi_image **images;
    int32_t image_count;
    asi_round_robin schedule;                    /* of the images */
    asi_pending_setup *pending;       /* owned */
    int32_t pending_count;
    uint8_t *buffers;                 /* owned: io_vector_capacity times ASI_UDP_BUFFER_LENGTH */
    asi_incoming *incoming;           /* owned: ASI_UDP_MAX_SEGMENTS times as many */
    int64_t now_ns;
    int64_t last_cycle_ns;
    bool has_cycled;
    int64_t last_resolution_check_ns;
    int64_t last_no_room_ns;
} asi_receiver;

#endif
