/* The client's maintenance requests: truncate, purge, detach, attach, migrate, update channel; see world.h. */
#include <string.h>

#include "sim_trace.h"
#include "world.h"

/* A frame's boundary between start and stop, often one between segments, or now and then a place that is none. */
static int64_t pick_position(sim_world *world, const audited *recording)
{
    if (0 == recording->frame_count || world_percent(world, 10))
    {
        return world_percent(world, 50) ? recording->start : recording->start + 32 * (1 + world_below(world, 100));
    }
    int64_t position = recording->frames[world_below(world, recording->frame_count)].begin;
    position = position < recording->start ? recording->start : position;
    const int64_t base = audit_base_of(recording, position);
    return world_percent(world, 30) && base > recording->start ? base : position;
}

static void truncate_one(sim_world *world)
{
    audited *recording = world_pick(world, AUDIT_STOPPED);
    if (NULL == recording || recording->is_stop_doubtful || NULL != world_stream_of(world, recording))
    {
        return;
    }
    asi_codec_request request = world_request(ASI_CODEC_TRUNCATE_RECORDING, recording->id);
    request.position = pick_position(world, recording);
    sim_trace("truncate recording %" PRId64 " at %" PRId64, recording->id, request.position);
    recording->asked_stop = request.position;
    if (request.position == recording->start)
    {
        recording->attach_sure = recording->start; /* all its files go, detached ones as well */
    }
    const int64_t errors = world->disk.errors;
    const asi_codec_event *event = world_ask(world, &request);
    if (NULL == event)
    {
        return;
    }
    if (ASI_CODEC_OK == event->code)
    {
        auditor_cut(recording, request.position);
        recording->asked_stop = -1;
        recording->cut = request.position;
    }
    else if (errors == world->disk.errors)
    {
        recording->asked_stop = -1; /* refused, and nothing failed: nothing may have changed */
    }
    else
    {
        recording->is_stop_doubtful = true;
    }
}

static void purge(sim_world *world)
{
    audited *recording = world_pick(world, AUDIT_STOPPED);
    if (NULL == recording || NULL != world_stream_of(world, recording))
    {
        return;
    }
    asi_codec_request request = world_request(ASI_CODEC_PURGE_RECORDING, recording->id);
    sim_trace("purge recording %" PRId64, recording->id);
    recording->life = AUDIT_PURGING;
    const int64_t errors = world->disk.errors;
    const asi_codec_event *event = world_ask(world, &request);
    if (NULL == event)
    {
        return;
    }
    if (ASI_CODEC_OK == event->code)
    {
        recording->life = AUDIT_PURGED;
    }
    else if (errors == world->disk.errors)
    {
        recording->life = AUDIT_STOPPED;
    }
}

/* Several in a row are deleted beside each other, and the catalog is compacted between them: deaths are dear then. */
static void purge_some(sim_world *world)
{
    const int64_t count = world_percent(world, 40) ? 1 + world_below(world, 4) : 1;
    for (int64_t i = 0; i < count && NULL != world->archive; i++)
    {
        purge(world);
    }
    if (count > 1 && world->disk.calls_to_kill > 0)
    {
        world->disk.calls_to_kill = 1 + world_below(world, 12);
    }
}

static void purge_segments(sim_world *world, int32_t template_id)
{
    audited *recording = world_pick(world, world_percent(world, 50) ? AUDIT_STOPPED : AUDIT_ACTIVE);
    if (NULL == recording || recording->asked_start != recording->start) /* until the next start shows which of the two it is */
    {
        return;
    }
    const int64_t first = recording->start - recording->start % recording->term_length;
    asi_codec_request request = world_request(template_id, recording->id);
    request.position = first + recording->segment_length * (1 + world_below(world, 3));
    sim_trace("%s of recording %" PRId64 " up to %" PRId64, asi_codec_request_name(template_id), recording->id, request.position);
    recording->asked_start = request.position;
    const int64_t errors = world->disk.errors;
    const audited *original = world_begins_again_like(world, recording, request.position);
    const int64_t attach_sure = recording->attach_sure;
    recording->attach_sure = ASI_CODEC_PURGE_SEGMENTS == template_id ? request.position : attach_sure; /* also without an answer */
    const asi_codec_event *event = world_ask(world, &request);
    if (NULL == event)
    {
        return;
    }
    if (ASI_CODEC_OK == event->code)
    {
        recording->start = request.position;
        recording->starts_asked = -1; /* its times begin before it */
    }
    else if (errors == world->disk.errors)
    {
        recording->attach_sure = attach_sure;
    }
    if (ASI_CODEC_OK == event->code || errors == world->disk.errors)
    {
        recording->asked_start = recording->start;
    }
    if (ASI_CODEC_OK == event->code && NULL != original) /* when that is seen, the signal tells it; else the next start */
    {
        recording->asked_start = recording->asked_stop = original->start;
        recording->channel = recording->asked_channel = 0;
    }
}

static void delete_detached(sim_world *world)
{
    audited *recording = world_pick(world, AUDIT_STOPPED);
    if (NULL == recording)
    {
        return;
    }
    asi_codec_request request = world_request(ASI_CODEC_DELETE_DETACHED_SEGMENTS, recording->id);
    recording->attach_sure = recording->start;
    sim_trace("delete the detached segments of recording %" PRId64, recording->id);
    (void)world_ask(world, &request);
}

/* What was detached, and not deleted, is the recording's again. */
static void attach(sim_world *world)
{
    audited *recording = world_pick(world, world_percent(world, 70) ? AUDIT_STOPPED : AUDIT_ACTIVE);
    asi_catalog_record record;
    if (NULL == recording)
    {
        return;
    }
    asi_codec_request request = world_request(ASI_CODEC_ATTACH_SEGMENTS, recording->id);
    sim_trace("attach segments of recording %" PRId64 ", which starts at %" PRId64, recording->id, recording->start);
    recording->is_attaching = true;
    const int64_t errors = world->disk.errors;
    const asi_codec_event *event = world_ask(world, &request);
    if (NULL == event || (ASI_CODEC_OK != event->code && errors != world->disk.errors))
    {
        return;
    }
    recording->is_attaching = false;
    if (!asi_catalog_find(world->archive->catalog, recording->id, &record) || record.start_position < recording->attach_low ||
        record.start_position > (ASI_CODEC_OK == event->code ? recording->attach_sure : recording->start))
    {
        sim_fail("position", "recording %" PRId64 " starts at %" PRId64 " with its segments attached, they go down to %" PRId64,
            recording->id, record.start_position, recording->attach_sure);
    }
    recording->start = record.start_position;
    recording->asked_start = record.start_position;
    recording->attach_sure =
        recording->attach_sure < record.start_position ? recording->attach_sure : record.start_position;
    if (ASI_CODEC_OK == event->code)
    {
        sim_trace("recording %" PRId64 " starts at %" PRId64, recording->id, recording->start);
    }
}

static bool can_join(const audited *src, const audited *dst)
{
    return src != dst && src->stream_id == dst->stream_id && src->original < 0 && dst->original < 0 && src->start < src->stop &&
        (AUDIT_STOPPED == dst->life || AUDIT_ACTIVE == dst->life) && (src->stop == dst->start || src->start == dst->stop);
}

/* Two that lie one behind the other become one. */
static void migrate(sim_world *world)
{
    auditor *audit = &world->audit;
    audited *src = NULL;
    audited *dst = NULL;
    const int64_t first = world_below(world, audit->count + 1);
    for (int64_t i = 0; NULL == dst && i < (int64_t)audit->count * audit->count; i++)
    {
        src = &audit->recordings[(first + i / audit->count) % audit->count];
        audited *other = &audit->recordings[i % audit->count];
        dst = AUDIT_STOPPED == src->life && !src->is_stop_doubtful && !other->is_stop_doubtful && can_join(src, other) ? other :
            NULL;
    }
    if (NULL == dst || NULL != audit->migration.src || (AUDIT_STOPPED == dst->life && NULL != world_stream_of(world, dst)))
    {
        return;
    }
    asi_codec_request request = world_request(ASI_CODEC_MIGRATE_SEGMENTS, src->id);
    request.dst_recording_id = dst->id;
    sim_trace("migrate [%" PRId64 ", %" PRId64 ") of recording %" PRId64 " to %" PRId64 ", [%" PRId64 ", %" PRId64 ")", src->start,
        src->stop, src->id, dst->id, dst->start, dst->stop);
    auditor_on_migrating(audit, src, dst);
    const int64_t errors = world->disk.errors;
    const asi_codec_event *event = world_ask(world, &request);
    if (NULL != event && (ASI_CODEC_OK == event->code || errors == world->disk.errors))
    {
        auditor_on_migrated(audit, ASI_CODEC_OK == event->code);
        world->migrations += ASI_CODEC_OK == event->code ? 1 : 0;
    }
}

static void update_channel(sim_world *world)
{
    audited *recording = world_pick(world, world_percent(world, 70) ? AUDIT_STOPPED : AUDIT_ACTIVE);
    char channel[256];
    if (NULL == recording || recording->asked_channel != recording->channel ||
        (AUDIT_ACTIVE == recording->life && recording->original >= 0)) /* an empty copy gets the source's descriptor meanwhile */
    {
        return;
    }
    asi_codec_request request = world_request(ASI_CODEC_UPDATE_CHANNEL, recording->id);
    recording->asked_channel = 1 + (int32_t)world_below(world, 1000000);
    audit_channel(recording->asked_channel, channel, sizeof(channel));
    request.channel = asi_codec_text(channel);
    sim_trace("recording %" PRId64 " gets channel %d", recording->id, recording->asked_channel);
    const int64_t errors = world->disk.errors;
    const asi_codec_event *event = world_ask(world, &request);
    if (NULL == event || (ASI_CODEC_OK != event->code && errors != world->disk.errors))
    {
        return;
    }
    recording->channel = ASI_CODEC_OK == event->code ? recording->asked_channel : recording->channel;
    recording->asked_channel = recording->channel;
}

void world_keep_up(sim_world *world, int64_t kind)
{
    if (kind < 8)
    {
        truncate_one(world);
    }
    else if (kind < 12)
    {
        purge_some(world);
    }
    else if (kind < 17)
    {
        purge_segments(world, world_percent(world, 30) ? ASI_CODEC_PURGE_SEGMENTS : ASI_CODEC_DETACH_SEGMENTS);
    }
    else if (kind < 18)
    {
        delete_detached(world);
    }
    else if (kind < 21)
    {
        attach(world);
    }
    else if (kind < 27)
    {
        migrate(world);
    }
    else
    {
        update_channel(world);
    }
}
