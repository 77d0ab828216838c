/* The auditor's part for migrations; see auditor.h. First the destination's position moves to include the bytes, then the
 * source's moves back. After a death the bytes may belong to the source, to both or to the destination, but never to none; also on
 * a disk without hard links, where the next start puts the names in order. */
#include <stdlib.h>
#include <string.h>

#include "auditor.h"
#include "sim_trace.h"

static bool is_head(const audited *src, const audited *dst) { return src->stop == dst->start; }

/* The source's frames are the destination's as well. */
static void join(audited *src, audited *dst)
{
    const bool comes_before = is_head(src, dst);
    audited *first = comes_before ? src : dst;
    audited *second = comes_before ? dst : src;
    auditor_cut(first, first->stop);
    int64_t skipped = 0;
    while (skipped < second->frame_count && second->frames[skipped].end <= second->start)
    {
        skipped++; /* detached, or purged */
    }
    const int64_t count = first->frame_count + second->frame_count - skipped;
    audit_frame *frames = malloc((size_t)(count + 1) * sizeof(*frames));
    if (NULL == frames)
    {
        sim_fail("setup", "no memory for what was published");
    }
    memcpy(frames, first->frames, (size_t)first->frame_count * sizeof(*frames));
    memcpy(frames + first->frame_count, second->frames + skipped, (size_t)(second->frame_count - skipped) * sizeof(*frames));
    free(dst->frames);
    dst->frames = frames;
    dst->frame_count = count;
    dst->frame_capacity = count + 1;
    dst->original = -1;
    dst->starts_asked = -1; /* the source's times may be missing */
    if (comes_before)
    {
        dst->start = src->start;
        dst->asked_start = src->start;
        dst->attach_sure = src->start;
        dst->attach_low = dst->attach_low < src->start ? dst->attach_low : src->start;
        return;
    }
    dst->published = src->published;
    dst->recorded = src->recorded;
    dst->stop = src->stop;
    dst->cut = src->cut;
}

static void finish(auditor *audit, bool has_joined, bool is_emptied)
{
    audited *src = audit->migration.src;
    audited *dst = audit->migration.dst;
    sim_trace("migration of recording %" PRId64 " to %" PRId64 ": %s", src->id, dst->id,
        is_emptied ? "done" : has_joined ? "the bytes are both's" : "as before");
    if (has_joined)
    {
        join(src, dst);
    }
    if (is_emptied)
    {
        auditor_cut(src, src->start);
        src->cut = src->start;
    }
    src->is_moving = false;
    dst->is_moving = false;
    audit->migration = (audit_migration){ 0 };
}

static void forget(auditor *audit)
{
    audit->migration.src->life = AUDIT_FORGOTTEN;
    audit->migration.dst->life = AUDIT_FORGOTTEN;
    finish(audit, false, false);
}

void auditor_on_migrating(auditor *audit, audited *src, audited *dst)
{
    audit->migration = (audit_migration){ .src = src, .dst = dst };
    src->is_moving = true;
    dst->is_moving = true;
}

static bool has_moved(const audited *src, const audited *dst, const asi_catalog_record *found)
{
    return is_head(src, dst) ? found->start_position == src->start : found->stop_position == src->stop;
}

void auditor_on_migrated(auditor *audit, bool is_done)
{
    const audited *src = audit->migration.src;
    const audited *dst = audit->migration.dst;
    asi_catalog_record found;
    if (is_done && (!asi_catalog_find(audit->catalog, dst->id, &found) || !has_moved(src, dst, &found)))
    {
        sim_fail("position", "recording %" PRId64 " was told to have got the segments of %" PRId64, dst->id, src->id);
    }
    finish(audit, is_done, is_done);
}

void auditor_settle_migration(auditor *audit, asi_catalog *catalog)
{
    const audited *src = audit->migration.src;
    const audited *dst = audit->migration.dst;
    asi_catalog_record at_src;
    asi_catalog_record at_dst;
    if (NULL == src)
    {
        return;
    }
    if (AUDIT_FORGOTTEN == src->life || AUDIT_FORGOTTEN == dst->life)
    {
        forget(audit);
        return;
    }
    if (!asi_catalog_find(catalog, src->id, &at_src) || !asi_catalog_find(catalog, dst->id, &at_dst))
    {
        sim_fail("lost", "recording %" PRId64 " or %" PRId64 ", of which one was migrated, is gone", src->id, dst->id);
    }
    const bool has_joined = has_moved(src, dst, &at_dst);
    const bool is_emptied = at_src.stop_position == src->start;
    if (is_emptied && !has_joined)
    {
        sim_fail("lost", "the bytes of recording %" PRId64 " were migrated, and recording %" PRId64 " has not got them", src->id,
            dst->id);
    }
    finish(audit, has_joined, is_emptied);
}
