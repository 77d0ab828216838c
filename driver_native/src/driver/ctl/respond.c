/* See respond.h. Messages are built on the stack; the longest holds an error text or two paths. */
#include "driver/ctl/respond.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "driver/ctl/report.h"

#define MESSAGE_CAPACITY (16 * 1024)

static void transmit(asi_conductor *conductor, int32_t type_id, const void *message, int64_t length)
{
    asi_events_on_response(conductor->events, type_id, message, length);
    const as_result result = asi_broadcast_transmit(&conductor->to_clients, type_id, message, length);
    if (AS_OK != result)
    {
        asi_conductor_log_failure(conductor, result);
    }
}

/* Appends the text to a head of `fixed_length` bytes and truncates it at the capacity; returns the text's length. */
static int32_t append_text(uint8_t *message, size_t fixed_length, const char *text, size_t text_length)
{
    const size_t room = MESSAGE_CAPACITY - fixed_length;
    const size_t length = text_length < room ? text_length : room;
    memcpy(message + fixed_length, text, length);
    return (int32_t)length;
}

void asi_respond_error(asi_conductor *conductor, int64_t correlation_id, int32_t code, const char *text)
{
    uint8_t message[MESSAGE_CAPACITY];
    asi_rsp_error error = { .offending_correlation_id = correlation_id, .error_code = code };
    error.message_length = append_text(message, sizeof(error), text, strlen(text));
    memcpy(message, &error, sizeof(error));
    transmit(conductor, ASI_RSP_ERROR, message, (int64_t)sizeof(error) + error.message_length);
}

void asi_respond_available_image(asi_conductor *conductor, const asi_ctl_image_announcement *image)
{
    uint8_t message[MESSAGE_CAPACITY] = { 0 };
    asi_rsp_available_image fixed = {
        .image_correlation_id = image->image_correlation_id,
        .session_id = image->session_id,
        .stream_id = image->stream_id,
        .subscription_registration_id = image->subscription_registration_id,
        .subscriber_position_id = image->subscriber_position_id
    };
    fixed.log_file_name_length = append_text(message, sizeof(fixed), image->log_file_name, strlen(image->log_file_name));
    memcpy(message, &fixed, sizeof(fixed));
    const size_t identity = sizeof(fixed) + (size_t)asi_align_i32(fixed.log_file_name_length, 4);
    const int32_t identity_length =
        append_text(message, identity + sizeof(int32_t), image->source_identity, strlen(image->source_identity));
    asi_put_i32(message + identity, identity_length);
    transmit(conductor, ASI_RSP_AVAILABLE_IMAGE, message, (int64_t)(identity + sizeof(int32_t)) + identity_length);
}

void asi_respond_unavailable_image(
    asi_conductor *conductor, int64_t image_correlation_id, int64_t subscription_registration_id, int32_t stream_id)
{
    static const char channel[] = ASI_IPC_CHANNEL_PREFIX; /* the same for every subscription; clients ignore it */
    uint8_t message[sizeof(asi_rsp_unavailable_image) + sizeof(channel)];
    const asi_rsp_unavailable_image fixed = {
        .image_correlation_id = image_correlation_id,
        .subscription_registration_id = subscription_registration_id,
        .stream_id = stream_id,
        .channel_length = (int32_t)sizeof(channel) - 1
    };
    memcpy(message, &fixed, sizeof(fixed));
    memcpy(message + sizeof(fixed), channel, sizeof(channel) - 1);
    transmit(conductor, ASI_RSP_UNAVAILABLE_IMAGE, message, (int64_t)(sizeof(fixed) + sizeof(channel)) - 1);
}

void asi_respond_publication_ready(asi_conductor *conductor, const asi_ctl_publication_announcement *publication)
{
    uint8_t message[MESSAGE_CAPACITY];
    asi_rsp_publication_ready ready = {
        .correlation_id = publication->correlation_id,
        .registration_id = publication->registration_id,
        .session_id = publication->session_id,
        .stream_id = publication->stream_id,
        .position_limit_counter_id = publication->limit_counter_id,
        .channel_status_id = publication->channel_status_id
    };
    ready.log_file_name_length =
        append_text(message, sizeof(ready), publication->log_file_name, strlen(publication->log_file_name));
    memcpy(message, &ready, sizeof(ready));
    transmit(conductor, publication->is_exclusive ? ASI_RSP_EXCLUSIVE_PUBLICATION_READY : ASI_RSP_PUBLICATION_READY, message,
        (int64_t)sizeof(ready) + ready.log_file_name_length);
}

void asi_respond_success(asi_conductor *conductor, int64_t correlation_id)
{
    const asi_rsp_operation_success success = { .correlation_id = correlation_id };
    transmit(conductor, ASI_RSP_OPERATION_SUCCESS, &success, sizeof(success));
}

void asi_respond_client_timeout(asi_conductor *conductor, int64_t client_id)
{
    const asi_rsp_client_timeout timeout = { .client_id = client_id };
    transmit(conductor, ASI_RSP_CLIENT_TIMEOUT, &timeout, sizeof(timeout));
}

void asi_respond_i32(asi_conductor *conductor, int32_t type_id, int64_t correlation_id, int32_t value)
{
    const asi_rsp_correlated_i32 message = { .correlation_id = correlation_id, .value = value };
    transmit(conductor, type_id, &message, sizeof(message));
}

static void put_source(asi_rsp_publication_error *error, const asi_address *source)
{
    const bool is_v6 = AF_INET6 == source->any.sa_family;
    error->address_type = is_v6 ? 2 : 1;
    error->source_port = asi_address_port(source);
    if (is_v6)
    {
        memcpy(error->source_address, &source->v6.sin6_addr, sizeof(source->v6.sin6_addr));
    }
    else
    {
        memcpy(error->source_address, &source->v4.sin_addr, sizeof(source->v4.sin_addr));
    }
}

/* The stock C driver's text. The distinct parts are the publication and the receiver, not a failure of this driver. */
static void log_publication_error(asi_conductor *conductor, const asi_ctl_publication_error *error, int32_t text_length)
{
    char text[ASI_FAILURE_TEXT_CAPACITY];
    snprintf(text, sizeof(text),
        "onPublicationError: registrationId=%" PRId64 ", destinationRegistrationId=%" PRId64 ", sessionId=%d, streamId=%d, "
        "receiverId=%" PRId64 ", groupId=%" PRId64 ", errorCode=%d, errorMessage=%.*s",
        error->registration_id, error->destination_id, error->session_id, error->stream_id, error->receiver_id, error->group_tag,
        error->error_code, text_length, error->text);
    asi_error_log_record_of_peer(&conductor->errors, error->error_code, text, NULL, conductor->now_ms);
}

void asi_respond_publication_error(asi_conductor *conductor, const asi_ctl_publication_error *error)
{
    /* Spec: 03 §16 T5 - the stock C client accepts no less than 72 bytes. T9 - the address is in network order here. */
    enum { CLIENT_MINIMUM = 72 };
    uint8_t message[sizeof(asi_rsp_publication_error) + ASI_REJECT_REASON_MAX_LENGTH] = { 0 };
    asi_rsp_publication_error fixed = {
        .registration_id = error->registration_id,
        .destination_registration_id = error->destination_id,
        .session_id = error->session_id,
        .stream_id = error->stream_id,
        .receiver_id = error->receiver_id,
        .group_tag = error->group_tag,
        .error_code = error->error_code
    };
    fixed.message_length =
        (int32_t)(error->text_length < ASI_REJECT_REASON_MAX_LENGTH ? error->text_length : ASI_REJECT_REASON_MAX_LENGTH);
    put_source(&fixed, &error->source);
    memcpy(message, &fixed, sizeof(fixed));
    memcpy(message + sizeof(fixed), error->text, (size_t)fixed.message_length);
    const int64_t length = (int64_t)sizeof(fixed) + fixed.message_length;
    transmit(conductor, ASI_RSP_PUBLICATION_ERROR, message, length < CLIENT_MINIMUM ? CLIENT_MINIMUM : length);
    log_publication_error(conductor, error, fixed.message_length);
}
