/* Creates a disk, cuts its power, and reads its state; see sim_disk.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_disk_state.h"
#include "sim_trace.h"

typedef enum cut_kind
{
    CUT_KEEPS_ALL,
    CUT_KEEPS_NONE,
    CUT_BY_PAGE,
    CUT_BY_SECTOR,
    CUT_KIND_COUNT
} cut_kind;

void sim_disk_init(sim_disk *disk, const char *folder, uint64_t seed, int64_t capacity_bytes)
{
    memset(disk, 0, sizeof(*disk));
    snprintf(disk->folder, sizeof(disk->folder), "%s", folder);
    asi_rand_seed(&disk->rand, seed);
    disk->capacity_pages = capacity_bytes / SIM_DISK_PAGE;
    disk->calls_to_kill = -1;
    disk->can_punch = sim_disk_below(disk, 2) > 0;
    disk->can_link = sim_disk_below(disk, 4) > 0;
}

void sim_disk_close(sim_disk *disk)
{
    for (int32_t i = 0; i < disk->file_count; i++)
    {
        sim_file *file = disk->files[i];
        for (int64_t k = 0; k < file->page_capacity; k++)
        {
            free(file->pages[k]);
        }
        free(file->pages);
        free(file);
    }
    disk->file_count = 0;
}

void sim_disk_killed(sim_disk *disk)
{
    memset(disk->open, 0, sizeof(disk->open));
    disk->on_kill = NULL;
    disk->calls_to_kill = -1;
}

/* Which sectors of a page reach the disk by luck. */
static uint8_t lucky_sectors(sim_disk *disk, cut_kind kind)
{
    switch (kind)
    {
        case CUT_KEEPS_ALL:
            return SIM_DISK_ALL_SECTORS;
        case CUT_BY_PAGE:
            return sim_disk_below(disk, 2) > 0 ? SIM_DISK_ALL_SECTORS : 0;
        case CUT_BY_SECTOR:
            return (uint8_t)sim_disk_below(disk, 256);
        case CUT_KEEPS_NONE:
        default:
            return 0;
    }
}

static bool is_lucky(sim_disk *disk, cut_kind kind)
{
    return CUT_KEEPS_ALL == kind || (CUT_KEEPS_NONE != kind && sim_disk_below(disk, 2) > 0);
}

static void cut_file(sim_disk *disk, sim_file *file, cut_kind kind)
{
    if (file->size != file->disk_size && is_lucky(disk, kind))
    {
        file->disk_size = file->size;
    }
    disk->injected[SIM_DISK_LOST_LENGTH] += file->size != file->disk_size ? 1 : 0;
    file->size = file->disk_size;
    for (int64_t i = 0; i < file->page_capacity; i++)
    {
        sim_page *page = file->pages[i];
        if (NULL == page)
        {
            continue;
        }
        if (0 != page->dirty)
        {
            const uint8_t lost = (uint8_t)(page->dirty & ~lucky_sectors(disk, kind));
            page->dirty &= (uint8_t)~lost;
            sim_disk_sync_page(page);
            disk->injected[SIM_DISK_LOST_SECTOR] += __builtin_popcount(lost);
        }
        memcpy(page->now, page->disk, SIM_DISK_PAGE);
        page->is_used = false;
        const int64_t inside = file->size - i * SIM_DISK_PAGE;
        if (inside < SIM_DISK_PAGE) /* what lies behind the end is not read, and is zero when the file grows again */
        {
            memset(page->now + (inside > 0 ? inside : 0), 0, (size_t)(inside > 0 ? SIM_DISK_PAGE - inside : SIM_DISK_PAGE));
            memcpy(page->disk, page->now, SIM_DISK_PAGE);
        }
    }
}

static bool is_zero_page(const sim_page *page)
{
    return 0 == page->now[0] && 0 == memcmp(page->now, page->now + 1, SIM_DISK_PAGE - 1);
}

static void count_space(sim_disk *disk)
{
    disk->used_pages = 0;
    for (int32_t i = 0; i < disk->now.count; i++)
    {
        const sim_file *file = disk->now.entries[i].file;
        for (int64_t k = 0; k < file->page_capacity; k++)
        {
            if (NULL != file->pages[k] && !file->pages[k]->is_used && !is_zero_page(file->pages[k]))
            {
                file->pages[k]->is_used = true;
                disk->used_pages++;
            }
        }
    }
}

void sim_disk_cut_power(sim_disk *disk)
{
    const cut_kind kind = (cut_kind)sim_disk_below(disk, CUT_KIND_COUNT);
    static const char *const kinds[] = { "all", "nothing", "some pages", "some sectors" };
    sim_trace("disk: power is cut, %s of what was not synced is there", kinds[kind]);
    disk->injected[SIM_DISK_POWER_CUT]++;
    for (int32_t i = 0; i < disk->pending_count; i++)
    {
        if (is_lucky(disk, kind))
        {
            sim_disk_name(&disk->disk, &disk->pending[i]);
        }
        else
        {
            disk->injected[SIM_DISK_LOST_NAME]++;
        }
    }
    disk->pending_count = 0;
    disk->now = disk->disk;
    for (int32_t i = 0; i < disk->file_count; i++)
    {
        cut_file(disk, disk->files[i], kind);
    }
    count_space(disk);
}

void sim_disk_write_back(sim_disk *disk)
{
    if (0 == disk->now.count)
    {
        return;
    }
    sim_file *file = disk->now.entries[sim_disk_below(disk, disk->now.count)].file;
    for (int64_t i = 0; i < file->page_capacity; i++)
    {
        if (NULL != file->pages[i] && 0 != file->pages[i]->dirty && sim_disk_below(disk, 3) == 0)
        {
            sim_disk_sync_page(file->pages[i]);
        }
    }
    if (sim_disk_below(disk, 3) == 0)
    {
        file->disk_size = file->size;
    }
    if (disk->pending_count > 0 && sim_disk_below(disk, 3) == 0)
    {
        sim_disk_name(&disk->disk, &disk->pending[0]);
        memmove(disk->pending, disk->pending + 1, (size_t)--disk->pending_count * sizeof(disk->pending[0]));
    }
}

int64_t sim_disk_size_of(const sim_disk *disk, const char *file_name)
{
    const sim_entry *entry = sim_disk_find_entry((sim_folder *)(uintptr_t)&disk->now, file_name);
    return NULL == entry ? -1 : entry->file->size;
}

void sim_disk_leave(sim_disk *disk, const char *file_name, const void *from, int64_t length, int64_t offset)
{
    sim_file *file = sim_disk_find_entry(&disk->now, file_name)->file;
    for (int64_t done = 0; done < length; done++)
    {
        sim_page *page = sim_disk_make_page(file, (offset + done) / SIM_DISK_PAGE);
        const uint8_t byte = ((const uint8_t *)from)[done];
        page->now[(offset + done) % SIM_DISK_PAGE] = byte;
        page->disk[(offset + done) % SIM_DISK_PAGE] = byte;
        disk->used_pages += page->is_used ? 0 : 1;
        page->is_used = true;
    }
}

void sim_disk_read(const sim_disk *disk, const char *file_name, void *to, int64_t length, int64_t offset)
{
    const sim_entry *entry = sim_disk_find_entry((sim_folder *)(uintptr_t)&disk->now, file_name);
    memset(to, 0, (size_t)length);
    if (NULL != entry && offset < entry->file->size)
    {
        const int64_t left = entry->file->size - offset;
        sim_disk_read_pages(entry->file, to, left < length ? left : length, offset);
    }
}
