/* See on_command.h. The table has one row per command. A handler gets a message whose fixed part is complete. */
#include "driver/ctl/on_command.h"

#include <inttypes.h>

#include "driver/ctl/destinations.h"
#include "driver/ctl/liveness.h"
#include "driver/ctl/log_files.h"
#include "driver/ctl/publications.h"
#include "driver/ctl/report.h"
#include "driver/ctl/respond.h"
#include "driver/ctl/subscriptions.h"

typedef struct decoded_command
{
    int32_t type_id;
    const uint8_t *message;
    int64_t length;
    asi_cmd_correlated ids;
} decoded_command;

static as_result fail_short(const decoded_command *command, const char *what)
{
    return asi_fail(AS_E_DATA, ASI_ERR_MALFORMED_COMMAND, "command=%d too short%s: length=%" PRId64, command->type_id, what,
        command->length);
}

/* Checks the text that follows a fixed part. A negative length passes: the code that reads the text answers the sender with an
 * error, as stock drivers do. Spec: 03 §5. */
static as_result read_text(
    const decoded_command *command, size_t fixed_length, int32_t text_length, const char *what, const char **text)
{
    if (text_length > command->length - (int64_t)fixed_length)
    {
        return fail_short(command, what);
    }
    *text = (const char *)command->message + fixed_length;
    return AS_OK;
}

static as_result add_publication(asi_conductor *conductor, const decoded_command *command)
{
    asi_cmd_publication fixed;
    const char *channel = NULL;
    memcpy(&fixed, command->message, sizeof(fixed));
    const as_result result = read_text(command, sizeof(fixed), fixed.channel_length, " for channel", &channel);
    return AS_OK != result ? result : asi_ctl_publication_add(conductor, command->ids.client_id, command->ids.correlation_id,
        fixed.stream_id, channel, fixed.channel_length, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION == command->type_id);
}

static as_result remove_publication(asi_conductor *conductor, const decoded_command *command)
{
    asi_cmd_remove_publication fixed = { 0 }; /* the legacy form ends before the flags */
    memcpy(&fixed, command->message,
        command->length < (int64_t)sizeof(fixed) ? offsetof(asi_cmd_remove_publication, flags) : sizeof(fixed));
    return asi_ctl_publication_remove(conductor, command->ids.client_id, command->ids.correlation_id, fixed.registration_id,
        0 != (fixed.flags & ASI_REMOVE_PUBLICATION_REVOKE));
}

static as_result add_subscription(asi_conductor *conductor, const decoded_command *command)
{
    asi_cmd_subscription fixed;
    const char *channel = NULL;
    memcpy(&fixed, command->message, sizeof(fixed));
    const as_result result = read_text(command, sizeof(fixed), fixed.channel_length, " for channel", &channel);
    return AS_OK != result ? result : asi_ctl_subscription_add(conductor, command->ids.client_id, command->ids.correlation_id,
        fixed.stream_id, channel, fixed.channel_length);
}

static as_result remove_subscription(asi_conductor *conductor, const decoded_command *command)
{
    asi_cmd_remove fixed;
    memcpy(&fixed, command->message, sizeof(fixed));
    return asi_ctl_subscription_remove(conductor, command->ids.client_id, command->ids.correlation_id, fixed.registration_id);
}

static as_result client_keepalive(asi_conductor *conductor, const decoded_command *command)
{
    asi_client_keepalive(conductor, command->ids.client_id);
    return AS_OK;
}

static as_result client_close(asi_conductor *conductor, const decoded_command *command)
{
    asi_client_close(conductor, command->ids.client_id);
    return AS_OK;
}

static as_result destination(asi_conductor *conductor, const decoded_command *command)
{
    asi_cmd_destination fixed;
    const char *channel = NULL;
    memcpy(&fixed, command->message, sizeof(fixed));
    const as_result result = read_text(command, sizeof(fixed), fixed.channel_length, " for channel", &channel);
    if (AS_OK != result)
    {
        return result;
    }
    const asi_destination_command request = { .correlation_id = command->ids.correlation_id,
        .registration_id = fixed.registration_id, .client_id = command->ids.client_id, .channel = channel,
        .channel_length = fixed.channel_length };
    switch (command->type_id)
    {
        case ASI_CMD_ADD_DESTINATION: return asi_send_destination_add(conductor, &request);
        case ASI_CMD_REMOVE_DESTINATION: return asi_send_destination_remove(conductor, &request);
        case ASI_CMD_ADD_RCV_DESTINATION: return asi_receive_destination_add(conductor, &request);
        default: return asi_receive_destination_remove(conductor, &request);
    }
}

static as_result remove_destination_by_id(asi_conductor *conductor, const decoded_command *command)
{
    asi_cmd_destination_by_id fixed;
    memcpy(&fixed, command->message, sizeof(fixed));
    return asi_send_destination_remove_by_id(
        conductor, command->ids.correlation_id, fixed.resource_registration_id, fixed.destination_registration_id);
}

/* Key, then label, after a fixed part that ends with the key's length. */
static as_result read_key_and_label(
    const decoded_command *command, size_t fixed_length, int32_t key_length, asi_counter_command *counter)
{
    const int64_t label_length_at = (int64_t)fixed_length + asi_align_i64(key_length, 4);
    if (key_length < 0 || label_length_at + (int64_t)sizeof(int32_t) > command->length)
    {
        return fail_short(command, " for key");
    }
    const int32_t label_length = asi_get_i32(command->message + label_length_at);
    const int64_t label_at = label_length_at + (int64_t)sizeof(int32_t);
    if (label_length < 0 || label_at + label_length > command->length)
    {
        return fail_short(command, " for label");
    }
    counter->client_id = command->ids.client_id;
    counter->correlation_id = command->ids.correlation_id;
    counter->key = command->message + fixed_length;
    counter->key_length = key_length;
    counter->label = (const char *)command->message + label_at;
    counter->label_length = label_length;
    return AS_OK;
}

static as_result add_counter(asi_conductor *conductor, const decoded_command *command)
{
    asi_cmd_counter fixed;
    memcpy(&fixed, command->message, sizeof(fixed));
    asi_counter_command counter = { .type_id = fixed.type_id };
    const as_result result = read_key_and_label(command, sizeof(fixed), fixed.key_length, &counter);
    return AS_OK != result ? result : asi_counter_add(conductor, &counter);
}

static as_result add_static_counter(asi_conductor *conductor, const decoded_command *command)
{
    asi_cmd_static_counter fixed;
    memcpy(&fixed, command->message, sizeof(fixed));
    asi_counter_command counter = { .type_id = fixed.type_id, .registration_id = fixed.registration_id };
    const as_result result = read_key_and_label(command, sizeof(fixed), fixed.key_length, &counter);
    return AS_OK != result ? result : asi_counter_add_static(conductor, &counter);
}

static as_result remove_counter(asi_conductor *conductor, const decoded_command *command)
{
    asi_cmd_remove fixed;
    memcpy(&fixed, command->message, sizeof(fixed));
    return asi_counter_remove(conductor, command->ids.client_id, command->ids.correlation_id, fixed.registration_id);
}

/* Spec: 01 §1.7 - refusal is silent. The built-in validators ignore the token. */
static as_result terminate(asi_conductor *conductor, const decoded_command *command)
{
    asi_cmd_terminate fixed;
    const char *token = NULL;
    memcpy(&fixed, command->message, sizeof(fixed));
    const as_result result = fixed.token_length < 0 ? fail_short(command, " for token") :
        read_text(command, sizeof(fixed), fixed.token_length, " for token", &token);
    if (AS_OK == result && conductor->settings->allow_termination && NULL != conductor->on_termination)
    {
        conductor->on_termination(conductor->termination_context);
    }
    return result;
}

static as_result reject_image(asi_conductor *conductor, const decoded_command *command)
{
    asi_cmd_reject_image fixed;
    const char *reason = NULL;
    memcpy(&fixed, command->message, sizeof(fixed));
    const as_result result = read_text(command, sizeof(fixed), fixed.reason_length, " for reason", &reason);
    return AS_OK != result ? result : asi_ctl_publication_reject_image(conductor, command->ids.correlation_id,
        fixed.image_correlation_id, reason, fixed.reason_length);
}

static as_result next_session_id(asi_conductor *conductor, const decoded_command *command)
{
    asi_cmd_next_session_id fixed;
    memcpy(&fixed, command->message, sizeof(fixed));
    asi_ctl_publication_next_session_id(conductor, command->ids.correlation_id, fixed.stream_id);
    return AS_OK;
}

typedef struct command_row
{
    int32_t type_id;
    size_t fixed_length;
    as_result (*handle)(asi_conductor *conductor, const decoded_command *command);
} command_row;

static const command_row COMMANDS[] = {
    { ASI_CMD_ADD_PUBLICATION, sizeof(asi_cmd_publication), add_publication },
    { ASI_CMD_REMOVE_PUBLICATION, offsetof(asi_cmd_remove_publication, flags), remove_publication },
    { ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, sizeof(asi_cmd_publication), add_publication },
    { ASI_CMD_ADD_SUBSCRIPTION, sizeof(asi_cmd_subscription), add_subscription },
    { ASI_CMD_REMOVE_SUBSCRIPTION, sizeof(asi_cmd_remove), remove_subscription },
    { ASI_CMD_CLIENT_KEEPALIVE, sizeof(asi_cmd_correlated), client_keepalive },
    { ASI_CMD_ADD_DESTINATION, sizeof(asi_cmd_destination), destination },
    { ASI_CMD_REMOVE_DESTINATION, sizeof(asi_cmd_destination), destination },
    { ASI_CMD_ADD_COUNTER, sizeof(asi_cmd_counter), add_counter },
    { ASI_CMD_REMOVE_COUNTER, sizeof(asi_cmd_remove), remove_counter },
    { ASI_CMD_CLIENT_CLOSE, sizeof(asi_cmd_correlated), client_close },
    { ASI_CMD_ADD_RCV_DESTINATION, sizeof(asi_cmd_destination), destination },
    { ASI_CMD_REMOVE_RCV_DESTINATION, sizeof(asi_cmd_destination), destination },
    { ASI_CMD_TERMINATE_DRIVER, sizeof(asi_cmd_terminate), terminate },
    { ASI_CMD_ADD_STATIC_COUNTER, sizeof(asi_cmd_static_counter), add_static_counter },
    { ASI_CMD_REJECT_IMAGE, sizeof(asi_cmd_reject_image), reject_image },
    { ASI_CMD_REMOVE_DESTINATION_BY_ID, sizeof(asi_cmd_destination_by_id), remove_destination_by_id },
    { ASI_CMD_GET_NEXT_AVAILABLE_SESSION_ID, sizeof(asi_cmd_next_session_id), next_session_id },
};

/* Commands of one client take effect in their order: what comes behind one that waits for its log may name its publication, tag
 * or session. Signs of life and ends need nothing of it. The last one that waits is taken back at once. */
static bool must_wait(const asi_conductor *conductor, const decoded_command *command)
{
    const asi_waiting_command *last = asi_waiting_command_last(conductor, command->ids.client_id);
    if (NULL == last || NULL != conductor->resumed_command)
    {
        return false;
    }
    switch (command->type_id)
    {
        case ASI_CMD_CLIENT_KEEPALIVE:
        case ASI_CMD_CLIENT_CLOSE:
        case ASI_CMD_TERMINATE_DRIVER:
            return false;
        case ASI_CMD_REMOVE_PUBLICATION:
            return last->registration_id !=
                asi_get_i64(command->message + offsetof(asi_cmd_remove_publication, registration_id));
        default:
            return true;
    }
}

static as_result dispatch(asi_conductor *conductor, decoded_command *command)
{
    for (size_t i = 0; i < sizeof(COMMANDS) / sizeof(COMMANDS[0]); i++)
    {
        if (COMMANDS[i].type_id != command->type_id)
        {
            continue;
        }
        if (command->length < (int64_t)COMMANDS[i].fixed_length)
        {
            return fail_short(command, "");
        }
        memcpy(&command->ids, command->message, sizeof(command->ids));
        return must_wait(conductor, command) ?
            asi_waiting_command_add(conductor, command->type_id, command->message, command->length) :
            COMMANDS[i].handle(conductor, command);
    }
    return asi_fail(AS_E_DATA, ASI_ERR_UNKNOWN_COMMAND_TYPE_ID, "command typeId=%d", command->type_id);
}

/* AS_AGAIN: the resumed command waits for a log of its own now. */
static as_result carry_out(asi_conductor *conductor, int32_t type_id, const uint8_t *message, int64_t length)
{
    decoded_command command = { .type_id = type_id, .message = message, .length = length };
    as_result result = dispatch(conductor, &command);
    if (AS_AGAIN == result && NULL == conductor->resumed_command)
    {
        result = asi_log_file_keep_command(conductor, type_id, message, length);
    }
    if (result < 0)
    {
        char text[ASI_FAILURE_TEXT_CAPACITY];
        asi_conductor_failure_text(result, text, sizeof(text));
        const int32_t code = asi_conductor_failure_code(result);
        asi_respond_error(conductor, AS_E_DATA == result ? 0 : command.ids.correlation_id, code, text);
        if (ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE != code) /* not a failure: the client asks again. Spec: 03 §4 */
        {
            asi_conductor_log_command_failure(conductor, result);
        }
    }
    return result;
}

asi_ring_action asi_on_command_untrusted(int32_t type_id, const uint8_t *message, int64_t length, void *context)
{
    asi_conductor *conductor = context;
    asi_events_on_command_untrusted(conductor->events, type_id, message, length);
    (void)carry_out(conductor, type_id, message, length);
    return ASI_RING_CONTINUE;
}

int asi_waiting_commands_do_work(asi_conductor *conductor)
{
    int work = 0;
    asi_waiting_command *command = asi_log_files_do_work(conductor, &work);
    if (NULL != command)
    {
        conductor->resumed_command = command;
        const as_result result = carry_out(conductor, command->type_id, command->message, command->length);
        conductor->resumed_command = NULL;
        if (AS_AGAIN != result)
        {
            asi_waiting_command_close(conductor, command);
        }
    }
    return work;
}
