/* Goal: listings and queries answer in all their forms. Method: a bare session against an invoked archive whose clock is pushed.
 * Names carry the scenario of Spec: 08 §19. */
#include "server_rig.h"

static test_rig rig;

static int64_t count_descriptors(const raw_session *session, int64_t correlation_id, int32_t template_id)
{
    int64_t count = 0;
    for (int i = 0; i < session->event_count; i++)
    {
        count += session->events[i].template_id == template_id && session->events[i].correlation_id == correlation_id ? 1 : 0;
    }
    return count;
}

/* Lists and checks the number of descriptors; unless exactly as many came as asked, the terminator ends it. */
static void check_listing(raw_session *session, asi_codec_request *request, int64_t expected, int64_t terminator)
{
    raw_forget(session);
    raw_send(session, request);
    if (terminator >= 0)
    {
        const asi_codec_event *end = raw_await(session, ASI_CODEC_CONTROL_RESPONSE, request->correlation_id);
        CHECK_I64(end->code, ASI_CODEC_RECORDING_UNKNOWN);
        CHECK_I64(end->relevant_id, terminator);
    }
    UNTIL(&rig, (raw_poll(session),
        count_descriptors(session, request->correlation_id, ASI_CODEC_RECORDING_DESCRIPTOR) >= expected));
    rig_turn_times(&rig, 20);
    raw_poll(session);
    CHECK_I64(count_descriptors(session, request->correlation_id, ASI_CODEC_RECORDING_DESCRIPTOR), expected);
    CHECK(terminator >= 0 || NULL == raw_find(session, ASI_CODEC_CONTROL_RESPONSE, request->correlation_id));
}

static asi_codec_request list_of(int64_t from, int32_t count)
{
    asi_codec_request request = request_of(ASI_CODEC_LIST_RECORDINGS, from);
    request.record_count = count;
    return request;
}

static asi_codec_request list_uri_of(const char *fragment, int32_t stream_id)
{
    asi_codec_request request = request_of(ASI_CODEC_LIST_RECORDINGS_FOR_URI, 0);
    request.record_count = 10;
    request.channel = asi_codec_text(fragment);
    request.stream_id = stream_id;
    return request;
}

static void s36_to_s39_listings(void)
{
    rig_open(&rig);
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    for (int i = 0; i < 3; i++)
    {
        CHECK_I64(raw_record(session, 4600 + i % 2, 100, 5).id, i);
    }
    asi_codec_request request = list_of(0, 10);
    check_listing(session, &request, 3, 3);
    for (int i = 0; i < 3; i++)
    {
        CHECK_I64(session->events[i].recording_id, i);
        CHECK_I64(session->events[i].stream_id, 4600 + i % 2);
        CHECK_I64(session->events[i].term_buffer_length, RIG_TERM_LENGTH);
        CHECK_I64(session->events[i].segment_file_length, RIG_SEGMENT_LENGTH);
        CHECK_I64(session->events[i].mtu_length, 1408);
        CHECK(session->events[i].stop_timestamp_ms >= session->events[i].start_timestamp_ms);
        CHECK(0 == memcmp(session->events[i].stripped_channel.data, "aeron:ipc", 9));
        CHECK_I64(session->events[i].stripped_channel.length, 9);
        CHECK_I64(session->events[i].original_channel.length, strlen(RIG_CHANNEL));
    }
    request = list_of(0, 3);
    check_listing(session, &request, 3, -1);
    request = list_of(1, 1);
    check_listing(session, &request, 1, -1);
    request = list_of(-5, 2);
    check_listing(session, &request, 2, -1);
    request = list_of(99, 10);
    check_listing(session, &request, 0, 99);
    request = list_of(0, 0);
    check_listing(session, &request, 0, 0);
    request = list_of(0, -1);
    check_listing(session, &request, 0, 0);
    request = list_uri_of("mtu=1408", 4600);
    check_listing(session, &request, 2, 3);
    request = list_uri_of("", 4601);
    check_listing(session, &request, 1, 3);
    request = list_uri_of("udp", 4600);
    check_listing(session, &request, 0, 3);
    request = request_of(ASI_CODEC_LIST_RECORDING, 1);
    check_listing(session, &request, 1, -1);
    request = request_of(ASI_CODEC_LIST_RECORDING, 99);
    check_listing(session, &request, 0, 99);
    const int32_t session_id = rig.archive->recordings->active == NULL ? 0 : 1;
    CHECK_I64(session_id, 0);
    request = request_of(ASI_CODEC_LIST_RECORDING, 2);
    check_listing(session, &request, 1, -1);
    asi_codec_request find = request_of(ASI_CODEC_FIND_LAST_MATCHING_RECORDING, 0);
    find.session_id = session->events[0].session_id;
    find.stream_id = 4600;
    find.channel = asi_codec_text("ipc");
    CHECK_I64(raw_ask_ok(session, &find), 2);
    find.recording_id = 3;
    CHECK_I64(raw_ask_ok(session, &find), -1);
    find.recording_id = 0;
    find.session_id++;
    CHECK_I64(raw_ask_ok(session, &find), -1);
    find.recording_id = -1;
    check_error(raw_ask(session, &find), ASI_CODEC_E_UNKNOWN_RECORDING, "minRecordingId=-1 < 0");
    static const int32_t POSITIONS[] = { ASI_CODEC_START_POSITION, ASI_CODEC_STOP_POSITION, ASI_CODEC_RECORDING_POSITION,
        ASI_CODEC_MAX_RECORDED_POSITION };
    for (size_t i = 0; i < 4; i++)
    {
        request = request_of(POSITIONS[i], -1);
        check_error(raw_ask(session, &request), ASI_CODEC_E_UNKNOWN_RECORDING, "unknown recording id: -1");
    }
    raw_close(session);
    rig_close(&rig);
}

/* More descriptors than the response stream's window takes, to a client that reads slowly; and a second listing meanwhile. */
static void s13_a_long_listing_comes_whole(void)
{
    rig_open(&rig);
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    for (int i = 0; i < 120; i++)
    {
        const asi_recording_params params = { .start_position = 0, .stop_position = 0, .start_timestamp_ms = 1,
            .stop_timestamp_ms = 2, .term_buffer_length = RIG_TERM_LENGTH, .segment_file_length = RIG_SEGMENT_LENGTH,
            .mtu_length = 1408, .stream_id = 7, .stripped_channel = asi_text_of("aeron:ipc"),
            .original_channel = asi_text_of("aeron:ipc?alias=a-rather-long-one-so-that-the-window-fills-sooner-than-it-would-0123456789-"
                "0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789"),
            .source_identity = asi_text_of("aeron:ipc") };
        int64_t id;
        CHECK_I64(asi_catalog_add(rig.archive->catalog, &params, &id), AS_OK);
    }
    asi_codec_request first = list_of(0, 1000);
    raw_forget(session);
    raw_send(session, &first);
    rig_turn_times(&rig, 50); /* nothing is read: the window is full before the listing is done */
    CHECK(NULL != rig.archive->sessions->first->listing);
    asi_codec_request second = list_of(0, 10);
    raw_send(session, &second);
    const asi_codec_event *refused = raw_await(session, ASI_CODEC_CONTROL_RESPONSE, second.correlation_id);
    check_error(refused, ASI_CODEC_E_ACTIVE_LISTING, "active listing already in progress");
    const asi_codec_event *end = raw_await(session, ASI_CODEC_CONTROL_RESPONSE, first.correlation_id);
    CHECK_I64(end->code, ASI_CODEC_RECORDING_UNKNOWN);
    int64_t next = 0;
    for (int i = 0; i < session->event_count; i++)
    {
        if (ASI_CODEC_RECORDING_DESCRIPTOR == session->events[i].template_id)
        {
            CHECK_I64(session->events[i].recording_id, next);
            next++;
        }
    }
    CHECK_I64(next, 120);
    raw_close(session);
    rig_close(&rig);
}

static void s41_subscriptions(void)
{
    rig_open(&rig);
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    int64_t ids[5];
    for (int i = 0; i < 5; i++)
    {
        char channel[64];
        snprintf(channel, sizeof(channel), "aeron:ipc?alias=%c|term-length=64k", 'a' + i);
        asi_codec_request request = start_of(channel, 4700 + i % 2 * 10 + i, false);
        ids[i] = raw_ask_ok(session, &request);
    }
    const struct
    {
        int32_t pseudo_index;
        int32_t count;
        const char *fragment;
        int32_t stream_id;
        bool has_stream;
        int expected[6]; /* indexes, -1 ends */
        bool is_whole;   /* as many as asked: no terminator */
    } rows[] = {
        { 0, 100, "", 0, false, { 0, 1, 2, 3, 4, -1 }, false },
        { 0, 5, "ipc", 0, false, { 0, 1, 2, 3, 4, -1 }, true },
        { 2, 2, "", 0, false, { 2, 3, -1 }, true },
        { 3, 100, "", 0, false, { 3, 4, -1 }, false },
        { 0, 100, "alias=c", 0, false, { 2, -1 }, false },
        { 0, 100, "", 4713, true, { 3, -1 }, false },
        { 0, 100, "term-length", 0, false, { -1 }, false },
        { 5, 100, "", 0, false, { -1 }, false },
        { -1, 100, "", 0, false, { -1 }, false },
        { 0, 0, "", 0, false, { -1 }, false },
        { 0, -1, "", 0, false, { -1 }, false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        asi_codec_request request = request_of(ASI_CODEC_LIST_RECORDING_SUBSCRIPTIONS, AS_NULL_VALUE);
        request.pseudo_index = rows[i].pseudo_index;
        request.record_count = rows[i].count;
        request.channel = asi_codec_text(rows[i].fragment);
        request.stream_id = rows[i].stream_id;
        request.apply_stream_id = rows[i].has_stream ? 1 : 0;
        raw_forget(session);
        raw_send(session, &request);
        int expected = 0;
        while (rows[i].expected[expected] >= 0)
        {
            expected++;
        }
        if (!rows[i].is_whole)
        {
            const asi_codec_event *end = raw_await(session, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id);
            CHECK_I64(end->code, ASI_CODEC_SUBSCRIPTION_UNKNOWN);
            CHECK_I64(end->relevant_id, 0);
        }
        UNTIL(&rig, (raw_poll(session), count_descriptors(
            session, request.correlation_id, ASI_CODEC_RECORDING_SUBSCRIPTION_DESCRIPTOR) >= expected));
        for (int j = 0; j < expected; j++)
        {
            CHECK_I64(session->events[j].subscription_id, ids[rows[i].expected[j]]);
        }
        CHECK_I64(session->event_count, expected + (rows[i].is_whole ? 0 : 1));
    }
    raw_close(session);
    rig_close(&rig);
}

int main(void)
{
    RUN(s36_to_s39_listings);
    RUN(s13_a_long_listing_comes_whole);
    RUN(s41_subscriptions);
    return 0;
}
