/* Two archives on one driver, both invoked by the test's thread: rig.archive is the destination, rig.other the source, each with a
 * bare control session. The source's control stream is IPC with a stream id of its own, so no test needs a fixed port. */
#ifndef AS_TESTS_REPLICATE_RIG_H
#define AS_TESTS_REPLICATE_RIG_H

#include "server/replication.h"
#include "server_rig.h"

#define SOURCE_CONTROL_STREAM 110
#define SOURCE_STREAM 1001

typedef struct pair
{
    test_rig rig;
    as_archive_config *source_config;
    char source_dir[SCRATCH_CAPACITY + 16];
    raw_session *destination;
    raw_session *source;
} pair;

static inline void pair_set_source(pair *p, const char *name, const char *value)
{
    CHECK_I64(as_archive_config_set(p->source_config, name, value), AS_OK);
}

static inline void pair_open_source(pair *p)
{
    const asi_clock clock = { .nano_time = rig_nano_time, .epoch_ms = rig_epoch_ms, .context = &p->rig };
    CHECK_I64(asi_archive_open_with(p->source_config, NULL, &clock, &p->rig.other), AS_OK);
}

/* Settings first; then pair_start opens both archives and sessions. */
static inline void pair_open(pair *p)
{
    memset(p, 0, sizeof(*p));
    rig_open(&p->rig);
    rig_set(&p->rig, "aeron.archive.replication.channel", "aeron:udp?endpoint=localhost:0");
    snprintf(p->source_dir, sizeof(p->source_dir), "%s/source", p->rig.scratch);
    CHECK_I64(as_archive_config_open(&p->source_config), AS_OK);
    pair_set_source(p, "aeron.dir", p->rig.aeron_dir);
    pair_set_source(p, "aeron.archive.dir", p->source_dir);
    pair_set_source(p, "aeron.archive.threading.mode", "INVOKER");
    pair_set_source(p, "aeron.archive.segment.file.length", "128k");
    pair_set_source(p, "aeron.archive.local.control.stream.id", "110");
    pair_set_source(p, "aeron.archive.id", "43");
}

static inline void pair_start(pair *p)
{
    rig_open_archive(&p->rig);
    pair_open_source(p);
    p->destination = raw_connect(&p->rig);
    p->rig.control_stream = SOURCE_CONTROL_STREAM;
    p->source = raw_connect(&p->rig);
}

static inline void pair_close(pair *p)
{
    raw_close(p->destination);
    raw_close(p->source);
    as_archive_close(p->rig.other);
    p->rig.other = NULL;
    as_archive_config_close(p->source_config);
    rig_close(&p->rig);
}

static inline asi_codec_request replicate_of(int64_t source_id, int64_t destination_id)
{
    asi_codec_request request = request_of(ASI_CODEC_REPLICATE_2, source_id);
    request.dst_recording_id = destination_id;
    request.stream_id = SOURCE_CONTROL_STREAM;
    request.channel = asi_codec_text("aeron:ipc");
    return request;
}

static inline int64_t pair_replicate(pair *p, asi_codec_request *request)
{
    return raw_ask_ok(p->destination, request);
}

static inline const asi_codec_event *pair_await_end(pair *p, int64_t replication_id)
{
    return raw_await_signal(p->destination, AS_SIGNAL_REPLICATE_END, replication_id);
}

/* The n-th event of the destination's session (from 0) on `correlation_id`; NULL if there are not so many. */
static inline const asi_codec_event *nth_event(const raw_session *session, int64_t correlation_id, int n)
{
    for (int i = 0; i < session->event_count; i++)
    {
        if (session->events[i].correlation_id == correlation_id && 0 == n--)
        {
            return &session->events[i];
        }
    }
    return NULL;
}

static inline void check_signal(const asi_codec_event *event, int32_t signal, int64_t recording_id, int64_t position)
{
    CHECK(NULL != event);
    CHECK_I64(event->template_id, ASI_CODEC_RECORDING_SIGNAL);
    CHECK_I64(event->signal, signal);
    CHECK_I64(event->recording_id, recording_id);
    CHECK_I64(event->position, position);
}

/* Whole segment files of the two archives, up to the stop position. Session and stream ids of frames are the source's. */
static inline void check_same_bytes(const pair *p, int64_t source_id, int64_t destination_id, int64_t start, int64_t stop)
{
    test_rig of_source = { 0 };
    snprintf(of_source.archive_dir, sizeof(of_source.archive_dir), "%s", p->source_dir);
    for (int64_t base = start / RIG_SEGMENT_LENGTH * RIG_SEGMENT_LENGTH; base < stop; base += RIG_SEGMENT_LENGTH)
    {
        int64_t lengths[2];
        uint8_t *of_them[2] = { read_segment(&of_source, source_id, base, &lengths[0]),
            read_segment(&p->rig, destination_id, base, &lengths[1]) };
        CHECK(NULL != of_them[0] && NULL != of_them[1]);
        const int64_t from = start > base ? start - base : 0;
        const int64_t to = stop - base < RIG_SEGMENT_LENGTH ? stop - base : RIG_SEGMENT_LENGTH;
        CHECK(0 == memcmp(of_them[0] + from, of_them[1] + from, (size_t)(to - from)));
        free(of_them[0]);
        free(of_them[1]);
    }
}

static inline asi_catalog_record destination_record(const pair *p, int64_t recording_id)
{
    asi_catalog_record record;
    CHECK(asi_catalog_find(p->rig.archive->catalog, recording_id, &record));
    return record;
}

#define RUN_IN_PAIR(test) RUN_IN(pair, pair_open(&fixture), test, pair_close(&fixture))

#endif
