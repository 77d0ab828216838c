/* Commands of the conductor to the receiver. Sent by ctl/, handled by rx/receiver.
 *
 * Lifetimes: the conductor creates and frees endpoints, receive destinations and images. After ADD the receiver may use the
 * resource; on REMOVE it drops every reference (interest, pending setups, connections of images) and then, as its last touch,
 * stores `is_released` of the resource (release), which the conductor polls (acquire) before it frees. */
#ifndef ASI_DRIVER_QUEUES_RECEIVER_COMMAND_H
#define ASI_DRIVER_QUEUES_RECEIVER_COMMAND_H

#include "driver/queues/command_queue.h"
#include "driver/net/address.h"

struct asi_receive_endpoint;
struct asi_receive_destination;
struct asi_image;

typedef enum asi_receiver_command_kind
{
    ASI_RECEIVER_ADD_ENDPOINT,        /* endpoint, its first destination in it if it has one */
    ASI_RECEIVER_REMOVE_ENDPOINT,     /* endpoint and all its destinations; its images are gone already */
    ASI_RECEIVER_ADD_DESTINATION,     /* endpoint, destination: of a multi-destination subscription */
    ASI_RECEIVER_REMOVE_DESTINATION,  /* endpoint, destination */
    ASI_RECEIVER_ADD_STREAM,          /* endpoint, stream: all sessions */
    ASI_RECEIVER_REMOVE_STREAM,       /* endpoint, stream */
    ASI_RECEIVER_ADD_SESSION,         /* endpoint, stream, session */
    ASI_RECEIVER_REMOVE_SESSION,      /* endpoint, stream, session */
    ASI_RECEIVER_REQUEST_SETUP,       /* endpoint, stream, session: one setup-eliciting SM to the control address */
    ASI_RECEIVER_ADD_IMAGE,           /* endpoint, image: inserts it, which ends INIT_IN_PROGRESS; its first connection is
                                         `destination` */
    ASI_RECEIVER_REMOVE_IMAGE,        /* endpoint, image: COOL_DOWN unless it was at its end */
    ASI_RECEIVER_CLEAR_INIT,          /* endpoint, stream, session: no image came of the SETUP */
    ASI_RECEIVER_CLEAR_COOL_DOWN,     /* endpoint, stream, session: the session may come back */
    ASI_RECEIVER_REJECT_IMAGE,        /* endpoint, image: its reason text was written before */
    ASI_RECEIVER_CONTROL_MOVED        /* endpoint, destination, address: of its explicit control */
} asi_receiver_command_kind;

typedef struct asi_receiver_command
{
    asi_receiver_command_kind kind;
    struct asi_receive_endpoint *endpoint;
    struct asi_receive_destination *destination;
    struct asi_image *image;
    int32_t stream_id;
    int32_t session_id;
    asi_address address;
} asi_receiver_command;

#define ASI_RECEIVER_COMMAND_CAPACITY 256

#endif
