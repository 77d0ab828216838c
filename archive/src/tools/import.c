/* Writes recordings of captured bytes; see as_import.h. Uses the recorder's writers of segments and time index, so that the files
 * are those that an archive would have written. Frames are collected in blocks, as an image's block poll delivers them. */
#include "aeron_spark/as_import.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "store/catalog.h"
#include "store/recover.h"
#include "store/segment_layout.h"
#include "store/segment_write.h"
#include "store/time_index_write.h"
#include "tools/lock.h"
#include "wire/frame_check.h"

#define BLOCK_LENGTH (1024 * 1024)
#define TIME_INTERVAL_NS (10 * 1000 * 1000) /* as the archive's defaults */
#define TIME_INTERVAL_BYTES (1024 * 1024)
#define MAX_MESSAGE_LENGTH (16 * 1024 * 1024)
#define MOST_AWAKE 256 /* recordings with a block and files: a process commonly may have 1024 files */

struct as_import
{
    asi_catalog *catalog;
    asi_tool_lock lock;
    char dir[AS_PATH_MAX];
    int64_t uses;                            /* of recordings */
    as_import_recording *awake[MOST_AWAKE];  /* borrowed; NULL: free */
};

struct as_import_recording
{
    as_import *import; /* borrowed */
    int64_t id;
    int64_t used;      /* number of its last use */
    asi_segment_writer *writer; /* owned, as `times` and `block`; NULL while it sleeps */
    asi_time_writer *times;
    int64_t start_position;
    int64_t position;  /* behind the block */
    int32_t initial_term_id;
    int32_t term_length;
    int32_t segment_length;
    int32_t session_id;
    int32_t stream_id;
    int32_t max_payload;
    int64_t last_ns;
    int64_t block_length;
    uint8_t *block;    /* BLOCK_LENGTH */
};

/* -- datagrams ------------------------------------------------------------------------------------------------------------ */

/* Length of the longest data frame; -1: the frames are of several streams or terms, or something follows padding, which ends a
 * term. Of frames whose extent is known to be right. */
static int32_t longest_frame(const uint8_t *bytes, int64_t length)
{
    const asi_frame_header *first = (const asi_frame_header *)(const void *)bytes;
    int32_t longest = 0;
    for (int64_t at = 0; at < length;)
    {
        const asi_frame_header *frame = (const asi_frame_header *)(const void *)(bytes + at);
        at += asi_frame_occupancy(frame->frame_length);
        if (frame->session_id != first->session_id || frame->stream_id != first->stream_id || frame->term_id != first->term_id ||
            (ASI_FRAME_PAD == frame->type && at < length))
        {
            return -1;
        }
        longest = ASI_FRAME_DATA == frame->type && frame->frame_length > longest ? frame->frame_length : longest;
    }
    return longest;
}

static as_datagram datagram_of(const uint8_t *bytes, int64_t length)
{
    _Alignas(8) uint8_t aligned[ASI_DATAGRAM_MAX_LENGTH + 5];
    as_datagram found = { .kind = AS_DATAGRAM_FOREIGN };
    if (length < (int64_t)sizeof(asi_frame_prefix) || length > ASI_DATAGRAM_MAX_LENGTH)
    {
        return found;
    }
    memcpy(aligned, bytes, (size_t)length);
    if (ASI_DATAGRAM_ACCEPTED == asi_check_control_datagram_untrusted(aligned, length))
    {
        found.kind = AS_DATAGRAM_CONTROL;
        return found;
    }
    if (ASI_DATAGRAM_ACCEPTED != asi_check_data_datagram_untrusted(aligned, length))
    {
        return found;
    }
    if (ASI_FRAME_SETUP == ((const asi_frame_prefix *)(const void *)aligned)->type)
    {
        const asi_setup_frame *setup = (const asi_setup_frame *)(const void *)aligned;
        return (as_datagram){ .kind = AS_DATAGRAM_SETUP, .session_id = setup->session_id, .stream_id = setup->stream_id,
            .term_id = setup->active_term_id, .term_offset = setup->term_offset, .initial_term_id = setup->initial_term_id,
            .term_length = setup->term_length, .mtu_length = setup->mtu_length };
    }
    if (asi_is_heartbeat(aligned, length))
    {
        found.kind = AS_DATAGRAM_CONTROL;
        return found;
    }
    const asi_frame_header *frame = (const asi_frame_header *)(const void *)aligned;
    const int64_t extent = asi_data_extent_untrusted(aligned, length);
    const int32_t longest = extent > 0 && extent <= AS_TERM_MAX_LENGTH ? longest_frame(aligned, length) : -1;
    if (longest >= 0)
    {
        found = (as_datagram){ .kind = AS_DATAGRAM_FRAMES, .session_id = frame->session_id, .stream_id = frame->stream_id,
            .term_id = frame->term_id, .term_offset = frame->term_offset, .extent = (int32_t)extent,
            .longest = longest };
    }
    return found;
}

void as_datagrams_read(const uint8_t *bytes, const int64_t *start, const int64_t *length, int64_t count, as_datagram *datagrams)
{
    for (int64_t i = 0; i < count; i++)
    {
        datagrams[i] = datagram_of(bytes + start[i], length[i]);
    }
}

/* -- folder --------------------------------------------------------------------------------------------------------------- */

as_result as_import_open(const char *archive_dir, as_import **import_out)
{
    as_import *import = calloc(1, sizeof(*import));
    if (NULL == import)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for an import into %s", archive_dir);
    }
    as_result result = AS_OK;
    if (strlen(archive_dir) >= sizeof(import->dir))
    {
        result = asi_fail(AS_E_USAGE, ENAMETOOLONG, "archive folder name is too long: %s", archive_dir);
    }
    else
    {
        memcpy(import->dir, archive_dir, strlen(archive_dir));
        result = asi_tool_lock_take(&import->lock, archive_dir);
    }
    if (AS_OK == result)
    {
        const asi_catalog_params params = { .files = asi_file_ops_posix(), .archive_dir = import->dir,
            .capacity = ASI_CATALOG_DEFAULT_CAPACITY, .checksum = AS_CHECKSUM_NONE };
        result = asi_catalog_open(&params, &import->catalog);
    }
    if (AS_OK == result)
    {
        /* A power failure may have taken the records of the newest recordings, and left their segments. */
        bool is_clean;
        result = asi_recover_leftovers(import->catalog, asi_file_ops_posix(), import->dir, &is_clean);
    }
    if (AS_OK != result)
    {
        as_import_close(import);
        return result;
    }
    *import_out = import;
    return AS_OK;
}

void as_import_close(as_import *import)
{
    if (NULL != import)
    {
        asi_catalog_close(import->catalog);
        asi_tool_lock_release(&import->lock);
        free(import);
    }
}

/* -- recordings ----------------------------------------------------------------------------------------------------------- */

static bool is_power_of_two(int64_t value) { return value > 0 && 0 == (value & (value - 1)); }

static as_result check(const as_recording *recording)
{
    const int64_t term = recording->term_buffer_length, segment = recording->segment_file_length;
    const bool is_possible = is_power_of_two(term) && term >= AS_TERM_MIN_LENGTH && term <= AS_TERM_MAX_LENGTH &&
        is_power_of_two(segment) && segment >= term && segment <= ASI_SEGMENT_MAX_LENGTH && recording->start_position >= 0 &&
        0 == recording->start_position % AS_FRAME_ALIGNMENT && 0 == recording->mtu_length % AS_FRAME_ALIGNMENT &&
        recording->mtu_length > AS_FRAME_HEADER_LENGTH && recording->mtu_length <= AS_MAX_UDP_PAYLOAD_LENGTH;
    return is_possible ? AS_OK :
        asi_fail(AS_E_USAGE, 0, "no recording has start position %" PRId64 ", term length %d, segment length %d and MTU %d",
            recording->start_position, recording->term_buffer_length, recording->segment_file_length, recording->mtu_length);
}

static as_result open_writers(as_import_recording *made)
{
    const asi_file_ops *files = asi_file_ops_posix();
    asi_catalog_record record;
    if (!asi_catalog_find(made->import->catalog, made->id, &record))
    {
        return asi_fail(AS_E_INTERNAL, 0, "recording %" PRId64 " is not in the catalog", made->id);
    }
    const asi_segment_writer_params segments = { .files = files, .archive_dir = made->import->dir, .recording_id = made->id,
        .start_position = made->start_position, .join_position = made->position,
        .initial_term_id = made->initial_term_id, .term_length = made->term_length, .segment_length = made->segment_length,
        .checksum = AS_CHECKSUM_NONE };
    const as_result result = asi_segment_writer_open(&segments, &made->writer);
    if (AS_OK != result)
    {
        return result;
    }
    const asi_time_era era = asi_time_era_of(&record);
    const asi_time_writer_params times = { .files = files, .archive_dir = made->import->dir, .recording_id = made->id,
        .join_position = made->position, .interval_ns = TIME_INTERVAL_NS, .interval_bytes = TIME_INTERVAL_BYTES,
        .known_era = era, .era = era, .term_length = made->term_length, .segment_length = made->segment_length };
    return asi_time_writer_open(&times, &made->times);
}

static as_result flush(as_import_recording *recording)
{
    if (0 == recording->block_length)
    {
        return AS_OK;
    }
    asi_tool_lock_beat(&recording->import->lock);
    const int64_t length = recording->block_length;
    recording->block_length = 0;
    return asi_segment_writer_append(recording->writer, recording->block, length);
}

/* Gives its files and its block back; what is in the block must be written. */
static void let_go(as_import_recording *recording)
{
    for (int i = 0; i < MOST_AWAKE; i++)
    {
        if (recording == recording->import->awake[i])
        {
            recording->import->awake[i] = NULL;
        }
    }
    asi_segment_writer_close(recording->writer);
    if (NULL != recording->times)
    {
        (void)asi_time_writer_close(recording->times);
    }
    free(recording->block);
    recording->writer = NULL;
    recording->times = NULL;
    recording->block = NULL;
}

void as_import_recording_close(as_import_recording *recording)
{
    if (NULL != recording)
    {
        let_go(recording);
        free(recording);
    }
}

/* Before something is appended: opens files, and takes a block. When too many are awake, the one that was used longest ago sleeps. */
static as_result wake(as_import_recording *recording)
{
    as_import *import = recording->import;
    recording->used = ++import->uses;
    if (NULL != recording->writer)
    {
        return AS_OK;
    }
    int place = 0;
    for (int i = 0; i < MOST_AWAKE && NULL != import->awake[place]; i++)
    {
        if (NULL == import->awake[i] || import->awake[i]->used < import->awake[place]->used)
        {
            place = i;
        }
    }
    as_result result = AS_OK;
    if (NULL != import->awake[place])
    {
        result = flush(import->awake[place]);
        let_go(import->awake[place]);
    }
    recording->block = aligned_alloc(AS_FRAME_ALIGNMENT, BLOCK_LENGTH);
    if (AS_OK == result && NULL == recording->block)
    {
        result = asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for a recording of %s", import->dir);
    }
    import->awake[place] = recording;
    return AS_OK == result ? open_writers(recording) : result;
}

as_result as_import_begin(as_import *import, const as_recording *recording, int64_t *id, as_import_recording **made_out)
{
    as_result result = check(recording);
    if (AS_OK != result)
    {
        return result;
    }
    as_import_recording *made = calloc(1, sizeof(*made));
    if (NULL == made)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for a recording of %s", import->dir);
    }
    *made = (as_import_recording){ .import = import, .start_position = recording->start_position,
        .position = recording->start_position,
        .initial_term_id = recording->initial_term_id, .term_length = recording->term_buffer_length,
        .segment_length = recording->segment_file_length, .session_id = recording->session_id,
        .stream_id = recording->stream_id, .max_payload = recording->mtu_length - AS_FRAME_HEADER_LENGTH };
    asi_tool_lock_beat(&import->lock);
    const asi_recording_params params = { .start_timestamp_ms = recording->start_timestamp_ms,
        .stop_timestamp_ms = AS_NULL_VALUE, .start_position = recording->start_position, .stop_position = AS_NULL_VALUE,
        .initial_term_id = recording->initial_term_id, .segment_file_length = recording->segment_file_length,
        .term_buffer_length = recording->term_buffer_length, .mtu_length = recording->mtu_length,
        .session_id = recording->session_id, .stream_id = recording->stream_id,
        .stripped_channel = asi_text_of(recording->stripped_channel),
        .original_channel = asi_text_of(recording->original_channel),
        .source_identity = asi_text_of(recording->source_identity) };
    result = asi_catalog_add(import->catalog, &params, &made->id);
    result = AS_OK == result ? wake(made) : result;
    if (AS_OK != result)
    {
        as_import_recording_close(made);
        return result;
    }
    *id = made->id;
    *made_out = made;
    return AS_OK;
}

static int64_t term_offset_of(const as_import_recording *recording)
{
    return recording->position & ((int64_t)recording->term_length - 1);
}

/* Room for `length` bytes of frames at the recording's position. */
static as_result take(as_import_recording *recording, int64_t length, uint8_t **room)
{
    as_result result = AS_OK;
    if (recording->block_length + length > BLOCK_LENGTH)
    {
        result = flush(recording);
    }
    *room = recording->block + recording->block_length;
    return result;
}

/* Counts `length` bytes of the block. A block ends where a term does, since a segment may end there. */
static as_result commit(as_import_recording *recording, int64_t length)
{
    recording->block_length += length;
    recording->position += length;
    return 0 == term_offset_of(recording) ? flush(recording) : AS_OK;
}

/* Padding is a block of its own, of which only the header is written. */
static as_result pad(as_import_recording *recording, const uint8_t *header, int64_t extent)
{
    _Alignas(8) uint8_t frame[AS_FRAME_HEADER_LENGTH];
    memcpy(frame, header, sizeof(frame));
    as_result result = flush(recording);
    result = AS_OK == result ? asi_segment_writer_append(recording->writer, frame, extent) : result;
    recording->position += AS_OK == result ? extent : 0;
    return result;
}

static void mark_time(as_import_recording *recording, int64_t from, int64_t time_ns)
{
    recording->last_ns = time_ns > recording->last_ns ? time_ns : recording->last_ns;
    asi_time_writer_add(recording->times, from, recording->position - from, recording->last_ns);
}

static as_result fail_frame(const as_import_recording *recording)
{
    return asi_fail(AS_E_DATA, 0, "recording %" PRId64 " at position %" PRId64 ": the bytes to import are no frames of it",
        recording->id, recording->position);
}

/* Frames of one datagram: in runs of data, and padding alone. */
static as_result add_datagram(as_import_recording *recording, const uint8_t *bytes, int64_t length)
{
    int64_t at = 0;
    while (at < length)
    {
        asi_frame_header frame;
        if (length - at < (int64_t)sizeof(frame))
        {
            return fail_frame(recording);
        }
        memcpy(&frame, bytes + at, sizeof(frame));
        const int64_t occupied = asi_frame_occupancy(frame.frame_length);
        const bool is_padding = ASI_FRAME_PAD == frame.type;
        const int64_t held = is_padding ? length - at : occupied; /* padding is last; few senders send its body */
        if (frame.frame_length < AS_FRAME_HEADER_LENGTH || frame.type > ASI_FRAME_DATA || held > length - at ||
            (!is_padding && occupied > BLOCK_LENGTH) || frame.session_id != recording->session_id ||
            frame.term_offset != term_offset_of(recording) || occupied > recording->term_length - frame.term_offset ||
            frame.stream_id != recording->stream_id ||
            frame.term_id != asi_segment_term_id(recording->position, recording->term_length, recording->initial_term_id))
        {
            return fail_frame(recording);
        }
        uint8_t *room = NULL;
        as_result result = is_padding ? pad(recording, bytes + at, occupied) : take(recording, occupied, &room);
        if (AS_OK == result && !is_padding)
        {
            memcpy(room, bytes + at, (size_t)occupied);
            result = commit(recording, occupied);
        }
        if (AS_OK != result)
        {
            return result;
        }
        at += held;
    }
    return AS_OK;
}

as_result as_import_frames(as_import_recording *recording, const as_import_stretches *stretches)
{
    const as_result awake = wake(recording);
    if (AS_OK != awake)
    {
        return awake;
    }
    for (int64_t i = 0; i < stretches->count; i++)
    {
        const int64_t from = recording->position;
        const as_result result = add_datagram(recording, stretches->bytes + stretches->start[i], stretches->length[i]);
        if (AS_OK != result)
        {
            return result;
        }
        mark_time(recording, from, stretches->time_ns[i]);
    }
    return AS_OK;
}

int64_t as_import_max_message_length(const as_import_recording *recording)
{
    const int64_t most = recording->term_length / 8;
    return most < MAX_MESSAGE_LENGTH ? most : MAX_MESSAGE_LENGTH;
}

static asi_frame_header header_at(const as_import_recording *recording, int64_t length, uint8_t flags, uint16_t type, int64_t time_ns)
{
    return (asi_frame_header){ .frame_length = (int32_t)length, .flags = flags, .type = type,
        .term_offset = (int32_t)term_offset_of(recording), .session_id = recording->session_id,
        .stream_id = recording->stream_id,
        .term_id = asi_segment_term_id(recording->position, recording->term_length, recording->initial_term_id),
        .reserved_value = time_ns };
}

/* One message in as many frames as it needs, all of them in one term. */
static as_result add_message(as_import_recording *recording, const uint8_t *bytes, int64_t length, int64_t time_ns)
{
    const int64_t payload = recording->max_payload;
    const int64_t whole = length / payload;
    const int64_t rest = length % payload;
    const int64_t extent = whole * (payload + AS_FRAME_HEADER_LENGTH) +
        (rest > 0 || 0 == whole ? asi_align_i64(rest + AS_FRAME_HEADER_LENGTH, AS_FRAME_ALIGNMENT) : 0);
    const int64_t left = recording->term_length - term_offset_of(recording);
    as_result result = AS_OK;
    if (extent > left)
    {
        const asi_frame_header padding = header_at(recording, left, ASI_FLAG_UNFRAGMENTED, ASI_FRAME_PAD, 0);
        result = pad(recording, (const uint8_t *)&padding, left);
    }
    int64_t done = 0;
    uint8_t flags = ASI_FLAG_BEGIN;
    do
    {
        const int64_t part = length - done < payload ? length - done : payload;
        const int64_t occupied = asi_frame_occupancy((int32_t)(part + AS_FRAME_HEADER_LENGTH));
        flags |= done + part == length ? ASI_FLAG_END : 0;
        uint8_t *room = NULL;
        result = AS_OK == result ? take(recording, occupied, &room) : result;
        if (AS_OK != result)
        {
            return result;
        }
        const asi_frame_header header = header_at(recording, part + AS_FRAME_HEADER_LENGTH, flags, ASI_FRAME_DATA, time_ns);
        memcpy(room, &header, sizeof(header));
        memcpy(room + sizeof(header), bytes + done, (size_t)part);
        memset(room + sizeof(header) + part, 0, (size_t)(occupied - part) - sizeof(header));
        result = commit(recording, occupied);
        done += part;
        flags = 0;
    }
    while (AS_OK == result && done < length);
    return result;
}

as_result as_import_messages(as_import_recording *recording, const as_import_stretches *stretches)
{
    const int64_t most = as_import_max_message_length(recording);
    const as_result awake = wake(recording);
    if (AS_OK != awake)
    {
        return awake;
    }
    for (int64_t i = 0; i < stretches->count; i++)
    {
        const int64_t from = recording->position;
        const int64_t length = stretches->length[i];
        if (length < 0 || length > most)
        {
            return asi_fail(AS_E_USAGE, 0, "recording %" PRId64 " at position %" PRId64 ": a message of %" PRId64
                " bytes, terms of %d bytes hold messages of %" PRId64 " at most", recording->id, from, length,
                recording->term_length, most);
        }
        const as_result result =
            add_message(recording, stretches->bytes + stretches->start[i], length, stretches->time_ns[i]);
        if (AS_OK != result)
        {
            return result;
        }
        mark_time(recording, from, stretches->time_ns[i]);
    }
    return AS_OK;
}

as_result as_import_end(as_import_recording *recording, int64_t stop_timestamp_ms, int64_t *position)
{
    as_result result = flush(recording);
    if (AS_OK == result)
    {
        result = asi_catalog_stop(recording->import->catalog, recording->id, recording->position, stop_timestamp_ms);
        *position = recording->position;
    }
    return result;
}
