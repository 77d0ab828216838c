/* See auditor.h. */
#include "auditor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "sim_trace.h"
#include "store/checksum.h"
#include "wire/frame.h"

#define MAX_FRAME (64 * 1024)

/* -- the auditor's records -------------------------------------------------------------------------------------------------- */

audited *auditor_add(auditor *audit, const audited *recording)
{
    if (AUDIT_MAX_RECORDINGS == audit->count)
    {
        sim_fail("setup", "more than %d recordings", AUDIT_MAX_RECORDINGS);
    }
    audit->recordings[audit->count] = *recording;
    return &audit->recordings[audit->count++];
}

audited *auditor_find(auditor *audit, int64_t id)
{
    for (int32_t i = 0; i < audit->count; i++)
    {
        if (audit->recordings[i].id == id && AUDIT_FORGOTTEN != audit->recordings[i].life)
        {
            return &audit->recordings[i];
        }
    }
    return NULL;
}

static void append_frame(audited *recording, audit_frame frame)
{
    if (recording->frame_count == recording->frame_capacity)
    {
        recording->frame_capacity = recording->frame_capacity * 2 + 64;
        recording->frames = realloc(recording->frames, (size_t)recording->frame_capacity * sizeof(*recording->frames));
        if (NULL == recording->frames)
        {
            sim_fail("setup", "no memory for what was published");
        }
    }
    recording->frames[recording->frame_count++] = frame;
}

void auditor_on_published(const auditor *audit, audited *recording, int64_t end, int32_t length, int32_t max_payload, uint64_t message)
{
    int64_t begin = end;
    for (int32_t left = length, first = 1; left > 0 || first; first = 0)
    {
        const int32_t payload = left < max_payload ? left : max_payload;
        begin -= asi_align_i64((int64_t)payload + AS_FRAME_HEADER_LENGTH, AS_FRAME_ALIGNMENT);
        left -= payload;
    }
    for (int32_t offset = 0; begin < end;)
    {
        const int32_t payload = length - offset < max_payload ? length - offset : max_payload;
        const int64_t next = begin + asi_align_i64((int64_t)payload + AS_FRAME_HEADER_LENGTH, AS_FRAME_ALIGNMENT);
        append_frame(recording, (audit_frame){ .begin = begin, .end = next, .length = payload, .offset = offset,
            .message = message, .not_before = *audit->now_ns + audit->epoch_ns });
        offset += payload;
        begin = next;
    }
    recording->published = end;
}

void auditor_on_recorded(auditor *audit, int64_t id, int64_t position)
{
    audited *recording = auditor_find(audit, id);
    if (NULL == recording || position <= recording->recorded)
    {
        return;
    }
    for (int64_t i = recording->frame_count - 1; i >= 0 && recording->frames[i].end > recording->recorded; i--)
    {
        if (recording->frames[i].end <= position)
        {
            recording->frames[i].not_before = audit->round_ns + audit->epoch_ns;
            recording->frames[i].seen = *audit->now_ns + audit->epoch_ns;
        }
    }
    recording->recorded = position;
}

void auditor_on_stopped(auditor *audit, int64_t id, int64_t position, bool is_doubtful)
{
    audited *recording = auditor_find(audit, id);
    if (NULL == recording)
    {
        return;
    }
    if (position < recording->recorded)
    {
        sim_fail("lost", "recording %" PRId64 " stops at %" PRId64 ", %" PRId64 " was told as recorded", id, position,
            recording->recorded);
    }
    recording->recorded = position;
    recording->stop = position;
    recording->is_stop_doubtful = is_doubtful;
    recording->life = AUDIT_ACTIVE == recording->life || AUDIT_ASKED == recording->life ? AUDIT_STOPPED : recording->life;
    if (recording->asked_start == recording->start) /* else its first segments may just have gone */
    {
        auditor_check_frames(audit, recording, position);
    }
    asi_catalog_record record;
    if (AUDIT_STOPPED == recording->life && asi_catalog_find(audit->catalog, id, &record))
    {
        const bool has_other_head = recording == audit->migration.dst && NULL != audit->migration.src; /* not answered yet */
        auditor_check_times(audit, recording, &record,
            !has_other_head && recording->starts_asked == audit->starts && recording->errors_asked == audit->disk->errors);
    }
}

void auditor_on_copying(const auditor *audit, audited *copy, const audited *original)
{
    auditor_cut(copy, copy->stop);
    for (int64_t i = 0; i < original->frame_count; i++)
    {
        audit_frame frame = original->frames[i];
        frame.not_before = *audit->now_ns + audit->epoch_ns;
        if (frame.begin >= copy->stop)
        {
            append_frame(copy, frame);
        }
    }
    copy->published = original->stop;
}

void auditor_cut(audited *recording, int64_t position)
{
    while (recording->frame_count > 0 && recording->frames[recording->frame_count - 1].end > position)
    {
        recording->frame_count--;
    }
    recording->published = position;
    recording->recorded = position;
    recording->stop = position;
}

void auditor_on_power_cut(auditor *audit)
{
    for (int32_t i = 0; i < audit->count; i++)
    {
        audited *recording = &audit->recordings[i];
        if (0 == audit->catalog_sync_level)
        {
            recording->life = AUDIT_FORGOTTEN;
        }
        else if (0 == audit->file_sync_level && recording->is_moving)
        {
            recording->life = AUDIT_FORGOTTEN;
        }
        else if (0 == audit->file_sync_level && AUDIT_PURGED != recording->life && AUDIT_FORGOTTEN != recording->life)
        {
            recording->is_tainted = true;
            recording->life = AUDIT_ASKED == recording->life ? AUDIT_ASKED :
                AUDIT_PURGING == recording->life ? AUDIT_FORGOTTEN : AUDIT_TAINTED;
        }
    }
    if (0 == audit->catalog_sync_level)
    {
        audit->highest_id = -1;
    }
}

void auditor_close(auditor *audit)
{
    for (int32_t i = 0; i < audit->count; i++)
    {
        free(audit->recordings[i].frames);
    }
}

/* -- frames ----------------------------------------------------------------------------------------------------------------- */

void audit_fill(uint64_t message, uint8_t *to, int64_t length, int64_t offset)
{
    for (int64_t i = 0; i < length; i++)
    {
        const int64_t at = offset + i;
        to[i] = 0 == message ? 0 : (uint8_t)((message >> (8 * (at % 8))) + (uint64_t)at * 31);
    }
}

int64_t audit_base_of(const audited *recording, int64_t position)
{
    const int64_t first = recording->start - recording->start % recording->term_length;
    return first + (position - first) / recording->segment_length * recording->segment_length;
}

static void name_of(const audited *recording, int64_t base, char *to, size_t capacity)
{
    snprintf(to, capacity, "%" PRId64 "-%" PRId64 ".rec", recording->id, base);
}

/* The bytes at a position, which lie in one segment. */
static void read_at(const auditor *audit, const audited *recording, int64_t position, void *to, int64_t length)
{
    char name[SIM_DISK_NAME];
    const int64_t base = audit_base_of(recording, position);
    name_of(recording, base, name, sizeof(name));
    if (sim_disk_size_of(audit->disk, name) < 0)
    {
        sim_fail("lost", "%s is missing, recording %" PRId64 " reaches beyond %" PRId64, name, recording->id, position);
    }
    sim_disk_read(audit->disk, name, to, length, position - base);
}

static void check_header(const audited *recording, int64_t position, const asi_frame_header *frame, int32_t length, bool is_padding)
{
    const int32_t term_id =
        (int32_t)((uint32_t)recording->initial_term_id + (uint32_t)(position / recording->term_length));
    const int32_t type = asi_frame_is_padding(frame) ? 0 : 1;
    if (frame->frame_length != length || frame->term_offset != position % recording->term_length || frame->term_id != term_id ||
        frame->stream_id != recording->stream_id || type != (is_padding ? 0 : 1))
    {
        sim_fail(0 == frame->frame_length ? "lost" : "invented", "recording %" PRId64 " at %" PRId64 ": frame of length=%d offset=%d "
            "term=%d stream=%d type=%d, published was length=%d type=%d", recording->id, position, frame->frame_length,
            frame->term_offset, frame->term_id, frame->stream_id, type, length, is_padding ? 0 : 1);
    }
}

static void check_padding(const auditor *audit, const audited *recording, int64_t position, int64_t end)
{
    asi_frame_header header;
    read_at(audit, recording, position, &header, sizeof(header));
    check_header(recording, position, &header, (int32_t)(end - position), true);
}

static void check_data(auditor *audit, const audited *recording, const audit_frame *frame)
{
    static uint8_t bytes[MAX_FRAME + 64];
    static uint8_t expected[MAX_FRAME + 64];
    const int64_t payload = frame->end - frame->begin - AS_FRAME_HEADER_LENGTH;
    read_at(audit, recording, frame->begin, bytes, frame->end - frame->begin);
    const asi_frame_header *header = (const asi_frame_header *)(const void *)bytes;
    check_header(recording, frame->begin, header, frame->length + AS_FRAME_HEADER_LENGTH, false);
    memset(expected, 0, (size_t)payload);
    audit_fill(frame->message, expected, frame->length, frame->offset);
    const uint8_t *actual = bytes + AS_FRAME_HEADER_LENGTH;
    for (int64_t i = 0; i < payload; i++)
    {
        if (actual[i] != expected[i])
        {
            sim_fail("invented", "recording %" PRId64 " at %" PRId64 ": byte %" PRId64 " of the payload of %d is %d, published was "
                "%d", recording->id, frame->begin, i, frame->length, actual[i], expected[i]);
        }
    }
    const asi_frame_checksum checksum = asi_checksum_function(audit->checksum);
    if (NULL != checksum && checksum(actual, payload) != (uint32_t)header->session_id)
    {
        sim_fail("invented", "recording %" PRId64 " at %" PRId64 ": the checksum is not the payload's", recording->id, frame->begin);
    }
    audit->checked_frames++;
    audit->checked_bytes += frame->length;
}

void auditor_check_frames(auditor *audit, audited *recording, int64_t stop)
{
    if (AUDIT_TAINTED == recording->life || AUDIT_FORGOTTEN == recording->life)
    {
        return;
    }
    int64_t position = recording->start;
    for (int64_t i = 0; i < recording->frame_count && position < stop; i++)
    {
        const audit_frame *frame = &recording->frames[i];
        if (frame->end <= position)
        {
            continue; /* before the start: purged */
        }
        if (frame->begin > position)
        {
            check_padding(audit, recording, position, frame->begin);
            position = frame->begin;
        }
        if (position < stop)
        {
            check_data(audit, recording, frame);
            position = frame->end;
        }
    }
    if (position < stop && 0 == stop % recording->term_length && stop - position < recording->term_length)
    {
        check_padding(audit, recording, position, stop); /* the message that did not fit is not published yet */
        position = stop;
    }
    if (position != stop)
    {
        sim_fail("position", "recording %" PRId64 " stops at %" PRId64 ", frames end at %" PRId64, recording->id, stop, position);
    }
}

/* -- the catalog's bytes ---------------------------------------------------------------------------------------------------- */

void auditor_check_catalog(auditor *audit)
{
    const int64_t length = sim_disk_size_of(audit->disk, "archive.catalog");
    if (length < 32)
    {
        sim_fail("catalog", "the catalog has %" PRId64 " bytes", length);
    }
    uint8_t *bytes = malloc((size_t)length);
    sim_disk_read(audit->disk, "archive.catalog", bytes, length, 0);
    if (0x00030100 != asi_get_i32(bytes) || 32 != asi_get_i32(bytes + 4) || 64 != asi_get_i32(bytes + 16))
    {
        sim_fail("catalog", "header: version=%x length=%d alignment=%d", asi_get_i32(bytes), asi_get_i32(bytes + 4),
            asi_get_i32(bytes + 16));
    }
    const asi_frame_checksum checksum = asi_checksum_function(audit->checksum);
    int64_t last_id = -1;
    int64_t at = 32;
    for (; at + 32 <= length && asi_get_i32(bytes + at) > 0; at += 32 + asi_get_i32(bytes + at))
    {
        const int32_t frame = asi_get_i32(bytes + at);
        const int32_t state = asi_get_i32(bytes + at + 4);
        const int64_t id = asi_get_i64(bytes + at + 48);
        if (frame % 64 != 32 || at + 32 + frame > length)
        {
            sim_fail("catalog", "record at %" PRId64 " has the length %d", at, frame);
        }
        if (state != ASI_RECORDING_VALID)
        {
            last_id = id > last_id ? id : last_id;
            continue;
        }
        if (id <= last_id)
        {
            sim_fail("catalog", "record at %" PRId64 " has the id %" PRId64 " after %" PRId64, at, id, last_id);
        }
        last_id = id;
        if (NULL != checksum && checksum(bytes + at + 32, frame) != (uint32_t)asi_get_i32(bytes + at + 8))
        {
            sim_fail("catalog", "recording %" PRId64 ": the record's checksum is not that of its bytes", id);
        }
    }
    if (asi_get_i64(bytes + 8) <= last_id)
    {
        sim_fail("catalog", "the next id is %" PRId64 ", recording %" PRId64 " exists", asi_get_i64(bytes + 8), last_id);
    }
    if (at + 4 <= length && 0 != asi_get_i32(bytes + at))
    {
        sim_fail("catalog", "no end behind the last record, at %" PRId64, at);
    }
    free(bytes);
}

/* -- after a start ---------------------------------------------------------------------------------------------------------- */

static void check_files(const auditor *audit, const audited *recording, int64_t stop)
{
    char name[SIM_DISK_NAME];
    for (int64_t base = audit_base_of(recording, recording->start); stop > recording->start && base < stop; base += recording->segment_length)
    {
        name_of(recording, base, name, sizeof(name));
        const int64_t size = sim_disk_size_of(audit->disk, name);
        const bool is_last = stop - base < recording->segment_length;
        if (is_last ? size < stop - base : size != recording->segment_length)
        {
            sim_fail("segments", "%s has %" PRId64 " bytes, recording %" PRId64 " goes to %" PRId64, name, size, recording->id, stop);
        }
    }
    const bool may_be_left_out = stop == recording->cut || audit->disk->errors != recording->errors_asked; /* by a full disk */
    if (stop > recording->start && audit_base_of(recording, stop) == stop && !may_be_left_out)
    {
        name_of(recording, stop, name, sizeof(name));
        if (sim_disk_size_of(audit->disk, name) != recording->segment_length)
        {
            sim_fail("segments", "%s is missing behind a full segment: tools take the recording for damaged", name);
        }
    }
}

void audit_channel(int32_t number, char *to, size_t capacity)
{
    static const char filler[] = "a-channel-of-many-lengths-so-that-its-record-moves-those-behind-it-to-where-another-sector-begins-and-"
        "so-long-that-most-records-lie-in-two-sectors-of-which-a-power-cut-may-leave-one-without-the-other-if-they-were-not-made-"
        "durable";
    snprintf(to, capacity, "aeron:ipc?alias=%.*s-%d", number * 37 % (int32_t)(sizeof(filler) - 1), filler, number);
}

static bool has_channel(const asi_catalog_record *found, int32_t number)
{
    char text[256];
    audit_channel(number, text, sizeof(text));
    return (int32_t)strlen(text) == found->original_channel.length &&
        0 == memcmp(text, found->original_channel.at, strlen(text));
}

static void settle_channel(audited *recording, const asi_catalog_record *found)
{
    if (recording->asked_channel != recording->channel && has_channel(found, recording->asked_channel))
    {
        recording->channel = recording->asked_channel;
    }
    recording->asked_channel = recording->channel;
    if (0 != recording->channel && !has_channel(found, recording->channel))
    {
        sim_fail("channel", "recording %" PRId64 " has the channel %.*s, the one given last is number %d", recording->id,
            found->original_channel.length, found->original_channel.at, recording->channel);
    }
}

/* The files decide what was in doubt; they must show one of the two. */
static void settle(auditor *audit, audited *recording, const asi_catalog_record *found)
{
    const int64_t id = recording->id;
    const bool is_attached = recording->is_attaching && found->start_position >= recording->attach_low &&
        found->start_position < recording->start;
    if (found->start_position != recording->start && found->start_position != recording->asked_start && !is_attached)
    {
        sim_fail("position", "recording %" PRId64 " starts at %" PRId64 ", not at %" PRId64, id, found->start_position,
            recording->start);
    }
    recording->start = found->start_position;
    recording->asked_start = found->start_position;
    recording->is_attaching = false;
    recording->attach_low = recording->attach_low < recording->start ? recording->attach_low : recording->start;
    recording->attach_sure = recording->attach_sure < recording->start ? recording->attach_sure : recording->start;
    settle_channel(recording, found);
    const int64_t stop = found->stop_position;
    const bool is_cut = -1 != recording->asked_stop && stop == recording->asked_stop;
    recording->cut = is_cut ? stop : recording->cut;
    if (AUDIT_TAINTED != recording->life && !is_cut)
    {
        if (stop < recording->recorded)
        {
            sim_fail("lost", "recording %" PRId64 " stops at %" PRId64 ", %" PRId64 " was told as recorded", id, stop,
                recording->recorded);
        }
        if (stop > recording->published && stop - recording->published >= recording->term_length)
        {
            sim_fail("invented", "recording %" PRId64 " stops at %" PRId64 ", published was up to %" PRId64, id, stop,
                recording->published);
        }
        if (AUDIT_STOPPED == recording->life && !recording->is_stop_doubtful && stop != recording->stop)
        {
            sim_fail("position", "recording %" PRId64 " stops at %" PRId64 ", it was told to stop at %" PRId64, id, stop,
                recording->stop);
        }
    }
    recording->asked_stop = -1;
    recording->is_stop_doubtful = false;
    if (AUDIT_TAINTED != recording->life)
    {
        check_files(audit, recording, stop);
        auditor_check_frames(audit, recording, stop);
        recording->life = AUDIT_STOPPED;
    }
    auditor_cut(recording, stop);
    if (AUDIT_STOPPED == recording->life)
    {
        auditor_check_times(audit, recording, found, false);
    }
}

/* A recording of a request that was never answered. */
static audited *adopt(auditor *audit, const asi_catalog_record *found)
{
    for (int32_t i = 0; found->recording_id > audit->oldest_id && i < audit->count; i++)
    {
        audited *recording = &audit->recordings[i];
        if (AUDIT_ASKED == recording->life && recording->stream_id == found->stream_id && recording->id < 0 &&
            recording->start == found->start_position)
        {
            recording->id = found->recording_id;
            recording->recorded = recording->start;
            recording->life = recording->is_tainted ? AUDIT_TAINTED : AUDIT_ASKED;
            return recording;
        }
    }
    return NULL;
}

static void check_purged(const auditor *audit, const audited *recording)
{
    for (int32_t i = 0; i < audit->disk->now.count; i++)
    {
        const char *name = audit->disk->now.entries[i].name;
        char *end;
        const int64_t id = strtoll(name, &end, 10);
        if (end != name && '-' == *end && id == recording->id)
        {
            sim_fail("segments", "%s is there, recording %" PRId64 " was purged", name, recording->id);
        }
    }
}

void auditor_on_started(auditor *audit, asi_catalog *catalog)
{
    auditor_check_catalog(audit);
    audit->catalog = catalog;
    audit->starts++;
    auditor_settle_migration(audit, catalog);
    for (int64_t i = 0; i < asi_catalog_count(catalog); i++)
    {
        asi_catalog_record found;
        asi_catalog_at(catalog, i, &found);
        audited *recording = auditor_find(audit, found.recording_id);
        recording = NULL == recording ? adopt(audit, &found) : recording;
        if (found.stop_position < found.start_position)
        {
            sim_fail("position", "recording %" PRId64 " is stopped at %" PRId64 " after the start", found.recording_id,
                found.stop_position);
        }
        if (NULL == recording)
        {
            if (audit->catalog_sync_level > 0 && found.recording_id > audit->highest_id)
            {
                sim_fail("unknown", "recording %" PRId64 " of stream %d appears", found.recording_id, found.stream_id);
            }
            continue;
        }
        if (AUDIT_PURGED == recording->life)
        {
            sim_fail("unknown", "recording %" PRId64 " was purged and is back", found.recording_id);
        }
        settle(audit, recording, &found);
    }
    for (int32_t i = 0; i < audit->count; i++)
    {
        audited *recording = &audit->recordings[i];
        asi_catalog_record found;
        const bool is_there = recording->id >= 0 && asi_catalog_find(catalog, recording->id, &found);
        if (!is_there && (AUDIT_ACTIVE == recording->life || AUDIT_STOPPED == recording->life || AUDIT_TAINTED == recording->life))
        {
            sim_fail("lost", "recording %" PRId64 " is gone", recording->id);
        }
        if (!is_there && AUDIT_PURGING == recording->life)
        {
            recording->life = AUDIT_PURGED;
        }
        if (!is_there && AUDIT_ASKED == recording->life)
        {
            recording->life = AUDIT_FORGOTTEN;
        }
        /* What a disk refuses to delete is tried again at the next start. */
        if (AUDIT_PURGED == recording->life && audit->errors_before_start == audit->disk->errors)
        {
            check_purged(audit, recording);
        }
    }
    audit->oldest_id = -1;
    for (int64_t i = 0; i < asi_catalog_count(catalog); i++)
    {
        asi_catalog_record found;
        asi_catalog_at(catalog, i, &found);
        audit->oldest_id = found.recording_id > audit->oldest_id ? found.recording_id : audit->oldest_id;
    }
    for (int32_t i = 0; i < audit->count; i++)
    {
        const audited *recording = &audit->recordings[i];
        if (AUDIT_FORGOTTEN != recording->life && recording->id > audit->highest_id)
        {
            audit->highest_id = recording->id;
        }
    }
}
