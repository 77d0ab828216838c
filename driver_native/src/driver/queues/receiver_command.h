/* Commands of the conductor to the receiver. Sent by ctl/, handled by rx/receiver.
 *
 * Lifetimes: the conductor creates and frees endpoints, receive destinations and images. After ADD the receiver may use the
 * resource. On REMOVE it drops every reference (interest, pending setups, connections of images). Its last store is then
 * `is_released` of the resource (release), which the conductor polls (acquire) before it frees the resource. */
#ifndef ASI_DRIVER_QUEUES_RECEIVER_COMMAND_H
#define ASI_DRIVER_QUEUES_RECEIVER_COMMAND_H

#include "driver/net/address.h"
#include "driver/queues/command_queue.h"

struct asi_receive_endpoint;
struct asi_receive_destination;
struct asi_rx_image;

typedef enum asi_receiver_command_kind
{
    ASI_RECEIVER_ADD_ENDPOINT,        /* endpoint, with its first destination if it has one */
    ASI_RECEIVER_REMOVE_ENDPOINT,     /* endpoint and all its destinations; its images are already gone */
    ASI_RECEIVER_ADD_DESTINATION,     /* endpoint, destination: for a multi-destination subscription */
    ASI_RECEIVER_REMOVE_DESTINATION,  /* endpoint, destination */
    ASI_RECEIVER_ADD_STREAM,          /* endpoint, stream: all sessions */
    ASI_RECEIVER_REMOVE_STREAM,       /* endpoint, stream */
    ASI_RECEIVER_ADD_SESSION,         /* endpoint, stream, session */
    ASI_RECEIVER_REMOVE_SESSION,      /* endpoint, stream, session */
    ASI_RECEIVER_REQUEST_SETUP,       /* endpoint, stream, session: one setup-eliciting SM to the control address */
    ASI_RECEIVER_ADD_IMAGE,           /* endpoint, image, `destination` of its first connection: ends INIT_IN_PROGRESS */
    ASI_RECEIVER_REMOVE_IMAGE,        /* endpoint, image: COOL_DOWN unless the image has ended */
    ASI_RECEIVER_CLEAR_INIT,          /* endpoint, stream, session: the SETUP led to no image */
    ASI_RECEIVER_CHALLENGE,           /* likewise, with `destination` and `address` of the SETUP: it needs a proof (rx/proofs.h) */
    ASI_RECEIVER_CLEAR_COOL_DOWN,     /* endpoint, stream, session: the session may return */
    ASI_RECEIVER_REJECT_IMAGE,        /* endpoint, image: its reason text is already written */
    ASI_RECEIVER_CONTROL_MOVED        /* endpoint, destination, address: its explicit control address */
} asi_receiver_command_kind;

typedef struct asi_receiver_command
{
    asi_receiver_command_kind kind;
    struct asi_receive_endpoint *endpoint;
    struct asi_receive_destination *destination;
    struct asi_rx_image *image;
    int32_t stream_id;
    int32_t session_id;
    asi_address address;
} asi_receiver_command;

#define ASI_RECEIVER_COMMAND_CAPACITY 256

#endif
