/* Messages between clients and driver: type ids, error codes and fixed layouts. Spec: 03 §1-4.
 *
 * Fields are packed to 4 bytes, so 64-bit fields may be at offsets that are only multiples of 4. The structs are therefore
 * packed, and copied out of and into the buffers with memcpy, never overlaid. Variable parts follow the fixed part. Their
 * declared lengths are untrusted; the reader checks them against the message length. */
#ifndef ASI_WIRE_COMMAND_H
#define ASI_WIRE_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"

enum
{
    ASI_CMD_ADD_PUBLICATION = 0x01,
    ASI_CMD_REMOVE_PUBLICATION = 0x02,
    ASI_CMD_ADD_EXCLUSIVE_PUBLICATION = 0x03,
    ASI_CMD_ADD_SUBSCRIPTION = 0x04,
    ASI_CMD_REMOVE_SUBSCRIPTION = 0x05,
    ASI_CMD_CLIENT_KEEPALIVE = 0x06,
    ASI_CMD_ADD_DESTINATION = 0x07,
    ASI_CMD_REMOVE_DESTINATION = 0x08,
    ASI_CMD_ADD_COUNTER = 0x09,
    ASI_CMD_REMOVE_COUNTER = 0x0A,
    ASI_CMD_CLIENT_CLOSE = 0x0B,
    ASI_CMD_ADD_RCV_DESTINATION = 0x0C,
    ASI_CMD_REMOVE_RCV_DESTINATION = 0x0D,
    ASI_CMD_TERMINATE_DRIVER = 0x0E,
    ASI_CMD_ADD_STATIC_COUNTER = 0x0F,
    ASI_CMD_REJECT_IMAGE = 0x10,
    ASI_CMD_REMOVE_DESTINATION_BY_ID = 0x11,
    ASI_CMD_GET_NEXT_AVAILABLE_SESSION_ID = 0x12
};

enum
{
    ASI_RSP_ERROR = 0x0F01,
    ASI_RSP_AVAILABLE_IMAGE = 0x0F02,
    ASI_RSP_PUBLICATION_READY = 0x0F03,
    ASI_RSP_OPERATION_SUCCESS = 0x0F04,
    ASI_RSP_UNAVAILABLE_IMAGE = 0x0F05,
    ASI_RSP_EXCLUSIVE_PUBLICATION_READY = 0x0F06,
    ASI_RSP_SUBSCRIPTION_READY = 0x0F07,
    ASI_RSP_COUNTER_READY = 0x0F08,
    ASI_RSP_UNAVAILABLE_COUNTER = 0x0F09,
    ASI_RSP_CLIENT_TIMEOUT = 0x0F0A,
    ASI_RSP_STATIC_COUNTER = 0x0F0B,
    ASI_RSP_PUBLICATION_ERROR = 0x0F0C,
    ASI_RSP_NEXT_AVAILABLE_SESSION_ID = 0x0F0D
};

/* Spec: 03 §4. */
enum
{
    ASI_ERR_UNUSED = 0,
    ASI_ERR_INVALID_CHANNEL = 1,
    ASI_ERR_UNKNOWN_SUBSCRIPTION = 2,
    ASI_ERR_UNKNOWN_PUBLICATION = 3,
    ASI_ERR_CHANNEL_ENDPOINT = 4,
    ASI_ERR_UNKNOWN_COUNTER = 5,
    ASI_ERR_UNKNOWN_COMMAND_TYPE_ID = 6,
    ASI_ERR_MALFORMED_COMMAND = 7,
    ASI_ERR_NOT_SUPPORTED = 8,
    ASI_ERR_UNKNOWN_HOST = 9,
    ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE = 10,
    ASI_ERR_GENERIC = 11,
    ASI_ERR_STORAGE_SPACE = 12,
    ASI_ERR_IMAGE_REJECTED = 13,
    ASI_ERR_PUBLICATION_REVOKED = 14
};

#define ASI_CONTROL_PROTOCOL_VERSION 0x010000 /* 1.0.0 */
#define ASI_REMOVE_PUBLICATION_REVOKE 0x1
#define ASI_REJECT_REASON_MAX_LENGTH 1023
#define ASI_IPC_CHANNEL_PREFIX "aeron:ipc"
#define ASI_SPY_CHANNEL_PREFIX "aeron-spy:"
#define ASI_IPC_SOURCE_IDENTITY "aeron:ipc"

#pragma pack(push, 4)

typedef struct asi_cmd_correlated /* the first 16 bytes of every command; CLIENT_KEEPALIVE and CLIENT_CLOSE have no more */
{
    int64_t client_id;
    int64_t correlation_id;
} asi_cmd_correlated;

typedef struct asi_cmd_publication /* ADD_PUBLICATION, ADD_EXCLUSIVE_PUBLICATION; channel bytes follow */
{
    asi_cmd_correlated correlated;
    int32_t stream_id;
    int32_t channel_length;
} asi_cmd_publication;

typedef struct asi_cmd_remove_publication /* the legacy form ends before flags */
{
    asi_cmd_correlated correlated;
    int64_t registration_id;
    uint64_t flags;
} asi_cmd_remove_publication;

typedef struct asi_cmd_subscription /* channel bytes follow */
{
    asi_cmd_correlated correlated;
    int64_t registration_correlation_id;
    int32_t stream_id;
    int32_t channel_length;
} asi_cmd_subscription;

typedef struct asi_cmd_remove /* REMOVE_SUBSCRIPTION, REMOVE_COUNTER */
{
    asi_cmd_correlated correlated;
    int64_t registration_id;
} asi_cmd_remove;

typedef struct asi_cmd_destination /* ADD/REMOVE_(RCV_)DESTINATION; channel bytes follow */
{
    asi_cmd_correlated correlated;
    int64_t registration_id;
    int32_t channel_length;
} asi_cmd_destination;

typedef struct asi_cmd_destination_by_id
{
    asi_cmd_correlated correlated;
    int64_t resource_registration_id;
    int64_t destination_registration_id;
} asi_cmd_destination_by_id;

typedef struct asi_cmd_counter /* key bytes padded to 4, then i32 label length, label bytes */
{
    asi_cmd_correlated correlated;
    int32_t type_id;
    int32_t key_length;
} asi_cmd_counter;

typedef struct asi_cmd_static_counter /* as asi_cmd_counter */
{
    asi_cmd_correlated correlated;
    int64_t registration_id;
    int32_t type_id;
    int32_t key_length;
} asi_cmd_static_counter;

typedef struct asi_cmd_terminate /* token bytes follow */
{
    asi_cmd_correlated correlated;
    int32_t token_length;
} asi_cmd_terminate;

typedef struct asi_cmd_reject_image /* reason bytes follow */
{
    asi_cmd_correlated correlated;
    int64_t image_correlation_id;
    int64_t position;
    int32_t reason_length;
} asi_cmd_reject_image;

typedef struct asi_cmd_next_session_id
{
    asi_cmd_correlated correlated;
    int32_t stream_id;
} asi_cmd_next_session_id;

typedef struct asi_rsp_error /* message bytes follow */
{
    int64_t offending_correlation_id;
    int32_t error_code;
    int32_t message_length;
} asi_rsp_error;

typedef struct asi_rsp_available_image /* log file name padded to 4, then i32 source identity length and bytes */
{
    int64_t image_correlation_id;
    int32_t session_id;
    int32_t stream_id;
    int64_t subscription_registration_id;
    int32_t subscriber_position_id;
    int32_t log_file_name_length;
} asi_rsp_available_image;

typedef struct asi_rsp_publication_ready /* both kinds; log file name follows */
{
    int64_t correlation_id;
    int64_t registration_id;
    int32_t session_id;
    int32_t stream_id;
    int32_t position_limit_counter_id;
    int32_t channel_status_id;
    int32_t log_file_name_length;
} asi_rsp_publication_ready;

typedef struct asi_rsp_operation_success
{
    int64_t correlation_id;
} asi_rsp_operation_success;

typedef struct asi_rsp_unavailable_image /* channel bytes follow */
{
    int64_t image_correlation_id;
    int64_t subscription_registration_id;
    int32_t stream_id;
    int32_t channel_length;
} asi_rsp_unavailable_image;

typedef struct asi_rsp_correlated_i32 /* SUBSCRIPTION_READY (status id), COUNTER_READY, UNAVAILABLE_COUNTER, STATIC_COUNTER
                                         (counter id), NEXT_AVAILABLE_SESSION_ID (session id): 12 bytes */
{
    int64_t correlation_id;
    int32_t value;
} asi_rsp_correlated_i32;

typedef struct asi_rsp_client_timeout
{
    int64_t client_id;
} asi_rsp_client_timeout;

typedef struct asi_rsp_publication_error /* message bytes follow */
{
    int64_t registration_id;
    int64_t destination_registration_id;
    int32_t session_id;
    int32_t stream_id;
    int64_t receiver_id;
    int64_t group_tag;
    int16_t address_type; /* 1 IPv4, 2 IPv6 */
    uint16_t source_port; /* host order */
    uint8_t source_address[16];
    int32_t error_code;
    int32_t message_length;
} asi_rsp_publication_error;

#pragma pack(pop)

AS_STATIC_ASSERT(sizeof(asi_cmd_correlated) == 16, "Spec: 03 §2.6");
AS_STATIC_ASSERT(sizeof(asi_cmd_publication) == 24, "Spec: 03 §2.2");
AS_STATIC_ASSERT(sizeof(asi_cmd_remove_publication) == 32, "Spec: 03 §2.3");
AS_STATIC_ASSERT(sizeof(asi_cmd_subscription) == 32, "Spec: 03 §2.4");
AS_STATIC_ASSERT(sizeof(asi_cmd_remove) == 24, "Spec: 03 §2.5");
AS_STATIC_ASSERT(sizeof(asi_cmd_destination) == 28, "Spec: 03 §2.7");
AS_STATIC_ASSERT(sizeof(asi_cmd_destination_by_id) == 32, "Spec: 03 §2.8");
AS_STATIC_ASSERT(sizeof(asi_cmd_counter) == 24, "Spec: 03 §2.9");
AS_STATIC_ASSERT(sizeof(asi_cmd_static_counter) == 32, "Spec: 03 §2.10");
AS_STATIC_ASSERT(sizeof(asi_cmd_terminate) == 20, "Spec: 03 §2.11");
AS_STATIC_ASSERT(sizeof(asi_cmd_reject_image) == 36, "Spec: 03 §2.12");
AS_STATIC_ASSERT(sizeof(asi_cmd_next_session_id) == 20, "Spec: 03 §2.13");
AS_STATIC_ASSERT(sizeof(asi_rsp_error) == 16, "Spec: 03 §3");
AS_STATIC_ASSERT(sizeof(asi_rsp_available_image) == 32, "Spec: 03 §3");
AS_STATIC_ASSERT(sizeof(asi_rsp_publication_ready) == 36, "Spec: 03 §3");
AS_STATIC_ASSERT(sizeof(asi_rsp_operation_success) == 8, "Spec: 03 §3");
AS_STATIC_ASSERT(sizeof(asi_rsp_unavailable_image) == 24, "Spec: 03 §3");
AS_STATIC_ASSERT(sizeof(asi_rsp_correlated_i32) == 12, "Spec: 03 §3");
AS_STATIC_ASSERT(sizeof(asi_rsp_client_timeout) == 8, "Spec: 03 §3");
AS_STATIC_ASSERT(sizeof(asi_rsp_publication_error) == 68, "Spec: 03 §3");

#endif
