/* See uses.h. */
#include "server/uses.h"

#include "server/archive.h"
#include "store/segment_layout.h"

void asi_uses_add(as_archive *archive, asi_use *use)
{
    use->next = archive->uses->first[use->kind];
    archive->uses->first[use->kind] = use;
    archive->uses->count[use->kind]++;
}

void asi_uses_remove(as_archive *archive, asi_use *use)
{
    for (asi_use **at = &archive->uses->first[use->kind]; NULL != *at; at = &(*at)->next)
    {
        if (*at == use)
        {
            *at = use->next;
            archive->uses->count[use->kind]--;
            return;
        }
    }
}

static asi_use *find(const as_archive *archive, asi_use_kind kind, int64_t recording_id)
{
    asi_use *at = archive->uses->first[kind];
    while (NULL != at && at->recording_id != recording_id)
    {
        at = at->next;
    }
    return at;
}

asi_recorded *asi_uses_recorded(const as_archive *archive, int64_t recording_id)
{
    const asi_use *use = find(archive, ASI_USE_RECORDS, recording_id);
    return NULL == use ? NULL : use->recorded;
}

int64_t asi_uses_recorded_position(const as_archive *archive, int64_t recording_id)
{
    const asi_recorded *recorded = asi_uses_recorded(archive, recording_id);
    return NULL == recorded ? AS_NULL_VALUE : asi_load_acquire_i64(&recorded->position);
}

const asi_replay_session *asi_uses_replay(const as_archive *archive, int64_t recording_id)
{
    const asi_use *use = find(archive, ASI_USE_REPLAYS, recording_id);
    return NULL == use ? NULL : use->replay;
}

const asi_replay_session *asi_uses_replay_before(
    const as_archive *archive, int64_t recording_id, int64_t position, int64_t *segment_base)
{
    for (const asi_use *at = archive->uses->first[ASI_USE_REPLAYS]; NULL != at; at = at->next)
    {
        const asi_segment_source *source = &at->replay->source;
        const int64_t reached = asi_load_acquire_i64(&at->replay->reached_position);
        *segment_base = asi_segment_base(source->start_position, reached, source->term_length, source->segment_length);
        if (at->recording_id == recording_id && *segment_base < position)
        {
            return at->replay;
        }
    }
    return NULL;
}

void asi_uses_abort_replays(as_archive *archive, int64_t recording_id)
{
    for (const asi_use *at = archive->uses->first[ASI_USE_REPLAYS]; NULL != at; at = at->next)
    {
        if (at->recording_id == recording_id)
        {
            asi_store_release_bool(&at->replay->is_aborted, true);
        }
    }
}

const asi_use *asi_uses_deletion(const as_archive *archive, int64_t recording_id)
{
    return find(archive, ASI_USE_DELETES, recording_id);
}

static int64_t replayed_end(const asi_replay_session *replay)
{
    return NULL == replay->recorded ? replay->recording_end : asi_load_acquire_i64(&replay->recorded->position);
}

const char *asi_uses_holding_tail(const as_archive *archive, const asi_catalog_record *record)
{
    const asi_use *deletion = asi_uses_deletion(archive, record->recording_id);
    if (NULL != deletion && deletion->end_position > record->stop_position)
    {
        return "an outstanding delete operation";
    }
    for (const asi_use *at = archive->uses->first[ASI_USE_REPLAYS]; NULL != at; at = at->next)
    {
        if (at->recording_id == record->recording_id && replayed_end(at->replay) > record->stop_position)
        {
            return "a replay of bytes that it no longer has, which were migrated: stop it, or wait for its end";
        }
    }
    return NULL;
}
