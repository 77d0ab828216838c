/* See sim_disk_state.h. */
#include "sim_disk_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_machine.h"
#include "sim_trace.h"

int64_t sim_disk_below(sim_disk *disk, int64_t bound) { return sim_random_below(&disk->rand, bound); }

/* -- files ---------------------------------------------------------------------------------------------------------------- */

sim_page *sim_disk_page_at(const sim_file *file, int64_t index)
{
    return index < file->page_capacity ? file->pages[index] : NULL;
}

sim_page *sim_disk_make_page(sim_file *file, int64_t index)
{
    if (index >= file->page_capacity)
    {
        const int64_t capacity = index + 64;
        sim_page **pages = realloc(file->pages, (size_t)capacity * sizeof(*pages));
        if (NULL == pages)
        {
            sim_fail("setup", "no memory for the disk");
        }
        memset(pages + file->page_capacity, 0, (size_t)(capacity - file->page_capacity) * sizeof(*pages));
        file->pages = pages;
        file->page_capacity = capacity;
    }
    if (NULL == file->pages[index])
    {
        file->pages[index] = calloc(1, sizeof(sim_page));
    }
    return file->pages[index];
}

sim_file *sim_disk_make_file(sim_disk *disk)
{
    if (SIM_DISK_MAX_FILES == disk->file_count)
    {
        sim_fail("setup", "more than %d files", SIM_DISK_MAX_FILES);
    }
    sim_file *file = calloc(1, sizeof(*file));
    disk->files[disk->file_count++] = file;
    return file;
}

void sim_disk_sync_page(sim_page *page)
{
    for (int32_t i = 0; i < SIM_DISK_SECTORS; i++)
    {
        if (0 != (page->dirty & (1 << i)))
        {
            memcpy(page->disk + i * SIM_DISK_SECTOR, page->now + i * SIM_DISK_SECTOR, SIM_DISK_SECTOR);
        }
    }
    page->dirty = 0;
}

void sim_disk_read_pages(const sim_file *file, uint8_t *to, int64_t length, int64_t offset)
{
    for (int64_t done = 0; done < length;)
    {
        const int64_t at = offset + done;
        const int64_t in_page = at % SIM_DISK_PAGE;
        const int64_t count = SIM_DISK_PAGE - in_page < length - done ? SIM_DISK_PAGE - in_page : length - done;
        const sim_page *page = sim_disk_page_at(file, at / SIM_DISK_PAGE);
        if (NULL == page)
        {
            memset(to + done, 0, (size_t)count);
        }
        else
        {
            memcpy(to + done, page->now + in_page, (size_t)count);
        }
        done += count;
    }
}

/* -- names ---------------------------------------------------------------------------------------------------------------- */

sim_entry *sim_disk_find_entry(sim_folder *folder, const char *name)
{
    for (int32_t i = 0; i < folder->count; i++)
    {
        if (0 == strcmp(folder->entries[i].name, name))
        {
            return &folder->entries[i];
        }
    }
    return NULL;
}

static void put_entry(sim_folder *folder, const char *name, sim_file *file)
{
    sim_entry *entry = sim_disk_find_entry(folder, name);
    if (NULL == entry)
    {
        if (SIM_DISK_MAX_ENTRIES == folder->count)
        {
            sim_fail("setup", "more than %d names", SIM_DISK_MAX_ENTRIES);
        }
        entry = &folder->entries[folder->count++];
        snprintf(entry->name, sizeof(entry->name), "%s", name);
    }
    entry->file = file;
}

static void remove_entry(sim_folder *folder, const char *name)
{
    sim_entry *entry = sim_disk_find_entry(folder, name);
    if (NULL != entry)
    {
        *entry = folder->entries[--folder->count];
    }
}

void sim_disk_name(sim_folder *folder, const sim_naming *naming)
{
    if ('\0' != naming->from[0])
    {
        remove_entry(folder, naming->from);
    }
    if ('\0' != naming->to[0])
    {
        put_entry(folder, naming->to, naming->file);
    }
}

void sim_disk_change_names(sim_disk *disk, const char *from, const char *to, sim_file *file)
{
    if (SIM_DISK_MAX_PENDING == disk->pending_count)
    {
        sim_disk_name(&disk->disk, &disk->pending[0]);
        memmove(disk->pending, disk->pending + 1, (size_t)--disk->pending_count * sizeof(disk->pending[0]));
    }
    sim_naming *naming = &disk->pending[disk->pending_count++];
    *naming = (sim_naming){ .file = file };
    snprintf(naming->from, sizeof(naming->from), "%s", from);
    snprintf(naming->to, sizeof(naming->to), "%s", to);
    sim_disk_name(&disk->now, naming);
}
