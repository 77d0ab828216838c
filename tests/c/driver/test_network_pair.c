/* Streams between two drivers of ours over loopback: every kind of channel, with and without loss, on threads and invoked;
 * published bytes arrive unchanged, and every resource is released at the end. Method: network_worlds.h. Spec: 11 §3. */
#include "driver/network_worlds.h"
#include "shm/log_layout.h"
#include "shm/ring_mpsc.h"
#include "wire/command.h"

#define MESSAGES 2000

typedef struct streams
{
    worlds ws;
    as_publication *publication;
    as_subscription *subscription;
} streams;

static void open_streams(streams *s, const char *mode, const char *to_publish, const char *to_subscribe,
    const setting_pair *of_a, const setting_pair *of_b)
{
    worlds_open(&s->ws, mode, of_a, of_b);
    s->subscription = world_subscription(&s->ws.b, to_subscribe);
    s->publication = world_publication(&s->ws.a, to_publish, false);
}

static void close_streams(streams *s)
{
    as_publication_close(s->publication);
    as_subscription_close(s->subscription);
    worlds_close(&s->ws);
}

static void exchange(const char *mode, const char *to_publish, const char *to_subscribe, const setting_pair *of_b)
{
    streams s;
    open_streams(&s, mode, to_publish, to_subscribe, NULL, of_b);
    run_stream(&s.ws, s.publication, s.subscription, MESSAGES);
    CHECK_I64(world_counter(&s.ws.a, ASI_SYSTEM_ERRORS), 0);
    CHECK_I64(world_counter(&s.ws.b, ASI_SYSTEM_ERRORS), 0);
    CHECK_I64(world_counter(&s.ws.a, ASI_SYSTEM_INVALID_PACKETS), 0);
    CHECK_I64(world_counter(&s.ws.b, ASI_SYSTEM_INVALID_PACKETS), 0);
    close_streams(&s);
}

static char *channel_text(char *to, const char *format, int port)
{
    snprintf(to, 256, format, port);
    return to;
}

static void unicast(void)
{
    char channel[256];
    exchange("INVOKER", channel_text(channel, "aeron:udp?endpoint=localhost:%d", free_port()), channel, NULL);
}

static void threads(void)
{
    char channel[256];
    exchange("DEDICATED", channel_text(channel, "aeron:udp?endpoint=127.0.0.1:%d", free_port()), channel, NULL);
    exchange("SHARED_NETWORK", channel_text(channel, "aeron:udp?endpoint=127.0.0.1:%d", free_port()), channel, NULL);
    exchange("SHARED", channel_text(channel, "aeron:udp?endpoint=127.0.0.1:%d", free_port()), channel, NULL);
}

static void ipv6(void)
{
    char channel[256];
    exchange("INVOKER", channel_text(channel, "aeron:udp?endpoint=[::1]:%d", free_port()), channel, NULL);
}

static void loss(void)
{
    char channel[256];
    const setting_pair lossy[] = { { "aeron.udp.channel.incoming.interceptors", "loss" },
        { "aeron.udp.channel.transport.bindings.loss.args", "rate=0.1|seed=4711|recv-msg-mask=0xf" }, { NULL, NULL } };
    exchange("INVOKER", channel_text(channel, "aeron:udp?endpoint=localhost:%d", free_port()), channel, lossy);
}

static void multicast(void)
{
    char channel[256];
    exchange("INVOKER", channel_text(channel, "aeron:udp?endpoint=224.20.30.39:%d|interface=localhost", free_port()), channel,
        NULL);
}

static void dynamic_destinations(void)
{
    char publish[256];
    char subscribe[256];
    const int port = free_port();
    snprintf(subscribe, sizeof(subscribe), "aeron:udp?endpoint=localhost:%d|control=localhost:%d|control-mode=dynamic",
        free_port(), port);
    exchange("INVOKER", channel_text(publish, "aeron:udp?control=localhost:%d|control-mode=dynamic", port), subscribe, NULL);
}

static void manual_destinations(void)
{
    streams s;
    char subscribe[256];
    open_streams(&s, "INVOKER", "aeron:udp?control-mode=manual",
        channel_text(subscribe, "aeron:udp?endpoint=localhost:%d", free_port()), NULL, NULL);
    CHECK_I64(as_publication_add_destination(s.publication, subscribe), AS_OK);
    run_stream(&s.ws, s.publication, s.subscription, MESSAGES);
    CHECK_I64(as_publication_remove_destination(s.publication, subscribe), AS_OK);
    TURN_UNTIL(&s.ws, !as_subscription_is_connected(s.subscription));
    close_streams(&s);
}

static void multi_destination_subscription(void)
{
    streams s;
    char channel[256];
    open_streams(&s, "INVOKER", channel_text(channel, "aeron:udp?endpoint=localhost:%d", free_port()),
        "aeron:udp?control-mode=manual", NULL, NULL);
    CHECK_I64(as_subscription_add_destination(s.subscription, channel), AS_OK);
    run_stream(&s.ws, s.publication, s.subscription, MESSAGES);
    CHECK_I64(as_subscription_remove_destination(s.subscription, channel), AS_OK);
    TURN_UNTIL(&s.ws, !as_subscription_is_connected(s.subscription));
    close_streams(&s);
}

/* The spy lives in the publisher's driver and reads its log. */
static void spies(void)
{
    streams s;
    char channel[256];
    char spying[300];
    channel_text(channel, "aeron:udp?endpoint=localhost:%d|ssc=true", free_port());
    snprintf(spying, sizeof(spying), "aeron-spy:%s", channel);
    worlds_open(&s.ws, "INVOKER", NULL, NULL);
    s.publication = world_publication(&s.ws.a, channel, false);
    s.subscription = world_subscription(&s.ws.a, spying);
    run_stream(&s.ws, s.publication, s.subscription, MESSAGES);
    close_streams(&s);
}

/* What a driver holds: allocated counters, bytes mapped, files of logs. */
static int32_t allocated_counters(const world *w)
{
    asi_cnc cnc;
    asi_counters counters;
    int32_t count = 0;
    CHECK_I64(asi_cnc_open_untrusted(&cnc, w->dir), AS_OK);
    CHECK_I64(asi_counters_init(&counters, cnc.counters_metadata, cnc.lengths.counters_metadata, cnc.counters_values,
        cnc.lengths.counters_values), AS_OK);
    for (int32_t i = 0; i < counters.max_count; i++)
    {
        count += ASI_COUNTER_ALLOCATED == asi_counter_state(&counters, i) ? 1 : 0;
    }
    asi_cnc_close(&cnc);
    return count;
}

/* A stream that is closed on both sides leaves nothing behind, and its end is reported in order. */
static void closing(void)
{
    streams s;
    char channel[256];
    channel_text(channel, "aeron:udp?endpoint=localhost:%d", free_port());
    worlds_open(&s.ws, "INVOKER", NULL, NULL);
    as_publication *ipc = world_publication(&s.ws.a, "aeron:ipc", false); /* makes the clients known */
    as_subscription *other = world_subscription(&s.ws.b, "aeron:ipc");
    worlds_turn(&s.ws);
    const int32_t before_a = allocated_counters(&s.ws.a);
    const int32_t before_b = allocated_counters(&s.ws.b);
    const int64_t mapped_a = world_counter(&s.ws.a, ASI_SYSTEM_BYTES_CURRENTLY_MAPPED);
    const int64_t mapped_b = world_counter(&s.ws.b, ASI_SYSTEM_BYTES_CURRENTLY_MAPPED);
    s.subscription = world_subscription(&s.ws.b, channel);
    s.publication = world_publication(&s.ws.a, channel, true);
    run_stream(&s.ws, s.publication, s.subscription, 100);
    CHECK(allocated_counters(&s.ws.a) > before_a && allocated_counters(&s.ws.b) > before_b);
    as_publication_close(s.publication);
    TURN_UNTIL(&s.ws, 0 == as_subscription_image_count(s.subscription));
    CHECK_I64(s.ws.b.unavailable_images, 1);
    TURN_UNTIL(&s.ws, before_a == allocated_counters(&s.ws.a));
    as_subscription_close(s.subscription);
    TURN_UNTIL(&s.ws, before_b == allocated_counters(&s.ws.b));
    CHECK_I64(world_counter(&s.ws.a, ASI_SYSTEM_BYTES_CURRENTLY_MAPPED), mapped_a);
    CHECK_I64(world_counter(&s.ws.b, ASI_SYSTEM_BYTES_CURRENTLY_MAPPED), mapped_b);
    as_publication_close(ipc);
    as_subscription_close(other);
    worlds_close(&s.ws);
}

/* The publisher lingers for more than the 100 ms between two heartbeats, which carry the reason. */
static void revoking(void)
{
    streams s;
    char channel[256];
    const setting_pair lingering[] = { { "aeron.publication.linger.timeout", "5s" }, { NULL, NULL } };
    channel_text(channel, "aeron:udp?endpoint=localhost:%d", free_port());
    open_streams(&s, "INVOKER", channel, channel, lingering, NULL);
    run_stream(&s.ws, s.publication, s.subscription, 100);
    as_publication_revoke(s.publication);
    TURN_UNTIL(&s.ws, 0 == as_subscription_image_count(s.subscription));
    CHECK_I64(world_counter(&s.ws.a, ASI_SYSTEM_PUBLICATIONS_REVOKED), 1);
    CHECK_I64(world_counter(&s.ws.b, ASI_SYSTEM_PUBLICATION_IMAGES_REVOKED), 1);
    as_subscription_close(s.subscription);
    worlds_close(&s.ws);
}

/* A raw command beside the client's own. */
static void send_command(world *w, int32_t type_id, const void *message, int64_t length)
{
    asi_cnc cnc;
    asi_ring_mpsc ring;
    CHECK_I64(asi_cnc_open_untrusted(&cnc, w->dir), AS_OK);
    CHECK_I64(asi_ring_mpsc_init(&ring, cnc.to_driver, cnc.lengths.to_driver), AS_OK);
    CHECK_I64(asi_ring_mpsc_write(&ring, type_id, message, length), AS_OK);
    asi_cnc_close(&cnc);
}

/* B rejects the image: A's client hears of it, and the stream comes back after the image has died. */
static void rejection(void)
{
    streams s;
    char channel[256];
    channel_text(channel, "aeron:udp?endpoint=localhost:%d", free_port());
    open_streams(&s, "INVOKER", channel, channel, NULL, NULL);
    run_stream(&s.ws, s.publication, s.subscription, 10);
    as_image *image = as_subscription_image_at(s.subscription, 0);
    as_image_constants constants;
    as_image_get_constants(image, &constants);
    struct __attribute__((packed))
    {
        asi_cmd_reject_image command;
        char reason[8];
    } message = { { { as_client_id(s.ws.b.client), 0x7777 }, constants.correlation_id, 0, 8 }, "too slow" };
    send_command(&s.ws.b, ASI_CMD_REJECT_IMAGE, &message, sizeof(message));
    TURN_UNTIL(&s.ws, 1 == s.ws.a.publication_errors);
    CHECK_I64(s.ws.a.publication_error_code, ASI_ERR_IMAGE_REJECTED);
    CHECK_I64(world_counter(&s.ws.b, ASI_SYSTEM_IMAGES_REJECTED), 1);
    CHECK(world_counter(&s.ws.b, ASI_SYSTEM_ERROR_FRAMES_SENT) > 0);
    CHECK(world_counter(&s.ws.a, ASI_SYSTEM_ERROR_FRAMES_RECEIVED) > 0);
    TURN_UNTIL(&s.ws, !as_publication_is_connected(s.publication));
    TURN_UNTIL(&s.ws, 1 == s.ws.b.unavailable_images);
    as_image_release(image);
    TURN_UNTIL(&s.ws, 2 == s.ws.b.available_images);
    TURN_UNTIL(&s.ws, as_publication_is_connected(s.publication));
    close_streams(&s);
}

/* A asks, B answers on a channel of the request's own. Spec: 04 §14. */
typedef struct response_streams
{
    worlds ws;
    as_subscription *requests;
    as_subscription *answers;
    as_publication *asking;
    as_image *request;
    char answer_channel[256];
} response_streams;

static void open_request(response_streams *s)
{
    char channel[256];
    char text[512];
    const int request_port = free_port();
    const int response_port = free_port();
    worlds_open(&s->ws, "INVOKER", NULL, NULL);
    s->requests = world_subscription(&s->ws.b, channel_text(channel, "aeron:udp?endpoint=localhost:%d", request_port));
    snprintf(text, sizeof(text), "aeron:udp?control-mode=response|control=localhost:%d", response_port);
    s->answers = world_subscription(&s->ws.a, text);
    as_subscription_constants answering;
    as_subscription_get_constants(s->answers, &answering);
    snprintf(text, sizeof(text), "%s|response-correlation-id=%" PRId64, channel, answering.registration_id);
    s->asking = world_publication(&s->ws.a, text, true);
    TURN_UNTIL(&s->ws, 1 == as_subscription_image_count(s->requests));
    s->request = as_subscription_image_at(s->requests, 0);
    as_image_constants constants;
    as_image_get_constants(s->request, &constants);
    snprintf(s->answer_channel, sizeof(s->answer_channel),
        "aeron:udp?control-mode=response|control=localhost:%d|response-correlation-id=%" PRId64, response_port,
        constants.correlation_id);
}

static void close_request(response_streams *s)
{
    as_image_release(s->request);
    as_subscription_close(s->answers);
    as_subscription_close(s->requests);
    worlds_close(&s->ws);
}

static void responses(void)
{
    response_streams s;
    open_request(&s);
    as_publication *answer = world_publication(&s.ws.b, s.answer_channel, true);
    run_stream(&s.ws, s.asking, s.requests, 100);
    worlds turned = { .a = s.ws.b, .b = s.ws.a }; /* the other way */
    run_stream(&turned, answer, s.answers, 100);
    as_publication_close(answer);
    as_publication_close(s.asking);
    close_request(&s);
}

/* As a client does that asks an archive for a replay: the answer's stream begins when the request's has ended. */
static void responses_to_a_request_that_ends(void)
{
    for (int i = 0; i < 10; i++)
    {
        response_streams s;
        open_request(&s);
        as_publication *answer = world_publication(&s.ws.b, s.answer_channel, true);
        as_publication_close(s.asking);
        worlds turned = { .a = s.ws.b, .b = s.ws.a };
        run_stream(&turned, answer, s.answers, 10);
        as_publication_close(answer);
        close_request(&s);
    }
}

/* Text of the first counter of a type whose label holds `part`; false when there is none. */
static bool find_label(const world *w, int32_t type_id, const char *part, char *label)
{
    asi_cnc cnc;
    asi_counters counters;
    bool found = false;
    CHECK_I64(asi_cnc_open_untrusted(&cnc, w->dir), AS_OK);
    CHECK_I64(asi_counters_init(&counters, cnc.counters_metadata, cnc.lengths.counters_metadata, cnc.counters_values,
        cnc.lengths.counters_values), AS_OK);
    for (int32_t i = 0; i < counters.max_count && !found; i++)
    {
        if (ASI_COUNTER_ALLOCATED == asi_counter_state(&counters, i) && type_id == counters.metadata[i].type_id)
        {
            asi_counter_label(&counters, i, label);
            found = NULL != strstr(label, part);
        }
    }
    asi_cnc_close(&cnc);
    return found;
}

static int bound_port(const world *w, char *label)
{
    CHECK(find_label(w, ASI_COUNTER_TYPE_LOCAL_SOCKADDR, "rcv-local-sockaddr: ", label));
    return (int)strtol(strrchr(label, ':') + 1, NULL, 10);
}

/* Port 0: the real one is in the counter, and of the configured range. */
static void wildcard_ports(void)
{
    worlds ws;
    char label[ASI_COUNTER_LABEL_CAPACITY + 1];
    char channel[256];
    char range[32];
    const int low = free_ports(5);
    snprintf(range, sizeof(range), "%d %d", low, low + 4);
    const setting_pair ranged[] = { { "aeron.receiver.wildcard.port.range", range }, { NULL, NULL } };
    worlds_open(&ws, "INVOKER", NULL, ranged);
    as_subscription *subscription = world_subscription(&ws.b, "aeron:udp?endpoint=127.0.0.1:0");
    const int port = bound_port(&ws.b, label);
    CHECK(port >= low && port <= low + 4);
    as_publication *publication = world_publication(&ws.a, channel_text(channel, "aeron:udp?endpoint=127.0.0.1:%d", port), true);
    run_stream(&ws, publication, subscription, 100);
    CHECK(find_label(&ws.b, ASI_COUNTER_TYPE_RECEIVE_CHANNEL_STATUS, "rcv-channel: aeron:udp?endpoint=127.0.0.1:0 127.0.0.1:",
        label));
    as_publication_close(publication);
    as_subscription_close(subscription);
    worlds_close(&ws);
}

static void a_late_subscriber_joins_where_the_slowest_is(void)
{
    streams s;
    char channel[256];
    channel_text(channel, "aeron:udp?endpoint=localhost:%d", free_port());
    open_streams(&s, "INVOKER", channel, channel, NULL, NULL);
    run_stream(&s.ws, s.publication, s.subscription, 10);
    as_subscription *late = world_subscription(&s.ws.b, channel);
    TURN_UNTIL(&s.ws, 1 == as_subscription_image_count(late));
    as_image *first = as_subscription_image_at(s.subscription, 0);
    as_image *second = as_subscription_image_at(late, 0);
    as_image_constants constants;
    as_image_get_constants(second, &constants);
    CHECK_I64(constants.join_position, as_image_position(first));
    as_image_release(first);
    as_image_release(second);
    as_subscription_close(late);
    close_streams(&s);
}

static void ignore_block(void *context, const uint8_t *block, int64_t length, int32_t session_id, int32_t term_id)
{
    (void)context;
    (void)block;
    (void)length;
    (void)session_id;
    (void)term_id;
}

/* reliable=false: lost data becomes padding, and no NAK is sent. */
static void unreliable(void)
{
    streams s;
    char channel[256];
    char subscribe[300];
    const setting_pair lossy[] = { { "aeron.udp.channel.incoming.interceptors", "loss" },
        { "aeron.udp.channel.transport.bindings.loss.args", "rate=0.1|seed=4711|recv-msg-mask=0x2" }, { NULL, NULL } };
    channel_text(channel, "aeron:udp?endpoint=localhost:%d", free_port());
    snprintf(subscribe, sizeof(subscribe), "%s|reliable=false", channel);
    open_streams(&s, "INVOKER", channel, subscribe, NULL, lossy);
    TURN_UNTIL(&s.ws, 1 == as_subscription_image_count(s.subscription));
    as_image *image = as_subscription_image_at(s.subscription, 0);
    int64_t position = 0;
    uint8_t message[1000] = { 0 };
    for (int sent = 0; sent < 500;)
    {
        const int64_t offered = as_publication_offer(s.publication, message, sizeof(message));
        position = offered > 0 ? offered : position;
        sent += offered > 0 ? 1 : 0;
        CHECK(as_image_block_poll(image, ignore_block, NULL, 65536) >= 0);
        worlds_turn(&s.ws);
    }
    as_image_release(image);
    CHECK(world_counter(&s.ws.b, ASI_SYSTEM_LOSS_GAP_FILLS) > 0);
    CHECK_I64(world_counter(&s.ws.b, ASI_SYSTEM_NAKS_SENT), 0);
    CHECK_I64(world_counter(&s.ws.a, ASI_SYSTEM_RETRANSMITS_SENT), 0);
    close_streams(&s);
}

/* A publisher's driver that dies without a word: the image goes after the liveness timeout, and comes back with a new driver. */
static void a_driver_dies(void)
{
    streams s;
    char channel[256];
    channel_text(channel, "aeron:udp?endpoint=localhost:%d|session-id=7", free_port());
    open_streams(&s, "INVOKER", channel, channel, NULL, NULL);
    run_stream(&s.ws, s.publication, s.subscription, 10);
    as_publication_close(s.publication);
    world_close(&s.ws.a);
    const int64_t deadline_ns = test_now_ns() + TIMEOUT_NS;
    while (0 == s.ws.b.unavailable_images)
    {
        CHECK(test_now_ns() < deadline_ns);
        world_turn(&s.ws.b);
    }
    worlds_open_one(&s.ws.a, "INVOKER", NULL);
    s.publication = world_publication(&s.ws.a, channel, true);
    run_stream(&s.ws, s.publication, s.subscription, 10);
    CHECK_I64(s.ws.b.available_images, 2);
    close_streams(&s);
}

/* Hundreds of streams over one endpoint: all live, and all given back. */
static void many_streams(void)
{
    enum { COUNT = 300 };
    worlds ws;
    char channel[256];
    as_publication *publications[COUNT];
    as_subscription *subscriptions[COUNT];
    channel_text(channel, "aeron:udp?endpoint=localhost:%d|term-length=64k", free_port());
    const setting_pair unhurried[] = { { "aeron.image.liveness.timeout", "5s" },
        { "aeron.rcv.status.message.timeout", "200ms" }, { NULL, NULL } };
    worlds_open(&ws, "INVOKER", unhurried, unhurried);
    for (int32_t i = 0; i < COUNT; i++)
    {
        CHECK_I64(as_client_add_subscription(ws.b.client, channel, i, &subscriptions[i]), AS_OK);
        CHECK_I64(as_client_add_publication(ws.a.client, channel, i, &publications[i]), AS_OK);
    }
    for (int32_t i = 0; i < COUNT; i++)
    {
        TURN_UNTIL(&ws, as_publication_is_connected(publications[i]));
        run_stream(&ws, publications[i], subscriptions[i], 2);
    }
    for (int32_t i = 0; i < COUNT; i++)
    {
        as_publication_close(publications[i]);
        as_subscription_close(subscriptions[i]);
    }
    for (int i = 0; allocated_counters(&ws.a) > 50 || allocated_counters(&ws.b) > 50; i++) /* counting takes longer than a turn */
    {
        const int64_t until_ns = test_now_ns() + 100000000;
        TURN_UNTIL(&ws, test_now_ns() > until_ns);
        CHECK(i < 200);
    }
    CHECK_I64(world_counter(&ws.a, ASI_SYSTEM_ERRORS), 0);
    CHECK_I64(world_counter(&ws.b, ASI_SYSTEM_ERRORS), 0);
    worlds_close(&ws);
}

/* At its maximum position a stream stays as any other that pauses: for longer than an image lives without heartbeats there is one
 * image, no error, and a connection. Then it ends as others do. */
static void the_maximum_position(void)
{
    streams s;
    char channel[256];
    char to_publish[512];
    char label[ASI_COUNTER_LABEL_CAPACITY + 1];
    const setting_pair quick[] = { { "aeron.image.liveness.timeout", "500ms" }, { NULL, NULL } };
    channel_text(channel, "aeron:udp?endpoint=localhost:%d", free_port());
    snprintf(to_publish, sizeof(to_publish), "%s|init-term-id=7|term-id=-2147483642|term-offset=0", channel);
    open_streams(&s, "INVOKER", to_publish, channel, NULL, quick);
    TURN_UNTIL(&s.ws, as_publication_is_connected(s.publication) && 1 == as_subscription_image_count(s.subscription));
    as_image *image = as_subscription_image_at(s.subscription, 0);
    uint8_t message[1376] = { 0 };
    int64_t offered = 0;
    TURN_UNTIL(&s.ws, (as_image_block_poll(image, ignore_block, NULL, 65536) >= 0 &&
        AS_MAX_POSITION_EXCEEDED == (offered = as_publication_offer(s.publication, message, sizeof(message)))));
    TURN_UNTIL(&s.ws, (as_image_block_poll(image, ignore_block, NULL, 65536) >= 0 &&
        asi_log_max_position(AS_TERM_MIN_LENGTH) == as_image_position(image)));
    const int64_t heard = world_counter(&s.ws.b, ASI_SYSTEM_HEARTBEATS_RECEIVED);
    TURN_UNTIL(&s.ws, world_counter(&s.ws.b, ASI_SYSTEM_HEARTBEATS_RECEIVED) >= heard + 10);
    CHECK(as_publication_is_connected(s.publication));
    CHECK_I64(s.ws.b.available_images, 1);
    as_publication_close(s.publication);
    TURN_UNTIL(&s.ws, 1 == s.ws.b.unavailable_images);
    TURN_UNTIL(&s.ws, !find_label(&s.ws.a, ASI_COUNTER_TYPE_SENDER_POSITION, "", label));
    CHECK_I64(s.ws.b.available_images, 1);
    for (int32_t i = 0; i < 2; i++)
    {
        const world *w = 0 == i ? &s.ws.a : &s.ws.b;
        CHECK_I64(world_counter(w, ASI_SYSTEM_ERRORS), 0);
        CHECK_I64(world_counter(w, ASI_SYSTEM_INVALID_PACKETS), 0);
        CHECK_I64(world_counter(w, ASI_SYSTEM_STATUS_MESSAGES_REJECTED), 0);
    }
    as_image_release(image);
    as_subscription_close(s.subscription);
    worlds_close(&s.ws);
}

int main(void)
{
    RUN(unicast);
    RUN(threads);
    RUN(ipv6);
    RUN(loss);
    RUN(multicast);
    RUN(dynamic_destinations);
    RUN(manual_destinations);
    RUN(multi_destination_subscription);
    RUN(spies);
    RUN(closing);
    RUN(revoking);
    RUN(rejection);
    RUN(responses);
    RUN(responses_to_a_request_that_ends);
    RUN(wildcard_ports);
    RUN(a_late_subscriber_joins_where_the_slowest_is);
    RUN(unreliable);
    RUN(a_driver_dies);
    RUN(many_streams);
    RUN(the_maximum_position);
    return 0;
}
