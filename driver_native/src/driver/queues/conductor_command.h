/* Commands of sender and receiver to the conductor. Sent by tx/ and rx/, handled by ctl/on_agent_command.
 *
 * Commands refer to resources by id, never by pointer: the conductor may have freed the resource when it reads the command. When
 * the queue is full, the producer counts ASI_SYSTEM_CONDUCTOR_OFFER_FAILURES and drops the event, because the peer repeats it. */
#ifndef ASI_DRIVER_QUEUES_CONDUCTOR_COMMAND_H
#define ASI_DRIVER_QUEUES_CONDUCTOR_COMMAND_H

#include "driver/net/address.h"
#include "driver/queues/command_queue.h"

#define ASI_COMMAND_TEXT_CAPACITY 1024 /* an ERR frame's text has at most 1023 bytes */

typedef enum asi_conductor_command_kind
{
    ASI_CONDUCTOR_CREATE_IMAGE,
    ASI_CONDUCTOR_PUBLICATION_ERROR,
    ASI_CONDUCTOR_ERROR,
    ASI_CONDUCTOR_RESPONSE_SETUP,
    ASI_CONDUCTOR_RESPONSE_CONNECTED,
    ASI_CONDUCTOR_RESOLVE_SEND_ENDPOINT,
    ASI_CONDUCTOR_RESOLVE_SEND_DESTINATION,
    ASI_CONDUCTOR_RESOLVE_CONTROL
} asi_conductor_command_kind;

/* A SETUP for which the receiver recorded INIT_IN_PROGRESS; unchecked beyond its length. */
typedef struct asi_command_create_image
{
    int64_t endpoint_id;
    int64_t destination_id;
    int32_t session_id;
    int32_t stream_id;
    int32_t initial_term_id;
    int32_t active_term_id;
    int32_t term_offset;
    int32_t term_length;
    int32_t mtu_length;
    uint8_t flags;
    bool is_proven;      /* the source hears what is sent to it, see rx/proofs.h */
    asi_address source;  /* of the SETUP */
} asi_command_create_image;

typedef struct asi_command_publication_error
{
    int64_t registration_id;
    int64_t destination_id; /* -1: none */
    int32_t session_id;
    int32_t stream_id;
    int64_t receiver_id;
    int64_t group_tag;      /* -1: none */
    int32_t error_code;
    int32_t text_length;
    asi_address source;
    char text[ASI_COMMAND_TEXT_CAPACITY];
} asi_command_publication_error;

/* This thread's last failure, for the error log. */
typedef struct asi_command_error
{
    int32_t result; /* an as_result */
    int32_t code;
    bool is_errno;  /* the code is one */
    char text[ASI_COMMAND_TEXT_CAPACITY]; /* terminated */
} asi_command_error;

/* A responder's session is known (RSP_SETUP), or a response publication has its first receiver. */
typedef struct asi_command_response
{
    int64_t response_correlation_id; /* of the publication concerned */
    int32_t response_session_id;
} asi_command_response;

/* A peer was silent too long: its name may have another address now. */
typedef struct asi_command_resolve
{
    int64_t endpoint_id;
    int64_t destination_id;          /* for destinations */
    asi_address current; /* the address in use */
} asi_command_resolve;

typedef struct asi_conductor_command
{
    asi_conductor_command_kind kind;
    union
    {
        asi_command_create_image create_image;
        asi_command_publication_error publication_error;
        asi_command_error error;
        asi_command_response response;
        asi_command_resolve resolve;
    };
} asi_conductor_command;

#define ASI_CONDUCTOR_COMMAND_CAPACITY 256

#endif
