/* Goal: our message structs describe what stock clients and drivers exchange, to the last byte.
 * Method: every captured command and response is taken apart by the structs; fixed part and declared variable parts must add
 * up to the captured length. Golden: tests/golden/shm/commands-*.txt. */
#include "wire/command.h"

#include "support.h"

#define SEEN_CAPACITY 0x1000

typedef struct captured
{
    int32_t type_id;
    int64_t length;
    uint8_t bytes[4096];
} captured;

static int64_t align4(int64_t length) { return asi_align_i64(length, 4); }

/* Fixed part, `variable` bytes whose length is the fixed part's last field. */
static int64_t with_tail(const captured *message, int64_t fixed)
{
    CHECK(message->length >= fixed);
    return fixed + asi_get_i32(message->bytes + fixed - 4);
}

/* ... then padding to 4, and a second length and its bytes. */
static int64_t with_two_tails(const captured *message, int64_t fixed)
{
    const int64_t second = fixed + align4(asi_get_i32(message->bytes + fixed - 4));
    CHECK(message->length >= second + 4);
    return second + 4 + asi_get_i32(message->bytes + second);
}

static int64_t expected_length(const captured *message)
{
    switch (message->type_id)
    {
        case ASI_CMD_ADD_PUBLICATION:
        case ASI_CMD_ADD_EXCLUSIVE_PUBLICATION: return with_tail(message, sizeof(asi_cmd_publication));
        case ASI_CMD_REMOVE_PUBLICATION: return sizeof(asi_cmd_remove_publication);
        case ASI_CMD_ADD_SUBSCRIPTION: return with_tail(message, sizeof(asi_cmd_subscription));
        case ASI_CMD_REMOVE_SUBSCRIPTION:
        case ASI_CMD_REMOVE_COUNTER: return sizeof(asi_cmd_remove);
        case ASI_CMD_CLIENT_KEEPALIVE:
        case ASI_CMD_CLIENT_CLOSE: return sizeof(asi_cmd_correlated);
        case ASI_CMD_ADD_DESTINATION:
        case ASI_CMD_REMOVE_DESTINATION:
        case ASI_CMD_ADD_RCV_DESTINATION:
        case ASI_CMD_REMOVE_RCV_DESTINATION: return with_tail(message, sizeof(asi_cmd_destination));
        case ASI_CMD_ADD_COUNTER: return with_two_tails(message, sizeof(asi_cmd_counter));
        case ASI_CMD_ADD_STATIC_COUNTER: return with_two_tails(message, sizeof(asi_cmd_static_counter));
        case ASI_CMD_TERMINATE_DRIVER: return with_tail(message, sizeof(asi_cmd_terminate));
        case ASI_CMD_REJECT_IMAGE: return with_tail(message, sizeof(asi_cmd_reject_image));
        case ASI_CMD_REMOVE_DESTINATION_BY_ID: return sizeof(asi_cmd_destination_by_id);
        case ASI_CMD_GET_NEXT_AVAILABLE_SESSION_ID: return sizeof(asi_cmd_next_session_id);
        case ASI_RSP_ERROR: return with_tail(message, sizeof(asi_rsp_error));
        case ASI_RSP_AVAILABLE_IMAGE: return with_two_tails(message, sizeof(asi_rsp_available_image));
        case ASI_RSP_PUBLICATION_READY:
        case ASI_RSP_EXCLUSIVE_PUBLICATION_READY: return with_tail(message, sizeof(asi_rsp_publication_ready));
        case ASI_RSP_OPERATION_SUCCESS: return sizeof(asi_rsp_operation_success);
        case ASI_RSP_UNAVAILABLE_IMAGE: return with_tail(message, sizeof(asi_rsp_unavailable_image));
        case ASI_RSP_SUBSCRIPTION_READY:
        case ASI_RSP_COUNTER_READY:
        case ASI_RSP_UNAVAILABLE_COUNTER:
        case ASI_RSP_STATIC_COUNTER:
        case ASI_RSP_NEXT_AVAILABLE_SESSION_ID: return sizeof(asi_rsp_correlated_i32);
        case ASI_RSP_CLIENT_TIMEOUT: return sizeof(asi_rsp_client_timeout);
        case ASI_RSP_PUBLICATION_ERROR: return with_tail(message, sizeof(asi_rsp_publication_error));
        default: return -1;
    }
}

/* The stock clients send up to five zero bytes more than they declare: the C client a padded struct and a NUL with
 * REJECT_IMAGE, the Java client a length counted twice with the counter commands. */
static void check_length(const captured *message)
{
    const int64_t expected = expected_length(message);
    CHECK(expected > 0 && expected <= message->length);
    const bool may_be_longer = ASI_CMD_REJECT_IMAGE == message->type_id || ASI_CMD_ADD_COUNTER == message->type_id ||
        ASI_CMD_ADD_STATIC_COUNTER == message->type_id;
    CHECK(message->length <= expected + (may_be_longer ? 5 : 0));
    for (int64_t i = expected; i < message->length; i++)
    {
        CHECK_I64(message->bytes[i], 0);
    }
}

static bool read_line(char *line, captured *message)
{
    int type_id;
    int length;
    char kind[4];
    static char hex[2 * sizeof(message->bytes) + 1];
    hex[0] = '\0';
    if (4 > sscanf(line, "%*d %3s %x %d %8192s", kind, &type_id, &length, hex))
    {
        return false;
    }
    message->type_id = type_id;
    message->length = length;
    CHECK_I64(strlen(hex), 2 * length);
    for (int i = 0; i < length; i++)
    {
        unsigned int byte;
        CHECK_I64(sscanf(hex + 2 * i, "%2x", &byte), 1);
        message->bytes[i] = (uint8_t)byte;
    }
    return true;
}

static int64_t check_capture(const char *name, bool *seen)
{
    int64_t length;
    char *text = (char *)golden_load(name, &length);
    int64_t count = 0;
    char *state = NULL;
    for (char *line = strtok_r(text, "\n", &state); NULL != line; line = strtok_r(NULL, "\n", &state))
    {
        static captured message;
        if (read_line(line, &message))
        {
            check_length(&message);
            CHECK(message.type_id > 0 && message.type_id < SEEN_CAPACITY);
            seen[message.type_id] = true;
            count++;
        }
    }
    free(text);
    return count;
}

static void describes_captured_messages(void)
{
    static bool seen[SEEN_CAPACITY];
    CHECK(check_capture("shm/commands-c-client.txt", seen) > 50);
    CHECK(check_capture("shm/commands-java-client.txt", seen) > 50);
    for (int type_id = ASI_CMD_ADD_PUBLICATION; type_id <= ASI_CMD_GET_NEXT_AVAILABLE_SESSION_ID; type_id++)
    {
        CHECK(seen[type_id] || ASI_CMD_CLIENT_KEEPALIVE == type_id);
    }
}

static void builds_the_bytes_of_a_stock_command(void)
{
    static const uint8_t STOCK[] = {
        1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe9, 3, 0, 0, 9, 0, 0, 0,
        'a', 'e', 'r', 'o', 'n', ':', 'i', 'p', 'c' /* seq 7 of commands-c-client.txt */
    };
    const asi_cmd_subscription command = {
        .correlated = { .client_id = 1, .correlation_id = 5 }, .stream_id = 1001, .channel_length = 9
    };
    uint8_t built[sizeof(STOCK)];
    memcpy(built, &command, sizeof(command));
    memcpy(built + sizeof(command), "aeron:ipc", 9);
    CHECK(0 == memcmp(built, STOCK, sizeof(STOCK)));
}

int main(void)
{
    RUN(describes_captured_messages);
    RUN(builds_the_bytes_of_a_stock_command);
    return 0;
}
