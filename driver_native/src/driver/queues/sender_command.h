/* Commands of the conductor to the sender. Sent by ctl/, handled by tx/sender.
 *
 * Lifetimes: the conductor creates and frees resources. After ADD the sender may use the resource. On REMOVE it drops every
 * reference. Its last store is then `is_released` of the resource (release), which the conductor polls (acquire) before it frees
 * the resource. Returning a resource therefore can neither fail nor be lost. */
#ifndef ASI_DRIVER_QUEUES_SENDER_COMMAND_H
#define ASI_DRIVER_QUEUES_SENDER_COMMAND_H

#include "driver/net/address.h"
#include "driver/queues/command_queue.h"

struct asi_sender_endpoint;
struct asi_sender_publication;

typedef enum asi_sender_command_kind
{
    ASI_SENDER_ADD_ENDPOINT,          /* endpoint */
    ASI_SENDER_REMOVE_ENDPOINT,       /* endpoint; its publications are already gone */
    ASI_SENDER_ADD_PUBLICATION,       /* publication */
    ASI_SENDER_REMOVE_PUBLICATION,    /* publication */
    ASI_SENDER_ADD_DESTINATION,       /* endpoint, destination_id, address */
    ASI_SENDER_REMOVE_DESTINATION,    /* endpoint, destination_id */
    ASI_SENDER_ENDPOINT_MOVED,        /* endpoint, address: connect to it */
    ASI_SENDER_DESTINATION_MOVED      /* endpoint, destination_id, address */
} asi_sender_command_kind;

typedef struct asi_sender_command
{
    asi_sender_command_kind kind;
    struct asi_sender_endpoint *endpoint;
    struct asi_sender_publication *publication;
    int64_t destination_id;          /* correlation id of the command that added it */
    asi_address address; /* none: unresolved */
} asi_sender_command;

#define ASI_SENDER_COMMAND_CAPACITY 256

#endif
