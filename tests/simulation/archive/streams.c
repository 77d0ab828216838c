/* Publishers, and the requests of the client; see world.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_trace.h"
#include "world.h"

#define FIRST_STREAM 1000
#define TERM_LENGTH (64 * 1024)
#define MAX_MESSAGE 8000
#define MESSAGE_CAPACITY 8192
#define FINISH_ROUNDS 3000
#define REPLAY_STREAM 5000

static const int32_t MTUS[] = { 1408, 1408, 4096, 8192, 1024 };

/* -- publishing ------------------------------------------------------------------------------------------------------------- */

static void publish_one(sim_world *world, world_stream *stream)
{
    static uint8_t bytes[MESSAGE_CAPACITY];
    as_publication_constants constants;
    as_publication_get_constants(stream->publication, &constants);
    int32_t length = (int32_t)world_below(world, world_percent(world, 80) ? stream->max_length : MAX_MESSAGE);
    length = length > (int32_t)constants.max_message_length ? (int32_t)constants.max_message_length : length;
    const uint64_t message = stream->is_zero ? 0 : asi_rand_u64(&world->rand) | 1;
    audit_fill(message, bytes, length, 0);
    const int64_t position = as_publication_offer(stream->publication, bytes, length);
    if (position > 0)
    {
        auditor_on_published(&world->audit, stream->recording, position, length, (int32_t)constants.max_payload_length, message);
    }
}

void world_publish(sim_world *world)
{
    for (int32_t i = 0; world->is_publishing && i < world->stream_count; i++)
    {
        world_stream *stream = &world->streams[i];
        if (NULL == stream->publication || !as_publication_is_connected(stream->publication))
        {
            continue;
        }
        for (int64_t count = world_below(world, 5); count > 0; count--)
        {
            publish_one(world, stream);
        }
    }
}

static void close_stream(world_stream *stream)
{
    as_publication_close(stream->publication);
    stream->publication = NULL;
}

void world_close_streams(sim_world *world)
{
    for (int32_t i = 0; i < world->stream_count; i++)
    {
        close_stream(&world->streams[i]);
    }
    world->stream_count = 0;
}

static world_stream *new_stream(sim_world *world)
{
    if (WORLD_MAX_STREAMS == world->stream_count)
    {
        return NULL;
    }
    world_stream *stream = &world->streams[world->stream_count];
    memset(stream, 0, sizeof(*stream));
    return stream;
}

/* -- requests --------------------------------------------------------------------------------------------------------------- */

asi_codec_request world_request(int32_t template_id, int64_t recording_id)
{
    asi_codec_request request;
    asi_codec_request_init(&request, template_id);
    request.recording_id = recording_id;
    return request;
}

audited world_new_recording(const sim_world *world, int32_t stream_id, int32_t initial_term_id, int32_t mtu, int64_t start)
{
    return (audited){ .id = -1, .stream_id = stream_id, .mtu = mtu, .term_length = TERM_LENGTH,
        .segment_length = (int32_t)world->config->segment_file_length, .initial_term_id = initial_term_id, .start = start,
        .asked_start = start, .published = start, .recorded = start, .stop = -1, .asked_stop = -1, .cut = -1, .attach_low = start,
        .attach_sure = start, .original = -1, .starts_asked = world->audit.starts, .errors_asked = world->disk.errors };
}

/* Requests the recording of a stream whose publication is added at the same time. */
static void ask_for_recording(sim_world *world, world_stream *stream, int32_t template_id, const char *publication_channel)
{
    asi_codec_request request = world_request(template_id, stream->recording->id);
    request.correlation_id = as_client_next_correlation_id(world->client);
    request.channel = asi_codec_text(stream->channel);
    request.stream_id = stream->stream_id;
    request.source_location = AS_SOURCE_LOCAL;
    request.auto_stop = 1;
    stream->correlation_id = request.correlation_id;
    if (AS_OK != as_client_add_exclusive_publication(
        world->client, publication_channel, stream->stream_id, &stream->publication))
    {
        sim_fail("setup", "publication %s: %s", publication_channel, as_error_text());
    }
    world->stream_count++;
    const asi_codec_event *event = world_ask(world, &request);
    if (NULL != event && ASI_CODEC_OK != event->code)
    {
        sim_trace("stream %d is not recorded: %.160s", stream->stream_id, world_answer_text(world, event));
        close_stream(stream);
    }
}

static void begin(sim_world *world, world_stream *stream, const audited *asked)
{
    char channel[256];
    stream->stream_id = asked->stream_id;
    stream->is_zero = world_percent(world, 15);
    stream->max_length = world_percent(world, 50) ? 300 : asked->mtu - 32;
    const int32_t number = 1 + (int32_t)world_below(world, 1000000);
    audit_channel(number, stream->channel, sizeof(stream->channel));
    snprintf(channel, sizeof(channel), "aeron:ipc?term-length=64k|mtu=%d|init-term-id=%d|term-id=%d|term-offset=%lld", asked->mtu,
        asked->initial_term_id, (int32_t)((uint32_t)asked->initial_term_id + (uint32_t)(asked->start / TERM_LENGTH)),
        (long long)(asked->start % TERM_LENGTH));
    stream->recording = auditor_add(&world->audit, asked);
    stream->recording->channel = stream->recording->asked_channel = number;
    sim_trace("start stream %d at %lld, mtu %d", stream->stream_id, (long long)asked->start, asked->mtu);
    if (world->disk.calls_to_kill > 0 && world->dies_at_start)
    {
        world->disk.calls_to_kill = 2 + world_below(world, 4); /* while its record is added */
        world->disk.only_catalog_kills = true;
    }
    ask_for_recording(world, stream, ASI_CODEC_START_RECORDING_2, channel);
}

static void start(sim_world *world)
{
    world_stream *stream = new_stream(world);
    if (NULL == stream || AUDIT_MAX_RECORDINGS == world->audit.count)
    {
        return;
    }
    const int32_t mtu = MTUS[world_below(world, 5)];
    const int32_t initial_term_id = (int32_t)asi_rand_u64(&world->rand);
    const int64_t position = world_percent(world, 50) ? 0 : world_below(world, 4 * TERM_LENGTH / 32) * 32;
    const audited asked = world_new_recording(world, FIRST_STREAM + world->audit.count, initial_term_id, mtu, position);
    begin(world, stream, &asked);
}

/* Nobody publishes on the recording's stream and no subscription of the archive listens there any more: one that does, made for the
 * publisher that just left, would record the next one as a recording of its own. */
static bool is_stream_quiet(sim_world *world, const audited *recording)
{
    for (int32_t i = 0; i < world->audit.count; i++)
    {
        const audited *other = &world->audit.recordings[i];
        if (other->stream_id == recording->stream_id && (AUDIT_ACTIVE == other->life || AUDIT_ASKED == other->life))
        {
            return false;
        }
    }
    return NULL == world_stream_of(world, recording);
}

/* A recording that begins where another one ends, with a segment: the two can be made one. */
static void start_next(sim_world *world)
{
    const audited *before = world_pick(world, AUDIT_STOPPED);
    world_stream *stream = new_stream(world);
    if (NULL == before || NULL == stream || AUDIT_MAX_RECORDINGS == world->audit.count || before->stop <= before->start ||
        audit_base_of(before, before->stop) != before->stop || before->stream_id < FIRST_STREAM || !is_stream_quiet(world, before))
    {
        return;
    }
    const audited asked =
        world_new_recording(world, before->stream_id, before->initial_term_id, before->mtu, before->stop);
    begin(world, stream, &asked);
}

audited *world_pick(sim_world *world, audit_life life)
{
    const int32_t first = (int32_t)world_below(world, world->audit.count > 0 ? world->audit.count : 1);
    for (int32_t i = 0; i < world->audit.count; i++)
    {
        audited *recording = &world->audit.recordings[(first + i) % world->audit.count];
        if (life == recording->life && !recording->is_moving)
        {
            return recording;
        }
    }
    return NULL;
}

/* The publication on the recording's stream: for it, or for one that extends it. */
world_stream *world_stream_of(sim_world *world, const audited *recording)
{
    for (int32_t i = 0; i < world->stream_count; i++)
    {
        if (world->streams[i].stream_id == recording->stream_id && NULL != world->streams[i].publication)
        {
            return &world->streams[i];
        }
    }
    return NULL;
}

/* A frame behind the end, as an archive that was cut off there before has left it. Spec: 06 §6, bytes after the recovered stop. */
static void leave_rest(sim_world *world, const audited *recording, const asi_catalog_record *record)
{
    const int64_t stop = recording->stop;
    const int64_t base = audit_base_of(recording, stop);
    char name[SIM_DISK_NAME];
    struct { asi_frame_header header; uint8_t payload[96]; } rest = { .header = { .frame_length = sizeof(rest), .flags = 0xc0,
        .type = ASI_FRAME_DATA, .term_offset = (int32_t)(stop % recording->term_length), .session_id = record->session_id,
        .stream_id = recording->stream_id,
        .term_id = (int32_t)((uint32_t)recording->initial_term_id + (uint32_t)(stop / recording->term_length)) } };
    memset(rest.payload, 0x5a, sizeof(rest.payload));
    snprintf(name, sizeof(name), "%" PRId64 "-%" PRId64 ".rec", recording->id, base);
    if (recording->term_length - stop % recording->term_length >= (int64_t)sizeof(rest) &&
        sim_disk_size_of(&world->disk, name) >= stop - base + (int64_t)sizeof(rest))
    {
        sim_trace("a rest behind recording %" PRId64 " at %" PRId64, recording->id, stop);
        sim_disk_leave(&world->disk, name, &rest, sizeof(rest), stop - base);
    }
}

static void extend(sim_world *world)
{
    audited *recording = world_pick(world, AUDIT_STOPPED);
    world_stream *stream = new_stream(world);
    asi_catalog_record record;
    if (NULL == recording || NULL == stream || recording->is_stop_doubtful || recording->stream_id < FIRST_STREAM ||
        !is_stream_quiet(world, recording) || !asi_catalog_find(world->archive->catalog, recording->id, &record))
    {
        return;
    }
    char channel[256];
    stream->recording = recording;
    stream->stream_id = recording->stream_id;
    stream->max_length = 300;
    stream->is_zero = world_percent(world, 15);
    snprintf(stream->channel, sizeof(stream->channel), "aeron:ipc?alias=again");
    const int64_t stop = recording->stop;
    auditor_cut(recording, stop); /* data published behind it was not recorded */
    recording->original = -1;
    recording->starts_asked = -1; /* its times may have a gap */
    if (world_percent(world, 30))
    {
        leave_rest(world, recording, &record);
    }
    snprintf(channel, sizeof(channel), "aeron:ipc?term-length=64k|mtu=%d|init-term-id=%d|term-id=%d|term-offset=%lld",
        record.mtu_length, recording->initial_term_id,
        (int32_t)((uint32_t)recording->initial_term_id + (uint32_t)(stop / TERM_LENGTH)), (long long)(stop % TERM_LENGTH));
    sim_trace("extend recording %" PRId64 " at %" PRId64, recording->id, stop);
    ask_for_recording(world, stream, ASI_CODEC_EXTEND_RECORDING_2, channel);
}

/* Closes the publisher, or asks the archive to stop. */
static void stop(sim_world *world)
{
    audited *recording = world_pick(world, AUDIT_ACTIVE);
    world_stream *stream = NULL == recording ? NULL : world_stream_of(world, recording);
    if (NULL == stream)
    {
        return;
    }
    sim_trace("stop recording %" PRId64, recording->id);
    if (world_percent(world, 50))
    {
        close_stream(stream);
        return;
    }
    asi_codec_request request = world_request(ASI_CODEC_STOP_RECORDING_BY_IDENTITY, recording->id);
    world->session.is_stopping = true;
    if (NULL != world_ask(world, &request))
    {
        close_stream(stream);
    }
    world->session.is_stopping = false;
}

void world_act(sim_world *world)
{
    const int64_t kind = world_below(world, 100);
    if (kind < 22)
    {
        start(world);
    }
    else if (kind < 27)
    {
        start_next(world);
    }
    else if (kind < 42)
    {
        extend(world);
    }
    else if (kind < 62)
    {
        stop(world);
    }
    else if (kind < 70)
    {
        world_copy(world);
    }
    else
    {
        world_keep_up(world, kind - 70);
    }
}

/* -- the end ---------------------------------------------------------------------------------------------------------------- */

void world_stop_all(sim_world *world)
{
    world->is_publishing = false;
    for (int32_t i = 0; i < 20; i++)
    {
        world_round(world);
    }
    world_close_streams(world);
    for (int32_t i = 0; world_is_copying(world) || NULL != world_pick(world, AUDIT_ACTIVE); i++)
    {
        if (i > FINISH_ROUNDS)
        {
            const audited *endless = world_pick(world, AUDIT_ACTIVE);
            sim_fail("position", "recording %" PRId64 " does not end with its publication", NULL == endless ? -1 : endless->id);
        }
        world_round(world);
    }
}

typedef struct replay_check
{
    const audited *recording;
    int64_t next_frame;
    int64_t bytes;
} replay_check;

static void on_replayed(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    static uint8_t expected[MESSAGE_CAPACITY];
    replay_check *check = context;
    const audited *recording = check->recording;
    const audit_frame *frame = check->next_frame < recording->frame_count ? &recording->frames[check->next_frame] : NULL;
    if (NULL == frame || frame->end != header->position || frame->length != length)
    {
        sim_fail("replay", "recording %" PRId64 ": a fragment of %" PRId64 " bytes ends at %" PRId64, recording->id, length,
            header->position);
    }
    audit_fill(frame->message, expected, length, frame->offset);
    if (0 != memcmp(expected, data, (size_t)length))
    {
        sim_fail("replay", "recording %" PRId64 " at %" PRId64 ": other bytes than were published", recording->id, frame->begin);
    }
    check->next_frame++;
    check->bytes += length;
}

static void replay_one(sim_world *world, audited *recording, int32_t stream_id)
{
    auditor_cut(recording, recording->stop);
    if (recording->stop <= recording->start)
    {
        return;
    }
    as_subscription *subscription = NULL;
    replay_check check = { .recording = recording };
    while (check.next_frame < recording->frame_count && recording->frames[check.next_frame].end <= recording->start)
    {
        check.next_frame++;
    }
    if (AS_OK != as_client_add_subscription(world->client, "aeron:ipc", stream_id, &subscription))
    {
        sim_fail("setup", "replay: %s", as_error_text());
    }
    asi_codec_request request = world_request(ASI_CODEC_REPLAY, recording->id);
    request.position = recording->start;
    request.length = INT64_MAX;
    request.channel = asi_codec_text("aeron:ipc?term-length=64k");
    request.stream_id = stream_id;
    const asi_codec_event *event = world_ask(world, &request);
    if (NULL == event || ASI_CODEC_OK != event->code)
    {
        sim_fail("replay", "recording %" PRId64 ": %s", recording->id, NULL == event ? "the archive died" :
            world_answer_text(world, event));
    }
    for (int32_t i = 0; check.next_frame < recording->frame_count; i++)
    {
        if (i > FINISH_ROUNDS)
        {
            sim_fail("replay", "recording %" PRId64 " from %" PRId64 " to %" PRId64 " stalls at frame %" PRId64 " of %" PRId64,
                recording->id, recording->start, recording->stop, check.next_frame, recording->frame_count);
        }
        world_round(world);
        if (as_subscription_poll(subscription, on_replayed, &check, 50) < 0)
        {
            sim_fail("replay", "recording %" PRId64 ": %s", recording->id, as_error_text());
        }
    }
    world->replayed_bytes += check.bytes;
    as_subscription_close(subscription);
}

void world_replay_all(sim_world *world)
{
    for (int32_t i = 0; i < world->audit.count; i++)
    {
        audited *recording = &world->audit.recordings[i];
        if (AUDIT_STOPPED == recording->life)
        {
            replay_one(world, recording, REPLAY_STREAM + i);
        }
    }
}
