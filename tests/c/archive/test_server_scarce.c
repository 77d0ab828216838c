/* Goal: when the driver lacks a resource, the request is refused with the reason and can be repeated; a socket that the driver is
 * still closing is waited for; the archive keeps serving. Method: the test allocates all counters and frees them; it requests an
 * endpoint in the duty cycle that closes it. */
#define _GNU_SOURCE /* memmem */
#define RIG_SET_DRIVER(config)                                                                             \
    CHECK_I64(as_driver_config_set(config, "aeron.counters.buffer.length", "1m"), AS_OK);                  \
    CHECK_I64(as_driver_config_set(config, "aeron.counters.free.to.reuse.timeout", "0"), AS_OK)
#include "server_rig.h"

#define NEIGHBOURS_MAX 10000
#define TRIES 200

static as_counter *taken[NEIGHBOURS_MAX];
static int taken_count;

static void take_all_counters(test_rig *rig)
{
    as_result result = AS_OK;
    while (AS_OK == result && taken_count < NEIGHBOURS_MAX)
    {
        result = as_client_add_counter(rig->client, 2001, NULL, 0, "neighbour", &taken[taken_count]);
        taken_count += AS_OK == result;
    }
    CHECK_I64(result, AS_E_PEER);
    CHECK(taken_count > 10);
}

static void give_counters_back(test_rig *rig)
{
    while (taken_count > 0)
    {
        as_counter_close(taken[--taken_count]);
    }
    as_counter *counter = NULL;
    UNTIL(rig, AS_OK == as_client_add_counter(rig->client, 2001, NULL, 0, "one", &counter));
    as_counter_close(counter);
}

static const asi_codec_event *nth_response(const raw_session *session, int64_t correlation_id, int n)
{
    for (int i = 0; i < session->event_count; i++)
    {
        const asi_codec_event *event = &session->events[i];
        if (ASI_CODEC_CONTROL_RESPONSE == event->template_id && event->correlation_id == correlation_id && 0 == n--)
        {
            return event;
        }
    }
    return NULL;
}

/* Spec: 08 §3 - a recording has a counter. One is left, which the subscriber takes: the image is there and can't be recorded, which is
 * told on the request that asked, and leaves an empty recording behind. */
static void a_recording_without_a_counter_is_refused_and_can_be_asked_for_again(void)
{
    test_rig rig;
    rig_open(&rig);
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    raw_recording first = raw_start(session, 1001, true);
    as_publication *publication = NULL;
    CHECK_I64(as_client_add_exclusive_publication(rig.client, RIG_CHANNEL, 1002, &publication), AS_OK);
    take_all_counters(&rig);
    as_counter_close(taken[--taken_count]);
    asi_codec_request start = start_of(RIG_CHANNEL, 1002, true);
    const int64_t subscription_id = raw_ask_ok(session, &start);
    const asi_codec_event *refused = NULL;
    UNTIL(&rig, (raw_poll(session), NULL != (refused = nth_response(session, start.correlation_id, 1))));
    CHECK_I64(refused->code, ASI_CODEC_ERROR);
    CHECK_I64(refused->relevant_id, ASI_CODEC_E_GENERIC);
    CHECK(NULL != memmem(refused->error_message.data, (size_t)refused->error_message.length, "counter", 7));
    CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, first.id + 1), 0);

    /* What is recorded already goes on. */
    const int64_t position = publish(&rig, first.publication, 500, 20);
    UNTIL(&rig, raw_position(session, ASI_CODEC_RECORDING_POSITION, first.id) == position);

    give_counters_back(&rig);
    asi_codec_request stop = request_of(ASI_CODEC_STOP_RECORDING_SUBSCRIPTION, AS_NULL_VALUE);
    stop.subscription_id = subscription_id;
    (void)raw_ask(session, &stop); /* it may have gone with its only image */
    (void)raw_ask_ok(session, &start);
    CHECK_I64(raw_await_signal(session, AS_SIGNAL_START, start.correlation_id)->recording_id, first.id + 2);
    as_publication_close(first.publication);
    as_publication_close(publication);
    raw_close(session);
    rig_close(&rig);
}

/* Spec: 03 §6.8 - the driver may still be closing the endpoint of the recording that was just stopped. */
static void a_channel_is_recorded_again_as_soon_as_it_was_stopped(void)
{
    test_rig rig;
    rig_open(&rig);
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    asi_codec_request start = start_of("aeron:udp?endpoint=localhost:24377", 1001, true);
    start.source_location = AS_SOURCE_REMOTE;
    asi_codec_request stop = request_of(ASI_CODEC_STOP_RECORDING, AS_NULL_VALUE);
    stop.channel = start.channel;
    stop.stream_id = start.stream_id;
    raw_ask_ok(session, &start);
    for (int i = 0; i < TRIES; i++)
    {
        raw_send(session, &stop);
        raw_ask_ok(session, &start);
        CHECK_I64(raw_await(session, ASI_CODEC_CONTROL_RESPONSE, stop.correlation_id)->code, ASI_CODEC_OK);
        raw_forget(session);
    }
    raw_close(session);
    rig_close(&rig);
}

int main(void)
{
    RUN(a_recording_without_a_counter_is_refused_and_can_be_asked_for_again);
    RUN(a_channel_is_recorded_again_as_soon_as_it_was_stopped);
    return 0;
}
