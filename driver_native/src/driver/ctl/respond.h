/* Driver-to-client messages: one function per message, encoded only here. Spec: 03 §3. Called by the parts of the conductor;
 * sends to all clients through the broadcast buffer. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_RESPOND_H
#define ASI_DRIVER_CTL_RESPOND_H

#include "driver/ctl/state.h"
#include "wire/command.h"

typedef struct asi_ctl_image_announcement
{
    int64_t image_correlation_id;
    int32_t session_id;
    int32_t stream_id;
    int64_t subscription_registration_id;
    int32_t subscriber_position_id;
    const char *log_file_name;
    const char *source_identity;
} asi_ctl_image_announcement;

typedef struct asi_ctl_publication_announcement
{
    bool is_exclusive;
    int64_t correlation_id;
    int64_t registration_id;
    int32_t session_id;
    int32_t stream_id;
    int32_t limit_counter_id;
    int32_t channel_status_id;
    const char *log_file_name;
} asi_ctl_publication_announcement;

void asi_respond_error(asi_conductor *conductor, int64_t correlation_id, int32_t code, const char *text);
void asi_respond_available_image(asi_conductor *conductor, const asi_ctl_image_announcement *image);
void asi_respond_unavailable_image(
    asi_conductor *conductor, int64_t image_correlation_id, int64_t subscription_registration_id, int32_t stream_id);
void asi_respond_publication_ready(asi_conductor *conductor, const asi_ctl_publication_announcement *publication);
void asi_respond_success(asi_conductor *conductor, int64_t correlation_id);
void asi_respond_client_timeout(asi_conductor *conductor, int64_t client_id);
/* The 12-byte messages: SUBSCRIPTION_READY, COUNTER_READY, UNAVAILABLE_COUNTER, STATIC_COUNTER, NEXT_AVAILABLE_SESSION_ID. */
void asi_respond_i32(asi_conductor *conductor, int32_t type_id, int64_t correlation_id, int32_t value);

typedef struct asi_ctl_publication_error
{
    int64_t registration_id;
    int64_t destination_id; /* -1: none */
    int32_t session_id;
    int32_t stream_id;
    int64_t receiver_id;    /* -1: none (IPC) */
    int64_t group_tag;      /* -1: none */
    asi_address source;
    int32_t error_code;
    const char *text;       /* at most ASI_REJECT_REASON_MAX_LENGTH bytes */
    int64_t text_length;
} asi_ctl_publication_error;

/* Call when a receiver, or the reader of an IPC image, has rejected it. Sends PUBLICATION_ERROR and writes the error log. */
void asi_respond_publication_error(asi_conductor *conductor, const asi_ctl_publication_error *error);

#endif
