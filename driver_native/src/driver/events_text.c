/* Names of events, and the text of commands, responses and datagrams; see events_text.h. Invalid bytes are harmless: they are
 * only copied, and missing ones read as zeros. */
#include "driver/events_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "driver/config.h"
#include "driver/net/address.h"
#include "wire/command.h"
#include "wire/frame.h"

#define EVENT_LIMIT 64
#define FRAME_EVENTS ((uint64_t)1 << ASI_EVENT_FRAME_IN | (uint64_t)1 << ASI_EVENT_FRAME_OUT)

static const char *const NAMES[EVENT_LIMIT] = {
    [ASI_EVENT_FRAME_IN] = "FRAME_IN",
    [ASI_EVENT_FRAME_OUT] = "FRAME_OUT",
    [ASI_EVENT_CMD_IN_ADD_PUBLICATION] = "CMD_IN_ADD_PUBLICATION",
    [ASI_EVENT_CMD_IN_REMOVE_PUBLICATION] = "CMD_IN_REMOVE_PUBLICATION",
    [ASI_EVENT_CMD_IN_ADD_SUBSCRIPTION] = "CMD_IN_ADD_SUBSCRIPTION",
    [ASI_EVENT_CMD_IN_REMOVE_SUBSCRIPTION] = "CMD_IN_REMOVE_SUBSCRIPTION",
    [ASI_EVENT_CMD_OUT_PUBLICATION_READY] = "CMD_OUT_PUBLICATION_READY",
    [ASI_EVENT_CMD_OUT_AVAILABLE_IMAGE] = "CMD_OUT_AVAILABLE_IMAGE",
    [ASI_EVENT_CMD_OUT_ON_OPERATION_SUCCESS] = "CMD_OUT_ON_OPERATION_SUCCESS",
    [ASI_EVENT_CMD_IN_KEEPALIVE_CLIENT] = "CMD_IN_KEEPALIVE_CLIENT",
    [ASI_EVENT_REMOVE_PUBLICATION_CLEANUP] = "REMOVE_PUBLICATION_CLEANUP",
    [ASI_EVENT_REMOVE_SUBSCRIPTION_CLEANUP] = "REMOVE_SUBSCRIPTION_CLEANUP",
    [ASI_EVENT_REMOVE_IMAGE_CLEANUP] = "REMOVE_IMAGE_CLEANUP",
    [ASI_EVENT_CMD_OUT_ON_UNAVAILABLE_IMAGE] = "CMD_OUT_ON_UNAVAILABLE_IMAGE",
    [ASI_EVENT_SEND_CHANNEL_CREATION] = "SEND_CHANNEL_CREATION",
    [ASI_EVENT_RECEIVE_CHANNEL_CREATION] = "RECEIVE_CHANNEL_CREATION",
    [ASI_EVENT_SEND_CHANNEL_CLOSE] = "SEND_CHANNEL_CLOSE",
    [ASI_EVENT_RECEIVE_CHANNEL_CLOSE] = "RECEIVE_CHANNEL_CLOSE",
    [ASI_EVENT_CMD_IN_ADD_DESTINATION] = "CMD_IN_ADD_DESTINATION",
    [ASI_EVENT_CMD_IN_REMOVE_DESTINATION] = "CMD_IN_REMOVE_DESTINATION",
    [ASI_EVENT_CMD_IN_ADD_EXCLUSIVE_PUBLICATION] = "CMD_IN_ADD_EXCLUSIVE_PUBLICATION",
    [ASI_EVENT_CMD_OUT_EXCLUSIVE_PUBLICATION_READY] = "CMD_OUT_EXCLUSIVE_PUBLICATION_READY",
    [ASI_EVENT_CMD_OUT_ERROR] = "CMD_OUT_ERROR",
    [ASI_EVENT_CMD_IN_ADD_COUNTER] = "CMD_IN_ADD_COUNTER",
    [ASI_EVENT_CMD_IN_REMOVE_COUNTER] = "CMD_IN_REMOVE_COUNTER",
    [ASI_EVENT_CMD_OUT_SUBSCRIPTION_READY] = "CMD_OUT_SUBSCRIPTION_READY",
    [ASI_EVENT_CMD_OUT_COUNTER_READY] = "CMD_OUT_COUNTER_READY",
    [ASI_EVENT_CMD_OUT_ON_UNAVAILABLE_COUNTER] = "CMD_OUT_ON_UNAVAILABLE_COUNTER",
    [ASI_EVENT_CMD_IN_CLIENT_CLOSE] = "CMD_IN_CLIENT_CLOSE",
    [ASI_EVENT_CMD_IN_ADD_RCV_DESTINATION] = "CMD_IN_ADD_RCV_DESTINATION",
    [ASI_EVENT_CMD_IN_REMOVE_RCV_DESTINATION] = "CMD_IN_REMOVE_RCV_DESTINATION",
    [ASI_EVENT_CMD_OUT_ON_CLIENT_TIMEOUT] = "CMD_OUT_ON_CLIENT_TIMEOUT",
    [ASI_EVENT_CMD_IN_TERMINATE_DRIVER] = "CMD_IN_TERMINATE_DRIVER",
    [ASI_EVENT_UNTETHERED_SUBSCRIPTION_STATE_CHANGE] = "UNTETHERED_SUBSCRIPTION_STATE_CHANGE",
    [ASI_EVENT_NAME_RESOLUTION_NEIGHBOR_ADDED] = "NAME_RESOLUTION_NEIGHBOR_ADDED",
    [ASI_EVENT_NAME_RESOLUTION_NEIGHBOR_REMOVED] = "NAME_RESOLUTION_NEIGHBOR_REMOVED",
    [ASI_EVENT_FLOW_CONTROL_RECEIVER_ADDED] = "FLOW_CONTROL_RECEIVER_ADDED",
    [ASI_EVENT_FLOW_CONTROL_RECEIVER_REMOVED] = "FLOW_CONTROL_RECEIVER_REMOVED",
    [ASI_EVENT_NAME_RESOLUTION_RESOLVE] = "NAME_RESOLUTION_RESOLVE",
    [ASI_EVENT_GENERIC_MESSAGE] = "GENERIC_MESSAGE",
    [ASI_EVENT_NAME_RESOLUTION_LOOKUP] = "NAME_RESOLUTION_LOOKUP",
    [ASI_EVENT_NAME_RESOLUTION_HOST_NAME] = "NAME_RESOLUTION_HOST_NAME",
    [ASI_EVENT_NAK_SENT] = "NAK_SENT",
    [ASI_EVENT_RESEND] = "RESEND",
    [ASI_EVENT_CMD_IN_REMOVE_DESTINATION_BY_ID] = "CMD_IN_REMOVE_DESTINATION_BY_ID",
    [ASI_EVENT_CMD_IN_REJECT_IMAGE] = "CMD_IN_REJECT_IMAGE",
    [ASI_EVENT_NAK_RECEIVED] = "NAK_RECEIVED",
    [ASI_EVENT_PUBLICATION_REVOKE] = "PUBLICATION_REVOKE",
    [ASI_EVENT_PUBLICATION_IMAGE_REVOKE] = "PUBLICATION_IMAGE_REVOKE",
};

const char *asi_event_name(int32_t event) { return event > 0 && event < EVENT_LIMIT ? NAMES[event] : NULL; }

/* --- the setting ------------------------------------------------------------------------------------------------------- */

static uint64_t events_from(const char *prefix)
{
    uint64_t mask = 0;
    for (int32_t event = 1; event < EVENT_LIMIT; event++)
    {
        if (NULL != NAMES[event] && 0 == strncmp(NAMES[event], prefix, strlen(prefix)))
        {
            mask |= (uint64_t)1 << event;
        }
    }
    return mask;
}

/* Spec: 05 §11 - the bit mask of releases before events had names. */
static uint64_t legacy_mask(uint64_t bits)
{
    static const uint64_t EVERYTHING = 0xffff;
    return bits >= EVERYTHING ? events_from("") :
        (0 != (bits & 0x1) ? events_from("CMD_IN_") : 0) | (0 != (bits & 0x2) ? events_from("CMD_OUT_") : 0) |
        (0 != (bits & 0x4) ? (uint64_t)1 << ASI_EVENT_FRAME_IN : 0) |
        (0 != (bits & 0x18) ? (uint64_t)1 << ASI_EVENT_FRAME_OUT : 0) |
        (0 != (bits & 0x80) ? (uint64_t)1 << ASI_EVENT_UNTETHERED_SUBSCRIPTION_STATE_CHANGE : 0);
}

static uint64_t parse_one(const char *setting, const char *word)
{
    if (0 == strcasecmp(word, "all"))
    {
        return events_from("");
    }
    if (0 == strcasecmp(word, "admin"))
    {
        return events_from("") & ~FRAME_EVENTS;
    }
    char *end = NULL;
    if (0 == strncasecmp(word, "0x", 2))
    {
        const uint64_t bits = strtoull(word, &end, 16);
        if (end != word + 2 && '\0' == *end)
        {
            return legacy_mask(bits);
        }
    }
    const long number = strtol(word, &end, 10);
    for (int32_t event = 1; event < EVENT_LIMIT; event++)
    {
        if (NULL != NAMES[event] && (0 == strcmp(word, NAMES[event]) || ('\0' == *end && number == event)))
        {
            return (uint64_t)1 << event;
        }
    }
    fprintf(stderr, "WARNING: %s names no event: %s\n", setting, word);
    return 0;
}

uint64_t asi_events_parse(const char *setting, const char *text)
{
    char words[ASI_ARGS_TEXT_CAPACITY];
    char *rest = NULL;
    uint64_t mask = 0;
    snprintf(words, sizeof(words), "%s", text);
    for (const char *word = strtok_r(words, ", ", &rest); NULL != word; word = strtok_r(NULL, ", ", &rest))
    {
        mask |= parse_one(setting, word);
    }
    return mask;
}

/* --- text of bytes ----------------------------------------------------------------------------------------------------- */

typedef struct message_bytes
{
    const uint8_t *bytes;
    int64_t length;
    char *to;
    size_t capacity;
} message_bytes;

/* The fixed part; zeros where the message is too short. */
#define FIXED(type, name)                                                                             \
    type name = { 0 };                                                                                \
    memcpy(&name, message->bytes, (size_t)message->length < sizeof(name) ? (size_t)message->length : sizeof(name))

/* A text after a fixed part. Returns its length, limited by the available bytes, for %.*s. */
static int text_at(const message_bytes *message, int64_t offset, int32_t length, const char **text)
{
    const int64_t room = offset < message->length ? message->length - offset : 0;
    *text = (const char *)message->bytes + (room > 0 ? offset : 0);
    return length < 0 ? 0 : (int)(length < room ? length : room);
}

#define SAY(...) snprintf(message->to, message->capacity, __VA_ARGS__)
#define IDS "clientId=%" PRId64 " correlationId=%" PRId64
#define ID_VALUES(fixed) (fixed).correlated.client_id, (fixed).correlated.correlation_id

static void format_add_publication(const message_bytes *message)
{
    const char *channel;
    FIXED(asi_cmd_publication, fixed);
    const int length = text_at(message, sizeof(fixed), fixed.channel_length, &channel);
    SAY(IDS " streamId=%d channel=%.*s", ID_VALUES(fixed), fixed.stream_id, length, channel);
}

static void format_add_subscription(const message_bytes *message)
{
    const char *channel;
    FIXED(asi_cmd_subscription, fixed);
    const int length = text_at(message, sizeof(fixed), fixed.channel_length, &channel);
    SAY(IDS " streamId=%d channel=%.*s", ID_VALUES(fixed), fixed.stream_id, length, channel);
}

static void format_remove_publication(const message_bytes *message)
{
    FIXED(asi_cmd_remove_publication, fixed);
    SAY(IDS " registrationId=%" PRId64 " revoke=%s", ID_VALUES(fixed), fixed.registration_id,
        0 != (fixed.flags & ASI_REMOVE_PUBLICATION_REVOKE) ? "true" : "false");
}

static void format_remove(const message_bytes *message)
{
    FIXED(asi_cmd_remove, fixed);
    SAY(IDS " registrationId=%" PRId64, ID_VALUES(fixed), fixed.registration_id);
}

static void format_client(const message_bytes *message)
{
    FIXED(asi_cmd_correlated, fixed);
    SAY(IDS, fixed.client_id, fixed.correlation_id);
}

static void format_destination(const message_bytes *message)
{
    const char *channel;
    FIXED(asi_cmd_destination, fixed);
    const int length = text_at(message, sizeof(fixed), fixed.channel_length, &channel);
    SAY(IDS " registrationId=%" PRId64 " channel=%.*s", ID_VALUES(fixed), fixed.registration_id, length, channel);
}

static void format_destination_by_id(const message_bytes *message)
{
    FIXED(asi_cmd_destination_by_id, fixed);
    SAY(IDS " resourceRegistrationId=%" PRId64 " destinationRegistrationId=%" PRId64, ID_VALUES(fixed),
        fixed.resource_registration_id, fixed.destination_registration_id);
}

static void format_counter(const message_bytes *message)
{
    FIXED(asi_cmd_counter, fixed);
    SAY(IDS " typeId=%d keyLength=%d", ID_VALUES(fixed), fixed.type_id, fixed.key_length);
}

static void format_terminate(const message_bytes *message)
{
    FIXED(asi_cmd_terminate, fixed);
    SAY(IDS " tokenLength=%d", ID_VALUES(fixed), fixed.token_length);
}

static void format_reject_image(const message_bytes *message)
{
    const char *reason;
    FIXED(asi_cmd_reject_image, fixed);
    const int length = text_at(message, sizeof(fixed), fixed.reason_length, &reason);
    SAY(IDS " imageCorrelationId=%" PRId64 " position=%" PRId64 " reason=%.*s", ID_VALUES(fixed), fixed.image_correlation_id,
        fixed.position, length, reason);
}

static void format_publication_ready(const message_bytes *message)
{
    const char *name;
    FIXED(asi_rsp_publication_ready, fixed);
    const int length = text_at(message, sizeof(fixed), fixed.log_file_name_length, &name);
    SAY("correlationId=%" PRId64 " registrationId=%" PRId64 " sessionId=%d streamId=%d positionLimitCounterId=%d "
        "channelStatusId=%d logFileName=%.*s", fixed.correlation_id, fixed.registration_id, fixed.session_id, fixed.stream_id,
        fixed.position_limit_counter_id, fixed.channel_status_id, length, name);
}

static void format_available_image(const message_bytes *message)
{
    const char *name;
    FIXED(asi_rsp_available_image, fixed);
    const int length = text_at(message, sizeof(fixed), fixed.log_file_name_length, &name);
    SAY("correlationId=%" PRId64 " sessionId=%d streamId=%d subscriberRegistrationId=%" PRId64 " subscriberPositionId=%d "
        "logFileName=%.*s", fixed.image_correlation_id, fixed.session_id, fixed.stream_id, fixed.subscription_registration_id,
        fixed.subscriber_position_id, length, name);
}

static void format_unavailable_image(const message_bytes *message)
{
    FIXED(asi_rsp_unavailable_image, fixed);
    SAY("correlationId=%" PRId64 " subscriptionRegistrationId=%" PRId64 " streamId=%d", fixed.image_correlation_id,
        fixed.subscription_registration_id, fixed.stream_id);
}

static void format_error(const message_bytes *message)
{
    const char *text;
    FIXED(asi_rsp_error, fixed);
    const int length = text_at(message, sizeof(fixed), fixed.message_length, &text);
    SAY("offendingCommandCorrelationId=%" PRId64 " errorCode=%d message=%.*s", fixed.offending_correlation_id, fixed.error_code,
        length, text);
}

static void format_correlated(const message_bytes *message)
{
    FIXED(asi_rsp_correlated_i32, fixed);
    SAY("correlationId=%" PRId64 " id=%d", fixed.correlation_id, fixed.value);
}

static void format_one_id(const message_bytes *message)
{
    FIXED(asi_rsp_operation_success, fixed);
    SAY("id=%" PRId64, fixed.correlation_id);
}

static const char *frame_name(uint16_t type)
{
    static const char *const FRAMES[] = { "PAD", "DATA", "NAK", "SM", "ERR", "SETUP", "RTT", "RES", "ATS_DATA", "ATS_SETUP",
        "ATS_SM", "RSP_SETUP" };
    return type < sizeof(FRAMES) / sizeof(FRAMES[0]) ? FRAMES[type] : "UNKNOWN";
}

/* An address, then the datagram's first bytes. */
static void format_frame(const message_bytes *datagram)
{
    asi_address peer = { 0 };
    char address[ASI_ADDRESS_TEXT_CAPACITY] = "connected peer";
    memcpy(&peer, datagram->bytes, (size_t)datagram->length < sizeof(peer) ? (size_t)datagram->length : sizeof(peer));
    if (AF_UNSPEC != peer.any.sa_family)
    {
        asi_address_format(&peer, address);
    }
    const int64_t skipped = datagram->length < (int64_t)sizeof(peer) ? datagram->length : (int64_t)sizeof(peer);
    const message_bytes frame = { .bytes = datagram->bytes + skipped, .length = datagram->length - skipped,
        .to = datagram->to, .capacity = datagram->capacity };
    const message_bytes *message = &frame;
    FIXED(asi_frame_header, header);
    FIXED(asi_nak_frame, nak);
    FIXED(asi_status_frame, status);
    FIXED(asi_setup_frame, setup);
    const char *name = frame_name(header.type);
    switch (header.type)
    {
        case ASI_FRAME_PAD:
        case ASI_FRAME_DATA:
            SAY("address=%s type=%s flags=0x%02x frameLength=%d sessionId=%d streamId=%d termId=%d termOffset=%d", address, name,
                header.flags, header.frame_length, header.session_id, header.stream_id, header.term_id, header.term_offset);
            break;
        case ASI_FRAME_NAK:
            SAY("address=%s type=%s sessionId=%d streamId=%d termId=%d termOffset=%d length=%d", address, name, nak.session_id,
                nak.stream_id, nak.term_id, nak.term_offset, nak.length);
            break;
        case ASI_FRAME_STATUS:
            SAY("address=%s type=%s flags=0x%02x sessionId=%d streamId=%d consumptionTermId=%d consumptionTermOffset=%d "
                "receiverWindowLength=%d receiverId=%" PRId64, address, name, header.flags, status.session_id, status.stream_id,
                status.consumption_term_id, status.consumption_term_offset, status.receiver_window,
                (int64_t)status.receiver_id);
            break;
        case ASI_FRAME_SETUP:
            SAY("address=%s type=%s flags=0x%02x sessionId=%d streamId=%d initialTermId=%d activeTermId=%d termOffset=%d "
                "termLength=%d mtu=%d ttl=%d", address, name, header.flags, setup.session_id, setup.stream_id,
                setup.initial_term_id, setup.active_term_id, setup.term_offset, setup.term_length, setup.mtu_length, setup.ttl);
            break;
        default:
            SAY("address=%s type=%s flags=0x%02x frameLength=%d", address, name, header.flags, header.frame_length);
            break;
    }
}

/* Events without a layout of their own are recorded as text. */
static void (*formatter_of(int32_t event))(const message_bytes *message)
{
    switch (event)
    {
        case ASI_EVENT_FRAME_IN:
        case ASI_EVENT_FRAME_OUT:
        case ASI_EVENT_NAK_SENT:
        case ASI_EVENT_NAK_RECEIVED: return format_frame;
        case ASI_EVENT_CMD_IN_ADD_PUBLICATION:
        case ASI_EVENT_CMD_IN_ADD_EXCLUSIVE_PUBLICATION: return format_add_publication;
        case ASI_EVENT_CMD_IN_REMOVE_PUBLICATION: return format_remove_publication;
        case ASI_EVENT_CMD_IN_ADD_SUBSCRIPTION: return format_add_subscription;
        case ASI_EVENT_CMD_IN_REMOVE_SUBSCRIPTION:
        case ASI_EVENT_CMD_IN_REMOVE_COUNTER: return format_remove;
        case ASI_EVENT_CMD_IN_KEEPALIVE_CLIENT:
        case ASI_EVENT_CMD_IN_CLIENT_CLOSE: return format_client;
        case ASI_EVENT_CMD_IN_ADD_DESTINATION:
        case ASI_EVENT_CMD_IN_REMOVE_DESTINATION:
        case ASI_EVENT_CMD_IN_ADD_RCV_DESTINATION:
        case ASI_EVENT_CMD_IN_REMOVE_RCV_DESTINATION: return format_destination;
        case ASI_EVENT_CMD_IN_REMOVE_DESTINATION_BY_ID: return format_destination_by_id;
        case ASI_EVENT_CMD_IN_ADD_COUNTER: return format_counter;
        case ASI_EVENT_CMD_IN_TERMINATE_DRIVER: return format_terminate;
        case ASI_EVENT_CMD_IN_REJECT_IMAGE: return format_reject_image;
        case ASI_EVENT_CMD_OUT_PUBLICATION_READY:
        case ASI_EVENT_CMD_OUT_EXCLUSIVE_PUBLICATION_READY: return format_publication_ready;
        case ASI_EVENT_CMD_OUT_AVAILABLE_IMAGE: return format_available_image;
        case ASI_EVENT_CMD_OUT_ON_UNAVAILABLE_IMAGE: return format_unavailable_image;
        case ASI_EVENT_CMD_OUT_ERROR: return format_error;
        case ASI_EVENT_CMD_OUT_SUBSCRIPTION_READY:
        case ASI_EVENT_CMD_OUT_COUNTER_READY:
        case ASI_EVENT_CMD_OUT_ON_UNAVAILABLE_COUNTER: return format_correlated;
        case ASI_EVENT_CMD_OUT_ON_OPERATION_SUCCESS:
        case ASI_EVENT_CMD_OUT_ON_CLIENT_TIMEOUT: return format_one_id;
        default: return NULL;
    }
}

void asi_event_format_untrusted(int32_t event, const void *bytes, int64_t length, char *to, size_t capacity)
{
    void (*format)(const message_bytes *) = formatter_of(event);
    const message_bytes message = { .bytes = bytes, .length = length, .to = to, .capacity = capacity };
    to[0] = '\0';
    if (NULL != format)
    {
        format(&message);
    }
}
