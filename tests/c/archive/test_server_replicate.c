/* Goal: replication refuses and reports as Spec: 08 §10 says, and always leaves a destination that can be replicated further.
 * Method: source and destination are our archives on one driver, in one thread, under one clock; a bare session asks; the test
 * checks messages, catalog and every byte of the segment files. tests/conformance/archive/test_replication.py has the
 * successful scenarios. */
#include "replicate_rig.h"

/* Scenario 87, and going on from there: first to a later position, then to the end. */
static void a_copy_ends_at_the_stop_position_and_goes_on_from_there(pair *p)
{
    pair_start(p);
    const raw_recording recording = raw_record(p->source, SOURCE_STREAM, 1024, 200); /* frames of 1056 bytes */
    const int64_t stop = raw_position(p->source, ASI_CODEC_STOP_POSITION, recording.id);
    asi_codec_request request = replicate_of(recording.id, AS_NULL_VALUE);
    request.stop_position = 2112;
    int64_t id = pair_replicate(p, &request);
    const int64_t copy = pair_await_end(p, id)->recording_id;
    CHECK_I64(raw_await_signal(p->destination, AS_SIGNAL_STOP, id)->position, 2112);
    for (int i = 0; NULL != nth_event(p->destination, id, i); i++)
    {
        CHECK(AS_SIGNAL_SYNC != nth_event(p->destination, id, i)->signal);
    }
    CHECK_I64(destination_record(p, copy).stop_position, 2112);

    /* A position that lies behind the copy already: nothing to do. */
    raw_forget(p->destination);
    request = replicate_of(recording.id, copy);
    request.stop_position = 1056;
    id = pair_replicate(p, &request);
    pair_await_end(p, id);
    CHECK_I64(p->destination->event_count, 2); /* the OK and REPLICATE_END */
    CHECK_I64(destination_record(p, copy).stop_position, 2112);

    request = replicate_of(recording.id, copy);
    request.file_io_max_length = 4096;
    id = pair_replicate(p, &request);
    CHECK_I64(raw_await_signal(p->destination, AS_SIGNAL_EXTEND, id)->position, 2112);
    CHECK_I64(raw_await_signal(p->destination, AS_SIGNAL_SYNC, id)->position, stop);
    CHECK_I64(raw_await_signal(p->destination, AS_SIGNAL_STOP, id)->position, stop);
    check_same_bytes(p, recording.id, copy, 0, stop);
}


/* The destination was free when it was asked for, and is written when the source's descriptor comes. */
static void a_destination_that_is_written_meanwhile_is_refused(void)
{
    pair p;
    char text[128];
    pair_open(&p);
    pair_start(&p);
    const raw_recording source = raw_record(p.source, SOURCE_STREAM, 1000, 5);
    p.rig.control_stream = 0;
    const raw_recording own = raw_record(p.destination, SOURCE_STREAM + 1, 1000, 2);
    const asi_catalog_record record = destination_record(&p, own.id);
    as_archive *held = p.rig.other;
    p.rig.other = NULL;
    asi_codec_request request = replicate_of(source.id, own.id);
    const int64_t id = pair_replicate(&p, &request);
    snprintf(text, sizeof(text), RIG_CHANNEL "|init-term-id=%d|term-id=%d|term-offset=%d", record.initial_term_id,
        record.initial_term_id, (int32_t)record.stop_position);
    as_publication *publication = NULL;
    CHECK_I64(as_client_add_exclusive_publication(p.rig.client, text, SOURCE_STREAM + 1, &publication), AS_OK);
    request = extend_of(own.id, RIG_CHANNEL, SOURCE_STREAM + 1, true);
    raw_ask_ok(p.destination, &request);
    raw_await_signal(p.destination, AS_SIGNAL_EXTEND, request.correlation_id);
    p.rig.other = held;
    pair_await_end(&p, id);
    snprintf(text, sizeof(text), "cannot replicate to active recording %" PRId64, own.id);
    check_error(nth_event(p.destination, id, 0), ASI_CODEC_E_GENERIC, text);
    as_publication_close(publication);
    pair_close(&p);
}

/* Scenario 90, and the rest of what a source can refuse. */
static void what_the_source_lacks_is_told(pair *p)
{
    pair_start(p);
    asi_codec_request request = replicate_of(77, AS_NULL_VALUE);
    int64_t id = pair_replicate(p, &request);
    CHECK_I64(pair_await_end(p, id)->recording_id, AS_NULL_VALUE);
    check_error(nth_event(p->destination, id, 0), ASI_CODEC_E_UNKNOWN_RECORDING, "unknown src recording id 77");
    check_signal(nth_event(p->destination, id, 1), AS_SIGNAL_REPLICATE_END, AS_NULL_VALUE, AS_NULL_VALUE);

    const raw_recording recording = raw_record(p->source, SOURCE_STREAM, 100, 10);
    request = replicate_of(recording.id, AS_NULL_VALUE);
    request.file_io_max_length = 32;
    id = pair_replicate(p, &request);
    pair_await_end(p, id);
    check_error(nth_event(p->destination, id, 0), ASI_CODEC_E_GENERIC,
        "Replication fileIoMaxLength (32) is less than than the recording mtuLength (1408)");

    request = replicate_of(recording.id, AS_NULL_VALUE);
    request.live_destination = asi_codec_text("aeron:udp?endpoint=localhost:0");
    id = pair_replicate(p, &request);
    pair_await_end(p, id);
    check_signal(nth_event(p->destination, id, 0), AS_SIGNAL_REPLICATE, 0, 0);
    check_error(nth_event(p->destination, id, 1), ASI_CODEC_E_GENERIC, "cannot live merge without active source recording");

    request = replicate_of(recording.id, AS_NULL_VALUE);
    request.stop_position = -64;
    id = pair_replicate(p, &request);
    pair_await_end(p, id);
    check_signal(nth_event(p->destination, id, 0), AS_SIGNAL_REPLICATE, 1, 0);
    check_error(nth_event(p->destination, id, 1), ASI_CODEC_E_GENERIC,
        "ERROR - replay length must be positive: replayLength=-64, length=-64, stopPosition=1600, replayPosition=0 for recording 0");

    /* Nobody answers there: told after the message timeout. */
    request = replicate_of(recording.id, AS_NULL_VALUE);
    request.stream_id = 999;
    id = pair_replicate(p, &request);
    rig_turn_times(&p->rig, 100);
    CHECK(NULL == nth_event(p->destination, id, 0));
    p->rig.clock_ahead_ns += 11 * RIG_SECOND;
    pair_await_end(p, id);
    const asi_codec_event *refused = nth_event(p->destination, id, 0);
    CHECK_I64(refused->relevant_id, ASI_CODEC_E_REPLICATION_CONNECTION_FAILURE);
    CHECK(0 == memcmp(refused->error_message.data, "Replication connection failed=", 30));
    UNTIL(&p->rig, NULL == p->rig.archive->replications);
}

static void check_refused(pair *p, asi_codec_request *request, int32_t code, const char *text)
{
    check_error(raw_ask(p->destination, request), code, text);
    CHECK(NULL == p->rig.archive->replications);
}

/* Scenario 92, 89's second half, and what a stock archive is silent about. */
static void a_request_that_can_not_be_is_refused(pair *p)
{
    pair_start(p);
    asi_codec_request request = replicate_of(0, 5);
    check_refused(p, &request, ASI_CODEC_E_UNKNOWN_RECORDING, "unknown destination recording id 5");
    raw_recording active = raw_start(p->destination, 2002, true);
    request = replicate_of(0, active.id);
    check_refused(p, &request, ASI_CODEC_E_ACTIVE_RECORDING, "cannot replicate to active recording 0");
    raw_finish(p->destination, &active, 0);

    request = replicate_of(0, AS_NULL_VALUE);
    request.replication_channel = asi_codec_text("aeron:udp?control-mode=response|control=localhost:10001");
    request.live_destination = asi_codec_text("aeron:udp?endpoint=localhost:10002");
    check_refused(p, &request, ASI_CODEC_E_GENERIC, "response channels can't be used with live destinations");
    request.live_destination = asi_codec_text(NULL);
    request.subscription_tag_id = 3;
    check_refused(p, &request, ASI_CODEC_E_GENERIC, "response channels can't be used with tagged replication");
    request = replicate_of(0, AS_NULL_VALUE);
    request.replication_channel = asi_codec_text("nonsense");
    check_refused(p, &request, ASI_CODEC_E_GENERIC,
        "replicationChannel: Aeron URIs must start with 'aeron:', found: nonsense");
    request.replication_channel = asi_codec_text("aeron:udp?control=localhost:10001");
    check_refused(p, &request, ASI_CODEC_E_GENERIC,
        "replicationChannel aeron:udp?control=localhost:10001 has no endpoint for the source to replay to");
    request = replicate_of(0, AS_NULL_VALUE);
    request.live_destination = asi_codec_text("aeron:tcp");
    check_refused(p, &request, ASI_CODEC_E_GENERIC, "liveDestination: unknown media: tcp");

    /* Spec: 07 §7 - a source channel that can't be is accepted first. */
    request = replicate_of(0, AS_NULL_VALUE);
    request.channel = asi_codec_text("aeron:tcp");
    request.src_response_channel = asi_codec_text("aeron:ipc");
    const int64_t id = pair_replicate(p, &request);
    pair_await_end(p, id);
    CHECK_I64(nth_event(p->destination, id, 0)->code, ASI_CODEC_ERROR);
    CHECK_I64(nth_event(p->destination, id, 0)->relevant_id, ASI_CODEC_E_GENERIC);

    request = request_of(ASI_CODEC_STOP_REPLICATION, AS_NULL_VALUE);
    request.replication_id = id;
    char text[64];
    snprintf(text, sizeof(text), "unknown replication id %" PRId64, id);
    check_refused(p, &request, ASI_CODEC_E_UNKNOWN_REPLICATION, text);
}

/* Scenario 91: at any time. */
static void a_replication_can_be_stopped(pair *p)
{
    pair_start(p);
    raw_recording recording = raw_start(p->source, SOURCE_STREAM, true);
    const int64_t position = publish(&p->rig, recording.publication, 1000, 50);
    for (int turns = 0; turns < 40; turns += 3)
    {
        asi_codec_request request = replicate_of(recording.id, AS_NULL_VALUE);
        const int64_t id = pair_replicate(p, &request);
        rig_turn_times(&p->rig, turns);
        asi_codec_request stop = request_of(ASI_CODEC_STOP_REPLICATION, AS_NULL_VALUE);
        stop.replication_id = id;
        CHECK_I64(raw_ask_ok(p->destination, &stop), 0);
        pair_await_end(p, id);
        CHECK(NULL == nth_event(p->destination, id, 0) || ASI_CODEC_ERROR != nth_event(p->destination, id, 0)->code);
        UNTIL(&p->rig, NULL == p->rig.archive->replications && 0 == p->rig.archive->uses->count[ASI_USE_RECORDS] &&
            NULL == p->rig.archive->recordings->subscriptions);
        raw_forget(p->destination);
    }
    asi_codec_request request = replicate_of(recording.id, AS_NULL_VALUE);
    const int64_t id = pair_replicate(p, &request);
    const int64_t copy = raw_await_signal(p->destination, AS_SIGNAL_EXTEND, id)->recording_id;
    UNTIL(&p->rig, raw_position(p->destination, ASI_CODEC_MAX_RECORDED_POSITION, copy) == position);
    asi_codec_request stop = request_of(ASI_CODEC_STOP_REPLICATION, AS_NULL_VALUE);
    stop.replication_id = id;
    CHECK_I64(raw_ask_ok(p->destination, &stop), 0);
    pair_await_end(p, id);
    CHECK_I64(raw_await_signal(p->destination, AS_SIGNAL_STOP, id)->position, position);
    check_same_bytes(p, recording.id, copy, 0, position);
    UNTIL(&p->rig, 0 == p->rig.other->uses->count[ASI_USE_REPLAYS]); /* the source was told, and its sessions ended */
    UNTIL(&p->rig, 1 == p->rig.other->sessions->count);
    as_publication_close(recording.publication);
}

/* Spec: 07 §3-4 - the two older requests, and an archive that is its own source. */
static void older_requests_and_its_own_recordings(pair *p)
{
    pair_start(p);
    const raw_recording recording = raw_record(p->source, SOURCE_STREAM, 200, 20);
    const int64_t stop = raw_position(p->source, ASI_CODEC_STOP_POSITION, recording.id);
    const int32_t templates[] = { ASI_CODEC_REPLICATE, ASI_CODEC_TAGGED_REPLICATE };
    for (int i = 0; i < 2; i++)
    {
        asi_codec_request request = replicate_of(recording.id, AS_NULL_VALUE);
        request.template_id = templates[i];
        request.channel_tag_id = 7;
        request.subscription_tag_id = 8;
        const int64_t id = pair_replicate(p, &request);
        const int64_t copy = raw_await_signal(p->destination, AS_SIGNAL_SYNC, id)->recording_id;
        pair_await_end(p, id);
        CHECK_I64(raw_await_signal(p->destination, AS_SIGNAL_STOP, id)->position, stop);
        check_same_bytes(p, recording.id, copy, 0, stop);
    }
    asi_codec_request request = replicate_of(0, AS_NULL_VALUE); /* the first copy, once more */
    request.stream_id = RIG_CONTROL_STREAM;
    request.replication_session_id = 4242;
    request.replication_channel = asi_codec_text("aeron:ipc");
    const int64_t id = pair_replicate(p, &request);
    const int64_t copy = raw_await_signal(p->destination, AS_SIGNAL_SYNC, id)->recording_id;
    CHECK_I64(raw_await_signal(p->destination, AS_SIGNAL_STOP, id)->position, stop);
    CHECK_I64(destination_record(p, copy).session_id, 4242);
}

int main(void)
{
    RUN_IN_PAIR(a_copy_ends_at_the_stop_position_and_goes_on_from_there);
    RUN(a_destination_that_is_written_meanwhile_is_refused);
    RUN_IN_PAIR(what_the_source_lacks_is_told);
    RUN_IN_PAIR(a_request_that_can_not_be_is_refused);
    RUN_IN_PAIR(a_replication_can_be_stopped);
    RUN_IN_PAIR(older_requests_and_its_own_recordings);
    return 0;
}
