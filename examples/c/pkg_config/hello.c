/* Publishes ten messages and receives them: an Aeron stream in one process, over the media driver that runs in AERON_DIR.
 *
 *      aeron-spark-driver &
 *      make && ./hello
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aeron_spark/as_client.h"

#define CHANNEL "aeron:ipc"
#define STREAM_ID 1001
#define MESSAGE_COUNT 10
#define TIMEOUT_NS 5000000000L

static void check(as_result result)
{
    if (AS_OK != result)
    {
        fprintf(stderr, "hello: %s\n", as_error_text()); /* names the object, the reason and the remedy */
        exit(1);
    }
}

static void on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    int *received = context;
    (*received)++;
    printf("%.*s, up to position %ld\n", (int)length, (const char *)data, (long)header->position);
}

/* Messages lie one behind the other, as in an Arrow array: message i is data[offsets[i] .. offsets[i + 1]). */
static void publish(as_publication *publication)
{
    char data[MESSAGE_COUNT * 16];
    int32_t offsets[MESSAGE_COUNT + 1] = { 0 };
    for (int i = 0; i < MESSAGE_COUNT; i++)
    {
        offsets[i + 1] = offsets[i] + sprintf(data + offsets[i], "hello %d", i);
    }
    const as_messages messages = { .count = MESSAGE_COUNT, .data = (const uint8_t *)data, .offsets32 = offsets };
    as_offer_outcome outcome;
    check(as_publication_offer_messages(publication, &messages, TIMEOUT_NS, &outcome)); /* waits for a subscriber and for room */
}

int main(void)
{
    as_client_options options;
    as_client *client;
    as_subscription *subscription;
    as_publication *publication;
    as_client_options_init(&options);
    check(as_client_open(&options, &client));
    check(as_client_add_subscription(client, CHANNEL, STREAM_ID, &subscription));
    check(as_client_add_publication(client, CHANNEL, STREAM_ID, &publication));
    publish(publication);

    int received = 0;
    while (received < MESSAGE_COUNT)
    {
        const int64_t polled = as_subscription_poll(subscription, on_message, &received, MESSAGE_COUNT);
        check(polled < 0 ? (as_result)polled : AS_OK);
    }
    as_publication_close(publication);
    as_subscription_close(subscription);
    as_client_close(client);
    return 0;
}
